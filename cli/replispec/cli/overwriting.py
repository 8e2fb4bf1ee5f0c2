"""What a command writes is never one of the files that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def overwritten(written: Iterable[tuple[str, Path]], inputs: Sequence[Path]) -> list[str]:
    """A line for the first file to be read that one to be written would replace; else nothing.

    `written`: the option and the file or folder that is replaced. Links are followed, and a file that
    has several names is one.
    """
    for option, path in written:
        for given in inputs:
            if _replaces(path, given):
                return [f"{option}: {path} would overwrite {given}, which is read: name another one"]
    return []


def resolved(path: Path) -> Path:
    """The place that a path leads to; links that lead in a circle are for whoever opens them."""
    return Path(os.path.realpath(path))


def _replaces(path: Path, given: Path) -> bool:
    """Whether writing `path` (a folder: with all that is in it) replaces the file `given`."""
    if not given.exists():
        return resolved(path) == resolved(given)
    if path.exists() and path.samefile(given):
        return True
    return resolved(given).is_relative_to(resolved(path))
