"""What worlds of static topics are worth: each broken rule is found by one of a few seeds."""

from __future__ import annotations

import pytest

from tests.sim.queue_mutants import FIRST, MUTANTS, found_by

# Enough even when a change of the roles moves what each seed does; the first one that finds it ends it.
SEEDS = 60


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_of_static_topics_is_found(name: str) -> None:
    assert found_by(MUTANTS[name], SEEDS, FIRST.get(name, 0)) is not None
