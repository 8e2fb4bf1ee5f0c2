"""Edits of the small specification from evolution_edits.yaml, each with what a comparison must say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replispec.compiler.evolution.verdict import Reach


@dataclass(frozen=True)
class Edit:
    """Texts that are replaced, and (kind, id of the object, what of it) for every change that follows.

    `says` is a part of the sentence of the first one. Edits of one `batch` are made in one copy, so that many
    are tried in the time of a few.
    """

    id: str
    edits: tuple[tuple[str, str], ...]
    expected: tuple[tuple[Reach, str, str], ...]
    says: str
    batch: str


def _edit(entry: dict[str, Any]) -> Edit:
    return Edit(
        entry["id"],
        tuple((each["old"], each["new"]) for each in entry["edit"]),
        tuple((Reach(kind), name, what) for kind, name, what in entry["expected"]),
        entry.get("says", ""),
        entry.get("batch", "first"),
    )


EDITS = tuple(map(_edit, yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))))
