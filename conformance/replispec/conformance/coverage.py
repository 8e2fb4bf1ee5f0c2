"""Which clauses have cases, and what stands for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from replispec.conformance.families import clauses, kinds
from replispec.conformance.model import Case
from replispec.runtime.primitives.clauses import Clause

# Other checks of a clause, by the first word of a use, from the strongest on.
_CHECKS = (
    ("invariant", "judged in captured traffic"),
    ("edge", "an edge of a machine"),
    ("guard", "a guard of a machine"),
    ("rule", "golden vectors of a rule"),
    ("example:", "golden bytes"),
    ("field", "the form of a message"),
    ("message", "the form of a message"),
    ("value", "a number of the protocol"),
)


class Covered(NamedTuple):
    """A clause and whose it is, its cases, and where it has none, what else checks it or why nothing does."""

    family: str
    clause: Clause
    cases: tuple[str, ...]
    otherwise: str


def coverage(cases: Iterable[Case]) -> list[Covered]:
    """Every clause of every family that has kinds of subjects, in the order of the specification."""
    judged = {family.name for family in kinds().values()}
    every = [known for known in clauses().values() if known.family in judged]
    found: dict[str, list[str]] = {known.clause.id: [] for known in every}
    for case in cases:
        found[case.clause].append(case.id)
    return [
        Covered(family, clause, tuple(found[clause.id]), "" if found[clause.id] else _otherwise(clause))
        for family, clause in every
    ]


def _otherwise(clause: Clause) -> str:
    checks = dict.fromkeys(
        words for first, words in _CHECKS if any(use.startswith(first) for use in clause.uses)
    )
    if checks:
        return "; ".join(checks)
    return clause.not_yet or (f"a case has to show: {clause.case}" if clause.case else "nothing checks it")


def counted(covered: Iterable[Covered]) -> Mapping[str, int]:
    """How many clauses have cases, are checked in another way, or are checked by nothing."""
    rows = list(covered)
    with_case = sum(bool(row.cases) for row in rows)
    elsewhere = sum(not row.cases and bool(row.clause.uses) for row in rows)
    return {"cases": with_case, "elsewhere": elsewhere, "nothing": len(rows) - with_case - elsewhere}
