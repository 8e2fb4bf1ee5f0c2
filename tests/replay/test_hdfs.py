"""Captures in HDFS are replayed as if they lay here, also when its name node goes away in between."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replispec.replay.engines import spark_stores
from replispec.replay.engines.cluster import Cluster, StoreError
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_stores import SETTINGS, bring
from tests.cli.command import CAPTURES, replispec
from tests.replay.hdfs import Hdfs, NoHadoopError, hdfs
from tests.replay.test_spark_stores import NAMES, said

pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_HDFS") != "all",
    reason="a name node takes minutes to be up, away and up again: make test-full (REPLISPEC_HDFS=all)",
)
POLL_S = 0.01
ALL_AWAY_S = 3.0
MANY = 30


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    session = spark_session(Cluster("local[2]"))
    # A session that other tests made does not know them.
    context = session.sparkContext
    for name, value in SETTINGS.items():
        context._jsc.hadoopConfiguration().set(name.removeprefix("spark.hadoop."), value)
    return session


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    try:
        with hdfs(tmp_path_factory.mktemp("hdfs") / "blocks") as found:
            found.put({f"/day/{name}": CAPTURES / name for name in NAMES})
            found.put({f"/many/{number}.pcap": CAPTURES / NAMES[1] for number in range(MANY)})
            found.put({"/odd/a[1]_{b,c}%20*.pcap": CAPTURES / NAMES[1]})
            yield found
    except NoHadoopError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@contextmanager
def once_some_came(into: Path, what: Callable[[], object]) -> Iterator[None]:
    """Do something in between, when the first captures are there."""
    done = threading.Event()

    def wait() -> None:
        while len(list(into.iterdir())) < MANY // 6 and not done.wait(POLL_S):
            pass
        what()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_globs_and_folders_in_hdfs_are_replayed(files: Hdfs, tmp_path: Path) -> None:
    local, passing = tmp_path / "local", tmp_path / "passing"
    passing.mkdir()
    replay([CAPTURES / name for name in NAMES], local, EngineName.LOCAL, Options())
    line = ["replay", f"{files.url}/da?/*.pcap", "--out", str(tmp_path / "out"), "--quiet"]
    done = replispec(*line, environment={"TMPDIR": str(passing)})
    assert done.returncode == 1, done.stderr
    assert said(tmp_path / "out") == said(local)
    assert not list(passing.glob("replispec-*"))


def test_a_name_with_signs_of_a_glob_is_a_name(files: Hdfs, spark: SparkSession, tmp_path: Path) -> None:
    (found,) = bring(spark, f"{files.url}/odd", tmp_path)
    assert found.name == "a[1]_{b,c}%20*.pcap"
    assert found.read_bytes() == (CAPTURES / NAMES[1]).read_bytes()


def test_a_name_node_that_comes_back_is_waited_for(files: Hdfs, spark: SparkSession, tmp_path: Path) -> None:
    def be_away() -> None:
        files.leave()
        threading.Event().wait(ALL_AWAY_S)
        files.come()

    with once_some_came(tmp_path, be_away):
        found = bring(spark, f"{files.url}/many", tmp_path)
    assert len(found) == MANY
    assert {path.read_bytes() for path in found} == {(CAPTURES / NAMES[1]).read_bytes()}


def test_a_name_node_that_stays_away_is_one_line(
    files: Hdfs, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_stores, "PAUSE_S", 0.1)
    with pytest.raises(StoreError) as raised, once_some_came(tmp_path, files.leave):
        bring(spark, f"{files.url}/many", tmp_path)
    files.come()
    words = str(raised.value)
    assert words.startswith(f"{files.url}/many/")
    assert words.endswith("no answer in 3 tries: ConnectException: Connection refused")
    with pytest.raises(StoreError, match=r"/many/nothing: there is no such file$"):
        bring(spark, f"{files.url}/many/nothing", tmp_path)
