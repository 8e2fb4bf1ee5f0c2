"""Pages of single things: a clause, a machine, a message, a rule, an invariant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.compiler.model.clause import BASES, ClauseSpec
from replispec.handbook.diagrams import diagram
from replispec.handbook.documents import (
    COMPILED,
    Page,
    Reader,
    cell,
    outside_fences,
    sections,
    table,
    without_comments,
)
from replispec.handbook.knowledge import Knowledge
from replispec.handbook.places import EdgeRow, anchor, case_place, document_page, edge_rows, link

# What of a clause is checked by each kind of citation, as the page of compliance calls it.
_HEADINGS: Final = {
    "edge": "Edges",
    "guard": "Guards",
    "invariant": "Invariants",
    "rule": "Rules with golden vectors",
    "example": "Golden bytes",
    "message": "Messages",
    "field": "Fields",
    "value": "Numbers",
}
_MERMAID: Final = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Subjects:
    """Makes the pages of one family; `texts` are the compiler's pages of it, by their names below its folder,
    and `results` what the suite found of each clause, as tables."""

    known: Knowledge
    reader: Reader
    texts: Mapping[str, str]
    results: Mapping[str, Sequence[str]]

    def pages(self) -> Iterator[Page]:
        """All of them."""
        yield from map(self._clause, self.known.clauses.values())
        yield from map(self._machine, self.known.spec.machines)
        for kind, name in (("rule", "rules"), ("invariant", "invariants")):
            for title, text in sections(self.texts.get(f"{name}.md", "")).items():
                yield self._part(kind, f"{name}/{title}", title, text, f"{name}.md")
        for name in {each.module: None for each in self.known.model.messages.values()}:
            at = f"messages/{name}.md"
            for title, text in sections(self.texts.get(at, "")).items():
                yield self._part("message", f"messages/{title}", title, text, at)

    def _part(self, kind: str, name: str, title: str, text: str, at: str) -> Page:
        """A section of a page of the compiler."""
        family = self.known.name
        path = f"{family}/{name}"
        body = self.reader.referring(text, f"{COMPILED}{family}/{at}", path, family)
        return Page(path, title, kind, f"# {title}\n\n{body}\n")

    def _clause(self, clause: ClauseSpec) -> Page:
        known = self.known
        covered = [
            link(
                f"{coverage.document}, {each.number}",
                document_page(known, coverage.document),
                anchor("p", each.number),
            )
            for coverage in known.coverages
            for each in coverage.paragraphs
            if clause.id in each.clauses
        ]
        source = ", ".join(filter(None, (clause.document, clause.section)))
        documents = {coverage.document for coverage in known.coverages}
        if clause.document in documents:
            source = link(source, document_page(known, clause.document))
        lines = [f"# {clause.id}", "", f"**{clause.requirement}**", ""]
        lines += [f"- {clause.severity}; basis: {BASES[clause.basis]}", f"- Source: {source}"]
        lines += [
            f"- Diverges in {link(release, f'{known.name}/releases', anchor(release, clause.id))}: {words}"
            for release, words in clause.divergence.items()
        ]
        lines += [f"- Paragraphs: {', '.join(covered)}"] if covered else []
        lines += [f"- A case has to show: {clause.case}"] if clause.case else []
        lines += [f"- Nothing checks it yet: {clause.not_yet}"] if clause.not_yet else []
        lines += ["", *self._checked_by(clause), *self._cases(clause)]
        lines += self.results.get(clause.id, ())
        return Page(f"{known.name}/clauses/{clause.id}", clause.id, "clause", "\n".join(lines) + "\n")

    def _checked_by(self, clause: ClauseSpec) -> Iterator[str]:
        uses: dict[str, list[str]] = {}
        for use in self.known.uses[clause.id]:
            kind, _, what = use.partition(" ")
            uses.setdefault(kind.rstrip(":"), []).append(what)
        for kind, heading in _HEADINGS.items():
            found = (
                self._edges(clause.id)
                if kind == "edge"
                else [self._use(kind, each) for each in uses.get(kind, ())]
            )
            if found:
                yield from (f"## {heading}", "", *(f"- {each}" for each in found), "")

    def _edges(self, clause: str) -> list[str]:
        return [
            f"{link(machine.name, f'{self.known.name}/machines/{machine.name}', row.anchor)}: "
            f"`{row.state}` on `{row.event}`{_leads(row)}"
            + (f", in {machine.overlays[number - 1].versions}" if number else "")
            for machine in self.known.spec.machines.values()
            for number, rows in enumerate(edge_rows(machine))
            for row in rows
            if row.edge is not None and clause in row.edge.clauses
        ]

    def _use(self, kind: str, what: str) -> str:
        root = self.known.name
        owner, _, part = what.partition(".")
        match kind:
            case "guard":
                return link(what, f"{root}/machines/{owner}", "guards")
            case "invariant" | "rule":
                return link(what, f"{root}/{kind}s/{what}")
            case "message" | "field":
                return link(what, f"{root}/messages/{owner}")
            case "value":
                return f"{link(part, f'{root}/numbers', anchor(owner))} of {owner}"
            case _:
                return link(what, f"{root}/examples", anchor(what))

    def _cases(self, clause: ClauseSpec) -> Iterator[str]:
        cases = [case for case in self.known.cases if case.clause == clause.id]
        if cases:
            yield from ("## Cases of the suite", "")
            yield from (
                f"- {link(case.id, *case_place(self.known, case.id))}: {case.requirement}" for case in cases
            )
            yield ""

    def _machine(self, name: str) -> Page:
        machine = self.known.spec.machines[name]
        path = f"{self.known.name}/machines/{name}"
        at = f"{COMPILED}{path}.md"
        text = without_comments(self.texts[f"machines/{name}.md"])
        text = _MERMAID.sub("", text)
        text = self._with_anchors(text, name)
        text = self.reader.referring(text, at, path, self.known.name)
        head, states, tail = text.partition("\n## States")
        picture = [
            "",
            "States, and the events that lead from one to another: each leads to its clauses.",
            "",
            diagram(machine),
            "",
        ]
        return Page(path, name, "machine", "\n".join([head, *picture]) + states + tail)

    def _with_anchors(self, text: str, name: str) -> str:
        """The compiler's page, each line of its tables under an anchor, and each state with its clauses."""
        machine = self.known.spec.machines[name]
        tables = iter(edge_rows(machine))
        rows: Iterator[EdgeRow] = iter(())
        of_state = {
            state: dict.fromkeys(
                clause
                for row in edge_rows(machine)[0]
                if row.edge is not None and state in (row.state, row.edge.to)
                for clause in row.edge.clauses
            )
            for state in machine.states
        }
        section = ""

        def marked(line: str) -> str:
            nonlocal section, rows
            if line.startswith("## "):
                section = line.removeprefix("## ")
                if section == "Edges" or section.startswith("Differences in "):
                    rows = iter(next(tables))
                return line
            first = line.removeprefix("| ").partition(" | ")[0]
            if not line.startswith("| `"):
                return _head_of_states(line) if section == "States" else line
            if section == "Edges" or section.startswith("Differences in "):
                return _marked(line, next(rows).anchor)
            if section == "States":
                state = first.strip("`")
                return f"{_marked(line, anchor('state', state))} {', '.join(of_state[state])} |"
            return _marked(line, anchor("event", first)) if section == "Events" else line

        return outside_fences(text, marked)


