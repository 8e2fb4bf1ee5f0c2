"""The JSON form of a message whose first form is binary: one decoder for what is plain, one for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.keyed import BOUNDS, is_map
from replispec.compiler.emit.python.tree import ABC, PRIMITIVES, TYPING, Constant, FunctionDef, Names, own
from replispec.compiler.model.message import Field, Message

_JSONS = Names(f"{PRIMITIVES}.jsons")
_PLAIN = Names(f"{PRIMITIVES}.plain_json")
_TEXTS = Names(f"{PRIMITIVES}.texts")


def keys_constant(message: Message) -> Constant:
    """The class attribute with all keys of the message."""
    keys = ", ".join(f'"{key}"' for key in sorted({field.key for field in message.fields}))
    value = f"frozenset(({keys}{',' if keys else ''}))"
    return Constant("KEYS", value, f"{TYPING.ClassVar}[frozenset[str]]")


def second_json_members(message: Message) -> list[FunctionDef]:
    """The methods that read and write the JSON form."""
    plain = ", ".join([*(f"plain.{field.name}" for field in message.fields), "{}"])
    taken = [f"{field.name}={_take(message, field)}" for field in message.fields]
    taken.append(f"unknown={{}} if fields.keys() <= cls.KEYS else {_JSONS.unknown_keys}(fields, cls.KEYS)")
    return [
        FunctionDef(
            "decode_json",
            "cls, data: bytes | memoryview",
            str(TYPING.Self),
            [
                "try:",
                f"    plain = {_plain_name(message)}.one(data)",
                f"except {_PLAIN.NOT_PLAIN}:",
                "    return cls._decode_any_json(data)",
                # By position, in the order of the attributes: that costs less than by name.
                f"return cls({plain})",
            ],
            f"The {message.name} in its JSON form; unknown keys are kept. Raises RemoteProtocolError.",
            ["classmethod"],
        ),
        FunctionDef(
            "plain_json",
            f"cls, texts: {ABC.Sequence}[bytes]",
            f"list[{TYPING.Any}] | None",
            [f"return {_plain_name(message)}.each(texts)"],
            "What `decode_json` finds in each of the texts, when all are plain; None: not all may be.",
            ["classmethod"],
        ),
        FunctionDef(
            "_decode_any_json",
            "cls, data: bytes | memoryview",
            str(TYPING.Self),
            [
                f'fields = {_JSONS.take_object}({_JSONS.loads}(data), "{message.name}")',
                "get = fields.get",
                f"return cls({', '.join(taken)})",
            ],
            decorators=["classmethod"],
        ),
        FunctionDef(
            "encode_json",
            "self",
            "bytes",
            list(_encode_lines(message)),
            "The JSON form: compact, absent fields left out. Raises LocalProtocolError.",
        ),
    ]


def _encode_lines(message: Message) -> Iterator[str]:
    """Key by key in their order: a header is written for every answer, and a loop over pairs costs thrice."""
    first, *others = sorted(message.fields, key=lambda field: field.key)
    begun = "" if _may_be_absent(first) else f'"{first.key}": self.{first.name}'
    yield f"fields: dict[str, object] = {{{begun}}}"
    for field in others if begun else (first, *others):
        written = f'fields["{field.key}"] = self.{field.name}'
        if _may_be_absent(field):
            yield f"if self.{field.name} is not None:"
            yield f"    {written}"
        else:
            yield written
    yield "fields.update(self.unknown)"
    yield f"return {_JSONS.dumps}(fields)"


def _may_be_absent(field: Field) -> bool:
    return is_map(field) or (field.type == "string" and not field.name_in_json)


def _plain_name(message: Message) -> str:
    words = "".join("_" + c if c.isupper() else c for c in message.name).strip("_").upper()
    return f"_PLAIN_{words}"


def plain_reader(message: Message, named: Mapping[str, str]) -> Constant:
    """The module's reader of the plain form; `named` maps an enum to the name of its value 0."""
    fields = []
    for field in message.fields:
        if is_map(field):
            kind, default = str(_PLAIN.OPTIONAL_TEXTS), "None"
        elif field.name_in_json:
            kind, default = "str", f'"{named[field.enum]}"'
        elif field.type == "string":
            kind, default = str(_PLAIN.OPTIONAL_TEXT), "None"
        else:
            bounds = getattr(_TEXTS, BOUNDS[field.type])
            kind, default = f"{_PLAIN.integer_within}({bounds})", "0"
        fields.append(f'("{field.name}", "{field.key}", {kind}, {default})')
    return Constant(_plain_name(message), f'{_PLAIN.plain_reader}("{message.name}", {", ".join(fields)},)')


def _take(message: Message, field: Field) -> str:
    where, got = f'"{message.name}.{field.key}"', f'get("{field.key}")'
    if is_map(field):
        return f"{_JSONS.take_optional}({got}, lambda item: {_JSONS.take_ext_fields}(item, {where}))"
    if field.name_in_json:
        return f"{_JSONS.take_named}({got}, {own(field.enum)}, {where})"
    if field.type == "string":
        return f"{_JSONS.take_optional}({got}, lambda item: {_JSONS.take_string}(item, {where}))"
    bounds = getattr(_TEXTS, BOUNDS[field.type])
    return f'{_JSONS.take_integer}(get("{field.key}", 0), {bounds}, {where})'
