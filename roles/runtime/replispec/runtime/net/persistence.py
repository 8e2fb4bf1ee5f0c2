"""Carries out what one node wants written, in order, on a thread that holds nobody up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.storage import StorageFailed, StorageFull, Stores
from replispec.runtime.world import Event, Persist, Persisted, PersistFailed

WAITING_MAX: Final = 100_000
"""Writes that wait; a node that asks for more is broken."""


class Persistence:
    """The writes of one node. `deliver` hands it their answers."""

    def __init__(self, stores: Stores, clock: Clock, deliver: Callable[[Event], None]) -> None:
        self._stores = stores
        self._clock = clock
        self._deliver = deliver
        self._waiting: deque[Persist] = deque()
        self._asked = trio.Event()
        self._idle = trio.Event()
        self._idle.set()

    def ask(self, persist: Persist) -> None:
        """Have this written after all that was asked for before."""
        assert len(self._waiting) < WAITING_MAX, "writes without end"
        self._waiting.append(persist)
        self._idle = trio.Event() if self._idle.is_set() else self._idle
        self._asked.set()

    async def run(self) -> None:
        """Write, one Persist at a time, for ever."""
        while True:
            await self._asked.wait()
            self._asked = trio.Event()
            while self._waiting:
                persist = self._waiting.popleft()
                answer = await self._carry_out(persist)
                if not self._waiting:
                    self._idle.set()
                self._deliver(answer)

    async def finished(self) -> None:
        """Return when all that was asked for is written, or was refused."""
        await self._idle.wait()

    async def _carry_out(self, persist: Persist) -> Event:
        try:
            await trio.to_thread.run_sync(self._stores.carry_out, persist.operations)
        except StorageFailed as error:
            is_full = isinstance(error, StorageFull)
            return PersistFailed(persist.token, str(error), is_full, self._clock.now_ms())
        return Persisted(persist.token, self._clock.now_ms())
