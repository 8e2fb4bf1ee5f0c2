"""Folders and git revisions as specifications to compare."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from replispec.compiler.evolution.read import NoSpecification, read_specification, specification_folder
from replispec.compiler.evolution.touched import Project
from replispec.compiler.evolution.walk import SpecNode
from replispec.compiler.model.message import SpecificationError

# What is taken out of a revision: the specification, and what speaks of it.
_TAKEN: Final = ("spec", "conformance/cases", "docs", "spark_replay/captures/expected", "CHANGELOG.md")
CHANGELOG: Final = "CHANGELOG.md"


class Unreadable(Exception):
    """A side of the comparison that cannot be read; the text names the side, the place and what to do."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its families, the files beside it, its changelog ("" when there is none).

    `prefix` is what places of the specification begin with, seen from the folder that was named.
    """

    families: dict[str, SpecNode]
    project: Project
    changelog: str
    prefix: str


def read_side(name: str, *, repository: Path, is_past: bool) -> Side:
    """Read a folder with a specification, or a revision of the git repository that holds `repository`.

    Raises Unreadable when there is no such folder or revision, when it holds no specification, or when the
    specification does not compile; of a past revision it says that the language may have changed since.
    """
    with checked_out(name, repository) as folder:
        try:
            spec = specification_folder(folder)
        except NoSpecification as fault:
            raise Unreadable(str(fault).replace(str(folder), name)) from None
        try:
            families = read_specification(spec)
        except SpecificationError as fault:
            raise Unreadable(_refusal(name, str(fault), is_past=is_past)) from None
        root = spec.parent if spec.name == "spec" else None
        project = Project(root)
        _ = project.cases, project.expectations, project.pages  # the folder may be gone later
        path = root / CHANGELOG if root is not None else None
        changelog = path.read_text("utf-8") if path is not None and path.is_file() else ""
        return Side(families, project, changelog, "spec/" if root is not None else "")


def _refusal(name: str, fault: str, *, is_past: bool) -> str:
    if not is_past:
        return f"{name} does not compile: {fault}"
    return f"{name} does not compile: {fault} (or the language has changed since then: take a later revision)"


@contextmanager
def checked_out(name: str, repository: Path) -> Iterator[Path]:
    """The folder `name`, or the files of the revision `name` in a temporary one. Raises Unreadable."""
    if Path(name).is_dir():
        yield Path(name)
        return
    top = Path(_git(repository, "rev-parse", "--show-toplevel", name=name).strip())
    commit = _git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", name=name
    )
    there = _git(top, "ls-tree", "--name-only", commit.strip(), *_TAKEN, name=name).split()
    if not there:
        raise Unreadable(f"{name}: no specification: the revision holds no spec/")
    packed = subprocess.run(
        ["git", "-C", str(top), "archive", "--format=tar", commit.strip(), *there],
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="replispec-evolution-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def _git(folder: Path, *arguments: str, name: str) -> str:
    done = _run(folder, *arguments)
    if done.returncode != 0:
        raise Unreadable(
            f"{name}: neither a folder nor a revision of the git repository of {folder.resolve()}"
        )
    return done.stdout


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "git is not installed")


def last_tag(repository: Path) -> str | None:
    """The newest tag that the present revision descends from; None when there is none, or no git."""
    done = _run(repository, "describe", "--tags", "--abbrev=0")
    return done.stdout.strip() if done.returncode == 0 else None
