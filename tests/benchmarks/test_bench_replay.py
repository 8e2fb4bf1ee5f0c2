"""The measurement of the replay goes on without tshark."""

import shutil
from pathlib import Path

import pytest

from benchmarks import bench_replay
from benchmarks.bench_replay import Figures, has_spark, judged, measure, medians, table
from benchmarks.family import Dissected
from benchmarks.truth import Document
from tests.cli.command import CAPTURES

CAPTURE = CAPTURES / "a_first_start.pcap"


class FakeReplayer:
    """Replays nothing, in no time worth measuring."""

    def __init__(self, *_arguments: str) -> None:
        pass

    def replay(self, capture: Path, _out: Path) -> Figures:
        """Figures of a replay that took a second."""
        return {"frames": 1, "frames_wall_s": 1.0, "frames_cpu_s": 1.0, "bytes": capture.stat().st_size}

    def close(self) -> None:
        """Nothing to end."""


def test_without_tshark_its_rows_are_left_out_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_replay, "Replayer", FakeReplayer)
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    runs = measure(CAPTURE, Dissected("", "", ()), rounds=2, prefix_packets=100, split_bytes=1 << 20)
    assert list(runs) == ["page cache", "local", "spark, 1 core, warm", "spark, 2 cores, warm"]
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "tshark" in line] == [
        "bench-replay: tshark is missing, its rows are left out (Debian, Ubuntu: apt-get install tshark)"
    ]
    assert "tshark" not in table({name: medians(found) for name, found in runs.items()})


def test_without_a_jdk_the_rows_of_spark_are_left_out_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert not has_spark()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bench-replay: Spark's rows are left out: ")
    assert "no java on PATH" in line
    monkeypatch.setattr(bench_replay, "Replayer", FakeReplayer)
    sizes = {"rounds": 1, "prefix_packets": 100, "split_bytes": 1 << 20}
    assert list(measure(CAPTURE, Dissected("", "", ()), **sizes, has_spark=False)) == ["page cache", "local"]


def test_a_wrong_verdict_ends_the_measurement(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_replay, "OUT", tmp_path)
    truth: Document = {"frames": {"remoting": 1}, "rows": {}, "losses": []}
    with pytest.raises(RuntimeError, match="verdicts are wrong\n773 frames, 1 were sent"):
        judged(CAPTURE, truth, "local")
