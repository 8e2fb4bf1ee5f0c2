"""Executors that die at any stage of a replay change no row and no verdict.

`local-cluster` gives each executor a process of its own, which it starts anew. A minute a stage: it runs with
REPLISPEC_SPREAD=all, as in `make test-full`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from tests.cli.command import CAPTURES
from tests.replay.spark_cluster import children
from tests.replay.test_spark_cluster import NAMES, POLL_S, rows
from tests.replay.test_spread_on_cluster import REPLAY

pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_SPREAD") != "all", reason="four replays on a cluster: make test-full"
)
MASTER = "local-cluster[2,1,1024]"
EXECUTOR = b"CoarseGrainedExecutorBackend"
# What is there when a stage has begun, or the one before it has ended.
STAGES = {
    "survey": "replispec-spark-*/outlines-*",
    "stitch": "**/*part-stitched-*",
    "first round": "replispec-judging-*/known-*-0",
    "verdicts": "replispec-judging-*/known-*-3",
}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local")
    replay([CAPTURES / name for name in NAMES], out, EngineName.LOCAL, Options())
    return out


def executors(pid: int) -> Iterator[int]:
    """Those that a process, or one that it started, has started."""
    for child in children(pid):
        if EXECUTOR in Path(f"/proc/{child}/cmdline").read_bytes():
            yield child
        else:
            yield from executors(child)


@pytest.mark.parametrize("stage", STAGES)
def test_executors_that_die_change_no_row(stage: str, local: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
    line = [sys.executable, "-c", REPLAY, MASTER, str(out), *(str(CAPTURES / name) for name in NAMES)]
    with subprocess.Popen(line, env=environment, text=True, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not any(tmp_path.glob(STAGES[stage])):
            try:
                process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue
        assert process.poll() is None, process.communicate()
        killed = [*executors(process.pid)]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        _, said = process.communicate()
    assert killed
    assert process.returncode == 0, said
    assert rows(out) == rows(local)
    assert not [*out.rglob(".*")]
