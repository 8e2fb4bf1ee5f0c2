"""The order in which Java writes the keys of a HashMap, so that our bytes are equal to Java's.

Source: java.util.HashMap (OpenJDK 17): table index = (h ^ h >>> 16) & (capacity - 1), where h is the
key's String.hashCode; ties stay in the order of insertion; the table doubles when it is more than
three quarters full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """String.hashCode of `text`, as an unsigned 32-bit number (over UTF-16 code units)."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value


def hash_ordered(fields: Mapping[str, T], capacity: int, count: int | None = None) -> dict[str, T]:
    """The same fields in the order of a Java HashMap of this initial capacity (a power of two).

    `count` says how many fields the map holds where it is not all of these.
    """
    *_, (_, grown) = hash_capacities(capacity, len(fields) if count is None else count)
    return dict(sorted(fields.items(), key=lambda item: _bucket(item[0], grown)))


def hash_capacities(capacity: int, count: int) -> Iterator[tuple[int, int]]:
    """How many fields a map holds before it grows, and its capacity then, until it holds `count`."""
    while True:
        most = capacity * 3 // 4
        yield most, capacity
        if count <= most:
            return
        capacity *= 2


def _bucket(key: str, capacity: int) -> int:
    value = java_hash(key)
    return (value ^ value >> 16) & (capacity - 1)
