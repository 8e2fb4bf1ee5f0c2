"""How Java's tools print values.

Source: java.util.Formatter; apache/rocketmq rocketmq-all-5.4.0, UtilAll.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, TypeVar

from replispec.runtime.primitives.orders import hash_capacities, hash_ordered, java_hash

T = TypeVar("T")
_CAPACITY: Final = 16


def said(value: object) -> str:
    """What %s and %d make of a value that may be absent."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def in_table(values: Mapping[str, T]) -> dict[str, T]:
    """The order in which a HashMap gives its entries."""
    return hash_ordered(values, _CAPACITY)


def in_set(values: Iterable[str]) -> list[str]:
    """The order in which a HashSet gives its elements."""
    return list(in_table(dict.fromkeys(values)))


def in_order_of_hashes(values: Mapping[tuple[str, str, int], T]) -> list[tuple[tuple[str, str, int], T]]:
    """The order in which a HashMap gives values by message queue: topic, broker set, number."""
    buckets = {key: _spread(_hash_of(key)) & (_capacity(len(values)) - 1) for key in values}
    return sorted(values.items(), key=lambda item: buckets[item[0]])


def _hash_of(queue: tuple[str, str, int]) -> int:
    topic, broker, number = queue
    found = 1
    for part in (java_hash(broker), number, java_hash(topic)):
        found = (found * 31 + part) & 0xFFFFFFFF
    return found


def _spread(value: int) -> int:
    return value ^ value >> 16


def _capacity(count: int) -> int:
    return list(hash_capacities(_CAPACITY, count))[-1][1]


def moment(at_ms: int | None) -> str:
    """A time of this machine's zone, to the millisecond."""
    at_ms = at_ms or 0
    return f"{datetime.fromtimestamp(at_ms // 1_000):%Y-%m-%d %H:%M:%S},{at_ms % 1_000:03d}"  # noqa: DTZ006


def kilobytes(size: int | None) -> str:
    """Bytes as %.2f of kilobytes."""
    return f"{(size or 0) / 1024:.2f}"
