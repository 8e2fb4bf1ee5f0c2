"""The measurement of clusters counts only what is right, and says where a clock tells nothing."""

import json
import os
from pathlib import Path

import pytest

from benchmarks import bench_cluster
from benchmarks.bench_cluster import (
    NAMES,
    ONE_WORKER,
    TWO_WORKERS,
    Subject,
    chosen,
    in_turns,
    ratios,
    table,
)
from benchmarks.bench_replay import Figures
from benchmarks.truth import Document
from replispec.replay.engines.results import REPORT_NAME, SUMMARY_NAME

TRUTH: Document = {"frames": {"remoting": 3}, "rows": {}, "losses": []}
PEAKS = {"own_peak_mb": 1.0, "jvm_peak_mb": 0.0, "worker_peak_mb": 0.0}


def run(wall_s: float, *, others_cpu_s: float = 0.0) -> Figures:
    fixed = {"cpu_s": 4.0, "own_cpu_s": 1.0, "bytes": 10**6, "load": 0.0, "report_mb": 0.1}
    return {"wall_s": wall_s, "others_cpu_s": others_cpu_s, **fixed, **PEAKS}


def says(frames: int) -> Subject:
    """Replays nothing and finds so many frames."""

    def replay(_capture: Path, out: Path) -> Figures:
        out.mkdir(exist_ok=True)
        (out / REPORT_NAME).write_text("report")
        capture = {"error": "", "frames_remoting": frames, "frames_ha": 0}
        (out / SUMMARY_NAME).write_text(json.dumps({"captures": [capture], "losses": [], "findings": []}))
        return {"wall_s": 1.0, "cpu_s": 0.0, "own_cpu_s": 0.0, **PEAKS}

    return Subject(replay)


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench_cluster, "OUT", tmp_path)
    path = tmp_path / "some.pcap"
    path.write_bytes(b"capture")
    return path


def test_the_first_turn_is_not_counted(capture: Path) -> None:
    runs = in_turns({"one": says(3), "other": says(3)}, {"shape": (capture, TRUTH)}, rounds=2)
    assert {name: len(own) for name, own in runs["shape"].items()} == {"one": 2, "other": 2}


def test_no_run_begins_when_the_time_is_over_and_what_ended_is_kept_and_shown(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter([False] * 5)
    both = {ONE_WORKER: says(3), TWO_WORKERS: says(3)}
    captures = {"shape": (capture, TRUTH), "other": (capture, TRUTH)}
    runs = in_turns(both, captures, rounds=3, time_is_over=lambda: next(left, True))
    assert {name: len(own) for name, own in runs["shape"].items()} == {ONE_WORKER: 2, TWO_WORKERS: 1}
    assert "other" not in runs
    assert json.loads((capture.parent / "cluster.json").read_text()) == runs
    ended_early = {ONE_WORKER: [run(10.0), run(12.0)], TWO_WORKERS: [run(5.0)]}
    assert ratios(ended_early) == [(TWO_WORKERS, ONE_WORKER, 2.0, 1.0, False)]
    assert capsys.readouterr().err.splitlines()[-1] == "the time is over: no more runs"


def test_subjects_are_chosen_by_parts_of_their_names() -> None:
    assert chosen(None) == [*NAMES]
    assert chosen(["worker"]) == [ONE_WORKER, TWO_WORKERS]
    with pytest.raises(RuntimeError, match="no subject is called so; there are: local engine; "):
        chosen(["nobody"])


def test_a_wrong_verdict_ends_the_measurement_and_says_whose_it_is(capture: Path) -> None:
    with pytest.raises(RuntimeError, match="shape, other: 1 verdicts are wrong\n4 frames, 3 were sent"):
        in_turns({"one": says(3), "other": says(4)}, {"shape": (capture, TRUTH)}, rounds=1)


def test_ratios_are_those_of_quiet_rounds() -> None:
    loud = (os.cpu_count() or 1) * 30.0
    slow = [run(10.0), run(30.0, others_cpu_s=loud), run(12.0)]
    runs = {ONE_WORKER: slow, TWO_WORKERS: [run(5.0), run(5.0), run(6.0)]}
    assert ratios(runs) == [(TWO_WORKERS, ONE_WORKER, 2.0, 1.0, False)]
    assert "2.00 by the clock (aim 1.7)" in table("shape", runs)


def test_a_clock_that_others_disturbed_is_called_noisy() -> None:
    runs = {ONE_WORKER: [run(10.0, others_cpu_s=1000.0)], TWO_WORKERS: [run(5.0)]}
    assert ratios(runs) == [(TWO_WORKERS, ONE_WORKER, 2.0, 1.0, True)]
    assert "noisy: the clock says nothing" in table("shape", runs)
