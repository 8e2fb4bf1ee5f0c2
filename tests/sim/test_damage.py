"""A damaged or crashed member costs nothing that was acknowledged, or is refused with what to do.

`python -m tests.sim.damage SEED` plays one again. REPLISPEC_ROT asks for more seeds than `make test` plays.
"""

from __future__ import annotations

import os

import pytest

from tests.sim.damage import Result, run

SEEDS = int(os.environ.get("REPLISPEC_ROT", "30"))
BATCH = 5


def judged(results: list[Result]) -> None:
    assert [result for result in results if not result.acknowledged] == []
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_what_a_member_acknowledged_is_read_whatever_befell_it_or_it_says_what_to_do(first: int) -> None:
    judged([run(seed) for seed in range(first, first + BATCH)])


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_single_byte_of_a_stopped_member_loses_a_message_without_a_word(first: int) -> None:
    judged([run(10_000 + seed, only_flips=True) for seed in range(first, first + BATCH)])


@pytest.mark.parametrize("first", range(0, SEEDS * 2 // 3, BATCH))
def test_no_byte_that_no_checksum_covers_is_counted_once_it_has_turned(first: int) -> None:
    judged([run(20_000 + seed, unnoted=True) for seed in range(first, first + BATCH)])


def test_without_comparing_logs_members_are_counted_whose_logs_differ() -> None:
    found = [wrong for seed in (20_000, 20_006) for wrong in run(seed, unnoted=True, compares=False).wrong]
    assert any(wrong.endswith("differ") for wrong in found), found
