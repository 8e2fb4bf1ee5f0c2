"""What generated bindings of machines to messages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

from replispec.runtime.primitives.errors import RemoteProtocolError

T = TypeVar("T")


def needed(value: T | None, name: str) -> T:
    """The value of a field of an answer. Raises RemoteProtocolError when the answer left it out."""
    if value is None:
        raise RemoteProtocolError(f"{name} is missing")
    return value


@overload
def as_set(items: Sequence[T]) -> frozenset[T]: ...


@overload
def as_set(items: Sequence[T] | None) -> frozenset[T] | None: ...


def as_set(items: Sequence[T] | None) -> frozenset[T] | None:
    """The elements of a list; None for no list."""
    return None if items is None else frozenset(items)
