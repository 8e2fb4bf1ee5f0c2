"""The cases of a folder: read, checked, and put together with what they take for given."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import cast

from replispec.conformance.bounds import known_releases
from replispec.conformance.case_order import check_order
from replispec.conformance.defects import FILE, load_defects
from replispec.conformance.families import clauses_of, family_of
from replispec.conformance.family import Family
from replispec.conformance.macros import Macro, expanded, read_macros
from replispec.conformance.model import (
    OURS,
    PROPOSAL,
    Basis,
    Bring,
    Case,
    CaseError,
    CasePlace,
    CaseStep,
    Fate,
    GivenStep,
    Severity,
)
from replispec.conformance.sources import Item, read
from replispec.conformance.steps import (
    listed,
    one_of,
    only,
    read_steps,
    text,
    truth,
)
from replispec.runtime.primitives.releases import Releases

_FILE = ("kind", "topic", "profile", "releases", "cases")
_CASE = (
    "id",
    "requirement",
    "clause",
    "severity",
    "basis",
    "releases",
    "profile",
    "bugs",
    "demands",
    "needs",
    "alone",
    "given",
    "steps",
    "afterwards",
)
_MACROS, _GIVEN = "macros.yaml", "given.yaml"
# Where among the bases of a family a clause stands, by what the specification says of it.
_BASIS_OF_CLAUSE = {"proposal": 0, "both": 0, "implementation": 1, "ours": 2}
_ID = re.compile(r"(?P<kind>[a-z-]+)/(?P<topic>[a-z0-9-]+)/(?P<clause>[A-Z0-9-]+)/(?P<number>[1-9][0-9]*)")


def cases_folder(family: str) -> Path:
    """Where a family's shipped cases lie: in the package of a wheel, or beside it in a checkout."""
    inside = Path(__file__).parent / "cases"
    return (inside if inside.is_dir() else Path(__file__).parents[2] / "cases") / family


def load(kind: str, folder: Path | None = None, added: Path | None = None) -> tuple[Case, ...]:
    """All cases of a kind in the order of files and lines, those of an added folder last.

    An added folder may use the givens of the first and have more. Raises CaseError for the first case that
    does not fit the language, and for a folder without cases.
    """
    return _shipped(kind) if folder is None and added is None else _load(kind, folder, added)


@cache
def _shipped(kind: str) -> tuple[Case, ...]:
    """The cases that come with the suite: no process changes them."""
    return _load(kind, None, None)


def _load(kind: str, folder: Path | None, added: Path | None) -> tuple[Case, ...]:
    family = family_of(kind)
    shared = _Shared(family)
    found: dict[str, Case] = {}
    for top in (folder or cases_folder(family.name), *([added] if added else [])):
        before = len(found)
        shared.marks |= load_defects(top).keys()
        _read_folder(top / kind, kind, shared, found)
        if len(found) == before:
            raise CaseError(CasePlace(f"{kind}/", 1), f"no cases of kind {kind} here")
    return tuple(found.values())


@dataclass(slots=True)
class _Shared:
    """What the cases of a kind share: the family's names, known defects, macros, what can be given."""

    family: Family
    macros: dict[str, Macro] = field(default_factory=dict)
    givens: dict[str, GivenStep] = field(default_factory=dict)
    marks: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.marks = set(load_defects(cases_folder(self.family.name)))

    def defects(self, item: Item | None) -> tuple[str, ...]:
        """Marks of known defects. Raises CaseError for one that no list explains."""
        marks = listed(item)
        for mark in marks:
            if item is not None and mark not in self.marks:
                raise CaseError(item.place, f"no {FILE} explains the defect {mark!r}")
        return marks

    def steps(self, item: Item) -> tuple[CaseStep, ...]:
        """A list of steps, those of macros in their places."""
        return read_steps(expanded(item, self.macros), "steps", self.family)


def _read_folder(top: Path, kind: str, shared: _Shared, found: dict[str, Case]) -> None:
    """Read macros first, then what is given, then the cases, which may use both."""
    for name in (_MACROS, _GIVEN):
        if (top / name).is_file():
            item = read(top / name, f"{kind}/{name}")
            if name == _MACROS:
                shared.macros |= read_macros(item, shared.macros)
            else:
                shared.givens |= _givens(item, shared)
    for path in sorted(top.glob("*.yaml")):
        if path.name not in (_MACROS, _GIVEN):
            for case in _cases(read(path, f"{kind}/{path.name}"), kind, shared):
                if case.id in found:
                    raise CaseError(case.place, f"{case.id} stands twice, see {found[case.id].place}")
                found[case.id] = case


def _givens(item: Item, shared: _Shared) -> dict[str, GivenStep]:
    known = shared.givens
    only(item, ("given",))
    found: dict[str, GivenStep] = {}
    whole = item.mapping("given.yaml")
    if "given" not in whole:
        raise CaseError(item.place, "the file needs `given`")
    for name, each in whole["given"].mapping("given").items():
        only(each, ("says", "given", "steps", "optional", "first"))
        parts = each.mapping(name)
        before = listed(parts.get("given"))
        if name in known:
            raise CaseError(each.place, f"{name} stands twice, see {known[name].place}")
        for other in before:
            if other not in found and other not in known:
                raise CaseError(each.place, f"{name} needs {other!r}, which does not stand above it")
        if "says" not in parts:
            raise CaseError(each.place, f"{name} needs `says`: what holds after it")
        steps = shared.steps(parts["steps"]) if "steps" in parts else ()
        optional = truth(parts.get("optional"))
        first = text(parts["says"]) if truth(parts.get("first")) else ""
        marked = tuple(replace(step, optional=optional or step.optional, first=first) for step in steps)
        found[name] = GivenStep(name, each.place, text(parts["says"]), before, marked)
    return found


