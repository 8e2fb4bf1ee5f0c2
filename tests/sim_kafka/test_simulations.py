"""Whole clusters of partitions from seeds: metastore, candidates, brokers, learner, clients and administrator
under faults of all kinds, and nothing that was acknowledged by all is lost.

`python -m tests.sim_kafka.run SEED` plays one run again.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.sim_kafka.run import PartitionsResult, run

SEEDS = int(os.environ.get("REPLISPEC_PARTITION_SEEDS", "24"))
BATCH = 4


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_nothing_that_the_isr_acknowledged_is_lost_whatever_fails(first: int) -> None:
    results = [run(seed) for seed in range(first, first + BATCH)]
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)
    assert [result for result in results if not result.faults or not result.counts["acknowledged"]] == []
    assert sum(result.counts["elections"] for result in results) > 2
    assert sum(result.counts["changes of ISRs"] for result in results) > 10


@pytest.mark.parametrize("seed", [1, 4])
def test_the_same_seed_gives_the_same_trace_in_any_process(seed: int) -> None:
    program = f"from tests.sim_kafka.run import run; print(run({seed}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == run(seed).digest


def test_another_seed_is_another_run() -> None:
    results: list[PartitionsResult] = [run(seed) for seed in (2, 3)]
    assert results[0].digest != results[1].digest
