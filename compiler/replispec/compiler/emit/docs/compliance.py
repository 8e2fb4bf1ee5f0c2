"""The compliance view: where each clause is checked, which ones nobody checks, and what covers a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.compiler.emit.docs.machines import banner, clause_links
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.coverage import Coverage
from replispec.compiler.model.message import Model, SpecificationError
from replispec.compiler.model.rule import RuleSource

# The columns of the view, and the kinds of citation (the first word of each) that belong there.
_COLUMNS: Final = {
    "bytes": ("message", "field", "value"),
    "edges": ("edge",),
    "guards": ("guard",),
    "invariants": ("invariant",),
    "promises": ("promise",),
    "vectors": ("rule", "example:"),
}


@dataclass(frozen=True, slots=True)
class Compliance:
    """What the page is made of; `uses` maps each clause to its citations, as `check_citations` gives them.

    `findings` names what judges of traffic find, for each machine that they watch.
    """

    clauses: Mapping[str, ClauseSpec]
    uses: Mapping[str, Sequence[str]]
    rules: Mapping[str, RuleSource]
    coverages: Sequence[Coverage]
    model: Model
    findings: Mapping[str, str]


def check_reasons(clauses: Mapping[str, ClauseSpec], uses: Mapping[str, Sequence[str]]) -> None:
    """Refuse a clause that gives a reason why nothing checks it although something does, or may."""
    for clause in clauses.values():
        if clause.not_yet and uses.get(clause.id):
            raise SpecificationError(
                clause.place, f"{clause.id} is checked: {uses[clause.id][0]}", "drop its not_yet"
            )
        if clause.not_yet and clause.case:
            raise SpecificationError(
                clause.place, f"{clause.id} has both a case and not_yet", "keep the one that is true"
            )


def compliance_document(view: Compliance, sources: Mapping[str, bytes]) -> str:
    """The Markdown page: counts, then each clause with all that checks it, then the paragraphs."""
    unchecked = [clause for clause in view.clauses.values() if not view.uses.get(clause.id)]
    lines = [*banner(sources), "# Compliance", ""]
    lines += [
        "Where this specification checks each [clause](clauses.md). A codec checks *bytes*, a machine",
        "*edges* and *guards*, a judge of traffic *invariants*, the explorer *promises* of systems, and an",
        "implementation of an algorithm its *vectors*. Of a clause *by bytes alone* the form of a message is",
        "checked; nothing judges when it is sent. Where *a case waits* only the conformance suite can tell;",
        "what it found is in docs/compliance.md.",
        "",
    ]
    if view.findings:
        lines += ["Judges of traffic walk these machines, too, and so check their edges:", ""]
        watched = ((f"[{name}](machines/{name}.md)", f"`{each}`") for name, each in view.findings.items())
        lines += table(("machine", "finding"), watched)
    lines += table(
        ("document", "clauses", *_COLUMNS, "by bytes alone", "a case waits", "nobody checks"), _counts(view)
    )
    if unchecked:
        lines += ["## Clauses that nobody checks"]
        lines += [*(f"- {clause_links([each.id], '')}: {_why(each)}" for each in unchecked), ""]
    lines += ["## Where each clause is checked"]
    rows = (
        (clause_links([name], ""), *_cells(view, name), "waits" * bool(clause.case))
        for name, clause in view.clauses.items()
        if view.uses.get(name)
    )
    lines += table(("clause", *_COLUMNS, "case"), rows)
    for coverage in view.coverages:
        lines += _paragraphs(coverage)
    return "\n".join(lines)


def _why(clause: ClauseSpec) -> str:
    if clause.case:
        return f"waits for a case: {clause.case}"
    return f"not yet: {clause.not_yet}" if clause.not_yet else "nobody says why"


def _found(view: Compliance, name: str) -> dict[str, list[str]]:
    """The citations of a clause by column."""
    uses = view.uses.get(name, ())
    return {
        column: [use for use in uses if use.split(" ", 1)[0] in kinds] for column, kinds in _COLUMNS.items()
    }


def _counts(view: Compliance) -> Iterator[tuple[str, ...]]:
    """A row for each group of ids, and one for all."""
    groups = list(dict.fromkeys(name.split("-", 1)[0] for name in view.clauses))
    for group in (*groups, ""):
        names = [name for name in view.clauses if name.startswith(f"{group}-" if group else "")]
        found = [_found(view, name) for name in names]
        columns = [sum(bool(each[column]) for each in found) for column in _COLUMNS]
        alone = sum(bool(each["bytes"]) and sum(map(bool, each.values())) == 1 for each in found)
        nobody = sum(not any(each.values()) for each in found)
        cases = sum(bool(each.case) for each in view.clauses.values() if each.id in names)
        yield group or "all", *map(str, (len(found), *columns, alone, cases, nobody))


def _cells(view: Compliance, name: str) -> Iterator[str]:
    for column, uses in _found(view, name).items():
        parted = [use.partition(" ")[::2] for use in uses]
        if column == "edges":
            yield _edges([what for _, what in parted])
        else:
            yield ", ".join(_link(view, kind, what) for kind, what in parted)


def _edges(uses: Sequence[str]) -> str:
    """Edges by machine, as `MACHINE: STATES on EVENT` says each."""
    machines: dict[str, list[str]] = {}
    for use in uses:
        machine, _, edge = use.partition(": ")
        machines.setdefault(machine, []).append(edge)
    return "; ".join(f"[{name}](machines/{name}.md): {', '.join(found)}" for name, found in machines.items())


def _link(view: Compliance, kind: str, what: str) -> str:
    owner = what.partition(".")[0]
    match kind:
        case "message" | "field":
            return f"[{what}](messages/{view.model.messages[owner].module}.md#{owner.lower()})"
        case "value":
            return f"[{what.partition('.')[2]}](numbers.md)"
        case "guard":
            return f"[{what}](machines/{owner}.md)"
        case "invariant":
            return f"[{what}](invariants.md#{what})"
        case "promise":
            return f"[{what}](systems/{owner}.md)"
        case "rule":
            return f"[{what}](rules.md#{what}) ({len(view.rules[what].vectors)})"
        case _:
            return f"[{what}](examples.md)"


def _paragraphs(coverage: Coverage) -> Iterator[str]:
    demanding = sum(bool(each.clauses) for each in coverage.paragraphs)
    yield f"## Paragraphs of {coverage.document}"
    yield f"{len(coverage.paragraphs)} paragraphs, of which {demanding} demand something."
    yield ""
    rows = (
        (str(each.number), f"`{each.hash}`", clause_links(each.clauses, ""))
        for each in coverage.paragraphs
        if each.clauses
    )
    yield from table(("paragraph", "hash", "clauses"), rows)
    idle: dict[str, list[str]] = {}
    for each in coverage.paragraphs:
        if not each.clauses:
            idle.setdefault(each.no_requirement, []).append(f"{each.number} (`{each.hash}`)")
    reasons = ((reason, ", ".join(found)) for reason, found in idle.items())
    yield from table(("demands nothing", "paragraphs, each with its hash"), reasons)
