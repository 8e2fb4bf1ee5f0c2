"""What bindings write alike of messages that this side says: a call of the class with all values."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.binding_words import BindingWords
from replispec.compiler.emit.python.tree import own
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Each, Value
from replispec.compiler.model.message import Message, Model
from replispec.compiler.model.value_types import Type, fields_of


def message_text(
    message: Message, fields: Mapping[str, Value], model: Model, words: BindingWords, name: str = ""
) -> str:
    """The message with these fields, by the name of its class unless another one is given."""
    kinds = fields_of(message, model)
    values = [f"{field}={_value(value, kinds[field], model, words)}" for field, value in fields.items()]
    return f"{name or own(message.name)}({', '.join(values)})"


def _value(value: Value, kind: Type, model: Model, words: BindingWords) -> str:
    if isinstance(value, ex.Expression):
        return _said(value, kind, words)
    if isinstance(value, Each):
        assert kind.item is not None, "only a list has one message for each element"
        made = message_text(model.messages[kind.item.name], value.fields, model, words)
        return f"[{made} for each in sorted({words.python(value.elements)})]"
    return "{}" if kind.kind == "map" else message_text(model.messages[kind.name], value, model, words)


def _said(node: ex.Expression, wanted: Type, words: BindingWords) -> str:
    """A value as a message has it: a set ascending, a list as it is, a map by ascending key.

    A map that the role makes for whoever asks keeps its order: it follows what was asked.
    """
    text, given = words.python(node), words.type_of(node)
    if wanted.kind not in ("list", "map"):
        return text
    if given is not None:
        shape = given.kind
    else:
        is_plain = wanted.item is not None and wanted.item.kind != "message"
        shape = "set" if wanted.kind == "list" and is_plain else wanted.kind
    ordered = text if isinstance(node, ex.LocalCall) else f"sorted({text}.items())"
    said = {"set": f"sorted({text})", "list": f"list({text})", "map": f"dict({ordered})"}[shape]
    return f"None if {text} is None else {said}" if given is not None and given.optional else said
