"""Captures in a store are replayed as if they lay here, and a store that fails is one line."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replispec.replay.engines import spark_session as spark_session_module
from replispec.replay.engines import spark_stores
from replispec.replay.engines.cluster import Cluster, StoreError, is_url
from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_source import SourceOptionError, _Request, read_captures
from replispec.replay.engines.spark_stores import bring
from tests.cli.command import CAPTURES, replispec
from tests.replay.stores import BUCKET, HOST, SECRET, lossy_way, s3_store, settings

NAMES = ("failover_lost.pcap", "k2_newbroker_oldcontroller.pcap")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_session(Cluster("local[2]"))


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_store({f"day/{name}": CAPTURES / name for name in NAMES}) as endpoint:
        yield endpoint


def needs_jars(done: subprocess.CompletedProcess[str]) -> None:
    """Skip where the jars of S3A cannot be had; fail where changes are checked."""
    if "Spark did not start" in done.stderr:
        missing = "the jars of S3A cannot be had here: Spark fetches them once"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)


def said(out: Path) -> dict[str, Any]:
    """The summary, but for what names the engine and the command."""
    summary: dict[str, Any] = json.loads((out / SUMMARY_NAME).read_text("utf-8"))
    inputs = summary["provenance"]["inputs"]
    return {**summary, "engine": "", "provenance": inputs}


def test_captures_in_s3_are_replayed_although_answers_are_lost(store: str, tmp_path: Path) -> None:
    passing, out, local = tmp_path / "passing", tmp_path / "out", tmp_path / "local"
    passing.mkdir()
    with lossy_way(store) as way:
        line = ["replay", f"s3a://{BUCKET}/day/*.pcap", "--out", str(out), *settings(way.endpoint)]
        done = replispec(*line, "--quiet", environment={"TMPDIR": str(passing)})
    needs_jars(done)
    assert done.returncode == 1, done.stderr
    replay([CAPTURES / name for name in NAMES], local, EngineName.LOCAL, Options())
    assert said(out) == said(local)
    assert SECRET not in (out / SUMMARY_NAME).read_text("utf-8")
    assert sorted(way.asked.values()) == [2, 2]
    assert way.given < 2 * sum((CAPTURES / name).stat().st_size for name in NAMES)
    assert not list(passing.glob("replispec-*"))


def test_a_folder_in_s3_and_a_file_here_are_replayed_together(store: str, tmp_path: Path) -> None:
    out, here = tmp_path / "out", CAPTURES / "k1_oldbroker_newcontroller.pcap"
    done = replispec("replay", here, f"s3a://{BUCKET}/day", "--out", out, "--quiet", *settings(store))
    needs_jars(done)
    assert done.returncode == 1, done.stderr
    assert [capture["file"] for capture in said(out)["captures"]] == [here.name, *NAMES]


def test_a_store_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        endpoint = f"http://{HOST}:{unused.getsockname()[1]}"
    url = f"s3a://{BUCKET}/a.pcap"
    done = replispec("replay", url, "--out", tmp_path / "out", "--quiet", *settings(endpoint))
    needs_jars(done)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"Error: {url}: no answer in {spark_stores.ATTEMPTS} tries: ConnectException: Connection refused"
    ]


def test_a_file_system_without_jars_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^gs://b/x: Spark has no file system for gs: give its jars"):
        bring(spark, "gs://b/x", tmp_path)


def test_a_store_that_does_not_say_how_long_a_file_is_is_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop's http does not, whoever is asked."""
    with pytest.raises(StoreError, match=r"x\.pcap: this file system does not say how long a file is"):
        bring(spark, "http://127.0.0.1:9/x.pcap", tmp_path)


@pytest.mark.parametrize(
    ("told", "becomes"), [({}, "C.UTF-8"), ({"LC_ALL": "C"}, "C.UTF-8"), ({"LANG": "de_DE.UTF-8"}, None)]
)
def test_java_names_files_as_python_does(
    told: dict[str, str], becomes: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the locale C it would leave out each capture whose name is not ASCII, without a word."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, told.get(name, ""))
    spark_session_module._name_files_as_python()
    assert os.environ["LC_ALL"] == (becomes or told.get("LC_ALL", ""))


def test_files_come_in_ranges_whole_and_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_stores, "RANGE_BYTES", 1_000)
    monkeypatch.setattr(spark_stores, "ATTEMPTS", 1)
    folder, into = tmp_path / "store", tmp_path / "into"
    folder.mkdir()
    into.mkdir()
    for name, size in (("a10", 2_500), ("a9", 1_000), ("a11", 0), ("_SUCCESS", 3), (".a.crc", 3)):
        (folder / name).write_bytes(os.urandom(size))
    (folder / "inner").mkdir()
    for url in (f"file://{folder}", f"file://{folder}/a*"):
        found = bring(spark, url, into)
        assert [path.name for path in found] == ["a9", "a10", "a11"]
        assert all(path.read_bytes() == (folder / path.name).read_bytes() for path in found)
        with pytest.raises(StoreError, match="two captures are called a9"):
            bring(spark, url, into)
        for path in found:
            path.unlink()


def test_what_cannot_be_had_is_said(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{CAPTURES}/{NAMES[0]}"
    with pytest.raises(StoreError, match="there is no such file"):
        bring(spark, f"file://{CAPTURES}/nothing*", tmp_path)
    monkeypatch.setattr(spark_stores, "FILES_MAXIMUM", 1)
    with pytest.raises(StoreError, match="more than 1 files"):
        bring(spark, f"file://{CAPTURES}", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1_000}))
    with pytest.raises(StoreError, match=r"bytes do not fit into .* \(1000 are free\); set TMPDIR"):
        bring(spark, url, tmp_path)


def test_a_file_that_changes_meanwhile_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = tmp_path / "growing.pcap"
    growing.write_bytes(b"some")
    into = tmp_path / "into"
    into.mkdir()
    copy = spark_stores._Store._copy

    def slow(*given: Any) -> None:
        copy(*given)
        growing.write_bytes(b"some more")

    monkeypatch.setattr(spark_stores._Store, "_copy", slow)
    with pytest.raises(StoreError, match="it changed while it was read"):
        bring(spark, f"file://{growing}", into)


def test_a_store_is_asked_again_before_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_stores, "PAUSE_S", 0.0)
    faults = iter([spark_stores._ShortError("one"), spark_stores._ShortError("two")])

    def late() -> str:
        for fault in faults:
            raise fault
        return "here"

    assert spark_stores._tried(late, "s3a://b/x") == "here"
    faults = iter([spark_stores._ShortError(str(number)) for number in range(9)])
    with pytest.raises(StoreError, match=r"^s3a://b/x: no answer in 3 tries: 2$"):
        spark_stores._tried(late, "s3a://b/x")


def test_a_table_of_captures_in_a_store(spark: SparkSession) -> None:
    table = read_captures(spark, f"file://{CAPTURES}/k?_*.pcap", columns=["time_ns"])
    here = read_captures(spark, CAPTURES / "k?_*.pcap", columns=["time_ns"])
    assert table.count() == here.count() > 0
    with pytest.raises(SourceOptionError, match="read_captures"):
        _Request({"path": "s3a://b/x"}).paths()


def test_addresses_are_told_from_paths() -> None:
    assert is_url("s3a://bucket/a.pcap")
    assert is_url("hdfs://host:8020/a")
    assert not is_url("a.pcap")
    assert not is_url("/a//b.pcap")
    assert not is_url("s3a:/b")
