"""Clauses: what the documents and the implementations demand, each under an id that others cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.model.invariant import Invariant
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.examples import Example
from replispec.compiler.read.rules import RuleSource
from replispec.compiler.read.yaml_source import Tree

_ID: Final = re.compile(r"[A-Z][A-Z0-9]*-[A-Z][A-Z0-9]*-[1-9][0-9]*")
SEVERITIES: Final = ("REQUIRED", "RECOMMENDED", "OPTIONAL")
BASES: Final = {
    "proposal": "the proposal",
    "implementation": "an implementation's source or measured behaviour",
    "both": "the proposal and an implementation",
    "ours": "a decision of this specification",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One requirement in our own words, with its source and the known deviations by release."""

    id: str
    requirement: str
    severity: str
    basis: str
    document: str
    section: str
    divergence: Mapping[str, str]
    place: Place
    case: str = ""  # what a case of the conformance suite has to do
    not_yet: str = ""  # why nothing checks it


def read_clauses(trees: Mapping[str, Tree]) -> dict[str, Clause]:
    """All clauses of these files by id, in the order of files and lines.

    Raises SpecificationError for an id that stands twice or does not look like RIP44-TOPIC-1.
    """
    clauses: dict[str, Clause] = {}
    for tree in trees.values():
        tree.only("clauses")
        for item in tree.listed("clauses"):
            clause = _clause(item)
            if clause.id in clauses:
                raise SpecificationError(
                    clause.place, f"the clause {clause.id} stands twice", f"see {clauses[clause.id].place}"
                )
            clauses[clause.id] = clause
    return clauses


def _clause(tree: Tree) -> Clause:
    tree.only("id", "requirement", "severity", "basis", "source", "divergence", "case", "not_yet")
    name = tree.text("id")
    if not _ID.fullmatch(name):
        raise SpecificationError(
            tree.place, f"{name!r} is no clause id", "write DOCUMENT-TOPIC-NUMBER, as RIP44-ALTER-1"
        )
    severity, basis = tree.text("severity", "REQUIRED"), tree.text("basis")
    if severity not in SEVERITIES:
        raise SpecificationError(
            tree.place_of("severity"), f"{severity!r} is no severity", f"use {', '.join(SEVERITIES)}"
        )
    if basis not in BASES:
        raise SpecificationError(tree.place_of("basis"), f"{basis!r} is no basis", f"use {', '.join(BASES)}")
    source = tree.tree("source")
    source.only("document", "section")
    divergence = tree.tree("divergence")
    for versions in divergence.items:
        parse_versions(versions, divergence.place_of(versions))
    return Clause(
        id=name,
        requirement=tree.text("requirement"),
        severity=severity,
        basis=basis,
        document=source.text("document"),
        section=source.text("section", ""),
        divergence={versions: divergence.text(versions) for versions in divergence.items},
        place=tree.place,
        case=tree.text("case", ""),
        not_yet=tree.text("not_yet", ""),
    )


def check_citations(
    clauses: Mapping[str, Clause],
    model: Model,
    machines: Mapping[str, Machine],
    rules: Mapping[str, RuleSource],
    invariants: Mapping[str, Invariant],
    examples: Sequence[Example] = (),
) -> dict[str, list[str]]:
    """Where each clause is cited. Raises SpecificationError when a cited clause is not defined."""
    uses: dict[str, list[str]] = {name: [] for name in clauses}
    for name, where, place in (
        *_citations(model, machines, rules, invariants),
        *((name, f"example: {each.name}", each.place) for each in examples for name in each.clauses),
    ):
        if name not in uses:
            raise SpecificationError(
                place, f"nobody defined the clause {name!r}", "define it under spec/clauses"
            )
        if where not in uses[name]:
            uses[name].append(where)
    return uses


def _citations(
    model: Model,
    machines: Mapping[str, Machine],
    rules: Mapping[str, RuleSource],
    invariants: Mapping[str, Invariant],
) -> Iterator[tuple[str, str, Place]]:
    """(clause, where it is cited, place)."""
    for cited, where, place in (*_of_messages(model), *_of_machines(machines)):
        for name in cited:
            yield name, where, place
    for rule in rules.values():
        for name in rule.clauses:
            yield name, f"rule {rule.name}", rule.place
    for invariant in invariants.values():
        for name in invariant.clauses:
            yield name, f"invariant {invariant.id}", invariant.place


_Cited = tuple[tuple[str, ...], str, Place]


def _of_messages(model: Model) -> Iterator[_Cited]:
    for message in model.messages.values():
        yield message.clauses, f"message {message.name}", message.place
        for field in message.fields:
            yield field.clauses, f"field {message.name}.{field.name}", field.place
    for enum in model.enums.values():
        for value in enum.values:
            yield value.clauses, f"value {enum.name}.{value.name}", value.place


def _of_machines(machines: Mapping[str, Machine]) -> Iterator[_Cited]:
    for machine in machines.values():
        for edge in machine.transitions():
            yield edge.clauses, f"edge {machine.name}: {'/'.join(edge.sources)} on {edge.event}", edge.place
        for guard in machine.guards.values():
            yield guard.clauses, f"guard {machine.name}.{guard.name}", guard.place


def clauses_document(
    clauses: Mapping[str, Clause], uses: Mapping[str, list[str]], sources: Mapping[str, bytes]
) -> str:
    """The Markdown page of all clauses, with where each is used."""
    lines = [*banner(sources), "# Clauses", ""]
    lines += ["What an implementation must do, in our words, and where this specification checks it.", ""]
    for clause in clauses.values():
        source = f"{clause.document}, {clause.section}" if clause.section else clause.document
        lines += [f'<a id="{clause.id.lower()}"></a>', "", f"## {clause.id}", "", clause.requirement, ""]
        lines.append(f"- {clause.severity}; basis: {BASES[clause.basis]}; source: {source}")
        lines += [f"- Diverges in {versions}: {text}" for versions, text in clause.divergence.items()]
        found = uses.get(clause.id, [])
        lines.append(f"- Used by: {'; '.join(found)}" if found else "- Not used yet.")
        lines += [f"- A case has to show: {clause.case}"] * bool(clause.case)
        lines += [f"- Checked nowhere: {clause.not_yet}"] * bool(clause.not_yet)
        lines.append("")
    return "\n".join(lines)
