"""The walkthrough of docs/systems.md as files and commands, for the tests that follow it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "systems.md"
_FENCE = re.compile(r"(?P<before>[^\n]+(?:\n[^\n]+)*)\n\n```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)
_FILE = re.compile(r"`(spec/[\w/]+\.(?:proto|yaml))`")
LEFT_OUT = "..."


@dataclass(frozen=True, slots=True)
class File:
    """A file that the page has its reader write."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the page, and the lines that it shows of its output; `...` stands for any lines."""

    line: str
    shown: tuple[str, ...]


def steps() -> Iterator[File | Command]:
    """What a reader does, from the top of the page to its end."""
    for found in _FENCE.finditer(PAGE.read_text()):
        if found["kind"]:
            yield File(_FILE.findall(found["before"])[-1], found["text"])
            continue
        for part in found["text"].split("$ ")[1:]:
            line, *shown = part.splitlines()
            yield Command(line, tuple(shown))


def written(folder: Path) -> Path:
    """A folder with the files of the page, before anything was mended, compiled."""
    for step in steps():
        if isinstance(step, File):
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        elif step.line.startswith(("mkdir", "cp", "python")):
            run(step, folder)
        else:
            return folder
    raise AssertionError(f"{PAGE.name} explores nothing")


def environment(folder: Path | None = None) -> dict[str, str]:
    """The environment that the page asks for; with a folder, with the code in it on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    own = {"PYTHONPATH": str(folder / "generated")} if folder else {}
    return {**os.environ, "PATH": path, "REPLISPEC": str(ROOT), **own}


def run(
    command: Command, folder: Path, given: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the page as its reader would."""
    return subprocess.run(
        ["bash", "-c", command.line],
        cwd=folder,
        env=dict(given or environment()),
        capture_output=True,
        text=True,
        check=False,
    )


def fits(shown: tuple[str, ...], output: str) -> bool:
    """Whether an output is what the page shows, with something or nothing for each `...`."""
    parts = "\n".join(shown).split(LEFT_OUT)
    pattern = ".*".join(re.escape(part.strip("\n")) for part in parts)
    return re.fullmatch(pattern, output.strip("\n"), re.DOTALL) is not None
