"""Python codecs of numbers, lengths and counts that take as many bytes as they need."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.tree import PRIMITIVES, Names
from replispec.compiler.model.layout import bounds
from replispec.compiler.model.message import Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_ZIGZAG = Names(f"{PRIMITIVES}.zigzag")


def is_zigzag_number(field: Field) -> bool:
    """True for a number of variable length, which is not the length or count of something else."""
    return field.zigzag and bool(field.size)


def measured(message: Message) -> Field | None:
    """The number of variable length that says how long the message is, or None."""
    return next((field for field in message.fields if field.zigzag and field.measures), None)


def decode_number(field: Field, what: str) -> Iterator[str]:
    """Lines that read the number, and refuse what it must not be."""
    yield f"{field.name}, at = {_ZIGZAG.read_zigzag}(buffer, at, {field.size}, end, {what})"
    if field.measures:
        yield f"{_BINARY.need}(at, {field.name}, end, {what})"
        yield f"end = at + {field.name}"
    elif field.minimum is not None or field.maximum is not None:
        low, high = bounds(field)
        yield f"{_BINARY.check_range}({field.name}, {low}, {high}, at, {what})"


def decode_length(field: Field, name: str, what: str) -> str:
    """The line that reads the length or count before the field."""
    reader = _ZIGZAG.read_zigzag_nullable if field.nullable else _ZIGZAG.read_zigzag_length
    return f"{name}, at = {reader}(buffer, at, {field.prefix or field.count}, end, {what})"


def write(value: str, size: int, what: str) -> str:
    """What makes the bytes of a number."""
    return f"{_ZIGZAG.write_zigzag}({value}, {size}, {what})"