def _cases(item: Item, kind: str, shared: _Shared) -> Iterator[Case]:
    only(item, _FILE)
    parts = item.mapping("a case file")
    for name in ("kind", "topic", "profile", "cases"):
        if name not in parts:
            raise CaseError(item.place, f"a case file needs `{name}`")
    if text(parts["kind"]) != kind:
        raise CaseError(parts["kind"].place, f"a file in the folder {kind} is of kind {kind}")
    for each in parts["cases"].sequence("cases"):
        yield _case(each, parts, shared)


def _case(item: Item, file: Mapping[str, Item], shared: _Shared) -> Case:
    family = shared.family
    only(item, _CASE)
    parts = item.mapping("a case")
    for name in ("id", "requirement", "severity", "steps"):
        if name not in parts:
            raise CaseError(item.place, f"a case needs `{name}`")
    topic = text(file["topic"])
    kind = text(file["kind"])
    clause = _clause(parts["id"], kind, topic, family)
    if "clause" in parts and text(parts["clause"]) != clause:
        raise CaseError(parts["clause"].place, f"the id of this case names the clause {clause}")
    given = listed(parts.get("given"))
    case = Case(
        id=text(parts["id"]),
        place=item.place,
        kind=kind,
        topic=topic,
        profile=one_of(parts.get("profile", file["profile"]), family.kind(kind).profiles),
        requirement=" ".join(text(parts["requirement"]).split()),
        clause=clause,
        severity=cast("Severity", one_of(parts["severity"], ("must", "should"))),
        basis=_basis(parts.get("basis"), clause, family),
        releases=_releases(parts.get("releases", file.get("releases")), family),
        bugs=shared.defects(parts.get("bugs")),
        demands=shared.defects(parts.get("demands")),
        needs=_needs(parts.get("needs"), family),
        alone=truth(parts.get("alone")),
        given=given,
        prepared=_prepared(item, given, shared.givens),
        steps=shared.steps(parts["steps"]),
        afterwards=shared.steps(parts["afterwards"]) if "afterwards" in parts else (),
    )
    if not any(step.expect and not step.prepares for step in case.steps):
        raise CaseError(item.place, f"{case.id} expects nothing, so it cannot fail")
    for step in case.afterwards:
        if isinstance(step.action, Bring | Fate):
            raise CaseError(step.place, "what a case started is ended with it: no `afterwards` is needed")
    check_order(case, family)
    return case


def _clause(item: Item, kind: str, topic: str, family: Family) -> str:
    """The clause that an id names. Raises CaseError."""
    match = _ID.fullmatch(text(item))
    if match is None or (match["kind"], match["topic"]) != (kind, topic):
        raise CaseError(item.place, f"the id of this case is {kind}/{topic}/CLAUSE/NUMBER")
    if match["clause"] not in clauses_of(family.name):
        raise CaseError(item.place, f"the specification knows no clause {match['clause']!r}")
    return match["clause"]


def bases(family: Family) -> tuple[Basis, ...]:
    """What a case of this family can rest on, the broadest first."""
    return PROPOSAL, family.vocabulary.implementation, OURS


def basis_of_clause(clause: str, family: Family) -> Basis:
    """What a clause rests on."""
    return bases(family)[_BASIS_OF_CLAUSE[clauses_of(family.name)[clause].basis]]


def _basis(item: Item | None, clause: str, family: Family) -> Basis:
    """What the clause rests on; a case that demands more than its clause's words names what it rests on."""
    known = bases(family)
    of_clause = known.index(basis_of_clause(clause, family))
    if item is None:
        return known[of_clause]
    narrower = known[of_clause + 1 :]
    if text(item) not in narrower:
        listed_words = f"only {' or '.join(narrower)} is narrower" if narrower else "nothing is narrower"
        raise CaseError(item.place, f"{clause} rests on {known[of_clause]} already: {listed_words}")
    return text(item)


def _releases(item: Item | None, family: Family) -> Releases:
    if item is not None:
        return known_releases(item, family.vocabulary)
    return cast("Releases", family.vocabulary.releases_of(family.default_releases))


def _needs(item: Item | None, family: Family) -> tuple[str, ...]:
    wanted = listed(item)
    for name in wanted:
        if item is not None and name not in family.addresses:
            raise CaseError(item.place, f"{name!r} is none of: {', '.join(family.addresses)}")
    return wanted


def _prepared(item: Item, given: Collection[str], givens: Mapping[str, GivenStep]) -> tuple[CaseStep, ...]:
    steps: list[CaseStep] = []
    done: set[str] = set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        if name not in givens:
            raise CaseError(item.place, f"there is no given {name!r}")
        for other in givens[name].given:
            add(other)
        steps.extend(givens[name].steps)

    for name in given:
        add(name)
    return tuple(steps)
