"""Timers of machines while they run: armed by edges, ended by time, with periods that options say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replispec.runtime.primitives.machines import Edge
from replispec.runtime.primitives.timers import Timers
from replispec.wire.rocketmq.machines import (
    broker_registration,
    broker_role,
    controller,
    learner,
    replicas_manager,
)
from replispec.wire.rocketmq.options import BrokerOptions, ControllerOptions, LearnerOptions

OPTIONS = BrokerOptions(broker_name="set")
STATE = replicas_manager.State


def edge(*, arms: tuple[str, ...] = (), cancels: tuple[str, ...] = ()) -> Edge[Any]:
    """An edge that does no more than this."""
    return Edge(STATE.RUNNING, arms=arms, cancels=cancels)


def test_a_timer_ends_when_its_period_is_over_and_once() -> None:
    timers = Timers(replicas_manager.MACHINE, OPTIONS)
    timers.follow(edge(arms=("retry",)), 1_000)
    due_ms = 1_000 + OPTIONS.startup_retry_interval_ms
    assert timers.deadline_ms() == due_ms
    assert timers.ended(due_ms - 1) is None
    assert timers.ended(due_ms) == replicas_manager.RetryDue()
    assert timers.ended(1_000_000) is None
    assert timers.deadline_ms() is None


def test_a_periodic_timer_is_armed_again_from_when_it_was_seen_to_end() -> None:
    timers = Timers(replicas_manager.MACHINE, OPTIONS)
    timers.follow(edge(arms=("heartbeat",)), 0)
    assert timers.ended(5_500) == replicas_manager.HeartbeatDue()
    assert timers.armed == {"heartbeat": 5_500 + OPTIONS.broker_heartbeat_interval_ms}


def test_arming_again_puts_the_end_off_and_cancelling_ends_it() -> None:
    timers = Timers(replicas_manager.MACHINE, OPTIONS)
    timers.follow(edge(arms=("retry",)), 0)
    timers.follow(edge(arms=("retry",)), 300)
    assert timers.armed == {"retry": 300 + OPTIONS.startup_retry_interval_ms}
    timers.follow(edge(cancels=("retry", "heartbeat")), 400)
    assert timers.armed == {}


def test_pauses_grow_each_time_that_one_ended_up_to_the_longest_and_until_it_is_cancelled() -> None:
    timers = Timers(broker_registration.MACHINE, OPTIONS)

    def pauses(count: int) -> list[int]:
        found = []
        for _ in range(count):
            timers.follow(edge(arms=("retry",)), 0)
            timers.follow(edge(arms=("retry",)), 0)
            found.append(timers.armed["retry"])
            assert timers.ended(found[-1]) == broker_registration.RetryDue()
        return found

    assert pauses(6) == [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]
    timers.follow(edge(cancels=("retry",)), 0)
    assert pauses(2) == [1_000, 2_000]
    timers.changed(replace(OPTIONS, registration_retry_interval_max_ms=3_000), 0)
    assert pauses(2) == [3_000, 3_000]
    timers.changed(replace(OPTIONS, registration_retry_interval_ms=9_000), 0)
    assert pauses(1) == [9_000], "the longest is no shorter than the first"


def test_of_timers_that_end_at_once_the_first_declared_comes_first() -> None:
    options = replace(OPTIONS, startup_retry_interval_ms=1_000, sync_broker_metadata_period_ms=1_000)
    timers = Timers(replicas_manager.MACHINE, options)
    timers.follow(edge(arms=("info", "heartbeat", "retry")), 0)
    came = [timers.ended(1_000) for _ in range(4)]
    kinds = replicas_manager.RetryDue, replicas_manager.HeartbeatDue, replicas_manager.InfoDue
    assert came == [*(kind() for kind in kinds), None]


def test_what_runs_in_the_initial_state_is_armed_at_the_beginning() -> None:
    timers = Timers(controller.MACHINE, ControllerOptions())
    timers.begin(10)
    options = ControllerOptions()
    assert timers.armed == {
        "masters": 10 + options.scan_inactive_master_interval_ms,
        "silent": 10 + options.scan_not_active_broker_interval_ms,
    }


@pytest.mark.parametrize(("period_ms", "due_ms"), [(1_000, 2_000), (60_000, 5_000)])
def test_a_shorter_period_counts_from_now_on_and_a_longer_one_puts_nothing_off(
    period_ms: int, due_ms: int
) -> None:
    timers = Timers(controller.MACHINE, ControllerOptions())
    timers.begin(0)
    options = ControllerOptions(
        scan_not_active_broker_interval_ms=period_ms, scan_inactive_master_interval_ms=period_ms
    )
    timers.changed(options, 1_000)
    assert timers.armed == {"masters": due_ms, "silent": due_ms}
    assert timers.ended(5_000) is not None
    assert timers.armed["silent"] == 5_000 + period_ms


@pytest.mark.parametrize(
    ("machine", "options"),
    [
        (broker_role.MACHINE, OPTIONS),
        (replicas_manager.MACHINE, OPTIONS),
        (learner.MACHINE, LearnerOptions(broker_name="set")),
        (controller.MACHINE, ControllerOptions()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_default_of_a_period_is_that_of_its_parameter(machine: Any, options: Any) -> None:
    assert machine.timers
    for timer in machine.timers.values():
        assert timer.period_ms(options) == timer.default_ms
        if timer.longest is not None:
            assert timer.longest_ms(options) == timer.longest.default_ms
