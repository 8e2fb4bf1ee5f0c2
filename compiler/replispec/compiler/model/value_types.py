"""Types of the guard language: integers, texts, truth values, bytes, messages, enums, lists and sets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from replispec.compiler.model.message import Field, Message, Model, Place, SpecificationError

INTEGERS = ("int32", "int64")
_SCALARS = (*INTEGERS, "bool", "string", "bytes")
_TYPE = re.compile(r"(?:(?P<shape>list|set)(?: of)? )?(?P<name>[A-Za-z][A-Za-z0-9_]*)(?P<optional> or none)?")
_MAP = re.compile(r"map(?: of)? (?P<key>int32|int64|string) (?P<value>[A-Za-z][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Type:
    """One type; `name` is a message's or enum's, `item` that of a list's or set's elements, or of a map's
    values, whose keys are of the type `key`.

    `kind` is int32, int64, bool, string, bytes, message, enum, list, set, map, none (the literal) or
    unknown (the literal). An optional value may be none.
    """

    kind: str
    name: str = ""
    item: Type | None = None
    optional: bool = False
    key: Type | None = None

    def __str__(self) -> str:
        if self.key is not None:
            return f"map {self.key} {self.item}" + " or none" * self.optional
        text = f"{self.kind} {self.item}" if self.item is not None else self.name or self.kind
        return text + " or none" * self.optional

    @property
    def is_integer(self) -> bool:
        """True for both integer types."""
        return self.kind in INTEGERS

    def required(self) -> Type:
        """This type without none."""
        return replace(self, optional=False)


INT32, INT64, BOOL, STRING, NONE = (Type(kind) for kind in ("int32", "int64", "bool", "string", "none"))
UNKNOWN_TYPE = Type("unknown")


def parse_type(text: str, model: Model, place: Place) -> Type:
    """The type that a specification names: `int64`, `string or none`, `list HaEpochEntry`, `set of string`.

    Raises SpecificationError for a name that is neither a scalar nor a message or enum.
    """
    entries = _MAP.fullmatch(text)
    value = _named(entries["value"], model) if entries else None
    if entries and value:
        return Type("map", item=value, key=Type(entries["key"]))
    match = _TYPE.fullmatch(text)
    kind = _named(match["name"], model) if match else None
    if match is None or kind is None:
        raise SpecificationError(
            place,
            f"{text!r} is no type",
            f"use {', '.join(_SCALARS)}, a message or enum, list or set before one of them, or map KEY VALUE",
        )
    if match["shape"]:
        kind = Type(match["shape"], item=kind)
    return replace(kind, optional=bool(match["optional"]))


def _named(name: str, model: Model) -> Type | None:
    if name in _SCALARS:
        return Type(name)
    if name == "uint32":
        return INT64
    if name in model.messages:
        return Type("message", name)
    return Type("enum", name) if name in model.enums else None


def field_type(field: Field, message: Message, model: Model) -> Type | None:
    """The type of a message's field; None for maps, which the guard language does not know.

    A field of a remoting header or of a JSON object may always be absent, and so may one that depends on
    a condition or is nullable: who reads it must ask.
    """
    kind = _named(field.enum or field.type, model)
    if kind is None:
        return None
    if field.repeated:
        kind = Type("list", item=kind)
    may_lack = field.optional or field.nullable or field.when is not None
    return replace(kind, optional=may_lack or message.layout in ("HEADER_FIELDS", "JSON"))


def fields_of(message: Message, model: Model) -> dict[str, Type]:
    """The types of a message's fields, maps included."""
    found: dict[str, Type] = {}
    for field in message.fields:
        if field.map_key:
            is_message = field.map_value in model.messages
            value = Type("message", field.map_value) if is_message else Type(field.map_value)
            found[field.name] = Type("map", item=value, optional=True, key=Type(field.map_key))
            continue
        kind = field_type(field, message, model)
        if kind is not None:
            found[field.name] = kind
    return found


def accepts(wanted: Type, given: Type) -> bool:
    """True when a value of type `given` may stand where `wanted` is declared."""
    if given.kind == "unknown":
        return True
    if given.kind == "none":
        return wanted.optional
    if given.optional and not wanted.optional:
        return False
    if wanted.is_integer:
        return given.kind in ("enum", "int32") or given.kind == wanted.kind
    if wanted.kind == "enum":
        return given.is_integer or (given.kind, given.name) == (wanted.kind, wanted.name)
    if wanted.item is not None and given.item is not None:
        return (wanted.kind, wanted.key) == (given.kind, given.key) and accepts(wanted.item, given.item)
    return (wanted.kind, wanted.name) == (given.kind, given.name)


def comparable(left: Type, right: Type) -> bool:
    """True when == and != between the two types mean something."""
    for one, other in ((left, right), (right, left)):
        if one.kind == "none":
            return other.optional
        if one.kind == "unknown":
            return other.kind not in ("unknown", "none")
    numbers = all(kind.is_integer or kind.kind == "enum" for kind in (left, right))
    if numbers:
        return left.kind != "enum" or right.kind != "enum" or left.name == right.name
    if left.kind == right.kind == "set" and left.item is not None and right.item is not None:
        return comparable(left.item, right.item)
    return left.kind == right.kind and left.kind in ("bool", "string", "bytes")
