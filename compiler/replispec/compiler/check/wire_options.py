"""Options of a field that contradict each other, or say nothing where they stand."""

from __future__ import annotations

from dataclasses import replace

from replispec.compiler.model.layout import TYPE_BYTES, FixedRun, bounds, steps
from replispec.compiler.model.message import AFTER, BODY, Field, Message, Model, SpecificationError

_MEASURES = ("whole", "after")
_HOLDS = {
    "NUMBERS": ("string",),
    "MESSAGE_IDS": ("string",),
    "PROPERTIES": ("string", "bytes"),
    "ADDRESS": ("bytes",),
}
_PLACED = ("size", "prefix", "length", "count", "measures", "wider", "checksum", "tells")
"""What says where bytes are: nothing in a header or a text, and in JSON only of a second binary form."""


def check_wire_options(_model: Model, message: Message) -> None:
    """Raises SpecificationError for the first field of which an option cannot be meant."""
    is_binary = "BINARY" in (message.layout, message.also)
    for field in message.fields:
        _check_key(message, field)
        _check_bounds(message, field, is_binary=is_binary)
        _check_content(message, field)
        _check_of_json(message, field)
        _check_zigzag(message, field)
        _check_sum_after(message, field)
        if not is_binary and message.layout in ("HEADER_FIELDS", "JSON"):
            _check_unplaced(message, field)
        if field.measures and field.measures not in _MEASURES:
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name} measures {field.measures!r}",
                f"write {' or '.join(_MEASURES)}",
            )
    measuring = [field for field in message.fields if field.measures]
    if len(measuring) > 1:
        raise SpecificationError(
            measuring[1].place, f"two fields of {message.name} measure the frame", "keep one of them"
        )
    for field in message.fields[:-1]:
        if field.length == "rest":
            raise SpecificationError(
                field.place, f"{message.name}.{field.name} is the rest, and others follow", "put it last"
            )


def _check_key(message: Message, field: Field) -> None:
    if message.layout in ("HEADER_FIELDS", "JSON") and (not field.key or field.key != field.key.strip()):
        raise SpecificationError(
            field.place, f"{message.name}.{field.name} has the key {field.key!r}", "write it without blanks"
        )


def _check_content(message: Message, field: Field) -> None:
    """What a field is said to hold beside names must be something that its type can hold."""
    where = f"{message.name}.{field.name}"
    if field.words and (field.type != "string" or field.holds):
        raise SpecificationError(field.place, f"{where}: only a text has words", "drop word, or drop holds")
    if field.holds and field.type not in _HOLDS.get(field.holds, ()):
        fitting = ", ".join(name for name, types in _HOLDS.items() if field.type in types)
        raise SpecificationError(
            field.place,
            f"{where}: {field.type} cannot hold {field.holds!r}",
            f"write {fitting}" if fitting else "drop holds",
        )


def _check_of_json(message: Message, field: Field) -> None:
    """What JSON alone has: numbers with a fraction, and maps with objects for keys."""
    where = f"{message.name}.{field.name}"
    if "double" in (field.type, field.map_value) and message.layout != "JSON":
        raise SpecificationError(field.place, f"{where}: a double stands in JSON alone", "write an integer")
    if field.object_keys and (message.layout != "JSON" or field.map_key != "string"):
        raise SpecificationError(
            field.place, f"{where}: object_keys are those of a JSON map", "write map<string, ...>"
        )


def _check_zigzag(message: Message, field: Field) -> None:
    """A number of variable length has a sign, fits 4 or 8 bytes, and decides nothing before it is read."""
    if not field.zigzag:
        return
    where = f"{message.name}.{field.name}"
    sizes = [each for each in (field.size, field.prefix, field.count) if each]
    is_number = field.type in ("int32", "int64") and not field.repeated
    if bool(field.size) != is_number or sizes not in ([4], [8]):
        raise SpecificationError(
            field.place,
            f"{where}: it stands for a number, a length or a count of 4 or 8 bytes",
            "give an int32 or int64 its size, other fields prefix or count alone",
        )
    if field.equals is not None or field.tells or field.wider is not None or field.when is not None:
        raise SpecificationError(
            field.place,
            f"{where}: a number of variable length is always there",
            "drop equals, tells, wider, when",
        )
    is_first = message.fields[0] is field
    if field.measures and (
        field.measures != AFTER or not is_first or message.streams or field.maximum is not None
    ):
        raise SpecificationError(
            field.place,
            f"{where}: such a number measures what comes after it in a message that is no frame",
            "put it first, and write measures: after without bounds",
        )


def _check_sum_after(message: Message, field: Field) -> None:
    """What is summed up begins where the field ends: at a place that is always the same."""
    if field.checksum is None or field.checksum.over != AFTER:
        return
    found = steps(message)[0] if message.layout == "BINARY" else None
    if (
        not isinstance(found, FixedRun)
        or field not in found.fields
        or (field.type, field.size) != ("uint32", 4)
    ):
        raise SpecificationError(
            field.place,
            f"{message.name}.{field.name} sums up what comes after it, but has no place of its own",
            "make it a uint32 of 4 bytes before everything of variable size",
        )


def _check_unplaced(message: Message, field: Field) -> None:
    is_of_body = bool(message.bodies) and field.checksum is not None and field.checksum.over == BODY
    for name in _PLACED:
        if getattr(field, name) and not (name == "checksum" and is_of_body):
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name}: {name} says nothing in a {message.layout}",
                f"drop {name}",
            )


def _check_bounds(message: Message, field: Field, *, is_binary: bool) -> None:
    where = f"{message.name}.{field.name}"
    low, high = field.minimum, field.maximum
    if low is not None and high is not None and low > high:
        raise SpecificationError(field.place, f"{where} is at least {low} and at most {high}", "swap them")
    if field.equals is not None and not (
        (low is None or low <= field.equals) and (high is None or field.equals <= high)
    ):
        raise SpecificationError(field.place, f"{where} is {field.equals}, outside its bounds", "drop them")
    is_number = field.type in TYPE_BYTES and field.type != "bool"
    if is_binary and is_number and field.size and not field.repeated:
        least, most = bounds(replace(field, minimum=None, maximum=None))
        for value in (low, high, field.equals):
            if value is not None and not least <= value <= most:
                raise SpecificationError(
                    field.place, f"{where}: {value} does not fit {field.size} bytes", "give it more bytes"
                )
    if field.tells and is_binary and field.equals is None and low is None and high is None:
        raise SpecificationError(
            field.place, f"{where} tells frames apart, but has no bounds", "give equals, minimum or maximum"
        )
