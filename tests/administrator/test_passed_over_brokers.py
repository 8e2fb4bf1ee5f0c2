"""Brokers that are gone for good are passed over: when, and what becomes of them when they come back."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import restated
from replispec.runtime.rocketmq.client import ConsumerNode, Reading
from replispec.runtime.rocketmq.queues.forms import queues_heard
from replispec.wire.rocketmq.logical_queue import CreateLogicalQueue
from tests.administrator.own_brokers import TOPIC, OwnBrokers
from tests.administrator.test_logical_queues_of_ours import (
    EPOCHS,
    NAMES,
    asks,
    heard_of,
    made,
    move,
    table,
    typed,
)

__all__ = ["typed"]


def _read_of(brokers: OwnBrokers) -> list[int]:
    """The offsets that a reader of logical queue 0 is given, up to 102."""
    found: list[int] = []
    node = ConsumerNode(
        tuple(NAMES),
        Reading(TOPIC, idle_ms=20_000),
        lambda message, _now_ms: found.append(message.offset) if message.queue.number == 0 else None,
        lambda _queue, _why: None,
        name="reader",
    )
    brokers.runs(node)
    brokers.until(lambda: 102 in found, at_most_ms=180_000)
    return found


def test_a_broker_that_is_gone_for_good_is_passed_over_and_the_rest_of_the_queue_is_read() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    move(brokers, 0, 2)
    brokers.writes(2, 1, 5)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    with pytest.raises(NotAsWantedError, match="where it is gone for good, -fd START says"):
        move(brokers, 0, 3)
    with pytest.raises(NotAsWantedError, match="known to have had 10 messages"):
        brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 9))
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 100))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.world.run_for(2_000)
    brokers.writes(3, 1, 3)
    assert _read_of(brokers) == [*range(10), 100, 101, 102]


@pytest.mark.parametrize("written", [0, 5])
def test_a_broker_that_is_gone_before_a_name_server_heard_where_it_began_is_passed_over(written: int) -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker2"))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.writes(2, 1, written)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    told = queues_heard(brokers.carried_out(heard_of())[0], TOPIC)
    assert not told[0].segments[-1].is_decided
    with pytest.raises(NotAsWantedError, match="where it is gone for good, -fd START says"):
        move(brokers, 0, 3)
    with pytest.raises(NotAsWantedError, match="known to have had 10 messages"):
        brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 9))
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 100))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.world.run_for(2_000)
    brokers.writes(3, 1, 3)
    assert _read_of(brokers) == [*range(10), 100, 101, 102]


def test_a_queue_whose_next_broker_went_before_a_name_server_heard_of_it_goes_on_when_that_is_back() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker2"))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.writes(2, 1, 5)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 100))
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves, at_most_ms=180_000)
    brokers.world.run_for(40_000)
    move(brokers, 0, 3)
    brokers.world.run_for(2_000)
    brokers.writes(3, 1, 3)
    assert _read_of(brokers) == [*range(15), 100, 101, 102]


def test_what_an_earlier_run_left_at_a_broker_that_is_gone_keeps_no_queue_from_moving() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    brokers.carried_out(
        asks(brokers.addresses["broker2"], CreateLogicalQueue(0, "WriteOnly", TOPIC).encode())
    )
    brokers.world.run_for(2_000)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    move(brokers, 0, 3)
    brokers.writes(3, 1, 93)
    assert _read_of(brokers) == list(range(103))


def passed_over(brokers: OwnBrokers, start: int, *, late: int = 0) -> None:
    """broker2 is passed over by broker3 at an offset, and comes back, and then takes some messages."""
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    move(brokers, 0, 2)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", start))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    brokers.writes(3, 1, 3)
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves, at_most_ms=180_000)
    brokers.writes(2, 1, late)
    brokers.world.run_for(40_000)


@pytest.mark.parametrize(("start", "end"), [(100, 17), (12, 12)])
def test_a_broker_that_was_passed_over_and_comes_back_ends_where_the_next_one_begins(
    start: int, end: int, typed: Any
) -> None:
    """What it holds from there on is shown, and read by nobody who counts logically."""
    brokers = OwnBrokers(3)
    passed_over(brokers, start, late=7)
    words = ("migrateTopicLogicalQueue", "-t", TOPIC, "-i", "0", "-b", "broker3")
    text, code = typed(brokers)(*words)
    assert code == 0
    assert text == (
        f"broker2 was passed over: it ends logical queue 0 at offset {end}; {17 - end} messages of its"
        f" queue 1, from {end - 10} on, are of no logical offset\n"
        f"logical queue 0 of {TOPIC} is written at broker3, queue 1, from offset {start} on.\n"
    )
    assert table(brokers) == [
        "broker1 0 0(0-9) ReadOnly",
        "broker2 0 1 Normal",
        f"broker2 1 0(10-{end - 1}) ReadOnly",
        "broker3 0 2 Normal",
        f"broker3 1 0({start}-) Normal",
    ]
    move(brokers, 0, 1)
    brokers.world.run_for(2_000)
    brokers.writes(1, 1, 2)
    found: list[int] = []
    node = ConsumerNode(
        tuple(NAMES),
        Reading(TOPIC, idle_ms=20_000),
        lambda message, _now_ms: found.append(message.offset) if message.queue.number == 0 else None,
        lambda _queue, _why: None,
        name="reader",
    )
    brokers.runs(node)
    brokers.until(lambda: node.is_done, at_most_ms=180_000)
    assert found == [*range(end), *range(start, start + 5)]


def test_a_source_is_passed_over_behind_where_it_begins() -> None:
    brokers = OwnBrokers(3)
    made(brokers, queues=1)
    brokers.writes(1, 0, 10)
    move(brokers, 0, 2)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    with pytest.raises(NotAsWantedError, match="-fd 10: what broker2 writes begins there"):
        brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3", 10))
