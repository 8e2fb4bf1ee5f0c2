"""Whom a move of a logical queue asks, and what becomes of one whose source is gone for good."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replispec.administrator.rocketmq.plans import Asking
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from tests.administrator.logical_brokers import Broker, Cluster, CutOffError
from tests.administrator.test_logical_queues import among, gone, made, migrate, well, write

CREATE = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE
REUSE = RequestCode.REUSE_TOPIC_LOGICAL_QUEUE
PREPARE = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
COMMIT = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
NOTIFY = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY
STEPS = frozenset({CREATE, REUSE, PREPARE, COMMIT, NOTIFY})
Heard = list[tuple[str, RequestCode]]


@pytest.fixture(name="heard")
def _heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """The steps of moves, by who is asked."""
    found: Heard = []
    answers = Broker.answer

    def answer(self: Broker, question: Asking) -> Command:
        if question.code in STEPS:
            found.append((self.name, question.code))
        return answers(self, question)

    monkeypatch.setattr(Broker, "answer", answer)
    return found


@pytest.fixture(name="brokers")
def _brokers(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Three, of which the first two have the topic: logical queue 0 is at the first."""
    found = among(Cluster.of("broker1", "broker2", "broker3"), monkeypatch)
    made(found, queues=1)
    write(found, 0, 10)
    return found


def steps_of(heard: Heard, brokers: Cluster, target: str, *more: str) -> Sequence[tuple[str, RequestCode]]:
    """What one move asks for."""
    heard.clear()
    well(migrate(0, target, *more))
    assert brokers.queues[0].segments[-1].queue.broker_name == target
    return tuple(heard)


def test_whoever_held_the_queue_is_told_where_it_went(brokers: Cluster, heard: Heard) -> None:
    steps_of(heard, brokers, "broker2")
    write(brokers, 0, 5)
    assert steps_of(heard, brokers, "broker3") == (
        ("broker3", CREATE),
        ("broker2", PREPARE),
        ("broker3", COMMIT),
        ("broker2", NOTIFY),
        ("broker1", NOTIFY),
    )


def test_whoever_held_the_queue_is_told_also_where_a_message_queue_serves_again(
    brokers: Cluster, heard: Heard
) -> None:
    for target in ("broker2", "broker3"):
        steps_of(heard, brokers, target)
        write(brokers, 0, 5)
    brokers.brokers["broker1"].delete()
    assert steps_of(heard, brokers, "broker1") == (
        ("broker1", REUSE),
        ("broker3", PREPARE),
        ("broker1", COMMIT),
        ("broker3", NOTIFY),
        ("broker2", NOTIFY),
    )


def test_a_queue_that_serves_again_begins_where_it_is_said_where_the_source_is_gone(
    brokers: Cluster, heard: Heard
) -> None:
    steps_of(heard, brokers, "broker2")
    write(brokers, 0, 5)
    brokers.brokers["broker1"].delete()
    gone(brokers, "broker2")
    assert steps_of(heard, brokers, "broker1", "-fd", "5000") == (("broker1", REUSE), ("broker1", COMMIT))
    last = brokers.brokers["broker1"].held[0][-1]
    assert (last.logical_start, last.state) == (5000, State.NORMAL)


def test_a_target_that_was_left_without_its_start_is_told_it_where_the_source_is_gone(
    brokers: Cluster, heard: Heard
) -> None:
    """Nobody else decides it, and no other message queue is made."""
    steps_of(heard, brokers, "broker2")
    write(brokers, 0, 5)
    steps_of(heard, brokers, "broker1")
    write(brokers, 0, 5)
    gone(brokers, "broker1")
    brokers.cut, brokers.late = brokers.changes, True
    assert isinstance(migrate(0, "broker3", "-fd", "5000").exception, CutOffError)
    brokers.cut = None
    (left,) = brokers.brokers["broker3"].held[0]
    assert left.state == State.WRITE_ONLY
    assert steps_of(heard, brokers, "broker3", "-fd", "5000") == (("broker3", COMMIT), ("broker2", NOTIFY))
    (last,) = brokers.brokers["broker3"].held[0]
    assert (last.queue, last.logical_start, last.state) == (left.queue, 5000, State.NORMAL)