def _head_of_states(line: str) -> str:
    if line.startswith("| state |"):
        return f"{line} clauses of its edges |"
    return f"{line} --- |" if line.startswith("| ---") else line


def _marked(line: str, name: str) -> str:
    return line.replace("| ", f'| <a id="{name}"></a>', 1)


def _leads(row: EdgeRow) -> str:
    if row.edge is None:
        return ""
    to = f", to `{row.edge.to}`" if row.edge.to != row.state else ", stays"
    does = f": {', '.join(name.replace('_', ' ') for name in row.edge.do)}" if row.edge.do else ""
    return to + does


def results_of(text: str) -> dict[str, list[str]]:
    """What tables of a page say of each clause that a line of theirs begins with: the same tables, one line
    long."""
    found: dict[str, list[str]] = {}
    head, section = "", ""
    for line in text.split("\n"):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        match = re.match(r"\| \[([A-Z0-9-]+)\]\([^)]*\) \| (.*) \|$", line)
        if match and head:
            titles = [each.strip() for each in head.strip("| ").split("|")]
            rows = [[section, *match[2].split(" | ")]]
            found.setdefault(match[1], []).extend(["", *table([cell("run"), *titles[1:]], rows)])
        elif line.startswith("| clause |"):
            head = line
        elif not line.startswith("|"):
            head = ""
    return {name: ["## What the suite found", *lines] for name, lines in found.items()}
