"""Python classes of messages with keys: header fields of remoting commands, and JSON bodies.

Both are declarations, one line a field; the runtime reads and writes by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replispec.compiler.emit.python.tree import PRIMITIVES, Constant, Names, own
from replispec.compiler.model.message import Field, Message

BOUNDS = {"int32": "INT32", "int64": "INT64", "uint32": "UINT32"}
# Named by their module, as a field may have the name of any of them.
_KEYED = Names(PRIMITIVES).keyed
_HEADERS = Names(f"{PRIMITIVES}.headers")
_JSON = Names(f"{PRIMITIVES}.json_messages")
_ORDERS = Names(f"{PRIMITIVES}.orders")
_KINDS = {"string": "TEXT", "bool": "FLAG", "double": "NUMBER", **BOUNDS}
_PYTHON = {"string": "str", "bool": "bool", "double": "float", **dict.fromkeys(BOUNDS, "int")}
_SPECIFIERS = {"string": "text", "bool": "flag", "double": "number"}


def is_map(field: Field) -> bool:
    """True for a field that is a map."""
    return field.type == "map"


def is_keyed(message: Message) -> bool:
    """True for a message whose fields have keys on the wire."""
    return message.layout in ("HEADER_FIELDS", "JSON")


def decorator(message: Message) -> str:
    """What makes a class of the declarations."""
    if message.layout == "JSON":
        keys = [field.key for field in message.fields]
        sorts = message.order == "ALPHABETICAL" and keys != sorted(keys)
        return f"{_JSON.json_message}({'alphabetical=True' if sorts else ''})"
    arguments = [str(code) for code in message.codes]
    if message.hash_capacity:
        arguments.append(f"hash_capacity={message.hash_capacity}")
        if message.binary_order == "DECLARED":
            arguments.append("binary_declared=True")
    return f"{_HEADERS.header}({', '.join(arguments)})"


def base(message: Message) -> str:
    """The class of the runtime that reads and writes."""
    if message.layout == "JSON":
        return str(_JSON.BareMessage if message.bare else _JSON.JsonMessage)
    return str(_HEADERS.Header)


def declarations(message: Message, comments: Sequence[str]) -> Iterator[Constant]:
    """One line a field; `comments` say what a declaration does not."""
    for field, comment in zip(message.fields, comments, strict=True):
        yield Constant(field.name, _specifier(message, field), f"{_type(field)} | None", comment=comment)


def _type(field: Field) -> str:
    if is_map(field):
        return f"dict[{_PYTHON[field.map_key]}, {_element_type(field.map_value)}]"
    element = _element_type(field.type)
    return f"list[{element}]" if field.repeated else element


def _element_type(kind: str) -> str:
    return _PYTHON.get(kind) or str(own(kind))


def _specifier(message: Message, field: Field) -> str:
    key = f'"{field.key}"'
    if is_map(field):
        element = _element(field.map_value)
        if field.map_key == "string":
            kind = "object_map_of" if field.object_keys else "map_of"
            return f"{_KEYED}.{kind}({element}, {key})"
        bare = ", bare=True" if field.unquoted_keys else ""
        return f"{_KEYED}.integer_map_of({element}, {key}{bare})"
    if field.repeated:
        rival = any(other.key == field.key and other is not field for other in message.fields)
        distinguished = f", holds_text={field.type == 'string'}" if rival else ""
        return f"{_KEYED}.list_of({_element(field.type)}, {key}{distinguished})"
    if field.type in _KINDS:
        return f"{_KEYED}.{_SPECIFIERS.get(field.type, field.type)}({key})"
    return f"{_KEYED}.message({own(field.type)}, {key})"


def _element(kind: str) -> str:
    return f"{_KEYED}.{_KINDS[kind]}" if kind in _KINDS else f"{_KEYED}.nested({own(kind)})"
