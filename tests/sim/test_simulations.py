"""Whole clusters from seeds: faults of all kinds, and nothing acknowledged is lost.

`python -m tests.sim.run SEED` plays one run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.runtime.primitives.invariants import Verdict
from tests.house.tree import ROOT
from tests.replay.pcap_writer import pcap
from tests.sim.cluster import PORTS
from tests.sim.run import run
from tests.sim.wiretap import Wiretap

# The other half is in test_settings.py.
SEEDS = int(os.environ.get("REPLISPEC_SEEDS", "200")) // 2
BATCH = 10


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_nothing_acknowledged_is_lost_whatever_fails(first: int) -> None:
    results = [run(seed) for seed in range(first, first + BATCH)]
    assert [result for result in results if not result.faults] == []
    assert [result for result in results if result.acknowledged < 5] == []
    wrong = [str(result) for result in results if result.wrong]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_trace_in_any_process(seed: int) -> None:
    program = f"from tests.sim.run import run; print(run({seed}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == run(seed).digest


@pytest.mark.parametrize("seed", range(1_000, 1_005))
def test_the_replay_of_a_simulated_run_finds_no_rule_broken(seed: int, tmp_path: Path) -> None:
    tap = Wiretap()
    run(seed, tap=tap)
    place = tmp_path / f"seed-{seed}.pcap"
    place.write_bytes(pcap(tap.packets, link_type=101))
    options = Options(all_ack=True, ha_ports=[PORTS["broker-1"] + 1])
    summary = replay([place], tmp_path / "out", EngineName.LOCAL, options)
    broken = [each for each in summary.findings if each.verdict is Verdict.VIOLATED]
    assert broken == []
    assert summary.losses == []
