"""A packed environment holds what judges here, and one that would judge otherwise is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from replispec.replay.engines import packing, spark
from replispec.replay.engines.cluster import Cluster, ClusterError, meaning
from replispec.replay.engines.packing import MANIFEST, _own_files, check_packed, identity, pack
from replispec.replay.engines.results import Options
from replispec.replay.engines.spark_session import whole
from replispec.replay.engines.spark_tasks import must_be
from replispec.replay.engines.spark_workers import plain_failures
from tests.house.tree import ROOT
from tests.replay.spark_cluster import BARE_PYTHON

JUDGES = "from replispec.replay.engines import by_splits, family; family.judged_families(); print('imported')"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "replispec.tar.gz"
    assert pack(path) > 1000
    return path


def test_a_python_without_packages_judges_with_what_is_packed(packed: Path, tmp_path: Path) -> None:
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    said = [
        subprocess.run(
            [BARE_PYTHON, "-c", JUDGES],
            env={"PYTHONPATH": str(path), "PATH": os.defpath},
            capture_output=True,
            text=True,
            check=False,
        )
        for path in (tmp_path / "nothing", tmp_path)
    ]
    assert "No module named 'replispec'" in said[0].stderr
    assert said[1].stdout == "imported\n", said[1].stderr


def test_the_same_version_is_taken_and_another_is_refused(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_packed(packed)
    monkeypatch.setattr(packing, "identity", lambda: "another")
    with pytest.raises(ClusterError, match=f"holds another replispec than this one .{identity()}, another"):
        check_packed(packed)


def test_what_is_no_packed_environment_is_refused(tmp_path: Path) -> None:
    text, foreign = tmp_path / "text.tar.gz", tmp_path / "foreign.tar.gz"
    text.write_bytes(b"no archive")
    with tarfile.open(foreign, "w:gz") as archive:
        archive.add(text, MANIFEST)
    for path in (text, foreign):
        with pytest.raises(ClusterError, match="is no packed environment"):
            check_packed(path)


@pytest.mark.parametrize(
    ("master", "is_here", "on_this_machine"),
    [
        ("local", True, True),
        ("local[2]", True, True),
        ("local[*, 4]", True, True),
        ("local-cluster[2,1,1024]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("spark://localhost:7077", False, True),
        ("spark://10.1.2.3:7077", False, False),
        ("spark://a:7077,127.0.0.1:7077", False, False),
    ],
)
def test_what_a_master_says_of_where_the_work_is_done(
    master: str, is_here: bool, on_this_machine: bool
) -> None:
    cluster = Cluster(master)
    assert (cluster.is_here, cluster.on_this_machine) == (is_here, on_this_machine)


def test_another_python_is_told_before_what_it_lacks() -> None:
    said = (
        "ModuleNotFoundError: No module named 'replispec'\n[PYTHON_VERSION_MISMATCH] Python in worker has "
        "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )
    assert meaning(said) == (
        "a worker runs another Python than this one (3.12, 3.11): "
        "set PYSPARK_PYTHON to one of the same version"
    )
    assert meaning("something else") is None


def test_a_worker_that_has_another_replispec_does_nothing_and_says_so() -> None:
    must_be(identity())
    with pytest.raises(RuntimeError) as raised:
        must_be("linux-other")
    said = meaning(f"An exception was thrown from the Python worker:\nRuntimeError: {raised.value}\n")
    assert said is not None
    assert said.startswith("a worker has another replispec than this one (")
    assert said.endswith("linux-other): give --packed FILE (replispec pack)")


def test_a_java_process_that_ended_is_one_line() -> None:
    called = "An error occurred while calling o63.processAllAvailable"
    for said in (called, "Answer from Java side is empty", "[Errno 111] Connection refused"):
        assert (meaning(said) or "").startswith("Spark's Java process ended")
    assert meaning(f"{called}.\n: java.lang.Error: odd") != meaning(called)


@pytest.mark.parametrize("text", ["", "another = True"])
def test_a_replispec_behind_the_packed_one_changes_nothing(tmp_path: Path, text: str) -> None:
    """Workers find the packed one first, whatever their Python has."""
    engines = find_spec("replispec.replay.engines")
    assert engines is not None
    assert engines.origin is not None
    room = Path(engines.origin).parents[3]
    behind = tmp_path / "installed"
    shutil.copytree(room / "replispec", behind / "replispec")
    with (behind / "replispec" / "replay" / "__init__.py").open("a") as file:
        file.write(text)
    told = (
        "from replispec.replay.engines import packing as own; print(own.identity(), len([*own._own_files()]))"
    )
    line = [sys.executable, "-c", f"import sys; sys.path.append({str(behind)!r}); {told}"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    assert said == [identity(), str(len([*_own_files()]))]


_JAVA_SAID = """An error occurred while calling o71.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: {}
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (
            (
                "Total size of serialized results of 1 tasks (2.8 KiB) is bigger than "
                "spark.driver.maxResultSize (1024.0 B)"
            ),
            "what workers tell is more than spark.driver.maxResultSize (1024.0 B): set it by --spark-setting",
        ),
        (
            (
                "Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage 1.0 (TID 1) "
                "(127.0.0.1 executor 0): ExecutorLostFailure (executor 0 exited caused by one of the running "
                "tasks) Reason: Command exited with code 137"
            ),
            "workers ended at one task as often as Spark tries it",
        ),
        (
            (
                "Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task: java.io.EOFException: "
                "Python worker exited unexpectedly (crashed)"
            ),
            "workers ended at one task as often as Spark tries it",
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "Spark's Java process is out of memory: give --spark-setting",
        ),
        (
            "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device",
            "what a worker was to write does not fit: No space left on device",
        ),
        (
            "something odd happened",
            (
                "Spark says SparkException: Job aborted due to stage failure: something odd happened; "
                "spark.log in --out says more"
            ),
        ),
    ],
)
def test_what_spark_cannot_do_is_one_line(failure: str, expected: str) -> None:
    said = meaning(_JAVA_SAID.format(failure)) or ""
    assert said.startswith(expected)
    assert "\n" not in said


def test_a_fault_of_ours_on_a_worker_keeps_its_trace() -> None:
    assert meaning(_JAVA_SAID.format("Traceback (most recent call last):\nKeyError: 'x'")) is None


def test_a_capture_that_goes_away_while_spark_reads_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.pcap"
    path.write_bytes((ROOT / "spark_replay/captures/m_mtu1500.pcap").read_bytes())

    def read(*_: object) -> NoReturn:
        path.unlink()
        raise RuntimeError("a worker did not find it")

    monkeypatch.setattr(spark, "_replayed", read)
    with pytest.raises(ClusterError, match=r"gone\.pcap was removed or cut while it was read"):
        list(spark.SparkEngine().results([path], tmp_path, Options(), lambda *_: None))


def test_what_spark_says_of_jobs_that_an_interrupt_ends_is_an_interrupt() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("Job 3 cancelled because the user interrupted")

    with pytest.raises(KeyboardInterrupt), plain_failures():
        interrupted()
    with pytest.raises(RuntimeError), plain_failures():
        raise RuntimeError("something else")


def test_an_interrupt_waits_until_the_jvm_is_there() -> None:
    """One that is left while it starts goes on for ever."""
    done = []

    def start() -> None:
        with whole():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    # Sessions of other tests have set a handler that ends their jobs.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert done == ["started"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
