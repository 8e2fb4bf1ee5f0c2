"""The formatter that all generated Python passes through."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_LAYOUT = ("--line-length", "110", "--target-version", "py311")


def format_python(text: str) -> str:
    """`text` as `ruff format` writes it, with the settings that generated code is checked with.

    Raises ValueError with the formatter's words when `text` is no Python.
    """
    return format_files({"x.py": text})["x.py"]


def format_files(texts: Mapping[str, str]) -> dict[str, str]:
    """All of `texts` (name ending in .py -> Python), formatted by one run of the formatter.

    Imports are sorted too. Raises ValueError with the formatter's words when one is no Python.
    """
    with tempfile.TemporaryDirectory(prefix="replispec-format-") as folder:
        paths = {name: Path(folder) / f"{number}.py" for number, name in enumerate(texts)}
        for name, path in paths.items():
            path.write_text(texts[name], "utf-8")
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
        return {name: path.read_text("utf-8") for name, path in paths.items()}


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "--no-cache"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"generated code is not Python: {done.stderr or done.stdout}")
