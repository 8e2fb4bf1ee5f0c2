"""Whole clusters with three controllers, from seeds: one master in each epoch, nothing acknowledged lost.

Leaders die, hang, lose their power inside a write, or are cut off in one direction or both; what members say
to each other is lost with the connections.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.sim.changing_cluster import Changing
from tests.sim.run import run
from tests.sim.settings import PLAIN, drawn

SEEDS = int(os.environ.get("REPLISPEC_GROUPS", "4"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_acknowledged_is_lost_whatever_fails(seed: int) -> None:
    result = run(seed, replace(PLAIN, controllers=3))
    assert result.faults
    assert not result.wrong, str(result)


@pytest.mark.parametrize("seed", range(1_000, 1_000 + SEEDS // 2))
def test_nor_with_what_a_seed_draws(seed: int) -> None:
    result = run(seed, replace(drawn(seed), controllers=3))
    assert not result.wrong, str(result)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nor_while_controllers_come_and_go(seed: int) -> None:
    changing = Changing()
    result = run(seed, replace(PLAIN, controllers=3), prepare=changing.prepare)
    assert result.faults
    wrong = [*result.wrong, *changing.wrong()]
    assert not wrong, f"{result}\n{wrong}"


def test_the_same_seed_gives_the_same_trace() -> None:
    group = replace(PLAIN, controllers=3)
    assert run(3, group).digest == run(3, group).digest
