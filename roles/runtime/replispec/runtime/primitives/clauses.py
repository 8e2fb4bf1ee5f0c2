"""Clauses as generated code holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Clause(NamedTuple):
    """One requirement: its words, its source, the known deviations, and what checks it.

    `severity` is REQUIRED, RECOMMENDED or OPTIONAL; `basis` is proposal, implementation, both or ours;
    `divergence` maps a range of releases to what they do instead; `uses` names fields, edges, guards,
    invariants and vectors; `case` is what a conformance case has to show, `not_yet` why nothing checks it.
    """

    id: str
    requirement: str
    severity: str
    basis: str
    document: str
    section: str
    case: str
    not_yet: str
    divergence: Mapping[str, str]
    uses: tuple[str, ...]


def read_clauses(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Clause]:
    """The clauses of a data file by id; a key that is not there stands for an empty value."""
    empty = dict.fromkeys(("section", "case", "not_yet"), "")
    return {
        name: Clause(
            id=name,
            divergence=entry.get("divergence", {}),
            uses=tuple(entry.get("uses", ())),
            **empty | {key: entry[key] for key in entry if key not in ("divergence", "uses")},
        )
        for name, entry in entries.items()
    }
