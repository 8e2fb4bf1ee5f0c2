"""The HA master that the suite is tested against, without a socket: what a replica is sent, and when."""

import pytest

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.wire.rocketmq.ha import HaHandshakeAnswer, HaHandshakeId, HaReport, HaTransferHeader
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.ha_master import (
    BROKER_SET,
    MASTER,
    RECORDS_PER_EPOCH,
    GoodHaMaster,
    Link,
)
from tests.conformance.subjects.records import Alive, Effect, Hangup, Member, Reply

REPLICA = 2


class World:
    """One master and its controller, a clock that is set by hand, and one replica that both know."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.controller = GoodController(lambda: self.now_s, "127.0.0.1:9878")
        self.master = GoodHaMaster(lambda: self.now_s, self.controller)
        self.controller.sets[BROKER_SET].members[REPLICA] = Member("127.0.0.1:10921", "")
        self.controller.alive[BROKER_SET, REPLICA] = Alive(1, 0.0, 1e9, 3, 0, 0)

    def connected(self, *, learner: bool = False) -> tuple[Link, HaHandshakeAnswer]:
        """A connection whose handshake was answered."""
        link = self.master.opened(lambda: None)
        effects = self.master.receive(link, HaHandshakeId(broker_id=REPLICA, async_learner=learner))
        return link, HaHandshakeAnswer.decode(sent(effects)[0])

    @property
    def in_sync(self) -> list[int]:
        """The SyncStateSet as the controller has it."""
        return self.controller.sets[BROKER_SET].in_sync


def sent(effects: list[Effect]) -> list[bytes]:
    """The bytes of each message."""
    return [effect.data for effect in effects if isinstance(effect, Reply)]


def runs(effects: list[Effect]) -> list[HaTransferHeader]:
    """The runs and heartbeats among the effects."""
    return [HaTransferHeader.decode(data) for data in sent(effects)]


def test_a_replica_without_a_log_is_sent_sound_records_in_runs_that_stay_inside_their_epochs() -> None:
    world = World()
    link, answer = world.connected()
    copied = runs(world.master.receive(link, HaReport(0)))
    log = b"".join(run.body for run in copied)
    records = [LogRecord.decode(record) for record in FrameBuffer(COMMIT_LOG).receive(log)]
    assert len(log) == answer.max_offset
    assert len(records) == sum(RECORDS_PER_EPOCH)
    assert all(record.body_crc_holds for record in records)
    starts = {entry.epoch: entry.start_offset for entry in answer.entries}
    ends = dict(zip(starts, [*list(starts.values())[1:], answer.max_offset], strict=True))
    assert all(starts[run.epoch] == run.epoch_start_offset <= run.offset for run in copied)
    assert all(run.offset + len(run.body) <= ends[run.epoch] for run in copied)


@pytest.mark.parametrize(("learner", "in_sync"), [(False, [MASTER, REPLICA]), (True, [MASTER])])
def test_a_replica_that_has_caught_up_is_a_member_until_its_connection_ends_and_a_learner_never(
    learner: bool, in_sync: list[int]
) -> None:
    world = World()
    link, answer = world.connected(learner=learner)
    assert runs(world.master.receive(link, HaReport(answer.max_offset))) == []
    assert world.in_sync == in_sync
    world.master.closed(link, 0)
    assert world.in_sync == [MASTER]


def test_the_confirm_offset_waits_for_a_member() -> None:
    world = World()
    link, answer = world.connected()
    world.master.receive(link, HaReport(answer.max_offset))
    world.master.append()
    world.master.advance_confirm()
    assert [run.confirm_offset for run in runs(world.master.tick(link))] == [answer.max_offset]
    world.master.receive(link, HaReport(len(world.master.log)))
    assert world.master.confirm == len(world.master.log)


def test_a_report_before_the_handshake_or_beyond_the_log_is_a_fault_of_the_replica() -> None:
    world = World()
    link, answer = world.connected()
    with pytest.raises(RemoteProtocolError, match="mine is"):
        world.master.receive(link, HaReport(answer.max_offset + 1))
    with pytest.raises(RemoteProtocolError, match="before a handshake"):
        world.master.receive(world.master.opened(lambda: None), HaReport(0))


def test_a_quiet_replica_gets_heartbeats_until_it_was_silent_for_too_long() -> None:
    world = World()
    link, answer = world.connected()
    world.master.receive(link, HaReport(answer.max_offset))
    world.now_s = world.master.heartbeat_s
    assert [(run.offset, run.body) for run in runs(world.master.tick(link))] == [(answer.max_offset, b"")]
    world.now_s = world.master.housekeeping_s
    assert world.master.tick(link) == [Hangup()]
