"""Static topics over three broker sets: nothing acknowledged is lost or at two offsets, whatever fails.

`python -m tests.sim.queue_run SEED` plays one run again.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.sim.queue_run import QueueResult, run
from tests.sim.queue_world import drawn

# Each seed takes about a second of CPU. `make test-full` plays 200.
SEEDS = int(os.environ.get("REPLISPEC_QUEUE_SEEDS", "16"))
BATCH = 8


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_every_message_of_a_static_topic_is_read_once_at_its_offset_whatever_fails(first: int) -> None:
    results = [run(seed) for seed in range(first, first + BATCH)]
    assert [result for result in results if not result.faults] == []
    assert [result for result in results if result.acknowledged < 5] == []
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)
    assert sum(each.moved for each in results) > BATCH
    assert sum(each.deaths for each in results) > 0
    assert sum(each.undecided for each in results) > 0
    assert sum(each.of_before for each in results) > BATCH
    assert any("refuses" in reason for each in results for reason in each.refused), "administrators race"


def test_the_same_seed_gives_the_same_trace_in_any_process() -> None:
    program = "from tests.sim.queue_run import run; print(run(3).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == run(3).digest


def test_the_seeds_vary_administrators_sets_and_queues() -> None:
    found = [drawn(seed) for seed in range(40)]
    assert {each.races for each in found} == {True, False}
    assert {each.in_sync_min for each in found} == {1, 2}
    assert {each.queues for each in found} == {1, 2, 3, 4, 5, 6}
    assert {each.deaths_per_mille for each in found} == {0, 300, 700}


def test_a_run_says_how_it_is_played_again() -> None:
    result = QueueResult(7, "0" * 64, [], ["lost"], drawn(7))
    assert "python -m tests.sim.queue_run 7\n" in str(result)
    assert "  WRONG: lost" in str(result)
