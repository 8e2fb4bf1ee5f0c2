"""Pages that gather: indexes, cases by topic, paragraphs, differences of releases, known defects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replispec.compiler.model.coverage import Coverage
from replispec.conformance.explain import explain
from replispec.conformance.model import Case, Sent
from replispec.handbook.documents import Page, cell, table
from replispec.handbook.knowledge import Knowledge
from replispec.handbook.places import (
    anchor,
    bugs_of,
    case_place,
    document_page,
    edge_rows,
    link,
)


def gathered(known: Knowledge, extra: Sequence[tuple[str, str]]) -> Iterator[Page]:
    """All gathering pages of a family; `extra` are the titles and pages of what else there is of it."""
    yield _family(known, extra)
    yield _clauses(known)
    yield _messages(known)
    spec = known.spec
    for name, parts in (("rules", spec.rules), ("invariants", spec.invariants), ("machines", spec.machines)):
        rows = (
            (link(f"`{part}`", f"{known.name}/{name}/{part}"), cell(each.about))
            for part, each in parts.items()
        )
        yield _page(known, f"{name}/index", f"{known.name}: {name}", table(("name", "what it is"), rows))
    yield from _cases(known)
    yield from (_paragraphs(known, coverage) for coverage in known.coverages)
    yield _releases(known)
    yield _defects(known)


def _page(known: Knowledge, path: str, title: str, lines: Sequence[str], kind: str = "index") -> Page:
    return Page(f"{known.name}/{path}", title, kind, "\n".join([f"# {title}", "", *lines]) + "\n")


def _family(known: Knowledge, extra: Sequence[tuple[str, str]]) -> Page:
    spec, root = known.spec, known.name
    counted = (
        ("clauses", len(known.clauses), "clauses/index"),
        ("machines", len(spec.machines), "machines/index"),
        ("messages", len(known.model.messages), "messages/index"),
        ("rules with golden vectors", len(spec.rules), "rules/index"),
        ("invariants", len(spec.invariants), "invariants/index"),
        ("cases of the suite", len(known.cases), "cases/index"),
        ("differences of releases", len(_differences(known)), "releases"),
        ("known defects of implementations", len(bugs_of(known)), "defects"),
    )
    lines = table(
        ("what", "how many"), ((link(what, f"{root}/{path}"), str(number)) for what, number, path in counted)
    )
    lines += [
        f"- {link(f'Paragraphs of {each.document}', document_page(known, each.document))}: "
        f"{len(each.paragraphs)}, each with its clauses or why it demands nothing"
        for each in known.coverages
    ]
    lines += ["", *(f"- {link(title, path)}" for title, path in extra)]
    return _page(known, "index", root, lines)


def _clauses(known: Knowledge) -> Page:
    rows = (
        (
            link(each.id, f"{known.name}/clauses/{each.id}"),
            cell(each.requirement),
            str(len(known.uses[each.id])),
            str(sum(case.clause == each.id for case in known.cases)),
            "; ".join(each.divergence),
        )
        for each in known.clauses.values()
    )
    lines = table(("clause", "what it demands", "places that check it", "cases", "diverging releases"), rows)
    return _page(known, "clauses/index", f"{known.name}: clauses", lines)


def _messages(known: Knowledge) -> Page:
    lines: list[str] = []
    for module in {each.module: None for each in known.model.messages.values()}:
        rows = (
            (
                link(f"`{each.name}`", f"{known.name}/messages/{each.name}"),
                ", ".join(map(str, each.codes)),
                cell(each.about),
            )
            for each in known.model.messages.values()
            if each.module == module
        )
        lines += [f"## {module}", *table(("message", "code", "what it is"), rows)]
    return _page(known, "messages/index", f"{known.name}: messages", lines)


def _cases(known: Knowledge) -> Iterator[Page]:
    topics: dict[tuple[str, str], list[Case]] = {}
    for case in known.cases:
        topics.setdefault((case.kind, case.topic), []).append(case)
    rows = (
        (kind, link(topic, f"{known.name}/cases/{kind}/{topic}"), str(len(cases)))
        for (kind, topic), cases in topics.items()
    )
    yield _page(
        known, "cases/index", f"{known.name}: cases of the suite", table(("kind", "topic", "cases"), rows)
    )
    commands = _commands(known)
    for (kind, topic), cases in topics.items():
        lines = [line for case in cases for line in _case(known, case, commands)]
        yield _page(known, f"cases/{kind}/{topic}", f"Cases: {kind}, {topic}", lines, "cases")


def _commands(known: Knowledge) -> dict[str, str]:
    """The request of each command, by the command's name."""
    requests = {
        code: each.name
        for each in known.model.messages.values()
        for code in each.codes
        if each.kind == "REQUEST"
    }
    return {
        value.name: requests[value.number]
        for enum in known.model.enums.values()
        if enum.codes
        for value in enum.values
        if value.number in requests
    }


