"""What clients of a group of controllers are told is linearizable, whatever fails.

Histories alone, made of the bytes (tests/linearizable/wire.py), find what is broken.
"""

from __future__ import annotations

import os

import pytest

from tests.sim.group_clients import run
from tests.sim.history_mutants import FOUND, MUTANTS, found_by

SEEDS = int(os.environ.get("REPLISPEC_HISTORIES", "4"))
LATER = 6
"""How many seeds further a change of the roles may move what finds a mutant."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_clients_are_told_is_linearizable(seed: int) -> None:
    heard = run(seed, 5 if seed % 4 == 3 else 3, is_short=seed % 2 == 1)
    assert len(heard.faults) > 4
    assert heard.answers > 1_000
    parts = {part for _, part, _ in heard.histories.operations}
    assert parts == {"identities", "address", "view"}
    assert not heard.wrong, "\n".join([*heard.faults, *heard.wrong])


@pytest.mark.parametrize("name", MUTANTS)
def test_histories_alone_find_a_broken_rule(name: str) -> None:
    assert found_by(MUTANTS[name], FOUND[name] + LATER) is not None
