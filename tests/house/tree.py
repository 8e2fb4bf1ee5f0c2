"""The checkout as the house rules see it: rooms, packages, files."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS: tuple[str, ...] = tuple(PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"])
# What work leaves behind in a checkout; all of it is in .gitignore.
LEFT_BEHIND = {
    ".git",
    ".venv",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "dist",
    "out",
    "spark-warehouse",
    "metastore_db",
}


def files(*under: str, suffix: str = "") -> Iterator[Path]:
    """Every file of the project below these folders (none given: everywhere), in order of its name."""
    for top in under or (".",):
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = sorted(set(folders) - LEFT_BEHIND)
            yield from (
                Path(folder, name) for name in sorted(set(names) - LEFT_BEHIND) if name.endswith(suffix)
            )


def hand_written(*under: str) -> Iterator[Path]:
    """Every Python file below these folders that people write: not generated, not protoc's."""
    for path in files(*under, suffix=".py"):
        if path.relative_to(ROOT).parts[0] != "generated" and not path.name.endswith("_pb2.py"):
            yield path


def module_name(path: Path) -> str:
    """The dotted import name of a file, in a room or not, such as replispec.replay.tcp.flows or lab.ports."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    room = next((len(Path(room).parts) for room in ROOMS if path.is_relative_to(ROOT / room)), 0)
    inside = parts[room:]
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def shown(path: Path) -> str:
    """The path as a message shows it: from the root of the checkout."""
    return path.relative_to(ROOT).as_posix()
