"""How a BINARY message lies in its bytes: runs of fixed fields, variable parts, derived numbers.

One pass over the fields turns them into steps that the Python emitter, the stream emitter and the
documents read alike, and refuses what does not add up.
"""

from __future__ import annotations

from dataclasses import dataclass

from replispec.compiler.model.message import AFTER, Field, Message, SpecificationError

TYPE_BYTES = {"int32": 4, "uint32": 4, "int64": 8, "bool": 2}
_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True)
class FixedRun:
    """Consecutive fields of fixed size, read by one struct format (without the byte order)."""

    fields: tuple[Field, ...]
    format: str
    size: int


@dataclass(frozen=True, slots=True)
class VariablePart:
    """A field whose size is known only from the bytes before it."""

    field: Field


Step = FixedRun | VariablePart


def steps(message: Message) -> list[Step]:
    """The message's fields as steps in wire order. Raises SpecificationError for a bad size."""
    found: list[Step] = []
    run: list[Field] = []
    for field in wire_fields(message):
        if is_fixed(field):
            run.append(field)
            continue
        if run:
            found.append(_run(run))
            run = []
        found.append(VariablePart(field))
    if run:
        found.append(_run(run))
    return found


def wire_fields(message: Message) -> tuple[Field, ...]:
    """The fields that the binary form has."""
    return tuple(field for field in message.fields if not field.json_only)


def is_fixed(field: Field) -> bool:
    """True when the field's size does not depend on other bytes."""
    always = field.when is None and not (field.optional and field.type != "bytes")
    return field.size > 0 and field.wider is None and not field.repeated and not field.zigzag and always


def is_number_list(field: Field) -> bool:
    """True for a counted list of numbers, each of `size` bytes."""
    return field.repeated and field.type in ("int32", "uint32", "int64")


def is_text_list(field: Field) -> bool:
    """True for a counted list of texts, each after its length."""
    return field.repeated and field.type == "string" and field.count > 0


def is_inner(field: Field) -> bool:
    """True for a message that lies within another one, and ends where it ends."""
    return field.is_message and not field.repeated


def is_last_number(field: Field) -> bool:
    """True for a number at the end of a message that older peers leave out."""
    return field.optional and field.size > 0 and field.type != "bytes"


def summed_after(message: Message) -> Field | None:
    """The field with the checksum of all bytes after it, or None."""
    return next((field for field in message.fields if field.checksum and field.checksum.over == AFTER), None)


def end_in_fixed(message: Message, field: Field) -> int:
    """Where a field of the part before the variable one ends, in bytes from the start of the message."""
    run = steps(message)[0]
    assert isinstance(run, FixedRun)
    place = run.fields.index(field)
    return sum(each.size for each in run.fields[: place + 1])


def fixed_size(message: Message) -> int:
    """Bytes before the first variable part; the whole size when there is none."""
    found = steps(message)
    return found[0].size if found and isinstance(found[0], FixedRun) else 0


def is_constant(field: Field) -> bool:
    """True for a field that always has one value."""
    return field.equals is not None


def derived_fields(message: Message) -> dict[str, str]:
    """Names of fields that follow from others -> what each is ("length:x", "count:x", "after", "whole")."""
    derived: dict[str, str] = {}
    for field in message.fields:
        if field.length and field.length != "rest":
            derived[field.length] = f"length:{field.name}"
        if field.measures:
            derived[field.name] = field.measures
        if field.counts:
            derived[field.name] = f"count:{field.counts}"
    return derived


def bounds(field: Field) -> tuple[int, int]:
    """Smallest and largest value that the field's bytes and its own limits allow."""
    bits = 8 * field.size
    low, high = (0, (1 << bits) - 1) if field.type == "uint32" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return (low if field.minimum is None else field.minimum, high if field.maximum is None else field.maximum)


def _run(fields: list[Field]) -> FixedRun:
    return FixedRun(tuple(fields), "".join(map(format_of, fields)), sum(field.size for field in fields))


def format_of(field: Field) -> str:
    """The struct format of one fixed field; numbers of three bytes are read as bytes."""
    if field.type == "bytes" or field.size not in _SIGNED:
        return f"{field.size}s"
    return (_UNSIGNED if field.type == "uint32" else _SIGNED)[field.size]


