"""What a project file names, copied by Maven."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lab.pinned import run_quietly

COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def copy_dependencies(project: Path, release: str, quiet: list[str], copy: Path) -> None:
    """Have Maven copy what a project file names in a release: `copy` of `lab.pinned.fetch_pinned`. Raises
    LabError."""
    chosen = ("--file", str(project), f"-Drelease={release}", "-DincludeScope=runtime")
    run_quietly([*quiet, COPY, *chosen, f"-DoutputDirectory={copy}"])
