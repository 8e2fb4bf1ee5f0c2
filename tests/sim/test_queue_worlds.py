"""Logical queues of both forms over three broker sets: nothing acknowledged is lost, or at two offsets.

`python -m tests.sim.queue_run SEED` plays one run of a static topic again, with `--logical` one of RIP-21.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.sim.queue_play import QueueResult
from tests.sim.queue_run import run
from tests.sim.queue_world import drawn

# Each seed takes one to two seconds of CPU. `make test-full` plays 104 of each form.
SEEDS = int(os.environ.get("REPLISPEC_QUEUE_SEEDS", "8"))
BATCH = 8


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_every_message_of_a_static_topic_is_read_once_at_its_offset_whatever_fails(first: int) -> None:
    results = _played(first, logical=False)
    assert sum(each.undecided for each in results) > 0
    assert any("refuses" in reason for each in results for reason in each.refused), "administrators race"


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_every_message_of_a_logical_queue_is_read_once_at_its_offset_whatever_fails(first: int) -> None:
    _played(first, logical=True)


@pytest.mark.parametrize("seed", range(SEEDS if SEEDS > BATCH else 3))
def test_what_a_broker_knew_stays_known_when_it_leaves_or_is_lost_and_comes_back(seed: int) -> None:
    result = run(seed, acts=True)
    assert result.wrong == [], str(result)


def _played(first: int, *, logical: bool) -> list[QueueResult]:
    results = [run(seed, logical=logical) for seed in range(first, first + BATCH)]
    assert [result for result in results if not result.faults] == []
    assert [result for result in results if result.acknowledged < 5] == []
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)
    assert sum(each.moved for each in results) > BATCH
    assert sum(each.deaths for each in results) > 0
    assert sum(each.of_before for each in results) > BATCH
    return results


@pytest.mark.parametrize("logical", [False, True])
def test_the_same_seed_gives_the_same_trace_in_any_process(*, logical: bool) -> None:
    program = f"from tests.sim.queue_run import run; print(run(3, logical={logical}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == run(3, logical=logical).digest


@pytest.mark.parametrize("logical", [False, True])
def test_the_seeds_vary_administrators_sets_and_queues(*, logical: bool) -> None:
    found = [drawn(seed, logical=logical) for seed in range(60)]
    assert {each.races for each in found} == {True, False}
    assert {each.in_sync_min for each in found} == {1, 2}
    assert {each.queues for each in found} == ({1, 2} if logical else {1, 2, 3, 4, 5, 6})
    assert {each.deaths_per_mille for each in found} == {0, 300, 700}
    assert {bool(each.reserved) for each in found} == {True, False}
    assert {each.made_first for each in found} == ({True, False} if logical else {False})


@pytest.mark.parametrize("logical", [False, True])
def test_a_run_says_how_it_is_played_again(*, logical: bool) -> None:
    result = QueueResult(7, "0" * 64, [], ["lost"], drawn(7, logical=logical))
    again = "7 --logical" if logical else "7"
    assert f"python -m tests.sim.queue_run {again}\n" in str(result)
    assert "  WRONG: lost" in str(result)
