"""Whole clusters that delete old messages: nothing goes too early, and all else is as it was.

`python -m tests.sim.kept SEED` plays one run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

import pytest

from replispec.runtime.rocketmq.log import QueueIndex, Retention
from tests.sim.kept import keeping, run_keeping
from tests.sim.run import Operator

# Each seed takes 0.4 s of CPU.
SEEDS: Final = int(os.environ.get("REPLISPEC_SEEDS", "200")) // 20
BATCH: Final = 5


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_what_is_confirmed_and_younger_than_promised_is_read_whatever_is_deleted(first: int) -> None:
    runs = [run_keeping(seed) for seed in range(first, first + BATCH)]
    assert sum(archive.files for _, archive in runs) > BATCH
    wrong = [str(result) for result, _ in runs if result.wrong]
    assert wrong == [], "\n".join(wrong)


def test_the_seeds_vary_how_long_messages_are_kept_and_how_full_disks_are() -> None:
    found = [keeping(seed) for seed in range(40)]
    assert {each.reserved for each in found} == {1, 2, 3, 4}
    assert {(each.room_bytes > 0, each.is_forced) for each in found} == {
        (False, False),
        (True, False),
        (True, True),
    }
    assert {each.quiet_for > 0 for each in found} == {True, False}


Mutant = Callable[[], AbstractContextManager[object]]
BROKEN: Final[dict[str, tuple[Mutant, int, str]]] = {
    "files go whatever their age": (
        lambda: patch.object(Retention, "_is_old", lambda *_: True),
        0,
        "deletes",
    ),
    "a log that was copied from its middle on counts from 0": (
        lambda: patch.object(QueueIndex, "unknown", property(lambda _: 0, lambda *_: None), create=True),
        133,
        "both acknowledged",
    ),
    "whoever is behind the first byte stays there": (
        lambda: patch.object(Operator, "_empty", lambda *_: None),
        25,
        "not whole",
    ),
}
"""Promises broken one at a time: how, a seed that finds it, and what it says."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name: str) -> None:
    mutant, seed, says = BROKEN[name]
    with mutant():
        result, _ = run_keeping(seed)
    assert any(says in each for each in result.wrong), result
