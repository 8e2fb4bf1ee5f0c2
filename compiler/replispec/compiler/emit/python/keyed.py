"""Python classes of messages with keys: header fields of remoting commands, and JSON bodies.

Both are declarations, one line a field; the runtime reads and writes by them. Headers that are read for
every message sent have their reading and writing written out as well, where the specification says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replispec.compiler.emit.python.tree import ABC, PRIMITIVES, TYPING, Constant, FunctionDef, Names, own
from replispec.compiler.model.message import Field, Message

BOUNDS = {"int32": "INT32", "int64": "INT64", "uint32": "UINT32"}
# Named by their module, as a field may have the name of any of them.
_KEYED = Names(PRIMITIVES).keyed
_HEADERS = Names(f"{PRIMITIVES}.headers")
_JSON = Names(f"{PRIMITIVES}.json_messages")
_JSONS = Names(f"{PRIMITIVES}.jsons")
_ORDERS = Names(f"{PRIMITIVES}.orders")
_TEXTS = Names(f"{PRIMITIVES}.texts")
_KINDS = {"string": "TEXT", "bool": "FLAG", **BOUNDS}
_PYTHON = {"string": "str", "bool": "bool", **dict.fromkeys(BOUNDS, "int")}
_SPECIFIERS = {"string": "text", "bool": "flag"}


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
            return f"{_KEYED}.map_of({element}, {key})"
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


# ---- headers that are written out ------------------------------------------------------------------


def written_out(message: Message) -> Iterator[FunctionDef]:
    """The methods of a header that is read or written for every message."""
    yield FunctionDef(
        "from_ext_fields",
        f"cls, ext_fields: {ABC.Mapping}[str, str | None]",
        str(TYPING.Self),
        list(_reading(message)),
        f"As Header's, written out: {message.hot}.",
        ["classmethod"],
    )
    yield FunctionDef(
        "to_ext_fields",
        "self, *, binary: bool = False",
        "dict[str, str | None]",
        list(_writing(message)),
        decorators=[],
    )


def _reading(message: Message) -> Iterator[str]:
    yield "get = ext_fields.get"
    # By position, in the order of the attributes: that costs less than by name.
    yield f"header = cls({', '.join(_from_text(message, field) for field in message.fields)})"
    yield "if not ext_fields.keys() <= cls.KEYS:"
    yield f"    header.unknown = {_JSONS.unknown_keys}(ext_fields, cls.KEYS)"
    yield "return header"


def _writing(message: Message) -> Iterator[str]:
    if message.binary_order == "DECLARED":
        # In JSON the order is known to the runtime, which is quicker than any code here.
        yield "if not binary:"
        yield f"    return {_HEADERS.Header}.to_ext_fields(self)"
    yield "fields: dict[str, str | None] = {}"
    for field in message.fields:
        yield f"if self.{field.name} is not None:"
        yield f'    fields["{field.key}"] = {_to_text(field)}'
    yield "fields.update(self.unknown)"
    yield "return fields"


def _from_text(message: Message, field: Field) -> str:
    if field.type == "string":
        return f'get("{field.key}")'
    if field.type == "bool":
        return f'{_TEXTS.optional_bool}(get("{field.key}"))'
    bounds = getattr(_TEXTS, BOUNDS[field.type])
    return f'{_TEXTS.optional_integer}(get("{field.key}"), {bounds}, "{message.name}.{field.key}")'


def _to_text(field: Field) -> str:
    if field.type == "string":
        return f"self.{field.name}"
    return f"{_TEXTS.bool_text}(self.{field.name})" if field.type == "bool" else f"str(self.{field.name})"
