"""What whole simulated clusters are worth: each broken rule is found by one of the first seeds."""

from __future__ import annotations

import pytest

from tests.sim import test_scenarios
from tests.sim.cluster_mutants import LATE, MUTANTS, UNION, found_by

# Enough even when a change of the roles moves what each seed does; the first one that finds it ends it.
SEEDS = 150


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != UNION])
def test_a_broken_rule_is_found(name: str) -> None:
    assert found_by(MUTANTS[name], SEEDS, LATE.get(name, 0)) is not None


def test_that_its_union_is_not_counted_is_found_by_fifty_seeds() -> None:
    assert found_by(MUTANTS[UNION], 50) is not None


def test_the_scenario_of_the_growing_set_finds_that_its_union_is_not_counted() -> None:
    scenario = test_scenarios
    with MUTANTS[UNION](), pytest.raises(AssertionError):
        scenario.test_a_member_counts_from_when_it_may_have_been_added_not_from_when_the_answer_came(0)
