"""A story as a case of the suite: what another specification, in which it is mended, answers is right.

    python -m replispec.cli.story_case SYSTEM < what is asked

is a process that imports the mended specification, and says where it answers otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replispec.cli.compiling import ask_for_compiler, compiled_into

if TYPE_CHECKING:
    from replispec.explorer.search import Search

REFUSED = 3
"""The exit code of the process when nothing differs; why is on standard output."""


def write_case(search: Search, mended: str, folder: Path) -> Path:
    """Write the first story as the one case of a file below a folder. Raises ClickException."""
    from replispec.conformance.cases import load
    from replispec.conformance.model import CaseError
    from replispec.conformance.told import case_text
    from replispec.explorer.errors import ExplorationError
    from replispec.explorer.wires import NotOnOneWire, tree_of
    from replispec.runtime.families import FamilyError

    ask_for_compiler()
    if not search.broken:
        raise click.ClickException("no promise is broken: there is no story to write as a case")
    try:
        told = tree_of(search, search.broken[0])
    except (NotOnOneWire, ExplorationError) as fault:
        raise click.ClickException(f"the story is no case: {fault}") from None
    asked = _first_difference(told, mended)
    path: Path = folder / told["kind"] / f"{told['system'].replace('_', '-')}.yaml"
    try:
        text = case_text(told, asked)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        load(told["kind"], None, folder)
    except (CaseError, FamilyError) as fault:
        raise click.ClickException(f"the story is no case: {fault}") from None
    return path


def _first_difference(told: Mapping[str, Any], mended: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="replispec-mended-") as folder:
        compiled_into(mended, Path(folder))
        paths = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))
        command = [sys.executable, "-m", "replispec.cli.story_case", told["system"]]
        done = subprocess.run(
            command,
            input=json.dumps(told),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": paths},
        )
    if done.returncode:
        said = (done.stdout if done.returncode == REFUSED else done.stderr).strip().splitlines()
        raise click.ClickException(f"the story is no case: {said[-1] if said else 'nobody answers'}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def main() -> int:
    """Answer what is asked as the specification here does."""
    from replispec.explorer.errors import ExplorationError
    from replispec.explorer.report import system_named
    from replispec.explorer.wires import NotOnOneWire, first_difference

    try:
        found = first_difference(json.load(sys.stdin), system_named(sys.argv[1]))
    except (NotOnOneWire, ExplorationError) as fault:
        sys.stdout.write(f"{fault}\n")
        return REFUSED
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
