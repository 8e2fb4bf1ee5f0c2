"""The order in which Java writes the keys of a HashMap, so that our bytes are equal to Java's.

Source: java.util.HashMap (OpenJDK 17): table index = (h ^ h >>> 16) & (capacity - 1), where h is the
key's String.hashCode; ties stay in the order of insertion; the table doubles when it is more than
three quarters full.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def hash_ordered(fields: Mapping[str, T], capacity: int) -> dict[str, T]:
    """The same fields in the order of a Java HashMap of this initial capacity (a power of two)."""
    while len(fields) > capacity * 3 // 4:
        capacity *= 2
    return dict(sorted(fields.items(), key=lambda item: _bucket(item[0], capacity)))


def _bucket(key: str, capacity: int) -> int:
    value = java_hash(key)
    return (value ^ value >> 16) & (capacity - 1)
