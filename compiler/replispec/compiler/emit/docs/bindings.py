"""Markdown of bindings: what an event is on the wire, and where its fields come from."""

from __future__ import annotations

from replispec.compiler.language.text import to_text
from replispec.compiler.model.binding import Source
from replispec.compiler.model.machine import Event, Machine


def bound_kind(machine: Machine, event: Event) -> str:
    """What an event is that is bound to messages; empty for one that is not."""
    sources = [each for each in machine.bindings.sources if each.event == event.name]
    return "; or ".join(_source(each) for each in sources)


def _source(source: Source) -> str:
    text = _answer(source) if source.asked else f"`{source.header}` received"
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
