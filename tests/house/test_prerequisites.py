"""A machine without Python, or without a JDK where one is needed, is told how to get it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT

SCRIPT = ROOT / ".ci" / "prerequisites"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of commands, alone on PATH: the shell's helpers, this Python, and a JDK 21."""
    for tool in ("sed", "head"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    _command(tmp_path / "python3.12", f'exec "{sys.executable}" "$@"')
    _java(tmp_path / "java", 'openjdk version "21" 2023-09-19')
    return tmp_path


def _command(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _java(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _command(path, f"echo 'Picked up JAVA_TOOL_OPTIONS: -Dfile.version=8' >&2\necho '{says}' >&2")


def _check(machine: Path, *needs: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return subprocess.run(
        [SCRIPT, *needs],
        env={**kept, "PATH": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_complete_machine_passes_and_its_python_is_printed_alone(machine: Path) -> None:
    done = _check(machine, "jdk")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{machine}/python3.12\n", "")


def test_who_needs_no_jdk_is_not_asked_for_one(machine: Path) -> None:
    (machine / "java").unlink()
    assert _check(machine).stdout == f"{machine}/python3.12\n"


def test_a_missing_python_is_named_with_how_to_get_it(machine: Path) -> None:
    (machine / "python3.12").unlink()
    done = _check(machine)
    assert done.returncode == 1
    assert "Python 3.11 or later is missing" in done.stderr
    assert "apt-get install python3" in done.stderr


def test_an_old_python_is_passed_over(machine: Path) -> None:
    _command(machine / "python3.13", "exit 1")
    assert _check(machine).stdout == f"{machine}/python3.12\n"


def test_a_missing_jdk_is_named_with_how_to_get_it(machine: Path) -> None:
    (machine / "java").unlink()
    done = _check(machine, "jdk")
    assert done.returncode == 1
    assert "A JDK 17 or later is missing" in done.stderr
    assert "apt-get install openjdk-17-jdk-headless" in done.stderr


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('java version "1.8.0_402"', "1.8"),
        ('openjdk version "11.0.22" 2024-01-16', "11"),
        ("no idea", "unknown"),
    ],
)
def test_an_old_jdk_is_refused_by_the_version_that_people_call_it(
    machine: Path, says: str, version: str
) -> None:
    _java(machine / "java", says)
    done = _check(machine, "jdk")
    assert done.returncode == 1
    assert f"{machine}/java is version {version}; a JDK 17 or later is needed." in done.stderr


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'java version "25-ea" 2025-09-16'])
def test_a_new_jdk_is_accepted(machine: Path, says: str) -> None:
    _java(machine / "java", says)
    assert _check(machine, "jdk").returncode == 0


def test_java_home_wins_over_the_path_as_it_does_for_spark(machine: Path, tmp_path: Path) -> None:
    home = tmp_path / "old jdk"
    _java(home / "bin" / "java", 'java version "1.8.0_402"')
    done = _check(machine, "jdk", JAVA_HOME=str(home))
    assert done.returncode == 1
    assert f"{home}/bin/java is version 1.8;" in done.stderr


def test_a_java_home_without_a_jdk_is_named(machine: Path, tmp_path: Path) -> None:
    done = _check(machine, "jdk", JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "which holds no bin/java" in done.stderr
