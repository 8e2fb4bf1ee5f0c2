"""While a master's question for another SyncStateSet is open, or waits for the disk, others come and go."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS
from tests.broker.test_role import (
    ASKED_SET,
    DOUBT_MS,
    OPTIONS,
    US,
    US_TWO,
    asking,
    fresh,
    master_of_two,
    stands,
)


def test_nobody_is_asked_in_before_it_is_on_the_disk() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.disk.plan = lambda change: "no room" if ASKED_SET in change else None
    assert broker.caught_up(2) == ["counts [1, 2]"]
    assert broker.controller.asked == []
    assert [note.what for note in broker.playbook.notes][-1] == "the set to be asked for cannot be kept"
    broker.disk.plan = None
    assert broker.wait(OPTIONS.controller_retry_interval_ms) == ["counts [1, 2]", "counts [1, 2]"]
    assert broker.controller.asked == [(US_TWO, 5, 7)]
    written = len(broker.disk.changes)
    broker.lagging(2)
    assert len(broker.disk.changes) == written, "who leaves makes the set smaller: that may be forgotten"


def test_who_is_gone_when_the_question_could_leave_is_not_asked_in_at_last() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.disk.plan = lambda change: "no room" if ASKED_SET in change else None
    broker.caught_up(2)
    broker.gone, broker.disk.plan = {2}, None
    assert broker.wait(OPTIONS.controller_retry_interval_ms) == ["counts [1, 2]", "counts [1]"]
    assert broker.controller.asked == []
    # Who is there is asked in meanwhile, and whom it is about to lose no set of before has.
    broker.caught_up(3)
    assert [members for members, *_ in broker.controller.asked] == [frozenset({1, 3})]


def test_who_was_asked_in_before_and_is_gone_counts_until_that_cannot_be_decided_any_more() -> None:
    broker = asking()
    broker.gone = {2}
    broker.controller.code = ResponseCode.SUCCESS
    broker.wait(ANSWER_TIMEOUT_MS)
    assert broker.wait(OPTIONS.controller_retry_interval_ms) == ["counts [1, 2]", "asks who is master"]
    assert len(broker.controller.asked) == 1
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2] in doubt"
    assert broker.wait(DOUBT_MS) == ["asks who is master"]
    assert broker.replica_info_received(US, 5, frozenset({1}), 7, is_answer=True) == ["counts [1]"]
    assert len(broker.controller.asked) == 1


def test_who_is_asked_for_again_and_again_under_many_ids_keeps_nobody_in_or_out() -> None:
    """Those who were to leave or join while such a question is open come right after it."""
    broker = master_of_two()
    strangers = iter(range(100, 120))

    def meanwhile() -> None:
        broker.controller.code = ResponseCode.CONTROLLER_INVALID_REPLICAS
        members = broker.controller.asked[-1][0]
        if max(members) < 100:
            broker.controller.code = ResponseCode.SUCCESS
        elif 2 in members:
            broker.gone = {2}
            broker.role.caught_up(next(strangers), broker.playbook.now_ms)
            broker.role.caught_up(3, broker.playbook.now_ms)
            broker.role.lagging({2}, broker.playbook.now_ms)

    broker.controller.before = meanwhile
    broker.caught_up(next(strangers))
    asked = [sorted(members) for members, *_ in broker.controller.asked]
    assert asked == [[1, 2, 100], [1], [1, 101], [1, 3]]
    assert broker.role.members == {1, 3}


@pytest.mark.parametrize("ends", ["notified", "told after the doubt", "elected again"])
def test_who_waits_is_asked_in_whatever_ends_the_question(ends: str) -> None:
    broker = asking()
    broker.caught_up(3)
    broker.controller.asked.clear()
    broker.controller.code = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    if ends == "notified":
        broker.replica_info_received(US, 5, US_TWO, 8)
    elif ends == "elected again":
        broker.replica_info_received(US, 6, US_TWO, 8)
    else:
        broker.wait(ANSWER_TIMEOUT_MS)
        broker.wait(OPTIONS.controller_retry_interval_ms)
        broker.wait(DOUBT_MS)
        broker.replica_info_received(US, 5, frozenset({1}), 7, is_answer=True)
    asked = [members for members, *_ in broker.controller.asked]
    assert asked[-1:] == [broker.role.members | {3}]


def test_who_waited_for_a_master_that_is_one_no_more_is_not_asked_in_by_the_next() -> None:
    broker = asking()
    broker.caught_up(3)
    broker.replica_info_received(2, 6, frozenset({2}), 8)
    broker.controller.asked.clear()
    broker.replica_info_received(US, 7, frozenset({1}), 9)
    broker.controller.code = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    broker.caught_up(2)
    assert [members for members, *_ in broker.controller.asked] == [US_TWO]
