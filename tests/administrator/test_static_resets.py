"""A group made to read a static topic on from the messages of a time, over the borders of items."""

from __future__ import annotations

from itertools import count

import pytest

from replispec.administrator.rocketmq import NotAsWantedError, static_topics
from replispec.administrator.rocketmq.consumers import Reset, Rollback, TopicQueue, reset
from replispec.administrator.rocketmq.plans import Asking, Plan, body_of, granted
from replispec.administrator.rocketmq.remapping import MappingRun, grown, remapped
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.runtime.sim.world import START_MS
from replispec.wire.rocketmq.client import (
    ClientHeartbeatRequest,
    ConsumerData,
    HeartbeatData,
    ResetOffsetBody,
    ResetOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import MOCK_BROKER_GLOBAL
from tests.administrator.own_brokers import NAME_SERVER, TOPIC, CutOffError, OwnBrokers
from tests.administrator.test_brokers_that_leave import read
from tests.broker.simulated_set import OK

NAMES = [NAME_SERVER]
EPOCHS = count(1_700_000_000_000)
GROUP = "g"
QUEUE = TopicQueue(TOPIC, MOCK_BROKER_GLOBAL, 0)
FIRST, SECOND, THIRD = range(4), range(10_000, 10_003), range(20_000, 20_002)
ALL = [(0, offset) for part in (FIRST, SECOND, THIRD) for offset in part]


class Remapped(OwnBrokers):
    """One logical queue of four messages at broker1, three at broker2, and two at broker1 again: a group has
    read all; `begun`: when each part began."""

    def __init__(self) -> None:
        super().__init__(2)
        self.begun: list[int] = []
        for broker, messages in (("broker1", 4), ("broker2", 3), ("broker1", 2)):
            at: TopicAtBrokers = self.carried_out(static_topics.known(NAMES, TOPIC))
            self._sets(self._planned(at, broker), at)
            self.begun.append(self._now())
            self.writes(int(broker[-1]), 0, messages)
            self.world.run_for(2_000)
        assert read(self, GROUP) == ALL

    def _planned(self, at: TopicAtBrokers, broker: str) -> MappingRun:
        every, now = ["broker1", "broker2"], next(EPOCHS)
        if not at.topic.parts:
            return grown(at.topic, 1, [broker], every, now)
        return remapped(at.topic, [broker], every, now)

    def _sets(self, run: MappingRun, at: TopicAtBrokers) -> None:
        self.carried_out(static_topics.carried_out(run, at.brokers))
        self.world.run_for(2_000)

    def _now(self) -> int:
        return START_MS + self.world.now_us // 1_000

    def resets(self, at_ms: int, *, cut: int | None = None, force: bool = True) -> Rollback:
        """What the command says of the logical queue."""
        found = self.carried_out(reset(NAMES, Reset(GROUP, TOPIC, at_ms, force)), cut=cut)
        assert isinstance(found, list)
        one: Rollback = found[0]
        return one

    def told_by_mqadmin(self, at_ms: int, *, force: bool = True) -> None:
        """222 at each broker, which knows its own items alone."""
        for address in self.addresses.values():
            # A broker of which a group never read knows no such group.
            self.carried_out(_heard_at(address))
            self.carried_out(_moved_at(address, at_ms, force=force))


def _heard_at(address: str) -> Plan[None]:
    header = UpdateConsumerOffsetRequest(consumer_group=GROUP, topic="T", queue_id=0, commit_offset=0)
    (reply,) = yield [Asking(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)]
    granted(reply)


def _moved_at(address: str, at_ms: int, *, force: bool) -> Plan[ResetOffsetBody]:
    header = ResetOffsetRequest(
        topic=TOPIC, group=GROUP, queue_id=-1, offset=-1, timestamp=at_ms, is_force=force
    )
    (reply,) = yield [Asking(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)]
    return body_of(reply, ResetOffsetBody)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_group_reads_a_static_topic_on_from_a_time_in_whichever_item_its_messages_are(part: int) -> None:
    brokers, then = Remapped(), (FIRST, SECOND, THIRD)[part][0]
    end = THIRD[-1] + 1
    assert brokers.resets(brokers.begun[part]) == Rollback(QUEUE, end, end, then, then)
    assert read(brokers, GROUP) == [each for each in ALL if each[1] >= then]
    assert brokers.resets(0).now == 0
    assert brokers.resets(-1) == Rollback(QUEUE, end, 0, end, end)
    assert read(brokers, GROUP) == []


def test_without_force_a_group_of_a_static_topic_is_moved_back_alone() -> None:
    brokers = Remapped()
    assert brokers.resets(brokers.begun[1], force=False).now == SECOND[0]
    found = brokers.resets(brokers.begun[2], force=False)
    assert (found.before, found.then, found.now) == (SECOND[0], THIRD[0], SECOND[0])
    assert read(brokers, GROUP) == [each for each in ALL if each[1] >= SECOND[0]]


def test_a_reset_of_a_static_topic_that_is_cut_off_leaves_a_group_that_skips_nothing() -> None:
    """Before what the newest item keeps is taken back, the group is where it was."""
    brokers, places = Remapped(), set()
    for cut in range(5, 30):
        try:
            brokers.resets(0, cut=cut)
        except CutOffError:
            places.add(brokers.resets(-1).before)
        else:
            break
    assert places == {THIRD[-1] + 1}
    assert cut < 29


def test_where_an_item_cannot_be_asked_no_group_of_a_static_topic_is_moved() -> None:
    brokers = Remapped()
    brokers.world.kill("broker2")
    with pytest.raises(NotAsWantedError):
        brokers.resets(0)
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.world.run_for(3_000)
    assert read(brokers, GROUP) == []


def test_a_group_that_is_connected_to_a_broker_of_a_static_topic_is_not_moved() -> None:
    brokers = Remapped()
    group = ConsumerData(
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        consume_type="CONSUME_PASSIVELY",
        group_name=GROUP,
        message_model="CLUSTERING",
        subscription_data_set=[],
        unit_mode=False,
    )
    beat = HeartbeatData(client_id="c", consumer_data_set=[group], producer_data_set=[]).encode()
    address = brokers.addresses["broker2"]
    assert brokers.ask(address, RequestCode.HEART_BEAT, ClientHeartbeatRequest(), beat).header.code == OK
    with pytest.raises(NotAsWantedError, match="consumers of g are connected"):
        brokers.resets(0)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_group_moved_at_each_broker_skips_nothing_over_the_borders_of_items(part: int) -> None:
    brokers, then = Remapped(), (FIRST, SECOND, THIRD)[part][0]
    brokers.told_by_mqadmin(brokers.begun[part])
    assert read(brokers, GROUP) == [each for each in ALL if each[1] >= then]
    brokers.told_by_mqadmin(-1)
    assert read(brokers, GROUP) == []


def test_moved_at_each_broker_without_force_a_group_is_never_led_on() -> None:
    brokers = Remapped()
    brokers.told_by_mqadmin(brokers.begun[1])
    brokers.told_by_mqadmin(-1, force=False)
    assert read(brokers, GROUP) == [each for each in ALL if each[1] >= SECOND[0]]
