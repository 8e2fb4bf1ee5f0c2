"""Which engine replays: the one that was asked for, or what this machine has."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from os import environ
from pathlib import Path
from typing import Any

import click

from replispec.cli import pandas_unused
from replispec.cli.captures import STANDARD_INPUT
from replispec.cli.failures import EXIT_UNUSABLE

AUTO, SPARK, LOCAL = "auto", "spark", "local"
MEGA = 10**6
# One process judges so much while Spark starts (10 to 15 s on two cores), in some 250 MB of memory.
SMALL_BYTES = 64 * MEGA
# What a compressed capture is compared as: gzip seldom makes less than a tenth of traffic.
PACKED, PACKED_AS_SMALL = b"\x1f\x8b", 10
JAVA_MINIMUM = 17
JAVA_S_MAXIMUM = 30
# 'openjdk version "17.0.15" 2025-04-15', 'java version "1.8.0_402"', 'openjdk version "21" 2023-09-19'
JAVA_VERSION = re.compile(r'^.* version "((?:1\.)?(\d+))', re.MULTILINE)
INSTALL_SPARK = "pip install '.[spark]'"
INSTALL_JAVA = f"install a JDK {JAVA_MINIMUM} or later"


# "spark.hadoop.fs.s3a.secret.key=..." as a word of a command line: what it holds is not written down.
SETTING_WORD = re.compile(r"^((?:--spark-setting=)?spark\.[^=]*)=")
SECRET = re.compile(r"secret|password|token|credential|access[._-]?key", re.IGNORECASE)


class MissingError(click.ClickException):
    """Something that the Spark engine needs is not on this machine."""

    exit_code = EXIT_UNUSABLE

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}, or use --engine local")
        self.what = what


class Setting(click.ParamType[tuple[str, str]]):
    """A setting of Spark's own: its name and its value."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """`spark.executor.memory=4g` in two."""
        name, equals, setting = str(value).partition("=")
        if not equals or not name.startswith("spark."):
            self.fail(f"{value!r} is no setting of Spark, as spark.executor.memory=4g", param, ctx)
        return name, setting


def without_secrets(word: str) -> str:
    """A word of a command line, without the value of a setting that sounds like a secret."""
    found = SETTING_WORD.match(word)
    return f"{found[1]}=***" if found is not None and SECRET.search(found[1]) else word


def cluster_options(
    master: str | None, packed: Path | None, settings: Collection[tuple[str, str]]
) -> dict[str, Any]:
    """What was said of where Spark runs, by the fields of `Cluster`; what was not said is absent."""
    said = {"master": master, "packed": packed, "settings": dict(settings)}
    return {name: value for name, value in said.items() if value}


def choose(
    asked: str, of_cluster: Mapping[str, Any] | None = None, captures: Sequence[Path | str] = ()
) -> tuple[str, str]:
    """The engine, `spark` or `local`, and the line that says which one `auto` took, empty when it was named.

    Who says where Spark runs (`of_cluster`), or names captures in a store (texts), asks for Spark. Raises
    MissingError when Spark was asked for and cannot run here.
    """
    engine, line = _chosen(asked, of_cluster, captures)
    if engine == SPARK:
        pandas_unused.let_in()
    return engine, line


def _chosen(
    asked: str, of_cluster: Mapping[str, Any] | None, captures: Sequence[Path | str]
) -> tuple[str, str]:
    if any(isinstance(capture, str) for capture in captures):
        if asked == LOCAL:
            raise click.UsageError("captures in a store are for the Spark engine")
        asked = SPARK
    if of_cluster:
        if asked == LOCAL:
            raise click.UsageError("--master, --packed and --spark-setting are for the Spark engine")
        asked = SPARK
    if asked == LOCAL:
        return LOCAL, ""
    small = _small(captures) if asked == AUTO else None
    if small is not None:
        started = f"{small / MEGA:.1f} MB are judged before Spark has started"
        return LOCAL, f"the local engine replays, in one process: {started}; --engine spark takes Spark"
    missing = _missing()
    if asked == SPARK:
        if missing is not None:
            raise missing
        return SPARK, ""
    if missing is None:
        return SPARK, "the Spark engine replays; --engine local starts sooner, in one process"
    return LOCAL, f"the local engine replays, in one process: {missing.what}"


def _small(captures: Sequence[Path | str]) -> int | None:
    """The bytes of captures that one process judges before Spark has started; None where there are more, or
    nobody knows. What cannot be looked at counts nothing: it is named later."""
    size = 0
    for capture in captures:
        if not isinstance(capture, Path) or capture == STANDARD_INPUT:
            return None
        with suppress(OSError), capture.open("rb") as file:
            is_packed = file.read(len(PACKED)) == PACKED
            size += capture.stat().st_size * (PACKED_AS_SMALL if is_packed else 1)
    return size if captures and size <= SMALL_BYTES else None


def _missing() -> MissingError | None:
    """What the Spark engine lacks here; None when it can run."""
    if find_spec("pyspark") is None:
        return MissingError("the Spark engine is not installed", INSTALL_SPARK)
    home = environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        where = f"JAVA_HOME ({home}) holds no bin/java" if home else "no java on PATH, JAVA_HOME not set"
        return MissingError(where, INSTALL_JAVA)
    version, major = _java_version(java)
    if major < JAVA_MINIMUM:
        return MissingError(f"{java} is version {version}", INSTALL_JAVA)
    return None


def _java_version(java: str) -> tuple[str, int]:
    """Its version as people call it, such as 1.8, and as a number, such as 8; `unknown` and 0 without one."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=JAVA_S_MAXIMUM
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown", 0
    found = JAVA_VERSION.search(done.stderr + done.stdout)
    return (found[1], int(found[2])) if found else ("unknown", 0)
