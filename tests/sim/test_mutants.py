"""What the simulation is worth: each rule of replication, broken, is found by one of its first seeds."""

from __future__ import annotations

import pytest

from tests.sim.mutants import MUTANTS, found_by

SEEDS = 150


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    assert found_by(MUTANTS[name], SEEDS) is not None
