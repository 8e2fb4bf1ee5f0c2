"""The command as users start it: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.house.tree import ROOT

CAPTURES = ROOT / "spark_replay" / "captures"


def command(*arguments: str | Path) -> list[str]:
    """The command line that starts `replispec` of this environment."""
    return [sys.executable, "-m", "replispec.cli", *map(str, arguments)]


def replispec(
    *arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `replispec` without a terminal and give what it printed and its exit code."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def environment_of(generated: Path) -> dict[str, str]:
    """The environment of a process that takes generated modules from another folder than ours."""
    return {**os.environ, "PYTHONPATH": str(generated)}
