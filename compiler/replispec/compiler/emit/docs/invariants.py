"""The Markdown page of a family's invariants and of the streams that they speak about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.docs.machines import banner, clause_links
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.language.text import to_english
from replispec.compiler.model.invariant import EventStream, FoldStepSpec, InvariantSpec, OtherwiseSpec
from replispec.compiler.model.machine import MachineSpec

# From the page of all invariants.
RULES_PAGE = "rules.md"


def invariants_document(
    invariants: Mapping[str, InvariantSpec], machines: Mapping[str, MachineSpec], sources: Mapping[str, bytes]
) -> str:
    """The Markdown page of all invariants and of the streams that they speak about."""
    lines = [*banner(sources), "# Invariants", ""]
    lines.append("What must hold on traffic. The verdict of many evaluations is the worst one:")
    lines += ["violated, unknown, diverged, ok.", ""]
    for invariant in invariants.values():
        lines += _section(invariant)
    lines += _watched_section([each for each in machines.values() if each.finding])
    lines += ["# Streams of events", ""]
    for stream in {each.stream.name: each.stream for each in invariants.values()}.values():
        lines += _stream_section(stream)
    return "\n".join(lines)


def _watched_section(machines: Sequence[MachineSpec]) -> Iterator[str]:
    """The machines that judges walk over traffic, with the names of what they find."""
    if not machines:
        return
    yield "# Machines as rules"
    yield ""
    yield "Walked over traffic, event by event. What no state that is still possible allows is violated; what"
    yield "a release is known to do against the proposal is diverged, unless the machine tolerates it; what"
    yield "is allowed only if something unseen was so is unknown."
    yield ""
    yield from table(
        ("finding", "machine", "one evaluation", "what it is"),
        (
            (f"`{each.finding}`", f"[{each.name}](machines/{each.name}.md)", each.evaluated, each.about)
            for each in machines
        ),
    )


def _section(invariant: InvariantSpec) -> Iterator[str]:
    yield f"## {invariant.id}"
    yield invariant.about
    yield ""
    stream = invariant.stream.name
    yield f"- Shape: {invariant.shape.replace('_', ' ')}, over the stream [`{stream}`](#{stream})"
    yield f"- A finding is about: {', '.join(f'`{name}`' for name in invariant.group)}"
    yield f"- One evaluation: {invariant.evaluated}"
    yield f"- A finding says: {invariant.says}"
    if invariant.unseen:
        yield f"- Unknown where not enough was seen: {invariant.unseen}"
    yield f"- Clauses: {clause_links(invariant.clauses, '')}"
    if invariant.key:
        yield f"- Events belong together by: {', '.join(f'`{name}`' for name in invariant.key)}"
    if invariant.where is not None:
        yield f"- Evaluated where {to_english(invariant.where, RULES_PAGE)}"
    if invariant.value is not None:
        yield f"- The value: {to_english(invariant.value, RULES_PAGE)}"
    if invariant.check is not None:
        yield f"- Checked at the end: {to_english(invariant.check.holds, RULES_PAGE)}"
    entries = invariant.otherwise + (invariant.check.otherwise if invariant.check is not None else ())
    yield from _verdict_lines(entries, "- ")
    yield ""
    if invariant.steps:
        yield from table(("event", "if", "must hold", "then"), map(_step_cells, invariant.steps))
        said = [
            line
            for step in invariant.steps
            for check in step.checks
            for line in _verdict_lines(check.otherwise, f"- On `{step.event}`: ")
        ]
        yield from (*dict.fromkeys(said), *[""] * bool(said))


def _verdict_lines(entries: tuple[OtherwiseSpec, ...], start: str) -> Iterator[str]:
    for entry in entries:
        when = (
            f"if {to_english(entry.condition, RULES_PAGE)}"
            if entry.condition is not None
            else "in all other cases"
        )
        note = f" ({entry.divergence})" if entry.divergence else ""
        yield f"{start}**{entry.verdict}** {when}{note}"


def _step_cells(step: FoldStepSpec) -> tuple[str, str, str, str]:
    condition = to_english(step.condition, RULES_PAGE) if step.condition is not None else ""
    checks = "; and: ".join(to_english(check.holds, RULES_PAGE) for check in step.checks)
    then = "; ".join(f"`{name}` becomes {to_english(node, RULES_PAGE)}" for name, node in step.assign.items())
    return f"`{step.event}`", condition, checks, then


def _stream_section(stream: EventStream) -> Iterator[str]:
    yield f"## {stream.name}"
    yield stream.about
    yield ""
    yield f"Order: {stream.order}"
    yield ""
    for event in stream.events.values():
        yield f"### {stream.name}: {event.name}"
        yield from table(
            ("field", "type", "from"),
            ((f"`{name}`", str(kind), event.origins[name]) for name, kind in event.fields.items()),
        )
