"""The formatter that all generated Python passes through."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_LAYOUT = ("--line-length", "110", "--target-version", "py311")

REMEMBERED: Final = 1_024
"""Texts whose form is kept, the oldest goes first: a copy of a specification that was edited in one place
writes nearly the same again."""
_formatted: dict[str, str] = {}


def format_python(text: str) -> str:
    """`text` as `ruff format` writes it, with the settings that generated code is checked with.

    Raises ValueError with the formatter's words when `text` is no Python.
    """
    return format_files({"x.py": text})["x.py"]


def format_files(texts: Mapping[str, str]) -> dict[str, str]:
    """All of `texts` (name ending in .py -> Python), formatted by one run of the formatter.

    Imports are sorted too. Raises ValueError with the formatter's words when one is no Python.
    """
    fresh = [text for text in dict.fromkeys(texts.values()) if text not in _formatted]
    found = {**_formatted, **dict(zip(fresh, _formatted_anew(fresh), strict=True))}
    wanted = {name: found[text] for name, text in texts.items()}
    for text in fresh:
        while len(_formatted) >= REMEMBERED:
            del _formatted[next(iter(_formatted))]
        _formatted[text] = found[text]
    return wanted


def _formatted_anew(texts: Sequence[str]) -> list[str]:
    """`texts` formatted, in their order, by one run of the formatter."""
    if not texts:
        return []
    with tempfile.TemporaryDirectory(prefix="replispec-format-") as folder:
        paths = [Path(folder) / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, "utf-8")
        _run(
            "check",
            "--isolated",
            "--quiet",
            "--select",
            "I",
            "--config",
            "lint.isort.split-on-trailing-comma=false",
            "--fix",
            *_LAYOUT,
            folder,
        )
        # What fits on a line stands on one: no comma of an emitter decides about lines.
        options = ("--config", "format.skip-magic-trailing-comma=true")
        _run("format", "--isolated", "--quiet", *options, *_LAYOUT, folder)
        return [path.read_text("utf-8") for path in paths]


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "--no-cache"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"generated code is not Python: {done.stderr or done.stdout}")