def _case(known: Knowledge, case: Case, commands: dict[str, str]) -> Iterator[str]:
    yield from (f"({case_place(known, case.id)[1]})=", f"## {case.id}", "", case.requirement, "")
    facts = [
        f"Clause {link(case.clause, f'{known.name}/clauses/{case.clause}')}",
        case.severity,
        f"basis: {case.basis}",
    ]
    facts += [f"releases {case.releases}", f"profile {case.profile}"]
    facts += [
        f"known defect {link(bug, f'{known.name}/defects', anchor('defect', bug))}" for bug in case.bugs
    ]
    yield f"- {'; '.join(facts)}"
    named = [
        name
        for step in (*case.prepared, *case.steps)
        if isinstance(step.action, Sent)
        for name in (step.action.message, commands.get(step.action.command or ""))
        if name in known.model.messages
    ]
    if named:
        links = (link(f"`{name}`", f"{known.name}/messages/{name}") for name in dict.fromkeys(named))
        yield f"- Sends {', '.join(links)}"
    lines = explain(case.id, [case]) or []
    start = next(
        (at for at, line in enumerate(lines) if line.startswith(("  Given:", "  Steps:"))), len(lines)
    )
    yield from ("", "```text", *(line[2:] for line in lines[start:]), "```", "")


def _paragraphs(known: Knowledge, coverage: Coverage) -> Page:
    demanding = sum(bool(each.clauses) for each in coverage.paragraphs)
    rows = (
        (
            f'<a id="{anchor("p", each.number)}"></a>{each.number}',
            f"`{each.hash}`",
            ", ".join(link(name, f"{known.name}/clauses/{name}") for name in each.clauses)
            or each.no_requirement,
        )
        for each in coverage.paragraphs
    )
    lines = [
        f"{len(coverage.paragraphs)} paragraphs, of which {demanding} demand something.",
        "A paragraph is known by its number and a hash of its text.",
        *table(("paragraph", "hash", "clauses, or why it demands nothing"), rows),
    ]
    path = document_page(known, coverage.document).removeprefix(f"{known.name}/")
    return _page(known, path, f"{coverage.document}: paragraphs", lines, "document")


def _differences(known: Knowledge) -> list[tuple[str, str, str, str]]:
    """Release, anchor, where it is told, what differs."""
    found = [
        (release, anchor(release, each.id), link(each.id, f"{known.name}/clauses/{each.id}"), words)
        for each in known.clauses.values()
        for release, words in each.divergence.items()
    ]
    for machine in known.spec.machines.values():
        page = f"{known.name}/machines/{machine.name}"
        for number, rows in enumerate(edge_rows(machine)):
            release = str(machine.overlays[number - 1].versions) if number else "all"
            for row in rows:
                said = row.edge is None or row.edge.diverges or row.edge.tolerated
                if number or (row.edge is not None and row.edge.diverges):
                    words = said if isinstance(said, str) and said else f"`{row.state}` on `{row.event}`"
                    where = link(f"{machine.name}: {row.state} on {row.event}", page, row.anchor)
                    found.append((release, anchor(release, machine.name, row.anchor), where, words))
    for each in known.spec.invariants.values():
        for words in each.divergences():
            where = link(each.id, f"{known.name}/invariants/{each.id}")
            found.append(("all", anchor("all", each.id, words[:40]), where, words))
    for message in known.model.messages.values():
        if message.versions:
            where = link(message.name, f"{known.name}/messages/{message.name}")
            found.append((str(message.versions), anchor(message.versions, message.name), where, "only here"))
    return found


def _releases(known: Knowledge) -> Page:
    lines = ["What differs from the specification, or is only so, in some releases of an implementation.", ""]
    differences = _differences(known)
    for release in dict.fromkeys(each[0] for each in differences):
        rows = (
            (f'<a id="{name}"></a>{where}', cell(words))
            for at, name, where, words in differences
            if at == release
        )
        lines += [f"## {release}", *table(("where", "what differs"), rows)]
    return _page(known, "releases", f"{known.name}: differences of releases", lines, "document")


def _defects(known: Knowledge) -> Page:
    lines = ["Failures of implementations that the suite knows, with the cases that show them.", ""]
    entries = [(who, each) for who, found in (known.expected or {}).items() for each in found]
    for bug in (*bugs_of(known), ""):
        found = [(who, each) for who, each in entries if each.bug == bug]
        marked = [
            case.id
            for case in known.cases
            if bug in case.bugs and all(case.id != each.case for _, each in found)
        ]
        if not found and not marked:
            continue
        name = anchor("defect", bug) if bug else "without-a-mark"
        lines += [f"({name})=", f"## {bug or 'Without a mark'}", ""]
        for who, each in found:
            lines += [
                f"- {link(each.case, *case_place(known, each.case))} in {who} {each.releases}: {each.why}",
                f"  Seen as: `{each.symptom}`",
            ]
        lines += [f"- {link(case, *case_place(known, case))}" for case in marked]
        lines.append("")
    return _page(known, "defects", f"{known.name}: known defects", lines, "document")
