"""Markdown of bindings: what an event is on the wire, and where its fields come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.docs.tables import table
from replispec.compiler.language.text import to_text
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Each, Payload, RecordForm, Remark, Source, Value
from replispec.compiler.model.machine import Event, MachineSpec


def bound_kind(machine: MachineSpec, event: Event) -> str:
    """What an event is that is bound to messages; empty for one that is not."""
    sources = [each for each in machine.bindings.sources if each.event == event.name]
    return "; or ".join(_source(each) for each in sources)


def _source(source: Source) -> str:
    text = _answer(source) if source.asked else f"`{source.header}` received"
    if source.releases is not None:
        text += f" of {source.releases}"
    if source.condition is not None:
        text += f", if `{to_text(source.condition)}`"
    if source.fields:
        taken = ", ".join(f"`{name}` = `{to_text(node)}`" for name, node in source.fields.items())
        text += f", with {taken}"
    return text


def _answer(source: Source) -> str:
    asked = " or ".join(f"`{each}`" for each in source.asked)
    codes = [f"`{each.member}`" for each in source.codes]
    codes += ["any other code"] * source.otherwise + ["no answer that can be read"] * source.unanswered
    return f"the answer to {asked}: {', '.join(codes)}"


def answers_section(machine: MachineSpec) -> Iterator[str]:
    """What each effect answers, notifies or notes; nothing for a machine whose effects say nothing."""
    if machine.answers:
        yield "## Answers"
        rows = (
            (name.replace("_", " "), f"`{code.partition('.')[2]}`", _said(machine.bindings.answers.get(name)))
            for name, code in machine.answers.items()
        )
        yield from table(("what an edge does", "code of the answer", "what it says"), rows)
    if machine.bindings.notices:
        yield "## Notices"
        said = ((name.replace("_", " "), _said(form)) for name, form in machine.bindings.notices.items())
        yield from table(("what an edge does", "what is told"), said)
        for form in machine.bindings.notices.values():
            if form.to is not None and form.instead is not None:
                yield f"Each of `{to_text(form.to)}` is told instead: {_said(form.instead)}."


def refusals_section(machine: MachineSpec) -> Iterator[str]:
    """What is answered to a request that is no event; nothing for a machine that answers nobody."""
    missing = machine.bindings.missing
    if missing is None:
        return
    yield "## Refused before it is an event"
    yield f"A request that lacks what it must have is answered `{missing.member}`."
    yield ""
    refused = [(source, each) for source in machine.bindings.sources for each in source.refusals]
    if refused:
        rows = (
            (
                f"`{source.event}`",
                f"`{to_text(each.condition)}`",
                f"`{each.code.member}`",
                f"remark {_remark(each.remark)}",
            )
            for source, each in refused
        )
        yield from table(("what it would be", "if", "code of the answer", "what it says"), rows)


def sends_section(machine: MachineSpec) -> Iterator[str]:
    """What this side says in each message that it sends, and what it shows; nothing where nothing says it."""
    if machine.bindings.sends:
        yield "## Messages sent"
        said = (
            (name.replace("_", " "), f"`{each.message}`", _payload(each))
            for name, each in machine.bindings.sends.items()
        )
        yield from table(("event or what an edge does", "message", "what it says"), said)
    if machine.bindings.views:
        yield "## Views"
        views = machine.bindings.views.values()
        shown = (
            (each.name.replace("_", " "), each.about, f"`{each.message}`: {_fields(each.fields)}")
            for each in views
        )
        yield from table(("view", "what it is", "what it says"), shown)


def _payload(payload: Payload) -> str:
    part = "the part of fixed size: " if payload.is_fixed else ""
    body = f"; body `{payload.body}`: {_fields(payload.body_fields)}" if payload.body else ""
    if payload.whole is not None:
        body = f"; body = `{to_text(payload.whole)}`"
    return f"{part}{_fields(payload.fields)}{body}"


def records_section(machine: MachineSpec) -> Iterator[str]:
    """The record of each event that is remembered."""
    log = machine.bindings.log
    if log is None:
        return
    yield "## Records"
    yield f"Each is a `{log.message}`; `{log.instance}` names the instance."
    yield ""
    rows = ((f"`{form.event}`", f"`{form.case}`", _held(form)) for form in machine.bindings.records.values())
    yield from table(("event", "case", "what holds its fields"), rows)


def _said(form: AnswerForm | None) -> str:
    if form is None:
        return ""
    parts = [f"`{form.header}`: {_fields(form.header_fields)}"] if form.header else []
    if form.whole is not None:
        parts.append(f"body{f' `{form.body}`' * bool(form.body)} = `{to_text(form.whole)}`")
    elif form.body:
        parts.append(f"body `{form.body}`: {_fields(form.body_fields)}")
    parts += [f"remark {_remark(form.remark)}"] if form.remark is not None else []
    parts += [f"to {each.releases}: {_said(each)}" for each in form.by_release.values()]
    if form.counts_as:
        releases = f" in {form.releases}" if form.releases is not None else ""
        parts.append(f"counts as *{form.counts_as.replace('_', ' ')}*{releases}")
    return "; ".join(parts)


def _fields(fields: Mapping[str, Value]) -> str:
    return ", ".join(f"`{name}` = {_value(value)}" for name, value in fields.items()) or "nothing"


def _value(value: Value) -> str:
    if isinstance(value, ex.Expression):
        return f"`{to_text(value)}`"
    if isinstance(value, Each):
        return f"for each of `{to_text(value.elements)}` ({_fields(value.fields)})"
    return f"({_fields(value)})"


def _remark(remark: Remark) -> str:
    return " or ".join(
        '"' + "".join(p if isinstance(p, str) else f"{{{to_text(p)}}}" for p in text.parts) + '"'
        for _, text in remark.choices
    )


def _held(form: RecordForm) -> str:
    parts = [f"`{name}` in `{target}`" for name, target in {**form.fields, **form.around}.items()]
    parts += [f"`{name}` is `{to_text(node)}` again" for name, node in form.recalled.items()]
    parts += [f"`{form.mark}` is {' or '.join(f'`{mark.name}`' for mark in form.marks)}"] * bool(form.mark)
    return ", ".join(parts)
