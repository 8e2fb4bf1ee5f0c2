"""What the worlds of partitions are worth: each broken rule is found by one of the first seeds."""

from __future__ import annotations

import os

import pytest

from tests.sim_kafka.mutants import LATE, MUTANTS, found_by

SEEDS = 40
PLAYED = sorted(MUTANTS) if os.environ.get("REPLISPEC_CRASHES") == "all" else sorted(MUTANTS)[::4]
"""The others are of the long proofs."""


@pytest.mark.parametrize("name", PLAYED)
def test_a_broken_rule_is_found(name: str) -> None:
    assert found_by(MUTANTS[name], SEEDS, LATE.get(name, 4)) is not None
