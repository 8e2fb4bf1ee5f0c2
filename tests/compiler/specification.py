"""Copies of the specification with changes, for tests that show where a change arrives."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "spec"


def changed(target: Path, file: str, old: str, new: str) -> Path:
    """A copy of spec/ below `target` in which `old` (it must occur once) in `file` is `new`."""
    copy = target / "spec"
    if not copy.exists():
        shutil.copytree(SPEC, copy)
    path = copy / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file}"
    path.write_text(text.replace(old, new), "utf-8")
    return copy
