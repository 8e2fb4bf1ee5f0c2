"""Schedules by chance: the core keeps what it promises in all of them, and each broken rule breaks in one."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.consensus import test_changes, test_member, test_snapshots
from tests.consensus.mutants import FOUND, MUTANTS, SEEDS_MAX, STEPS, found_by, members_of
from tests.consensus.schedule import broken_by

WHOLE = os.environ.get("REPLISPEC_EDITS") == "all"
SEEDS = 5_000 if WHOLE else 40
BY_A_SCENE: dict[str, Callable[[], None]] = {
    "a follower is sent one snapshot for ever": (
        test_snapshots.test_whoever_gets_a_snapshot_while_a_newer_one_is_taken_gets_that_next
    ),
    "answers of an older term count": (
        test_member.test_an_answer_of_an_older_term_says_nothing_of_the_log_now
    ),
    "a change is made before an entry of the term is agreed on": (
        test_changes.test_a_change_waits_for_the_one_before_and_for_an_entry_of_the_term
    ),
    "whoever hears no leader and does not vote still knows one": (
        test_changes.test_whoever_does_not_know_yet_that_it_votes_votes
    ),
}
"""Broken rules that take a certain order of events, which schedules by chance seldom reach."""


def test_no_schedule_breaks_a_promise() -> None:
    found = [(seed, broken) for seed in range(SEEDS) if (broken := broken_by(seed, STEPS, members_of(seed)))]
    assert found == []


def test_every_broken_rule_is_found_by_a_seed_or_a_scene() -> None:
    assert sorted([*FOUND, *BY_A_SCENE]) == sorted(MUTANTS)
    assert max(FOUND.values()) < SEEDS_MAX


@pytest.mark.parametrize("name", FOUND)
def test_a_broken_rule_is_found_by_its_seed(name: str) -> None:
    if WHOLE:
        first = found_by(MUTANTS[name], SEEDS_MAX)
        assert first is not None
        assert first[0] == FOUND[name]
    with MUTANTS[name]():
        assert broken_by(FOUND[name], STEPS, members_of(FOUND[name])) is not None


@pytest.mark.parametrize("name", BY_A_SCENE)
def test_a_broken_rule_is_found_by_its_scene(name: str) -> None:
    with MUTANTS[name](), pytest.raises(AssertionError):
        BY_A_SCENE[name]()
