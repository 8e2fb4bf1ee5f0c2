"""Pulls that wait for a message, so that one that waits costs the others nothing.

They are found by their queue and position, by their deadline and by their connection; nothing here walks
through all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq.machines import broker_pulls as machine

HELD_MAX: Final = 10_000
"""Requests that wait for a message; further ones are answered at once that there is none."""
# What was answered long ago is thrown out of a heap once it is most of it.
_STALE_MIN: Final = 64

QueueKey = tuple[str, int]
"""A topic and the number of a queue."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """One pull; `serial` tells it from all others, and those that came later have greater ones."""

    serial: int
    request: Request
    pulled: machine.Pulled
    until_ms: int

    @property
    def key(self) -> QueueKey:
        """The queue that it is for."""
        return self.pulled.topic, self.pulled.queue_id


@dataclass(slots=True)
class _Queue:
    """Those of one queue, by position; `living` of them wait still."""

    by_position: list[tuple[int, int]]
    living: int = 0


class HeldPulls:
    """All of them."""

    def __init__(self) -> None:
        self._last = 0
        self._held: dict[int, HeldPull] = {}
        self._queues: dict[QueueKey, _Queue] = {}
        self._by_time: list[tuple[int, int]] = []
        self._by_connection: dict[int, set[int]] = {}
        self._doubtful: dict[int, HeldPull] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def is_full(self) -> bool:
        """Whether no more may wait."""
        return len(self._held) >= HELD_MAX

    def add(self, request: Request, pulled: machine.Pulled, until_ms: int, *, is_doubtful: bool) -> None:
        """Let a pull wait; `is_doubtful` when it waits for a controller's word."""
        request.is_held = True
        self._last += 1
        held = HeldPull(self._last, request, pulled, until_ms)
        self._held[held.serial] = held
        queue = self._queues.setdefault(held.key, _Queue([]))
        queue.living += 1
        heapq.heappush(queue.by_position, (pulled.position, held.serial))
        heapq.heappush(self._by_time, (until_ms, held.serial))
        self._by_connection.setdefault(request.connection, set()).add(held.serial)
        if is_doubtful:
            self._doubtful[held.serial] = held

    def remove(self, held: HeldPull) -> None:
        """One waits no more."""
        if self._held.pop(held.serial, None) is None:
            return
        self._doubtful.pop(held.serial, None)
        serials = self._by_connection[held.request.connection]
        serials.discard(held.serial)
        if not serials:
            del self._by_connection[held.request.connection]
        queue = self._queues[held.key]
        queue.living -= 1
        if not queue.living:
            del self._queues[held.key]
        elif len(queue.by_position) > _STALE_MIN + 2 * queue.living:
            queue.by_position = self._sifted(queue.by_position)
        if len(self._by_time) > _STALE_MIN + 2 * len(self._held):
            self._by_time = self._sifted(self._by_time)

    def before(self, key: QueueKey, position: int) -> Iterator[HeldPull]:
        """Those of a queue that ask for a position before this one, the smallest first. Whoever takes one has
        to remove it, or to `put_back` it when it has taken all."""
        while (queue := self._queues.get(key)) is not None:
            heap = queue.by_position
            while heap and heap[0][1] not in self._held:
                heapq.heappop(heap)
            if not heap or heap[0][0] >= position:
                return
            yield self._held[heapq.heappop(heap)[1]]

    def put_back(self, held: HeldPull) -> None:
        """One that `before` gave waits on."""
        queue = self._queues.get(held.key)
        if queue is not None and held.serial in self._held:
            heapq.heappush(queue.by_position, (held.pulled.position, held.serial))

    def take_doubtful(self) -> list[HeldPull]:
        """Those that wait for a controller's word; they are doubtful no more."""
        doubtful, self._doubtful = self._doubtful, {}
        return list(doubtful.values())

    def doubt(self, held: HeldPull) -> None:
        """One waits for a controller's word again."""
        if held.serial in self._held:
            self._doubtful[held.serial] = held

    def take_late(self, now_ms: int) -> list[HeldPull]:
        """Those that waited long enough; they wait no more."""
        late = []
        while self._by_time and self._by_time[0][0] <= now_ms:
            held = self._held.get(heapq.heappop(self._by_time)[1])
            if held is not None:
                self.remove(held)
                late.append(held)
        return late

    def closed(self, connection: int) -> None:
        """A connection is gone; no pull waits on it any more."""
        for serial in tuple(self._by_connection.get(connection, ())):
            self.remove(self._held[serial])

    def deadline_ms(self) -> int | None:
        """When the next one has waited long enough."""
        while self._by_time and self._by_time[0][1] not in self._held:
            heapq.heappop(self._by_time)
        return self._by_time[0][0] if self._by_time else None

    def _sifted(self, heap: list[tuple[int, int]]) -> list[tuple[int, int]]:
        living = [each for each in heap if each[1] in self._held]
        heapq.heapify(living)
        return living
