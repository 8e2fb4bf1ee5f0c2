"""What this side says of its own: one function for each message that it sends, and for each view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from replispec.compiler.emit.python.binding_words import BOUND, BindingWords, asked_once, parameters
from replispec.compiler.emit.python.bound_values import message_text
from replispec.compiler.emit.python.expressions import bare_words
from replispec.compiler.emit.python.tree import PRIMITIVES, FunctionDef, Names, Ref, own
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Payload, Value
from replispec.compiler.model.layout import FixedRun, steps
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Message, Model

_CRC32: Final = Names(f"{PRIMITIVES}.binary").crc32


def send_nodes(machine: MachineSpec, model: Model, words: BindingWords) -> Iterator[FunctionDef]:
    """The functions that make what is sent."""
    for payload in machine.bindings.sends.values():
        message = model.messages[payload.message]
        codes = words.codes(payload.message) if message.codes else []
        lines = list(
            _command(payload, message, model, words, codes[0])
            if codes
            else _frame(payload, message, model, words)
        )
        result = f"{BOUND.Call}[{own(message.name)}]" if codes else _class_of(payload, model)
        events = () if payload.name in machine.events else machine.effects()[payload.name]
        kinds = " | ".join(map(words.event_class, events))
        given = [f"variables: {words.variables}", f"event: {kinds}", "local: Local", f"rules: {words.rules}"]
        yield _function(payload.name, given, lines, result, _about(payload, machine), machine)


def view_nodes(machine: MachineSpec, model: Model, words: BindingWords) -> Iterator[FunctionDef]:
    """The functions that show an instance."""
    for view in machine.bindings.views.values():
        message = model.messages[view.message]
        lines = [f"return {message_text(message, view.fields, model, words)}"]
        instance = ["instance: str"] if machine.bindings.has_instances else []
        given = [*instance, f"variables: {words.variables}", "local: Local", f"rules: {words.rules}"]
        yield _function(view.name, given, lines, str(own(message.name)), view.about, machine)


def _class_of(payload: Payload, model: Model) -> str:
    """The class of the message that is made."""
    if not payload.is_fixed:
        return str(own(payload.message))
    module = model.messages[payload.message].module
    return str(Ref(f"replispec.wire.{model.family}.{module}", f"{payload.message}Fixed"))


def _about(payload: Payload, machine: MachineSpec) -> str:
    if payload.name in machine.events:
        part = ", without what follows its part of fixed size" * payload.is_fixed
        return f"What is sent as {payload.name}{part}."
    return f"What is sent to {payload.name.replace('_', ' ')}."


def _function(
    name: str, given: list[str], lines: list[str], result: str, about: str, machine: MachineSpec
) -> FunctionDef:
    """A function of what it reads: of the instance, the variables and what the role knows together, of the
    event and the rules where it reads them."""
    inside = asked_once(lines)
    used = bare_words("\n".join(inside))
    together = {"instance", "variables", *(["local"] if machine.bindings.local else [])}
    always = together if together & used else set()
    kept = [each for each in given if (word := each.partition(":")[0]) in used or word in always]
    return FunctionDef(name, parameters(kept, inside), result, inside, about)


def _command(
    payload: Payload, message: Message, model: Model, words: BindingWords, code: str
) -> Iterator[str]:
    header = message_text(message, payload.fields, model, words)
    if payload.whole is not None:
        body = words.python(payload.whole)
        yield from (f"header = {header}", f"return {BOUND.Call}({code}, header, {body})")
        return
    if not payload.body:
        yield from (f"header = {header}", f"return {BOUND.Call}({code}, header)")
        return
    body = f"body = {message_text(model.messages[payload.body], payload.body_fields, model, words)}"
    summed = message.body_checksum
    if summed is None or summed.checksum is None:
        yield from (f"header = {header}", body, f"return {BOUND.Call}({code}, header, body.encode())")
        return
    header = f"{header[:-1]}, {summed.name}={_CRC32}(data, {summed.checksum.mask}))"
    yield from (body, "data = body.encode()", f"header = {header}")
    yield f"return {BOUND.Call}({code}, header, data)"


def _frame(payload: Payload, message: Message, model: Model, words: BindingWords) -> Iterator[str]:
    fields: Mapping[str, Value] = payload.fields
    if payload.is_fixed:
        run = steps(message)[0]
        assert isinstance(run, FixedRun)
        fields = {
            field.name: payload.fields[field.name] if field.equals is None else ex.Literal(field.equals)
            for field in run.fields
        }
    yield f"return {message_text(message, fields, model, words, _class_of(payload, model))}"
