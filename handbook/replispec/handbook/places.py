"""Under which page and anchor each thing of the specification is found, and which names lead there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.compiler.model.machine import MachineSpec, Table, Transition
from replispec.handbook.knowledge import Knowledge

REF: Final = "ref:"
# Pages of the compiler that the site cuts into one page for each part, with the folder of the parts.
CUT: Final = {"clauses": "clauses", "rules": "rules", "invariants": "invariants"}
_NOT_IN_ANCHORS: Final = re.compile(r"[^a-z0-9]+")


def link(text: str, path: str, anchor: str = "") -> str:
    """A link to a page of the site."""
    return f"[{text}]({REF}{path}{f'#{anchor}' * bool(anchor)})"


def anchor(*words: object) -> str:
    """A name for a place within a page."""
    return _NOT_IN_ANCHORS.sub("-", "-".join(map(str, words)).lower()).strip("-")


def relative(path: str, to: str, fragment: str = "") -> str:
    """How the HTML of one page names that of another."""
    where = posixpath.relpath(f"{to}.html", posixpath.dirname(path) or ".")
    return f"{where}#{fragment}" if fragment else where


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """One line of a machine's tables of edges: its anchor, and the edge, None where a release has none."""

    anchor: str
    state: str
    event: str
    edge: Transition | None


def edge_rows(machine: MachineSpec) -> list[list[EdgeRow]]:
    """The lines of the table of edges, then of each table of differences, as the compiler writes them."""
    tables = [machine.table, *(overlay.table for overlay in machine.overlays)]
    return [list(_rows(table, number)) for number, table in enumerate(tables)]


def _rows(table: Table, number: int) -> Iterator[EdgeRow]:
    prefix = ("edge", f"v{number}") if number else ("edge",)
    lines = ((state, event, edge) for (state, event), found in table.items() for edge in (found or (None,)))
    for at, (state, event, edge) in enumerate(lines, 1):
        yield EdgeRow(anchor(*prefix, at), state, event, edge)


@dataclass(frozen=True, slots=True)
class Places:
    """What leads where: names as they stand in texts, of one family or of all, and the compiler's pages."""

    families: Mapping[str, Knowledge]
    names: Mapping[str, Mapping[str, tuple[str, str]]] = field(init=False)
    cut: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", {name: _names(each) for name, each in self.families.items()})
        parts = {
            f"{name}/{place}": page for name, each in self.families.items() for place, page in _cut(each)
        }
        object.__setattr__(self, "cut", parts)

    def found(self, name: str, family: str) -> tuple[str, str] | None:
        """Page and anchor of what has this name in a family; "" asks all, and one alone must have it."""
        if family:
            return self.names[family].get(name)
        found = {places[name] for places in self.names.values() if name in places}
        return found.pop() if len(found) == 1 else None

    def of_compiled(self, path: str, fragment: str) -> tuple[str, str]:
        """Page and anchor of what stands at a place of a page of the compiler."""
        page = self.cut.get(f"{path}#{fragment.lower()}")
        if page is not None:
            return page, ""
        family, _, inside = path.partition("/")
        if family in self.families and inside in CUT:
            return f"{family}/{CUT[inside]}/index", ""
        if family in self.families and inside.startswith("messages/"):
            return f"{family}/messages/index", posixpath.basename(inside)
        return path, fragment


def _cut(known: Knowledge) -> Iterator[tuple[str, str]]:
    """Anchors of the compiler's pages, and the pages that stand for them."""
    for kind, parts in (
        ("clauses", known.clauses),
        ("rules", known.spec.rules),
        ("invariants", known.spec.invariants),
    ):
        yield from ((f"{kind}#{part.lower()}", f"{known.name}/{kind}/{part}") for part in parts)
    for stream in {each.stream.name for each in known.spec.invariants.values()}:
        yield f"invariants#{stream.lower()}", f"{known.name}/invariants/{stream}"
    for message in known.model.messages.values():
        yield (
            f"messages/{message.module}#{message.name.lower()}",
            f"{known.name}/messages/{message.name}",
        )


def case_place(known: Knowledge, case: str) -> tuple[str, str]:
    """Where a case stands."""
    kind, topic, *_ = case.split("/")
    return f"{known.name}/cases/{kind}/{topic}", anchor("case", case)


def document_page(known: Knowledge, document: str) -> str:
    """The page of a document's paragraphs."""
    return f"{known.name}/documents/{anchor(document)}"


def bugs_of(known: Knowledge) -> Sequence[str]:
    """The marks of the known defects, in order."""
    of_cases = {bug for case in known.cases for bug in case.bugs}
    listed = {each.bug for entries in (known.expected or {}).values() for each in entries if each.bug}
    return sorted(of_cases | listed, key=lambda bug: (bug.rstrip("0123456789"), len(bug), bug))


def _names(known: Knowledge) -> dict[str, tuple[str, str]]:
    """Names that lead to a page wherever they stand, alone or as code."""
    root, others = known.name, _variables(known)
    found: dict[str, tuple[str, str]] = {}
    for kind, parts in (("machines", known.spec.machines), ("rules", known.spec.rules)):
        own = (name for name in parts if "_" in name and name not in others)
        found |= {name: (f"{root}/{kind}/{name}", "") for name in own}
    found |= {
        each.finding: (f"{root}/machines/{name}", "")
        for name, each in known.spec.machines.items()
        if each.finding
    }
    found |= {name: (f"{root}/numbers", anchor(name)) for name in known.model.enums}
    found |= {name: (f"{root}/messages/{name}", "") for name in known.model.messages}
    found |= {name: (f"{root}/invariants/{name}", "") for name in known.spec.invariants}
    found |= {name: (f"{root}/clauses/{name}", "") for name in known.clauses}
    found |= {case.id: case_place(known, case.id) for case in known.cases}
    return found


def _variables(known: Knowledge) -> set[str]:
    """Names of variables, events and fields, which mean these wherever a machine or rule is called alike."""
    found = {field.name for message in known.model.messages.values() for field in message.fields}
    for machine in known.spec.machines.values():
        found |= {*machine.variables, *machine.events}
        found |= {name for event in machine.events.values() for name in event.fields}
    return found | {name for rule in known.spec.rules.values() for name in rule.type.parameters}
