"""The families that the suite can judge, and what they have together: kinds of subjects and clauses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from replispec.conformance.family import Family
from replispec.runtime import families
from replispec.runtime.families import FamilyError
from replispec.runtime.primitives.clauses import Clause

ROOM = "conformance"


class ClauseOfFamily(NamedTuple):
    """A clause and whose it is."""

    family: str
    clause: Clause


def family_named(name: str) -> Family:
    """The object of one family. Raises FamilyError."""
    module = families.part(ROOM, name)
    found = getattr(module, "FAMILY", None)
    if not isinstance(found, Family):
        raise FamilyError(f"{module.__name__}: FAMILY is missing: make it a {Family.__module__}.Family")
    return found


def kinds() -> Mapping[str, Family]:
    """Every kind of subject with its family. Raises FamilyError for a kind that two families have."""
    found: dict[str, Family] = {}
    for name in families.with_part(ROOM):
        family = family_named(name)
        for kind in family.kinds:
            if kind.name in found:
                raise FamilyError(
                    f"{families.part(ROOM, name).__name__}: the kind {kind.name!r} is one of "
                    f"{found[kind.name].name} already: give it another name"
                )
            found[kind.name] = family
    return found


def family_of(kind: str) -> Family:
    """The family of a kind. Raises FamilyError for a kind that none has."""
    known = kinds()
    if kind not in known:
        raise FamilyError(f"{kind}: no family has this kind of subject: there are {', '.join(known)}")
    return known[kind]


def clauses() -> Mapping[str, ClauseOfFamily]:
    """The clauses of every family that was compiled, by id. Raises FamilyError for an id that two have."""
    found: dict[str, ClauseOfFamily] = {}
    for name in families.names():
        for clause in clauses_of(name).values():
            if clause.id in found:
                other = found[clause.id].family
                raise FamilyError(f"spec/clauses/{name}: {clause.id} is a clause of {other} too: rename one")
            found[clause.id] = ClauseOfFamily(name, clause)
    return found


def clauses_of(family: str) -> Mapping[str, Clause]:
    """The clauses of one family, in the order of the specification. Raises FamilyError."""
    table: Mapping[str, Clause] = families.wire(family, "clauses").CLAUSES
    return table
