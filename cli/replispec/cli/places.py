"""Files and folders on the command line: where something is written can be told before anything begins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from replispec.cli.overwriting import resolved


class NamedPath(click.Path):
    """A path with a name: an empty one would silently be the working folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """See click.Path."""
        if not os.fspath(value):
            self.fail("a name is needed, and this one is empty", param, ctx)
        return super().convert(value, param, ctx)


def unwritable(written: Iterable[tuple[str, Path]], made: Path) -> list[str]:
    """A line for the first file to be written (with the option that names it) that has no folder to be in, or
    one that takes no files; else nothing. `made`: a folder that is made where there is none."""
    for option, path in written:
        folder = path.parent
        if not folder.exists() and resolved(folder) == resolved(made):
            continue
        if not folder.is_dir():
            return [f"{option}: {path}: there is no folder {folder}"]
        if not os.access(folder, os.W_OK | os.X_OK) and not (path.exists() and not path.is_file()):
            return [f"{option}: {path}: nothing may be written into the folder {folder}"]
    return []