def check_layout(message: Message) -> None:
    """Raises SpecificationError when sizes, totals or references of a BINARY message do not hold."""
    seen: set[str] = set()
    for field in wire_fields(message):
        _check_size(message, field)
        _check_references(message, field, seen)
        _check_absence(message, field, seen)
        seen.add(field.name)
    if message.fixed and message.fixed != fixed_size(message):
        raise SpecificationError(
            message.place,
            f"{message.name}: fixed is {message.fixed}, but the fields before the variable part take"
            f" {fixed_size(message)} bytes",
            "correct the sizes or the total",
        )


def _check_size(message: Message, field: Field) -> None:
    where = f"{message.name}.{field.name}"
    widest = 4 if field.is_enum else TYPE_BYTES.get(field.type)
    if field.repeated and not (field.is_message or is_number_list(field) or is_text_list(field)):
        raise SpecificationError(
            field.place, f"{where}: lists of {field.type} do not exist", "make it a list of messages"
        )
    if is_text_list(field) and not field.prefix:
        raise SpecificationError(
            field.place,
            f"{where}: nothing tells where a text ends",
            "give the bytes of its length, as prefix: 4",
        )
    if is_text_list(field):
        return
    if is_inner(field):
        _check_inner(field, where)
        return
    if is_number_list(field) and not field.count:
        raise SpecificationError(
            field.place, f"{where}: no count tells how many numbers there are", "give its bytes, as count: 4"
        )
    if widest is not None:
        if field.size == 0:
            raise SpecificationError(field.place, f"{where} has no size", "give its bytes, as size: 4")
        if field.size > widest:
            raise SpecificationError(
                field.place,
                f"{where}: {field.size} bytes do not fit {field.type}",
                "take a wider type or fewer bytes",
            )
        if field.size not in (1, 2, 3, 4, 8):
            raise SpecificationError(
                field.place, f"{where}: numbers of {field.size} bytes do not exist", "use 1, 2, 3, 4 or 8"
            )
        return
    ways = [bool(way) for way in (field.size, field.prefix, field.length, field.count, field.until)]
    if sum(ways) != 1:
        raise SpecificationError(
            field.place,
            f"{where}: nothing, or more than one thing, tells where it ends",
            "give one of size, prefix, length, count, until",
        )


def _check_inner(field: Field, where: str) -> None:
    if field.size or field.prefix or field.length or field.count or field.nullable:
        raise SpecificationError(
            field.place,
            f"{where}: a message ends where it ends",
            "drop size, prefix, length, count and nullable",
        )


def _check_absence(message: Message, field: Field, seen: set[str]) -> None:
    """Refuse a condition that cannot be decided, and a "none" that the bytes cannot say."""
    where = f"{message.name}.{field.name}"
    if field.nullable and max(field.prefix, field.count) < 2:
        raise SpecificationError(
            field.place, f"{where}: no length or count can be -1", "give prefix or count of 2 or 4 bytes"
        )
    if field.distinct and not field.repeated:
        raise SpecificationError(field.place, f"{where} is no list", "drop distinct")
    if field.when is None:
        return
    tested = message.field_named(field.when.field)
    if message.given_named(field.when.field) is None:
        if tested is None or tested.name not in seen:
            raise SpecificationError(
                field.place,
                f"{where} refers to {field.when.field!r}, which no earlier field has and nobody gives",
                "name a field that stands before it, or a given number",
            )
        is_number = tested.type in TYPE_BYTES or tested.is_enum
        if not is_fixed(tested) or not is_number or tested.name in derived_fields(message):
            raise SpecificationError(
                field.place, f"{where}: {tested.name} decides nothing", "test a number that is always there"
            )
    if field.when.minimum is None and field.when.maximum is None:
        raise SpecificationError(
            field.place, f"{where}: when without a bound always holds", "give minimum, maximum or both"
        )


def _check_references(message: Message, field: Field, seen: set[str]) -> None:
    for name in (field.length if field.length != "rest" else "", field.wider.field if field.wider else ""):
        if name and name not in seen:
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name} refers to {name!r}, which no earlier field has",
                "name a field that stands before it",
            )
    over = field.checksum.over if field.checksum else ""
    for name in ("" if over == AFTER else over, field.counts):
        if name and message.field_named(name) is None:
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name} refers to {name!r}, which does not exist",
                "name a field of the message",
            )
