"""A group made to read logical queues on from the messages of a time, over every border."""

from __future__ import annotations

import pytest

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.administrator.rocketmq.consumers import Reset, Rollback, TopicQueue, reset
from replispec.runtime.sim.world import START_MS
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER
from tests.administrator.own_brokers import TOPIC, CutOffError, OwnBrokers
from tests.administrator.test_brokers_that_leave import read
from tests.administrator.test_logical_queues_of_ours import NAMES, made, move

GROUP = "g"


class Crossed(OwnBrokers):
    """One logical queue of four messages at broker1, three at broker2, and two at broker1 again, all of which
    a group has read; `begun`: when each part began."""

    def __init__(self) -> None:
        super().__init__(2)
        made(self, 1)
        self.begun = [self._now()]
        self.writes(1, 0, 4)
        for number, queue, count in ((2, 1, 3), (1, 1, 2)):
            move(self, 0, number)
            self.world.run_for(2_000)
            self.begun.append(self._now())
            self.writes(number, queue, count)
        self.world.run_for(2_000)
        assert read(self, GROUP) == [(0, offset) for offset in range(9)]

    def _now(self) -> int:
        return START_MS + self.world.now_us // 1_000

    def resets(self, at_ms: int, *, cut: int | None = None, force: bool = True) -> Rollback:
        """What is said of the logical queue."""
        found = self.carried_out(reset(NAMES, Reset(GROUP, TOPIC, at_ms, force)), cut=cut)
        assert isinstance(found, list)
        one: Rollback = found[0]
        return one


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_group_reads_on_from_a_time_in_whichever_segment_its_messages_are(part: int) -> None:
    """Newer segments keep what the group had read of them, and are asked first."""
    brokers, then = Crossed(), (0, 4, 7)[part]
    queue = TopicQueue(TOPIC, LOGICAL_QUEUE_BROKER, 0)
    assert brokers.resets(brokers.begun[part]) == Rollback(queue, 9, 9, then, then)
    assert read(brokers, GROUP) == [(0, offset) for offset in range(then, 9)]
    # Forward again, to the end.
    assert brokers.resets(0).now == 0
    assert brokers.resets(-1).now == 9
    assert read(brokers, GROUP) == []


def test_without_force_a_group_is_moved_back_alone() -> None:
    brokers = Crossed()
    assert brokers.resets(brokers.begun[1], force=False).now == 4
    assert brokers.resets(brokers.begun[2], force=False) == Rollback(
        TopicQueue(TOPIC, LOGICAL_QUEUE_BROKER, 0), 9, 4, 7, 4
    )
    assert read(brokers, GROUP) == [(0, offset) for offset in range(4, 9)]


def test_a_command_that_is_cut_off_leaves_a_group_that_skips_nothing() -> None:
    """Before what the newest segment keeps is taken back, the group is where it was."""
    brokers, places = Crossed(), set()
    for cut in range(9, 30):
        try:
            brokers.resets(0, cut=cut)
        except CutOffError:
            places.add(brokers.resets(-1).before)
        else:
            break
    assert places == {9}
    assert cut < 29


def test_where_a_segment_cannot_be_asked_no_group_is_moved() -> None:
    brokers = Crossed()
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    with pytest.raises(NotAsWantedError, match="broker2"):
        brokers.resets(0)
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.world.run_for(3_000)
    assert read(brokers, GROUP) == []
