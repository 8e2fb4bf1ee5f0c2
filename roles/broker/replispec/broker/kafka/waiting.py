"""Requests that wait until something happens to a replica, or until they are late."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from replispec.broker.kafka.core.replica import ReplicaKey


class WaitingRequest(Protocol):
    """Is not waited for any more once it `is_over`."""

    is_over: bool

    @property
    def late_at_ms(self) -> int:
        """When whoever asked waits no longer."""
        ...


One = TypeVar("One", bound=WaitingRequest)


class WaitingRequests(Generic[One]):
    """Finds by replica who waits, and who is late."""

    def __init__(self) -> None:
        self._by_key: dict[ReplicaKey, dict[One, None]] = {}
        self._late: list[tuple[int, int, One]] = []
        self._number = 0

    def add(self, one: One, keys: Iterable[ReplicaKey]) -> None:
        """A request waits for any of these replicas."""
        for key in keys:
            self._by_key.setdefault(key, {})[one] = None
        self._number += 1
        heappush(self._late, (one.late_at_ms, self._number, one))

    def forget(self, one: One, key: ReplicaKey) -> None:
        """It waits for this replica no longer."""
        waiting = self._by_key.get(key, {})
        waiting.pop(one, None)
        if not waiting:
            self._by_key.pop(key, None)

    def due(self, touched: AbstractSet[ReplicaKey], now_ms: int) -> list[One]:
        """Those that wait for one of these replicas, and those that are late now, each once."""
        wanted: dict[One, None] = {}
        for key in sorted(touched & self._by_key.keys()):
            wanted |= self._by_key[key]
        while self._late and (self._late[0][0] <= now_ms or self._late[0][2].is_over):
            one = heappop(self._late)[2]
            if not one.is_over:
                wanted[one] = None
        return list(wanted)

    def all(self) -> list[One]:
        """All that wait for a replica."""
        return list({one: None for waiting in self._by_key.values() for one in waiting})

    def deadline_ms(self) -> int | None:
        """When somebody waits no longer."""
        while self._late and self._late[0][2].is_over:
            heappop(self._late)
        return self._late[0][0] if self._late else None
