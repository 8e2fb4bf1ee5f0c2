"""The Python module of a family's invariants, and their Markdown page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.docs.machines import banner, clause_links, table
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.machines import (
    bare_words,
    docstring,
    enum_names,
    import_of,
    import_of_unknown,
    lambda_of,
    quoted,
    strings,
    value_text,
)
from replispec.compiler.language import expressions as ex
from replispec.compiler.language.text import to_english, to_python
from replispec.compiler.model.invariant import Check, EventStream, FoldStep, Invariant, Otherwise
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model
from replispec.compiler.read.invariants import runtime_template
from replispec.compiler.read.machines import guard_types

# From the page of all invariants.
RULES_PAGE = "rules.md"
_CLASSES = {
    "set": "SetInvariant",
    "order": "OrderInvariant",
    "pairing": "PairingInvariant",
    "as_of": "EndInvariant",
}


def invariants_text(
    invariants: Mapping[str, Invariant],
    model: Model,
    machines: Mapping[str, Machine],
    sources: Mapping[str, bytes],
) -> str:
    """The module, not yet formatted."""
    body = "\n".join(_Emitter(model, machines).body(invariants))
    lines = [
        *certificate(sources),
        *docstring(f"The invariants of {model.family}, as data for judges of traffic."),
    ]
    lines += ["", "from __future__ import annotations", ""]
    if "@dataclass" in body:
        lines.append("from dataclasses import dataclass")
    if "Sequence[" in body:
        lines.append("from collections.abc import Sequence")
    lines.append("from types import MappingProxyType")
    lines.append("from typing import Final")
    names = [
        name
        for name in ("Check", "FoldStep", "Otherwise", "Verdict", *_CLASSES.values())
        if f"{name}(" in body
    ]
    names += ["Invariant"] + ["Verdict"] * ("Verdict." in body)
    lines.append(f"from replispec.runtime.primitives.invariants import {', '.join(sorted(set(names)))}")
    words = bare_words(body)
    lines += import_of_unknown(says_unknown="UNKNOWN" in words, asks_none="is_none" in words)
    if "codes." in body:
        lines.append(f"from replispec.wire.{model.family} import codes")
    kinds = [each.type for invariant in invariants.values() for each in invariant.variables.values()]
    for message in sorted({name for kind in kinds for name in kind.messages()}):
        lines.append(import_of(message, model))
    used = [name for name in machines if f"{name}." in body]
    if used:
        lines.append(f"from replispec.wire.{model.family}.machines import {', '.join(used)}")
    return "\n".join([*lines, "", body, ""])


class _Emitter:
    def __init__(self, model: Model, machines: Mapping[str, Machine]) -> None:
        self._enums = enum_names(model)
        self._guards = {
            (machine.name, name): f"{machine.name}.{name}(variables, event{', rules' * kind.uses_rules})"
            for machine in machines.values()
            for name, kind in guard_types(machine).items()
        }

    def body(self, invariants: Mapping[str, Invariant]) -> Iterator[str]:
        for invariant in invariants.values():
            if invariant.variables:
                yield from self._variables(invariant)
        for invariant in invariants.values():
            yield f"{_constant(invariant)}: Final = {_CLASSES[invariant.shape]}("
            yield from (f"    {line}," for line in self._arguments(invariant))
            yield ")"
            yield ""
        yield "INVARIANTS: Final[MappingProxyType[str, Invariant]] = MappingProxyType({"
        for invariant in invariants.values():
            yield f"    {quoted(invariant.id)}: {_constant(invariant)},"
        yield "})"

    def _variables(self, invariant: Invariant) -> Iterator[str]:
        yield "@dataclass(frozen=True, slots=True)"
        yield f"class {_variables_class(invariant)}:"
        yield f'    """What the fold of {invariant.id} remembers."""'
        yield ""
        for each in invariant.variables.values():
            yield f"    {each.name}: {each.type.python()} = {value_text(each, self._enums)}"
        yield ""
        yield ""

    def _python(self, node: ex.Expression) -> str:
        return to_python(node, self._enums, self._guards)

    def _condition(self, node: ex.Expression) -> str:
        return lambda_of(self._python(node))

    def _of_event(self, text: str) -> str:
        return lambda_of(text, ("event", "rules"))

    def _arguments(self, invariant: Invariant) -> Iterator[str]:
        yield f"id={quoted(invariant.id)}"
        yield f"about={quoted(invariant.about)}"
        yield f"clauses={strings(invariant.clauses)}"
        yield f"stream={quoted(invariant.stream.name)}"
        yield f"group={strings(invariant.group)}"
        yield f"evaluated={quoted(invariant.evaluated)}"
        yield f"says={quoted(runtime_template(invariant.says))}"
        yield f"divergences={strings(tuple(invariant.divergences()))}"
        keys = ", ".join(f"event.{name}" for name in invariant.key)
        yield f"key={self._of_event(f'({keys},)' if keys else '()')}"
        if invariant.shape == "set" or invariant.shape == "as_of":
            yield f"event={quoted(invariant.event)}"
            where = self._of_event(self._python(invariant.where)) if invariant.where is not None else "None"
            yield f"where={where}"
        if invariant.value is not None:
            yield f"value={self._of_event(self._python(invariant.value))}"
            yield f"otherwise={self._otherwise(invariant.otherwise)}"
            return
        yield f"variables={_variables_class(invariant)}()" if invariant.variables else "variables=None"
        yield f"steps={self._steps(invariant.steps)}"
        if invariant.pairing is not None:
            names = invariant.pairing
            yield f"request={quoted(names.request)}, one_way={quoted(names.one_way)}"
            yield f"answer={quoted(names.answer)}"
        if invariant.check is not None:
            yield f"check={self._check(invariant.check)}"

    def _steps(self, steps: tuple[FoldStep, ...]) -> str:
        by_event: dict[str, list[str]] = {}
        for step in steps:
            by_event.setdefault(step.event, []).append(self._step(step))
        rows = (f"{quoted(event)}: ({', '.join(found)},)" for event, found in by_event.items())
        return f"MappingProxyType({{{', '.join(rows)}}})"

    def _step(self, step: FoldStep) -> str:
        parts = [quoted(step.event)]
        if step.condition is not None:
            parts.append(f"condition={self._condition(step.condition)}")
        if step.checks:
            parts.append(f"checks=({', '.join(map(self._check, step.checks))},)")
        if step.assign:
            rows = (f"{quoted(name)}: {self._condition(node)}" for name, node in step.assign.items())
            parts.append(f"assign=MappingProxyType({{{', '.join(rows)}}})")
        return f"FoldStep({', '.join(parts)})"

    def _check(self, check: Check) -> str:
        text = quoted(to_english(check.holds))
        says = quoted(runtime_template(check.says))
        otherwise = self._otherwise(check.otherwise)
        return f"Check(holds={self._condition(check.holds)}, otherwise={otherwise}, says={says}, text={text})"

    def _otherwise(self, entries: tuple[Otherwise, ...]) -> str:
        found = []
        for entry in entries:
            parts = [f"Verdict.{entry.verdict.upper()}"]
            if entry.condition is not None:
                parts.append(f"condition={self._condition(entry.condition)}")
            if entry.divergence:
                parts.append(f"divergence={quoted(entry.divergence)}")
            if entry.says:
                parts.append(f"says={quoted(runtime_template(entry.says))}")
            found.append(f"Otherwise({', '.join(parts)})")
        return f"({', '.join(found)}{',' if found else ''})"


def _constant(invariant: Invariant) -> str:
    return invariant.id.replace("-", "_").upper()


def _variables_class(invariant: Invariant) -> str:
    return "".join(word.capitalize() for word in invariant.id.split("-")) + "Variables"


def invariants_document(
    invariants: Mapping[str, Invariant], machines: Mapping[str, Machine], sources: Mapping[str, bytes]
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


def _watched_section(machines: Sequence[Machine]) -> Iterator[str]:
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


def _section(invariant: Invariant) -> Iterator[str]:
    yield f"## {invariant.id}"
    yield ""
    yield invariant.about
    yield ""
    yield f"- Shape: {invariant.shape.replace('_', ' ')}, over the stream `{invariant.stream.name}`"
    yield f"- A finding is about: {', '.join(f'`{name}`' for name in invariant.group)}"
    yield f"- One evaluation: {invariant.evaluated}"
    yield f"- A finding says: {invariant.says}"
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
        for step in invariant.steps:
            for check in step.checks:
                yield from _verdict_lines(check.otherwise, f"- On `{step.event}`: ")
        yield ""


def _verdict_lines(entries: tuple[Otherwise, ...], start: str) -> Iterator[str]:
    for entry in entries:
        when = (
            f"if {to_english(entry.condition, RULES_PAGE)}"
            if entry.condition is not None
            else "in all other cases"
        )
        note = f" ({entry.divergence})" if entry.divergence else ""
        yield f"{start}**{entry.verdict}** {when}{note}"


def _step_cells(step: FoldStep) -> tuple[str, str, str, str]:
    condition = to_english(step.condition, RULES_PAGE) if step.condition is not None else ""
    checks = "; and: ".join(to_english(check.holds, RULES_PAGE) for check in step.checks)
    then = "; ".join(f"`{name}` becomes {to_english(node, RULES_PAGE)}" for name, node in step.assign.items())
    return f"`{step.event}`", condition, checks, then


def _stream_section(stream: EventStream) -> Iterator[str]:
    yield f"## {stream.name}"
    yield ""
    yield stream.about
    yield ""
    yield f"Order: {stream.order}"
    yield ""
    for event in stream.events.values():
        yield f"### {stream.name}: {event.name}"
        yield ""
        yield from table(
            ("field", "type", "from"),
            ((f"`{name}`", str(kind), event.origins[name]) for name, kind in event.fields.items()),
        )
