"""No node writes by itself: what writes is handed only to who opens stores and who carries out effects."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import ROOT, hand_written, shown

# Interfaces that change what lies on a disk, and what holds them.
WRITERS = frozenset({"Files", "Journal", "Lines", "Storage", "Stores"})
# Who opens a process' stores, and who carries out what its nodes want written.
OPENERS = ("process.py",)
CARRIERS = ("net", "sim", "storage", "world")
RUNTIME = ROOT / "roles" / "runtime" / "replispec" / "runtime"


def is_trusted(path: Path) -> bool:
    """Whether a file may know how to write."""
    if path.is_relative_to(RUNTIME):
        return path.relative_to(RUNTIME).parts[0] in CARRIERS
    return path.name in OPENERS


def writers(source: str) -> Iterator[str]:
    """The writing interfaces that a source imports, and what it imports of where they are made."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("replispec.runtime.storage"):
            yield from (alias.name for alias in node.names if alias.name in WRITERS)
        elif isinstance(node, ast.ImportFrom) and node.module == "replispec.runtime":
            yield from (alias.name for alias in node.names if alias.name == "storage")
        elif isinstance(node, ast.Import):
            yield from (
                alias.name for alias in node.names if alias.name.startswith("replispec.runtime.storage")
            )


@pytest.mark.parametrize("path", list(hand_written("roles")), ids=shown)
def test_a_node_is_handed_nothing_that_writes(path: Path) -> None:
    found = [] if is_trusted(path) else list(writers(path.read_text()))
    assert found == [], f"{shown(path)} may read and send out operations, not write by {found}"


def test_the_rule_sees_what_it_forbids() -> None:
    assert list(writers("from replispec.runtime.storage import Files, FilesReader")) == ["Files"]
    assert list(writers("import replispec.runtime.storage as s")) == ["replispec.runtime.storage"]
    assert list(writers("from replispec.runtime import storage, world")) == ["storage"]
    trusted = [path for path in hand_written("roles") if is_trusted(path)]
    assert sum(bool(list(writers(path.read_text()))) for path in trusted) >= 6
