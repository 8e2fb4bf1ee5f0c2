"""Exploring by columns reaches the very states that plain sets reach, as deep, and judges them alike."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from replispec.explorer.composed import Composed
from replispec.explorer.moves import Moves
from replispec.explorer.report import Extent, bounded, explored, system_named
from replispec.explorer.search import Search
from replispec.explorer.ways import judge_ways
from replispec.runtime.primitives.systems import System
from tests.explorer.plain import Plain, broken_plainly

# What takes a minute of the processor is explored with REPLISPEC_EDITS=all, as in `make test-full`.
IS_WHOLE = os.environ.get("REPLISPEC_EDITS") == "all"

SMALL = {
    "sync_state_set, nothing lost": ("sync_state_set", Extent(budgets={"lost": 0}, messages=3)),
    "sync_state_set, lost and late": (
        "sync_state_set",
        Extent({"broker": 1}, {"lost": 1, "late": 1}, messages=3),
    ),
    "sync_state_set, silences": (
        "sync_state_set",
        Extent({"broker": 1}, {"lost": 1, "silences": 1}, messages=3),
    ),
    "sync_state_set, removals": (
        "sync_state_set",
        Extent({"broker": 1}, {"lost": 1, "removals": 1}, messages=3),
    ),
    "replication": ("replication", Extent(budgets={"strangers": 1, "learners": 0, "repetitions": 0})),
    "fail_over, a crash": (
        "fail_over",
        Extent(budgets={"elections": 1, "messages": 1, "lags": 0}, messages=3),
    ),
    "registration, removals": ("registration", Extent(budgets={"lost": 0, "crashes": 0, "removals": 1})),
}
LARGER = {
    "replication, silences and elections": (
        "replication",
        Extent(
            budgets={"elections": 2, "messages": 1, "strangers": 0, "silences": 1, "breaks": 0}, messages=3
        ),
    ),
    "fail_over, an election": (
        "fail_over",
        Extent(budgets={"elections": 2, "messages": 1, "crashes": 0, "lags": 0}, messages=3),
    ),
    "registration": ("registration", Extent(budgets={"lost": 1, "late": 1, "crashes": 1}, messages=2)),
}
EXPLORED = {**SMALL, **(LARGER if IS_WHOLE else {})}


def columns(system: System) -> Search:
    search = Search(Moves(Composed(system)), 1_000_000, 600.0, lambda: 0.0)
    search.run(to_the_end=True)
    return search


@pytest.mark.parametrize(("name", "bounds"), EXPLORED.values(), ids=EXPLORED)
def test_columns_reach_the_states_that_plain_sets_reach(name: str, bounds: Extent) -> None:
    system = bounded(system_named(name), bounds)
    plain, search = Plain(system), columns(system)
    assert search.finished
    assert search.states == len(plain.states)
    assert search.depth == max(plain.depths.values())
    by_depth = Counter(plain.depths.values())
    reached = [*search.graph.depths, search.states]
    assert [by_depth[depth] for depth in sorted(by_depth)] == np.diff([0, *reached]).tolist()[: len(by_depth)]
    broken = {each.promise for each in (*search.broken, *judge_ways(search))}
    assert broken == broken_plainly(plain)


def test_an_exploration_is_the_same_twice() -> None:
    system, bounds = system_named("registration"), Extent(budgets={"removals": 1}, messages=3)
    first, second = (explored(system, bounds, lambda: 0.0)[0] for _ in range(2))
    assert (first.states, first.depth, first.cut, first.stories) == (
        second.states,
        second.depth,
        second.cut,
        second.stories,
    )


def test_an_exploration_ends_at_a_bound_that_is_said() -> None:
    report, _ = explored(system_named("sync_state_set"), Extent(states=500), lambda: 0.0)
    assert not report.finished
    assert not report.kept
    names = {each.name for each in system_named("sync_state_set").properties}
    assert set(report.open) == {"every_event_has_an_edge", *names}
