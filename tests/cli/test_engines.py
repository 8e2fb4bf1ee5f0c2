"""Which engine a replay takes: `auto` prefers Spark where it can run; what is missing is named."""

from importlib.machinery import ModuleSpec
from pathlib import Path

import click
import pytest

from replispec.cli import engines

INSTALLED = ModuleSpec("pyspark", None)


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The java of a machine that has Spark and a JDK 21."""
    path = tmp_path / "bin" / "java"
    path.parent.mkdir()
    _says(path, 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(engines, "find_spec", lambda _name: INSTALLED)
    return path


def _says(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{line}' >&2\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("java")
def test_auto_takes_spark_where_it_can_run_and_says_so() -> None:
    engine, said = engines.choose("auto")
    assert engine == "spark"
    assert said.startswith("the Spark engine replays; --engine local")


@pytest.mark.usefixtures("java")
def test_a_few_megabytes_are_judged_in_this_process_by_default_and_a_line_says_so(tmp_path: Path) -> None:
    small, large = tmp_path / "small.pcap", tmp_path / "large.pcap"
    small.write_bytes(bytes(1_200_000))
    with large.open("wb") as file:
        file.truncate(engines.SMALL_BYTES)
    engine, said = engines.choose("auto", captures=[small])
    assert (engine, "1.2 MB" in said, "--engine spark" in said) == ("local", True, True)
    assert engines.choose("auto", captures=[large])[0] == "local"
    assert engines.choose("auto", captures=[small, large])[0] == "spark"
    assert engines.choose("auto", captures=[small, Path("-")])[0] == "spark"
    assert engines.choose("auto", {"master": "local[2]"}, [small]) == ("spark", "")
    assert engines.choose("spark", captures=[small]) == ("spark", "")


@pytest.mark.usefixtures("java")
def test_a_compressed_capture_is_compared_by_what_it_may_come_to(tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(b"\x1f\x8b" + bytes(engines.SMALL_BYTES // 10))
    assert engines.choose("auto", captures=[packed])[0] == "spark"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('java version "1.8.0_402"', "1.8"),
        ('openjdk version "11.0.22" 2024-01-16', "11"),
        ("no idea", "unknown"),
    ],
)
def test_an_old_java_is_named_by_the_version_that_people_call_it(java: Path, line: str, version: str) -> None:
    _says(java, line)
    assert engines.choose("auto") == (
        "local",
        f"the local engine replays, in one process: {java} is version {version}",
    )
    with pytest.raises(engines.MissingError, match="install a JDK 17 or later, or use --engine local"):
        engines.choose("spark")


@pytest.mark.usefixtures("java")
def test_without_pyspark_the_remedy_is_that_of_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda _name: None)
    assert engines.choose("auto")[0] == "local"
    with pytest.raises(engines.MissingError, match=r"pip install '\.\[spark\]', or use --engine local"):
        engines.choose("spark")


def test_an_engine_that_is_named_is_taken_without_a_word(java: Path) -> None:
    assert engines.choose("spark") == ("spark", "")
    java.unlink()
    assert engines.choose("local") == ("local", "")


@pytest.mark.usefixtures("java")
def test_captures_in_a_store_are_for_spark() -> None:
    assert engines.choose("auto", captures=["s3a://b/x.pcap", Path("y.pcap")]) == ("spark", "")
    with pytest.raises(click.UsageError, match="captures in a store are for the Spark engine"):
        engines.choose("local", captures=["s3a://b/x.pcap"])


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("spark.hadoop.fs.s3a.secret.key=hidden", "spark.hadoop.fs.s3a.secret.key=***"),
        (
            "--spark-setting=spark.hadoop.fs.s3a.access.key=a=b",
            "--spark-setting=spark.hadoop.fs.s3a.access.key=***",
        ),
        ("spark.hadoop.fs.s3a.session.TOKEN=x", "spark.hadoop.fs.s3a.session.TOKEN=***"),
        ("spark.executor.memory=4g", "spark.executor.memory=4g"),
        ("secret=of.pcap", "secret=of.pcap"),
    ],
)
def test_what_sounds_secret_is_not_written_down(word: str, shown: str) -> None:
    assert engines.without_secrets(word) == shown
