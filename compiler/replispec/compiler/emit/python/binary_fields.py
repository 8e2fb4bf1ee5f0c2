"""What both directions of a BINARY codec ask of a field: names, attributes, conditions."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.tree import (
    DATACLASSES,
    PRIMITIVES,
    Constant,
    Names,
    own,
)
from replispec.compiler.model.layout import (
    FixedRun,
    derived_fields,
    end_in_fixed,
    is_constant,
    is_inner,
    is_number_list,
    is_text_list,
    steps,
)
from replispec.compiler.model.message import AFTER, Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_CHECKSUMS = Names(f"{PRIMITIVES}.checksums")
_JSONS = Names(f"{PRIMITIVES}.jsons")
_STRUCT = Names("struct")


def constant_name(message: Message, number: int) -> str:
    """Name of the module's struct for the message's run of this number."""
    words = "".join("_" + c if c.isupper() else c for c in message.name).strip("_").upper()
    return f"_{words}_{number}"


def structs(message: Message) -> list[Constant]:
    """The module's structs of the message's fixed runs."""
    return [
        Constant(constant_name(message, number), f'{_STRUCT.Struct}(">{step.format}")')
        for number, step in enumerate(steps(message))
        if isinstance(step, FixedRun) and not is_lone_number(message, step)
    ]


def is_lone_number(message: Message, run: FixedRun) -> bool:
    """True for a run that needs no struct: one number of a message that spells nothing out."""
    field = run.fields[0]
    if message.hot or message.head or len(run.fields) > 1:
        return False
    return field.type != "bytes" and field.size != 3


def attribute_type(field: Field) -> str:
    """The Python type of the attribute that holds the field in a BINARY message."""
    if field.type == "map":
        return "dict[str, str | None] | None" if field.optional else "dict[str, str | None]"
    if field.repeated:
        elements = f"list[{_element_type(field)}]"
        return f"{elements} | None" if may_be_none(field) else elements
    base = "str" if is_named(field) else {"string": "str", "bytes": "bytes", "bool": "bool"}.get(field.type)
    if base is None:
        base = str(own(field.type)) if field.is_message else "int"
    return f"{base} | None" if (field.optional or field.checksum or may_be_none(field)) else base


def _element_type(field: Field) -> str:
    if is_text_list(field):
        return "str"
    return "int" if is_number_list(field) else str(own(field.type))


def may_be_none(field: Field) -> bool:
    """True when the message may lack the field, or say that there is none."""
    return field.when is not None or field.nullable


def attribute_default(field: Field, named: Mapping[str, str]) -> str:
    """The default of that attribute; `named` maps an enum to the name of its value 0."""
    if field.optional or field.checksum or may_be_none(field):
        return "None"
    if field.type == "map":
        return f"{DATACLASSES.field}(default_factory=dict)"
    if field.repeated:
        return f"{DATACLASSES.field}(default_factory=list)"
    if is_inner(field):
        return f"{DATACLASSES.field}(default_factory={own(field.type)})"
    if is_named(field):
        return f'"{named[field.enum]}"'
    return {"string": '""', "bytes": 'b""', "bool": "False"}.get(field.type, "0")


def checksum_of(message: Message, field: Field, over: str, whole: str) -> str:
    """What computes a checksum: over the field `over`, or over what comes after it in the bytes `whole`."""
    assert field.checksum is not None
    function = _CHECKSUMS.crc32c if field.checksum.kind == "CRC_32C" else _BINARY.crc32
    if field.checksum.over == AFTER:
        over = f"{whole}[{end_in_fixed(message, field)}:]"
    return f"{function}({over}, {field.checksum.mask})"


def is_named(field: Field) -> bool:
    """True for a byte whose value the JSON form gives by name: the attribute holds the name."""
    return bool(field.enum) and not field.is_enum and field.name_in_json


def attributes(message: Message) -> list[Field]:
    """The fields that become attributes: neither constant nor derived."""
    derived = derived_fields(message)
    return [field for field in message.fields if field.name not in derived and not is_constant(field)]


def is_empty(message: Message) -> bool:
    """True for a message that is nothing but its code."""
    return not (message.fields or message.given or message.also)


def base(message: Message) -> str:
    """The class of the runtime that reads a whole buffer; none for a message with two encodings."""
    if message.also:
        return ""
    if is_empty(message):
        return str(_BINARY.EmptyMessage)
    given = [each.name for each in message.given]
    if given == ["version"]:
        return str(_BINARY.VersionedBinary)
    return "" if given else str(_BINARY.BinaryMessage)


def condition(field: Field, own: str = "") -> str:
    """The Python condition under which the field is there; `own` stands before a field of the message."""
    assert field.when is not None
    low, high = field.when.minimum, field.when.maximum
    value = f"{own}{field.when.field}"
    if low == high:
        return f"{value} == {low}"
    parts = ([] if low is None else [f"{low} <= "]) + [value] + ([] if high is None else [f" <= {high}"])
    return f"{value} >= {low}" if high is None else "".join(parts)


def identities(field: Field, value: str) -> str:
    """What tells the elements of a list apart: numbers by themselves, messages by their `identity`."""
    return (
        value
        if is_number_list(field) or is_text_list(field)
        else f"[element.identity for element in {value}]"
    )


def is_plain(field: Field) -> bool:
    """True for bytes, and for a text after its length, of which nothing more is said."""
    if field.nullable or field.optional or field.repeated or field.wider is not None or field.zigzag:
        return False
    if field.type == "string":
        return bool(field.prefix) and field.minimum is None and field.maximum is None
    return field.type == "bytes" and not field.prefix
