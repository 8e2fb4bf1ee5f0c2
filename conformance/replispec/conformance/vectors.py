"""Vectors for other languages: the specification as JSON that any test runner can read.

Every family gets a folder with frames.json, machines.json, rules.json and a README.md. The same
specification gives the same bytes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from replispec.conformance.families import ROOM, family_named
from replispec.conformance.vector_machines import machine_vectors
from replispec.runtime import families

FORMAT = 1


def machine_modules(family: str) -> Iterator[ModuleType]:
    """The generated modules of a family's machines, each named like its machine; the others bind one."""
    package = families.wire(family, "machines")
    for name in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        module = importlib.import_module(f"{package.__name__}.{name}")
        machine = getattr(module, "MACHINE", None)
        if machine is not None and machine.name == name:
            yield module


def _golden_frames(family: str) -> Iterator[dict[str, Any]]:
    """The messages whose bytes the specification holds, each cut short once."""
    golden = families.wire(family, "vectors").MESSAGES
    for message in golden:
        yield {**message, "direction": "message"}
    for message in golden:
        yield {
            "name": f"{message['name']}, last byte missing",
            "message": message["message"],
            "given": message["given"],
            "hex": message["hex"][:-2],
            "refused": True,
        }


def _frames(family: str) -> list[dict[str, Any]]:
    made = family_named(family).frames() if family in families.with_part(ROOM) else ()
    return [*_golden_frames(family), *made]


def _machines(family: str) -> list[dict[str, Any]]:
    return [machine_vectors(module) for module in machine_modules(family)]


def _rules(family: str) -> list[dict[str, Any]]:
    return [{"name": name, **rule} for name, rule in families.wire(family, "vectors").RULES.items()]


_PARTS: Mapping[str, Callable[[str], list[dict[str, Any]]]] = {
    "frames": _frames,
    "machines": _machines,
    "rules": _rules,
}


@cache
def vector_files() -> Mapping[str, bytes]:
    """Every file, path below the folder -> content."""
    readme = files("replispec.conformance").joinpath("templates/vectors.md").read_bytes()
    found = {}
    for family in families.names():
        for part, make in _PARTS.items():
            document = {"format": FORMAT, "family": family, part: make(family)}
            found[f"{family}/{part}.json"] = orjson.dumps(
                document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            )
        found[f"{family}/README.md"] = readme
    return found


def write_vectors(folder: Path) -> list[Path]:
    """Write all files below a folder, which is made; files of other names are left. Raises OSError."""
    written = []
    for name, content in vector_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(path)
    return written
