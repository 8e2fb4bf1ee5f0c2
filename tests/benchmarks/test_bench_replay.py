"""The measurement of the replay goes on without tshark and without Java."""

import shutil
from pathlib import Path

import pytest

from benchmarks import bench_replay
from benchmarks.bench_replay import Figures, measure, medians, table
from benchmarks.family import Dissected
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


@pytest.mark.parametrize(
    ("missing", "package", "left"),
    [
        ("tshark", "tshark", ["page cache", "local", "spark, 1 core, warm", "spark, 2 cores, warm"]),
        (
            "java",
            "openjdk-17-jdk-headless",
            ["page cache", "tshark, plain fields", "tshark, our dissector", "local"],
        ),
    ],
)
def test_without_a_program_its_rows_are_left_out_and_one_line_says_so(
    missing: str,
    package: str,
    left: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench_replay, "Replayer", FakeReplayer)
    monkeypatch.setattr(bench_replay, "tshark", lambda *_, **__: FakeReplayer().replay(CAPTURE, CAPTURE))
    monkeypatch.setattr(shutil, "which", lambda program: None if program.endswith(missing) else program)
    runs = measure(CAPTURE, Dissected("", "", ()), rounds=2, prefix_packets=100, split_bytes=1 << 20)
    assert sorted(runs) == sorted(left)
    lines = [line for line in capsys.readouterr().err.splitlines() if "missing" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"bench-replay: {missing} is missing")
    assert lines[0].endswith(f"apt-get install {package})")
    shown = table({name: medians(found) for name, found in runs.items()})
    assert all(name in shown for name in left)
