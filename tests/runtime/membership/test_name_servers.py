"""Name servers hear of a broker as often as they must, and tell a replica where its master replicates."""

from __future__ import annotations

import zlib
from dataclasses import replace

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Announcement, NameServers
from replispec.runtime.world import Received
from replispec.wire.rocketmq.broker import (
    DataVersion,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import MASTER_SEARCH_MS, RETRY_MS
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.playbook import Answer, Playbook, deliver

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
        self.code: int = ResponseCode.SUCCESS
        self.holds = False
        self.held: list[Command] = []
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

    def answers_first(self) -> None:
        """What was asked first of those that are held is answered now, by whom it was asked."""
        header = RemotingHeader(
            code=self.code,
            opaque=self.held[0].header.opaque,
            flag=RemotingFlag.RESPONSE,
            ext_fields=dict(self.answer.to_ext_fields()),
        )
        answer = Received(-1, Command(header, b"").encode(), self.playbook.now_ms)
        self.playbook >> (lambda _now_ms: deliver(self.playbook.calls, answer))

    def _answered(self, command: Command) -> Answer | None:
        if self.holds:
            self.held.append(command)
            return None
        return Answer(self.code, self.answer.to_ext_fields())

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


# ---- what changed alone ----------------------------------------------------------------------------


def config(name: str, queues: int) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)


class Growing(Announcing):
    """A master with topics, and what its two name servers, both there, are told of them."""

    def __init__(self, suffices: bool | None) -> None:
        super().__init__(0)
        self.answer = RegisterBrokerResponse(changes_suffice=suffices)
        self.playbook.peers[SERVERS[1]] = self.playbook.peers[SERVERS[0]]
        self.counter = 0
        self.topics: dict[str, TopicConfig] = {}
        self.change("A", "B")

    def change(self, *names: str) -> None:
        self.counter += 1
        self.topics |= {name: config(name, self.counter) for name in names}
        table = TopicConfigTable(DataVersion(self.counter, 2, 3), None, dict(self.topics))
        assert self.said is not None
        self.said = replace(self.said, topics=table)

    def told(self, *, to: str = SERVERS[0]) -> tuple[int | None, list[str]]:
        """Since which version, and of which topics, a name server was told last."""
        body = next(each.body for at, each in reversed(self.playbook.requests) if at == to)
        said = RegisterBrokerBody.decode(body)
        assert said.topic_config_serialize_wrapper is not None
        since = None if said.changed_since is None else said.changed_since.counter
        return since, sorted(said.topic_config_serialize_wrapper.topic_config_table or {})


def test_a_name_server_that_has_all_is_told_what_changed_alone() -> None:
    master = Growing(suffices=True)
    master.announce()
    assert master.told() == (None, ["A", "B"])
    master.change("B", "C")
    master.announce()
    assert master.told() == (1, ["B", "C"])
    master.wait(PERIOD_MS)
    assert master.told() == (2, [])


def test_a_name_server_that_does_not_say_that_it_has_all_is_told_all() -> None:
    master = Growing(suffices=None)
    master.announce()
    master.change("B")
    master.announce()
    assert master.told() == (None, ["A", "B"])


def test_each_name_server_is_told_what_it_lacks() -> None:
    master = Growing(suffices=True)
    late = master.playbook.peers.pop(SERVERS[1])
    master.announce()
    master.change("B")
    master.playbook.peers[SERVERS[1]] = late
    master.announce()
    assert [master.told(to=each) for each in SERVERS] == [(1, ["B"]), (None, ["A", "B"])]


def test_who_refuses_what_changed_is_told_all_and_it_costs_no_line() -> None:
    master = Growing(suffices=True)
    master.announce()
    master.change("B")
    master.code = ResponseCode.SYSTEM_ERROR
    master.announce()
    assert master.told() == (1, ["B"])
    master.code = ResponseCode.SUCCESS
    master.wait(0)
    assert master.told() == (None, ["A", "B"])
    assert master.playbook.notes == []


def test_what_is_not_answered_yet_is_built_on_by_nothing() -> None:
    master = Growing(suffices=True)
    master.announce()
    master.change("B")
    master.holds = True
    master.announce()
    master.change("C")
    master.announce()
    assert master.told() == (None, ["A", "B", "C"])


def test_an_answer_to_what_was_told_before_says_nothing_of_the_newest() -> None:
    master = Growing(suffices=True)
    master.holds = True
    master.announce()
    master.change("B")
    master.announce()
    master.answers_first()
    master.change("C")
    master.announce()
    assert master.told() == (None, ["A", "B", "C"])


def test_another_address_or_office_is_told_with_all() -> None:
    for change in ({"address": "b:9"}, {"route_id": 3}, {"cluster_name": "D"}):
        master = Growing(suffices=True)
        master.announce()
        assert master.said is not None
        master.said = replace(master.said, **change)
        master.announce()
        assert master.told() == (None, ["A", "B"])
