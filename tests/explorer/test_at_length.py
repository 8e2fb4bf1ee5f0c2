"""What takes longer than a test may: `make test-full` explores it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from replispec.explorer.report import Extent, explored, system_named

pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_EDITS") != "all", reason="half a minute of the processor: make test-full"
)
REGISTRATION = (
    ("registration", Extent()),
    ("registration", Extent(budgets={"refusals": 1})),
    ("registration", Extent(budgets={"crashes": 0, "strays": 1})),
    ("registration", Extent(budgets={"lost": 0, "crashes": 0, "removals": 1, "strays": 1, "blindness": 1})),
)
TOPIC = (
    ("topic", Extent(budgets={"lags": 1, "strays": 1})),
    ("topic", Extent(budgets={"silences": 2, "unclean": 1, "sends": 0})),
    ("topic", Extent(budgets={"silences": 2, "creations": 1, "lags": 1, "sends": 0})),
    ("partition_in_transition", Extent(budgets={"silences": 0})),
)
LEARNING = (
    ("learning", Extent()),
    ("learning", Extent(budgets={"lost": 0, "blindness": 0, "breaks": 1, "repetitions": 1})),
    ("learning", Extent(budgets={"lost": 0, "starts": 1, "strays": 1})),
)
EVERY_EDGE = {
    "broker_registration": REGISTRATION,
    "learner": LEARNING,
    "partition": TOPIC,
    "replica": TOPIC,
}


def test_a_group_with_a_snapshot_and_a_crash_is_explored_whole() -> None:
    bounds = Extent(budgets={"snapshots": 1, "lost": 0})
    report, _ = explored(system_named("group"), bounds, lambda: 0.0)
    assert [each.promise for each in report.stories] == []
    assert report.finished
    assert report.states > 800_000


def test_three_brokers_with_a_crash_a_lost_and_a_late_message_are_explored_whole() -> None:
    bounds = Extent({"broker": 3}, {"crashes": 1, "lost": 1, "late": 1}, messages=3)
    report, _ = explored(system_named("sync_state_set"), bounds, lambda: 0.0)
    assert [each.promise for each in report.stories] == []
    assert report.finished
    assert report.states > 2_000_000


@pytest.mark.parametrize(("machine", "runs"), EVERY_EDGE.items(), ids=EVERY_EDGE)
def test_every_edge_of_a_machine_is_taken(machine: str, runs: Sequence[tuple[str, Extent]]) -> None:
    taken: set[str] = set()
    never: set[str] = set()
    for name, bounds in runs:
        report, _ = explored(system_named(name), bounds, lambda: 0.0)
        assert report.finished
        assert not report.stories
        for each in report.coverage:
            if each.machine == machine:
                taken |= set(each.taken)
                never |= set(each.never)
    assert never - taken == set()
    assert taken
