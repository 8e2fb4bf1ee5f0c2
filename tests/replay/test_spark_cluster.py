"""A cluster whose workers have no replispec gives the rows of the local engine, also when a worker dies."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from replispec.replay.engines.results import EVENTS_NAME, FRAMES_NAME, SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.tables import SCHEMAS, SORTED_BY
from replispec.replay.frames.tables import FRAMES_ORDER
from tests.cli.command import CAPTURES, command, replispec
from tests.replay.spark_cluster import BARE_PYTHON, SparkCluster, spark_cluster

NAMES = ("failover_lost.pcap", "hung_master.pcap")
POLL_S = 0.05


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "replispec.tar.gz"
    done = replispec("pack", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local")
    replay([CAPTURES / name for name in NAMES], out, EngineName.LOCAL, Options())
    return out


def rows(out: Path) -> dict[str, Any]:
    """All tables and the summary, but for what names the engine and the command."""
    orders = {FRAMES_NAME: FRAMES_ORDER} | {f"{EVENTS_NAME}/{kind}.parquet": SORTED_BY for kind in SCHEMAS}
    found: dict[str, Any] = {}
    for name, order in orders.items():
        table = pq.read_table(out / name)
        found[name] = table.sort_by([(column, "ascending") for column in order]).to_pylist()
    summary = json.loads((out / SUMMARY_NAME).read_text("utf-8"))
    return found | {name: summary[name] for name in summary if name not in ("engine", "provenance")}


def on_cluster(cluster: SparkCluster, out: Path, *options: str | Path) -> subprocess.Popen[str]:
    """A replay on the cluster that has begun."""
    # One as a file, one as what is in a store: workers see the copy.
    captures: list[str | Path] = [CAPTURES / NAMES[0], f"file://{CAPTURES / NAMES[1]}"]
    line = command("replay", *captures, "--out", out, "--master", cluster.url, "--quiet", *options)
    out.mkdir()
    environment = {**os.environ, "PYSPARK_PYTHON": str(BARE_PYTHON), "TMPDIR": str(out)}
    return subprocess.Popen(line, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_workers_without_replispec_end_in_one_line(cluster: SparkCluster, tmp_path: Path) -> None:
    with on_cluster(cluster, tmp_path / "out") as process:
        _, said = process.communicate()
    assert process.returncode == 2
    assert said.splitlines() == [
        f"Error: {cluster.url}: a worker has no Python package replispec: give --packed FILE (replispec pack)"
    ]


def test_a_worker_that_dies_changes_no_row(
    cluster: SparkCluster, packed: Path, local: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with on_cluster(cluster, out, "--packed", packed) as process:
        while not any(out.glob("replispec-spark-*/split-*")):
            try:
                process.wait(POLL_S)
                break
            except subprocess.TimeoutExpired:
                continue
        assert process.poll() is None, process.communicate()
        cluster.kill(cluster.workers[0])
        said = process.communicate()
    assert process.returncode == 1, said
    assert rows(out) == rows(local)
    assert not [*out.rglob(".*")]
