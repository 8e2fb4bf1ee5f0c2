"""What each side does off the usual way: states before a handshake, and peers that break the protocol."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.log import GroupCommit
from replispec.runtime.rocketmq.replication import HaReplica
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Note,
    Outbox,
    Received,
    Send,
    Writes,
)
from replispec.wire.rocketmq.constants import LOG_OFFSET_MAX
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from replispec.wire.rocketmq.machines import ha_replica
from replispec.wire.rocketmq.options import ReplicationOptions
from tests.runtime.log.sample_logs import disk, log_bytes, message, store_on, with_epochs
from tests.runtime.replication.pairs import MasterSide, Reader

PEER, MASTER = 5, -1
HANDSHAKE = HaHandshakeId(broker_id=2).encode()
ANSWER = HaHandshakeAnswer(342, 1, [HaEpochEntry(1, 0)]).encode()


class Master(MasterSide):
    """A master with one connection, of which nothing came yet."""

    def __init__(self) -> None:
        super().__init__(with_epochs(store_on(disk()), 3))
        self.ha.accepted(Accepted(PEER, "ha", "peer", 0))

    def says(self, data: bytes, now_ms: int = 0) -> list[Effect]:
        """What the master does when these bytes come."""
        self.ha.received(Received(PEER, data, now_ms))
        return list(self.outbox.take())

    def at(self, now_ms: int) -> list[Effect]:
        """What it does when time has passed."""
        self.ha.ticked(now_ms)
        return list(self.outbox.take())


class Replica:
    """A replica that has dialled, with an empty log."""

    def __init__(self) -> None:
        self.store, self.outbox, self.reader = store_on(disk()), Outbox(), Reader()
        commit = GroupCommit(self.outbox, Writes(self.outbox), self.store)
        settings = ReplicationOptions(flush_disk_type="ASYNC_FLUSH")
        self.ha = HaReplica(self.outbox, self.store, commit, self.reader, settings, broker_id=2)
        self.ha.follow("127.0.0.1:1", 0)

    def connected(self) -> Replica:
        """The same, with its handshake sent."""
        self.ha.connected(Connected(MASTER, "local", 0))
        self.outbox.take()
        return self

    def says(self, *messages: bytes) -> list[Effect]:
        """What the replica does when these bytes come."""
        for data in messages:
            if self.ha.owns(MASTER):
                self.ha.received(Received(MASTER, data, 0))
        return list(self.outbox.take())

    def at(self, now_ms: int) -> list[Effect]:
        """What it does when time has passed."""
        self.ha.ticked(now_ms)
        return list(self.outbox.take())


def blamed(effects: list[Effect]) -> str:
    """The clauses that the peer broke, for which its connection was closed."""
    assert [type(effect) for effect in effects if isinstance(effect, Close)] == [Close]
    notes = [effect.values for effect in effects if isinstance(effect, Note)]
    return next(str(each["clauses"]) for each in notes if "clauses" in each)


def run(offset: int, body: bytes = b"x" * 10) -> bytes:
    """A run of log bytes, or without bytes a heartbeat."""
    return HaTransferHeader(offset, 1, 0, 0, body).encode()


def test_a_replica_that_reports_before_its_handshake_is_dropped() -> None:
    assert blamed(Master().says(HaReport(0).encode())) == "RIP44-HANDSHAKE-4"


@pytest.mark.parametrize("offset", [343, 2**63 - 1, -1, -(2**63)])
def test_a_report_beyond_the_log_is_not_believed_first_or_later(offset: int) -> None:
    assert blamed(Master().says(HANDSHAKE + HaReport(offset).encode())) == "RIP44-REPORT-3 RIP44-SHRINK-1"
    late = Master()
    late.says(HANDSHAKE + HaReport(342).encode())
    assert blamed(late.says(HaReport(offset).encode())) == "RIP44-REPORT-3 RIP44-SHRINK-1"
    assert late.keeper.received == [("2 has", 342), ("expand", 2), ("shrink", 2)]


def test_a_second_handshake_is_answered_and_copying_goes_on_with_the_next_report() -> None:
    master = Master()
    master.says(HANDSHAKE + HaReport(342).encode())
    assert [type(effect) for effect in master.says(HANDSHAKE)] == [Send]
    master.store.put(message("new"))
    master.store.flush()
    master.ha.log_grew(0)
    assert master.outbox.take() == []
    sent = master.says(HaReport(342).encode())
    assert [isinstance(effect, Send) and effect.data[36:] for effect in sent] == [
        log_bytes(master.store)[342:]
    ]


def test_a_master_goes_on_while_a_replica_only_listens() -> None:
    master = Master()
    master.store.begin_as_master(7)
    master.ha.epoch_began(0)
    master.store.put(message("new"))
    master.store.flush()
    master.ha.log_grew(0)
    assert master.outbox.take() == []
    answer = HaHandshakeAnswer(master.store.log.end, 7, list(master.store.epochs.entries))
    assert master.says(HANDSHAKE) == [Send(PEER, answer.encode())]
    beyond = HaReport(master.store.log.end + 1)
    assert blamed(master.says(beyond.encode())) == "RIP44-REPORT-3 RIP44-SHRINK-1"


def test_a_replica_that_says_nothing_is_dropped_before_its_handshake_too() -> None:
    master = Master()
    assert master.at(19_999) == []
    assert Close(PEER) in master.at(20_000)
    assert master.ha.deadline_ms() is None


def test_a_master_that_stops_closes_connections_without_a_handshake_too() -> None:
    master = Master()
    master.ha.stop(0)
    assert master.outbox.take() == [Close(PEER)]


@pytest.mark.parametrize("body", [b"x", b""], ids=["bytes", "heartbeat"])
def test_a_master_that_sends_before_its_answer_is_left(body: bytes) -> None:
    replica = Replica().connected()
    assert blamed(replica.says(run(0, body))) == "RIP44-HANDSHAKE-3"
    assert replica.store.log.end == 0


def test_a_master_that_answers_while_it_sends_is_left() -> None:
    assert blamed(Replica().connected().says(ANSWER, ANSWER)) == "RIP44-HANDSHAKE-3"


@pytest.mark.parametrize("offset", [0, 9, 11, -1])
def test_bytes_that_do_not_continue_the_log_are_not_taken(offset: int) -> None:
    replica = Replica().connected()
    replica.says(ANSWER, run(0))
    assert blamed(replica.says(run(offset))) == "RIP44-CHAIN-1"
    assert replica.store.log.end == 10


@pytest.mark.parametrize("offset", [-(1 << 16), LOG_OFFSET_MAX + (1 << 16), (1 << 63) - (1 << 16)])
def test_an_empty_log_begins_where_a_file_can_be_named_and_an_end_be_told(offset: int) -> None:
    replica = Replica().connected()
    assert blamed(replica.says(ANSWER, run(offset))) == "RIP44-CHAIN-1"
    assert replica.store.log.end == 0


def test_an_empty_log_does_not_begin_inside_a_file() -> None:
    replica = Replica().connected()
    effects = replica.says(ANSWER, run(100))
    assert Close(MASTER) in effects
    assert replica.store.log.end == 0


def test_after_the_first_report_the_end_of_the_log_is_no_secret() -> None:
    replica = Replica().connected()
    replica.says(ANSWER)
    assert not replica.ha._variables.silent


def test_a_master_that_never_answers_is_left_and_dialled_again() -> None:
    replica = Replica().connected()
    assert replica.at(19_999) == []
    assert replica.at(20_000) == [Close(MASTER)]
    assert [type(effect) for effect in replica.at(25_000)] == [Dial]


def test_a_master_that_cannot_be_reached_is_dialled_again() -> None:
    replica = Replica()
    replica.outbox.take()
    replica.ha.closed(Closed(MASTER, "refused", 0))
    replica.outbox.take()
    assert replica.at(4_999) == []
    assert replica.at(5_000) == [Dial(-2, "127.0.0.1:1")]
    effects = replica.at(8_000)
    assert [type(effect) for effect in effects] == [Note, Close]
    assert replica.at(13_000) == [Dial(-3, "127.0.0.1:1")]


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_replica_can_stop_before_it_copies(is_connected: bool) -> None:
    replica = Replica()
    if is_connected:
        replica.connected()
    replica.outbox.take()
    replica.ha.stop(0)
    assert replica.outbox.take() == [Close(MASTER)]
    assert replica.ha.state is ha_replica.State.SHUTDOWN
    assert replica.ha.deadline_ms() is None
