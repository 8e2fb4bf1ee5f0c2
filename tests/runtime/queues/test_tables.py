"""The eight tables of RIP-21, one after the other, as its own steps make them."""

from __future__ import annotations

from collections.abc import Iterable

from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    LogicalQueue,
    PhysicalQueue,
    fault_of_topic,
    rows,
)
from tests.runtime.queues.queues import first, migrated

BEGINNING = """\
broker1 0 0 Normal
broker1 1 1 Normal
broker2 0 2 Normal
broker2 1 3 Normal
"""
MIGRATED = """\
broker1 0 0(0-100) ReadOnly
broker1 1 1 Normal
broker2 0 2 Normal
broker2 1 3 Normal
broker2 2 0(101-) Normal
"""
EXPIRED = """\
broker1 0 0(-) Expired
broker1 1 1 Normal
broker2 0 2 Normal
broker2 1 3 Normal
broker2 2 0(101-) Normal
"""
BACK_TO_AN_EXPIRED_QUEUE = """\
broker1 0 0(201-) Normal
broker1 1 1 Normal
broker2 0 2 Normal
broker2 1 3 Normal
broker2 2 0(101-200) ReadOnly
"""
BACK_TO_A_NEW_QUEUE = """\
broker1 0 0(0-100) ReadOnly
broker1 1 1 Normal
broker1 2 0(201-) Normal
broker2 0 2 Normal
broker2 1 3 Normal
broker2 2 0(101-200) ReadOnly
"""
A_BROKER_LEAVES = """\
broker1 0 0 Normal
broker1 1 1 Normal
broker1 2 2(101-) Normal
broker1 3 3(101-) Normal
broker2 0 2(0-100) ReadOnly
broker2 1 3(0-100) ReadOnly
"""
IT_HAS_LEFT = """\
broker1 0 0 Normal
broker1 1 1 Normal
broker1 2 2(101-) Normal
broker1 3 3(101-) Normal
"""
A_BROKER_JOINED = """\
broker1 0 0 Normal
broker1 1 1 Normal
broker1 2 2(101-200) ReadOnly
broker1 3 3(101-200) ReadOnly
broker3 0 2(201-) Normal
broker3 1 3(201-) Normal
"""


def shown(queues: Iterable[LogicalQueue]) -> str:
    """The mapping of a topic that may be."""
    every = list(queues)
    assert fault_of_topic(every, LOGICAL_QUEUES) is None
    return "".join(" ".join(row) + "\n" for row in rows(every))


def _beginning() -> list[LogicalQueue]:
    places = [("broker1", 0), ("broker1", 1), ("broker2", 0), ("broker2", 1)]
    return [first(broker, queue, index) for index, (broker, queue) in enumerate(places)]


def test_a_logical_queue_goes_and_comes_back_when_its_queue_is_expired() -> None:
    queue, *others = _beginning()
    assert shown([queue, *others]) == BEGINNING
    queue = migrated(queue, LOGICAL_QUEUES, "broker2", 2, 101)
    assert shown([queue, *others]) == MIGRATED
    queue = queue.expired(PhysicalQueue("broker1", 0), 100)
    assert shown([queue, *others]) == MIGRATED
    queue = queue.expired(PhysicalQueue("broker1", 0), 101)
    assert shown([queue, *others]) == EXPIRED
    queue = migrated(queue, LOGICAL_QUEUES, "broker1", 0, 100, start=101)
    assert shown([queue, *others]) == BACK_TO_AN_EXPIRED_QUEUE
    found = queue.locate(205)
    assert found is not None
    assert found.physical_of(205) == 105


def test_a_logical_queue_comes_back_while_its_queue_is_still_read() -> None:
    queue, *others = _beginning()
    queue = migrated(queue, LOGICAL_QUEUES, "broker2", 2, 101)
    queue = migrated(queue, LOGICAL_QUEUES, "broker1", 2, 100)
    assert shown([queue, *others]) == BACK_TO_A_NEW_QUEUE


def test_a_broker_leaves_and_another_joins() -> None:
    queues = _beginning()
    for index in (2, 3):
        queues[index] = migrated(queues[index], LOGICAL_QUEUES, "broker1", index, 101)
    assert shown(queues) == A_BROKER_LEAVES
    for index in (2, 3):
        gone = PhysicalQueue("broker2", index - 2)
        queues[index] = queues[index].expired(gone, 101).without(gone)
    assert shown(queues) == IT_HAS_LEFT
    for index in (2, 3):
        queues[index] = migrated(queues[index], LOGICAL_QUEUES, "broker3", index - 2, 100)
    assert shown(queues) == A_BROKER_JOINED
