"""Brokers that leave, are lost and come back: what they alone knew of logical queues stays known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from replispec.administrator.rocketmq import static_topics
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import numbered
from replispec.administrator.rocketmq.logical_topics import known
from replispec.administrator.rocketmq.mappings import Topic
from replispec.administrator.rocketmq.plans import Plan
from replispec.administrator.rocketmq.remapping import MappingRun, grown, remapped
from replispec.runtime.rocketmq.client import Begin, ConsumerNode, Reading
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.wire.rocketmq.codes import LogicalQueueState, RequestCode
from replispec.wire.rocketmq.logical_queue import CreateLogicalQueue
from tests.administrator.own_brokers import CLUSTER, TOPIC, CutOffError, OwnBrokers
from tests.administrator.test_logical_queues_of_ours import EPOCHS, NAMES, heard_of, made, move, table, typed

__all__ = ["typed"]
NAMED = ["broker1", "broker2"]
FORGOTTEN_MS = 130_000
"""So long a silent broker is told by a name server, and longer."""
RESTED_MS = 70_000
"""So long a message queue rests before another logical queue takes it, and longer."""


def read(
    brokers: OwnBrokers, group: str | None = None, begin: Begin = Begin.EARLIEST
) -> list[tuple[int, int]]:
    """Queue and offset of what a consumer reads until nothing more comes."""
    found: list[tuple[int, int]] = []
    reading = Reading(TOPIC, begin=begin, group=group, idle_ms=20_000)
    node = ConsumerNode(
        tuple(NAMES),
        reading,
        lambda message, _now: found.append((message.queue.number, message.offset)),
        lambda _queue, _why: None,
        name="reader",
    )
    brokers.runs(node)
    brokers.until(lambda: node.is_done, at_most_ms=180_000)
    assert node.failure is None
    return found


def told(brokers: OwnBrokers) -> list[int]:
    """The logical queues that clients are told."""
    return sorted(brokers.carried_out(heard_of())[0])


def gone_for_good(brokers: OwnBrokers, name: str) -> None:
    """A broker ends, and name servers stop telling it."""
    brokers.world.kill(name)
    brokers.world.run_for(FORGOTTEN_MS)


def name_server_begins_empty(brokers: OwnBrokers) -> None:
    """It is killed, and heard brokers register anew."""
    brokers.world.kill("nameserver")
    brokers.world.start("nameserver")
    brokers.world.run_for(60_000)


def back(brokers: OwnBrokers, number: int) -> None:
    """A broker that was lost serves again."""
    brokers.start(f"broker{number}")
    brokers.until(lambda: brokers.broker(number).serves, at_most_ms=180_000)
    brokers.world.run_for(5_000)


def drained(run: Any, broker: str) -> None:
    """A broker may stop."""
    text, code = run("drainBroker", "-b", broker)
    assert code == 0, text


def test_a_logical_queue_that_was_taken_away_goes_on_behind_its_end_when_its_broker_left(
    typed: Any,
) -> None:
    brokers = OwnBrokers(3, young=(3,))
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(3, 0, 10)
    assert run("updateTopicLogicalQueueNum", "-t", TOPIC, "-c", CLUSTER, "-num", "2")[1] == 0
    brokers.fills(3)
    drained(run, "broker3")
    gone_for_good(brokers, "broker3")
    name_server_begins_empty(brokers)
    text, code = run("updateTopicLogicalQueueNum", "-t", TOPIC, "-c", CLUSTER, "-num", "3")
    assert code == 0, text
    starts = {row for row in table(brokers) if " 2(10-) " in row}
    assert len(starts) == 1
    assert told(brokers) == [0, 1, 2]


def test_clients_are_told_when_where_a_queue_ends_went_to_a_broker_that_joined(typed: Any) -> None:
    brokers = OwnBrokers(2, young=(2,))
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(2, 0, 10)
    assert run("updateTopicLogicalQueueNum", "-t", TOPIC, "-c", CLUSTER, "-num", "1")[1] == 0
    brokers.fills(2)
    brokers.joins(3)
    brokers.world.run_for(35_000)
    text, code = run("drainBroker", "-b", "broker2")
    assert (code, "ends is kept at broker3" in text) == (0, True), text
    brokers.world.run_for(35_000)
    assert 0 in told(brokers)
    gone_for_good(brokers, "broker2")
    name_server_begins_empty(brokers)
    assert 0 in told(brokers)


def test_a_logical_queue_of_which_nothing_is_left_is_told_to_nobody_and_reads_as_empty() -> None:
    assert LogicalQueue.heard(2, ()) == LogicalQueue(2)


def test_what_a_broker_alone_said_is_gone_is_said_by_those_that_stay(typed: Any) -> None:
    brokers = OwnBrokers(2, young=(1,))
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(1, 0, 10)
    move(brokers, 0, 2)
    brokers.fills(1)
    move(brokers, 0, 1)
    brokers.writes(1, 0, 10)
    run("drainBroker", "-b", "broker1")
    brokers.fills(1)
    drained(run, "broker1")
    gone_for_good(brokers, "broker1")
    name_server_begins_empty(brokers)
    assert told(brokers) == [0, 1]


@pytest.mark.parametrize("how", ["leaves", "is taken"])
def test_a_group_reads_on_at_the_border_when_what_keeps_its_place_goes(typed: Any, how: str) -> None:
    brokers = OwnBrokers(2, young=(1,))
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(1, 0, 10)
    assert len(read(brokers, "g")) == 10
    move(brokers, 0, 2)
    brokers.writes(2, 1, 20)
    brokers.fills(1)
    if how == "leaves":
        drained(run, "broker1")
        gone_for_good(brokers, "broker1")
    else:
        brokers.world.run_for(RESTED_MS)
        move(brokers, 1, 1)
    assert [each for each in read(brokers, "g", Begin.LATEST) if each[0] == 0] == [
        (0, offset) for offset in range(10, 30)
    ]


def test_brokers_that_were_passed_over_one_after_the_other_come_back_in_that_order(typed: Any) -> None:
    brokers = OwnBrokers(3)
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(2, 0, 20)
    for lost, target, start in (("broker2", "broker3", "15"), ("broker3", "broker1", "60")):
        brokers.world.run_for(1_000)
        brokers.world.kill(lost)
        brokers.world.run_for(5_000)
        words = ("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "1", "-b", target, "-fd", start)
        assert run(*words)[1] == 0
        if target == "broker3":
            brokers.writes(3, 1, 15)
    for number in (2, 3):
        back(brokers, number)
        assert run("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "1", "-b", "broker1")[1] == 0
        brokers.world.run_for(35_000)
        assert told(brokers) == [0, 1, 2]
    assert [offset for queue, offset in read(brokers) if queue == 1] == list(range(30))


def test_a_broker_that_comes_back_is_ended_also_while_another_one_is_lost(typed: Any) -> None:
    brokers = OwnBrokers(3)
    made(brokers, 1)
    run = typed(brokers)
    move(brokers, 0, 2)
    move(brokers, 0, 3)
    brokers.world.run_for(2_000)
    for lost in ("broker2", "broker3"):
        brokers.world.kill(lost)
    brokers.world.run_for(5_000)
    words = ("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "0", "-b", "broker1")
    assert run(*words, "-fd", "50")[1] == 0
    back(brokers, 3)
    assert run(*words)[1] == 0
    mapped = brokers.broker(3)._mappings.logical.newest(TOPIC)
    assert mapped is not None
    (held,) = (each.segment for each in mapped.said.held if each.index == 0)
    assert not held.is_writable


def test_what_a_broker_that_is_gone_for_good_alone_held_is_declared_gone(typed: Any) -> None:
    """Name servers that remember its older segments let readers wait, those that begin empty refuse."""
    brokers = OwnBrokers(3)
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(2, 0, 5)
    move(brokers, 1, 3)
    brokers.writes(3, 1, 4)
    lost = ("drainBroker", "-b", "broker2", "-t", TOPIC, "--lost")
    assert run(*lost)[1] == 1
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    text, code = run(*lost)
    assert (code, "offsets 0 to 4 of logical queue 1" in text) == (0, True), text
    brokers.world.run_for(2_000)
    assert [each for each in read(brokers) if each[0] == 1] == [(1, offset) for offset in range(5, 9)]
    name_server_begins_empty(brokers)
    assert told(brokers) == [0, 1, 2]


def test_a_broker_whose_items_of_a_static_topic_hold_messages_may_not_stop(typed: Any) -> None:
    brokers = OwnBrokers(2, young=(1,))
    run = typed(brokers)
    _set_static(brokers, lambda found: grown(found, 2, ["broker1"], NAMED, next(EPOCHS)))
    brokers.writes(1, 0, 3)
    _set_static(brokers, lambda found: remapped(found, ["broker2"], NAMED, next(EPOCHS)))
    text, code = run("drainBroker", "-b", "broker1")
    assert (code, f"2 older items of the static topic {TOPIC} are still read" in text) == (1, True), text


def _set_static(brokers: OwnBrokers, wanted: Callable[[Topic], MappingRun]) -> None:
    found = brokers.carried_out(static_topics.known(NAMES, TOPIC))
    brokers.carried_out(static_topics.carried_out(wanted(found.topic), found.brokers))
    brokers.world.run_for(2_000)


def _until_sealed(plan: Plan[object]) -> Plan[object]:
    asked = next(plan)
    while True:
        replies = yield asked
        if asked[0].code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE:
            raise CutOffError("cut off")
        asked = plan.send(replies)


def test_a_source_that_is_sealed_is_passed_over_at_its_end_alone(typed: Any) -> None:
    brokers = OwnBrokers(2)
    made(brokers, 1)
    run = typed(brokers)
    brokers.writes(1, 0, 10)
    with pytest.raises(CutOffError):
        brokers.carried_out(_until_sealed(moved(NAMES, TOPIC, 0, "broker2")))
    assert table(brokers)[0].split()[-1] == "ReadOnly"
    brokers.world.run_for(2_000)
    brokers.world.kill("broker1")
    brokers.world.run_for(5_000)
    words = ("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "0", "-b", "broker2", "-fd")
    text, code = run(*words, "12")
    assert (code, "the queue ended at 10 there" in text) == (1, True), text
    assert run(*words, "10")[1] == 0
    brokers.world.run_for(2_000)
    assert told(brokers) == [0, 1]


def test_a_logical_queue_that_two_administrators_made_at_once_is_there_once() -> None:
    brokers = OwnBrokers(2)
    made(brokers, 1)
    for number in (1, 2):
        body = CreateLogicalQueue(2, STATE_NAMES[LogicalQueueState.NORMAL], TOPIC).encode()
        code = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE
        assert brokers.ask(brokers.addresses[f"broker{number}"], code, body=body).header.code == 0
    brokers.carried_out(numbered(NAMES, TOPIC, CLUSTER, 3, next(EPOCHS)))
    brokers.world.run_for(2_000)
    states = [row.split()[-1] for row in table(brokers) if row.split()[2].startswith("2")]
    assert sorted(states) == ["Expired", "Normal"]
    assert told(brokers) == [0, 1, 2]


def test_one_move_without_a_message_keeps_no_message_queue_from_serving_again() -> None:
    brokers = OwnBrokers(2, young=(1, 2))
    made(brokers, 1)
    move(brokers, 0, 2)
    move(brokers, 0, 1)
    held: list[int] = []
    for _ in range(3):
        for number in (2, 1):
            queue = brokers.carried_out(known(NAMES, TOPIC)).queue(0).writable
            assert queue is not None
            brokers.writes(3 - number, queue.queue.queue_id, 3)
            brokers.carried_out(moved(NAMES, TOPIC, 0, f"broker{number}"))
        brokers.fills(1)
        brokers.fills(2)
        brokers.world.run_for(RESTED_MS)
        parts = brokers.carried_out(known(NAMES, TOPIC)).parts.values()
        held.append(sum(each.writes for each in parts))
    assert held[1] == held[2]


def test_a_logical_queue_that_moved_without_a_message_is_written_again() -> None:
    brokers = OwnBrokers(2)
    made(brokers, 1)
    move(brokers, 1, 1)
    for number in (1, 2):
        brokers.carried_out(numbered(NAMES, TOPIC, CLUSTER, number, next(EPOCHS)))
    brokers.world.run_for(2_000)
    assert told(brokers) == [0, 1]
