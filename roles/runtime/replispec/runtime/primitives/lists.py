"""What the functions of the specification's expressions do with lists and bytes; of what was not seen nothing
is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from replispec.runtime.primitives.unknown import UNKNOWN

T = TypeVar("T")


@overload
def part_of(whole: bytes, first: int, end: int) -> bytes: ...
@overload
def part_of(whole: Sequence[T], first: int, end: int) -> Sequence[T]: ...
def part_of(whole: Any, first: int, end: int) -> Any:
    """What stands from place `first`, counted from 0, to before `end`, as far as there is any."""
    return UNKNOWN if whole is UNKNOWN else whole[max(first, 0) : max(end, 0)]


@overload
def joined(one: bytes, other: bytes) -> bytes: ...
@overload
def joined(one: Sequence[T], other: Sequence[T]) -> Sequence[T]: ...
def joined(one: Any, other: Any) -> Any:
    """One after the other."""
    if one is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    return one + other if isinstance(one, bytes) else (*one, *other)


def item_of(whole: Sequence[T], place: int) -> T | None:
    """What stands at a place, counted from 0; None where nothing does."""
    found: Any = UNKNOWN
    if whole is not UNKNOWN:
        found = whole[place] if 0 <= place < len(whole) else None
    known: T | None = found
    return known


def list_of(value: T) -> Sequence[T]:
    """The list of one value."""
    found: Any = UNKNOWN if value is UNKNOWN else (value,)
    known: Sequence[T] = found
    return known


def byte_of(number: int) -> bytes:
    """The last eight bits of a number as one byte."""
    known: Any = number
    found: bytes = UNKNOWN if known is UNKNOWN else bytes((number & 0xFF,))
    return found
