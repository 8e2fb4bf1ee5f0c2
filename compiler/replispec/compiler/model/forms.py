"""The frames of a byte stream: by which bytes a message is told from others, and how long it is.

Made once from a message's fields, and written by the Python emitter and the dissector's alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replispec.compiler.model.layout import bounds, is_constant, is_fixed, wire_fields
from replispec.compiler.model.message import Field, Message, Model, SpecificationError


@dataclass(frozen=True, slots=True)
class Test:
    """The big-endian integer of `size` bytes at byte `at` lies in [minimum, maximum]; one byte: unsigned."""

    at: int
    size: int
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Length:
    """The length field of a frame: `size` bytes at byte `at`, its value in [minimum, maximum]."""

    at: int
    size: int
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of frame: `fixed` bytes, and as many more as its length field says."""

    message: str
    tests: tuple[Test, ...]
    fixed: int
    length: Length | None


def stream_names(model: Model) -> list[str]:
    """The streams of the family in the order in which messages name them."""
    return list(dict.fromkeys(name for message in model.messages.values() for name in message.streams))


def stream_members(model: Model, name: str, *, opens: bool = False) -> list[Message]:
    """The messages that a stream carries, in the order in which they are tried: those of which the first
    frame of a connection is one, or all others."""
    members = (message for message in model.messages.values() if name in message.streams)
    return [message for message in members if message.opens == opens]


def form_of(message: Message) -> Form:
    """The message as a frame. Raises SpecificationError when its length field has no maximum."""
    tests: list[Test] = []
    at = 0
    form = Form(message.name, (), 0, None)
    measured = False
    for field in wire_fields(message):
        size = field.size if is_fixed(field) else field.prefix
        if field.tells:
            low, high = (field.equals, field.equals) if is_constant(field) else _test_bounds(field, size)
            tests.append(Test(at, size, low or 0, high or 0))
        length = None if measured else _length(message, field, at, size)
        if length is not None:
            measured = bool(field.measures)
            fixed = at + size if field.measures == "after" else 0
            form = replace(form, length=length, fixed=fixed)
        if not is_fixed(field):
            at += field.prefix
            break
        at += field.size
    return replace(form, tests=tuple(tests), fixed=form.fixed if measured else at)


def _test_bounds(field: Field, size: int) -> tuple[int, int]:
    if is_fixed(field):
        return bounds(field)
    return field.minimum or 0, (1 << 8 * size - 1) - 1 if field.maximum is None else field.maximum


def _length(message: Message, field: Field, at: int, size: int) -> Length | None:
    """What `field` says about the frame's length; None when it says nothing."""
    if field.prefix:
        low = field.minimum or 0
    elif field.measures or (
        any(other.length == field.name for other in message.fields)
        and message.fixed
        and not any(other.measures for other in message.fields)
    ):
        low = bounds(field)[0]
    else:
        return None
    if field.maximum is None:
        raise SpecificationError(
            field.place,
            f"{message.name}.{field.name} has no maximum",
            "bound it: readers make room for what it says",
        )
    return Length(at, size, low, field.maximum)
