"""A worker that dies while parts of captures are judged changes no verdict and no row."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from tests.cli.command import CAPTURES
from tests.replay.spark_cluster import spark_cluster
from tests.replay.test_spark_cluster import NAMES, POLL_S, rows

REPLAY = """
import sys
from pathlib import Path
from replispec.replay.engines import spark_parts
from replispec.replay.engines.cluster import Cluster
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
spark_parts.FRAMES_MINIMUM = spark_parts.FRAMES_OF_ONE = 32
url, out, *captures = sys.argv[1:]
options = Options(cluster=Cluster(url), events_together=0, split_bytes=100_000)
replay([Path(each) for each in captures], Path(out), EngineName.SPARK, options)
"""


@pytest.mark.skipif(
    os.environ.get("REPLISPEC_SPREAD") != "all", reason="a cluster of its own: make test-full"
)
def test_a_worker_that_dies_between_rounds_changes_nothing(tmp_path: Path) -> None:
    captures = [CAPTURES / name for name in NAMES]
    local, out = tmp_path / "local", tmp_path / "out"
    replay(captures, local, EngineName.LOCAL, Options())
    out.mkdir()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
    with spark_cluster(tmp_path / "cluster") as cluster:
        line = [sys.executable, "-c", REPLAY, cluster.url, str(out), *map(str, captures)]
        with subprocess.Popen(line, env=environment, text=True, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not any(tmp_path.glob("replispec-judging-*/known-*-1")):
                try:
                    process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
            assert process.poll() is None, process.communicate()
            cluster.kill(cluster.workers[0])
            _, said = process.communicate()
    assert process.returncode == 0, said
    assert rows(out) == rows(local)
    assert not [*out.rglob(".*")]
