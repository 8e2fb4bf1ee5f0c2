"""Name servers hear of a broker as often as they must, and tell a replica where its master replicates."""

from __future__ import annotations

import zlib

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Announcement, NameServers
from replispec.wire.rocketmq.broker import (
    DataVersion,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfigTable,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import MASTER_SEARCH_MS, RETRY_MS
from tests.playbook import Answer, Playbook

PERIOD_MS = 30_000
SERVERS = ("127.0.0.1:9876", "127.0.0.2:9876")


class Announcing:
    """A broker that announces itself to two name servers, of which only the first is there."""

    def __init__(self, broker_id: int) -> None:
        self.answer = RegisterBrokerResponse()
        self.said: Announcement | None = Announcement(
            "C", "broker-a", broker_id, "b:1", "b:2", TopicConfigTable(DataVersion(1, 2, 3), None, {})
        )
        self.received: list[tuple[str, str]] = []
        self.is_right = True
        self.playbook = Playbook({SERVERS[0]: self._answered})
        self.servers = NameServers(
            self.playbook.outbox,
            self.playbook.calls,
            SERVERS,
            lambda: self.said,
            self._master_named,
            period_ms=PERIOD_MS,
        )

    def announce(self) -> None:
        self.playbook >> self.servers.announce

    def wait(self, passed_ms: int) -> None:
        self.playbook.now_ms += passed_ms
        self.playbook >> self.servers.ticked

    def count(self) -> int:
        return self.playbook.codes().count(RequestCode.REGISTER_BROKER)

    def _answered(self, _command: Command) -> Answer:
        return Answer(ext_fields=self.answer.to_ext_fields())

    def _master_named(self, address: str, ha_address: str, _now_ms: int) -> bool:
        self.received.append((address, ha_address))
        return self.is_right


def test_a_master_says_who_and_where_it_is_with_a_checksum() -> None:
    master = Announcing(0)
    master.announce()
    _, command = master.playbook.requests[0]
    header = RegisterBrokerRequest.from_ext_fields(command.header.ext_fields or {})
    assert (header.broker_id, header.broker_addr, header.ha_server_addr) == (0, "b:1", "b:2")
    assert header.body_crc32 == zlib.crc32(command.body) & 0x7FFFFFFF


def test_a_name_server_that_is_not_there_costs_one_line_and_is_asked_soon() -> None:
    master = Announcing(0)
    master.announce()
    master.wait(RETRY_MS)
    master.wait(RETRY_MS)
    assert master.count() == 3
    assert [note.what for note in master.playbook.notes] == ["a name server does not answer"]


def test_a_replica_hears_of_its_master_and_is_quiet_then() -> None:
    replica = Announcing(2)
    replica.playbook.peers[SERVERS[1]] = replica.playbook.peers[SERVERS[0]]
    replica.announce()
    assert (replica.count(), replica.received) == (2, [])
    replica.answer = RegisterBrokerResponse("m:2", "m:1")
    replica.is_right = False
    replica.wait(MASTER_SEARCH_MS)
    assert replica.received == [("m:1", "m:2")] * 2
    replica.is_right = True
    replica.wait(MASTER_SEARCH_MS)
    replica.wait(MASTER_SEARCH_MS)
    replica.wait(RETRY_MS)
    assert replica.count() == 6
    replica.wait(PERIOD_MS)
    assert replica.count() == 8


def test_who_has_no_role_says_nothing() -> None:
    nobody = Announcing(0)
    nobody.said = None
    nobody.announce()
    nobody.servers.leave(nobody.playbook.now_ms)
    nobody.playbook << []


def test_who_stops_says_so_and_nothing_more() -> None:
    master = Announcing(0)
    master.announce()
    master.servers.leave(master.playbook.now_ms)
    master.wait(PERIOD_MS)
    master.playbook << [RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER]
    assert master.servers.deadline_ms() is None
