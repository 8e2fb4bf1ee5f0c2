"""What worlds of logical queues are worth: each broken rule of either form is found by few seeds."""

from __future__ import annotations

import os

import pytest

from tests.sim import logical_mutants, queue_mutants
from tests.sim.logical_act_mutants import ACT_FIRST, ACT_MUTANTS
from tests.sim.queue_mutants import found_by

# Enough even when a change of the roles moves what each seed does; the first one that finds it ends it.
SEEDS = 60


@pytest.mark.parametrize("name", queue_mutants.MUTANTS)
def test_a_broken_rule_of_static_topics_is_found(name: str) -> None:
    assert found_by(queue_mutants.MUTANTS[name], SEEDS, queue_mutants.FIRST.get(name, 0)) is not None


@pytest.mark.parametrize(
    "name", [each for each in logical_mutants.MUTANTS if each not in logical_mutants.RARE]
)
def test_a_broken_rule_of_logical_queues_is_found(name: str) -> None:
    first = logical_mutants.FIRST.get(name, 0)
    assert found_by(logical_mutants.MUTANTS[name], SEEDS, first, logical=True) is not None


@pytest.mark.skipif("REPLISPEC_QUEUE_SEEDS" not in os.environ, reason="hundreds of worlds: make test-full")
@pytest.mark.parametrize("name", logical_mutants.RARE)
def test_a_broken_rule_that_few_worlds_meet_is_found(name: str) -> None:
    first = logical_mutants.FIRST.get(name, 0)
    assert found_by(logical_mutants.MUTANTS[name], 10 * SEEDS, first, logical=True) is not None


@pytest.mark.skipif("REPLISPEC_QUEUE_SEEDS" not in os.environ, reason="make test-full")
@pytest.mark.parametrize("name", ACT_FIRST)
def test_a_broken_rule_of_logical_queues_is_found_in_worlds_of_acts(name: str) -> None:
    assert found_by(ACT_MUTANTS[name], SEEDS, ACT_FIRST[name], acts=True) is not None
