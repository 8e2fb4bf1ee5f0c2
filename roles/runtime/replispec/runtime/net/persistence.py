"""Carries out what one node wants written, in order, on a thread that holds nobody up."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.storage import StorageFailed, StorageFull, Stores
from replispec.runtime.world import Event, Persist, Persisted, PersistFailed

WAITING_MAX: Final = 100_000
"""Writes that wait; a node that asks for more is broken."""

Outcome = StorageFailed | Exception | None


class Persistence:
    """The writes of one node. `deliver` hands it their answers.

    The thread is its own: a hop to it and back costs half of one to a thread of a pool.
    """

    def __init__(self, stores: Stores, clock: Clock, deliver: Callable[[Event], None]) -> None:
        self._stores = stores
        self._clock = clock
        self._deliver = deliver
        self._queue: SimpleQueue[Persist | None] = SimpleQueue()
        self._waiting = 0
        self._done: deque[tuple[Persist, Outcome]] = deque()
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()

    def ask(self, persist: Persist) -> None:
        """Have this written after all that was asked for before."""
        assert self._waiting < WAITING_MAX, "writes without end"
        self._waiting += 1
        if self._idle.is_set():
            self._idle = trio.Event()
        self._queue.put(persist)

    async def run(self) -> None:
        """Write, one Persist at a time, for ever; ends once the write under way has."""
        token = trio.lowlevel.current_trio_token()
        thread = threading.Thread(target=self._write_all, args=(token,), name="replispec-writes")
        thread.start()
        try:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                while self._done:
                    self._answer(*self._done.popleft())
        finally:
            while not self._queue.empty():
                self._queue.get()
            self._queue.put(None)
            thread.join()

    async def finished(self) -> None:
        """Return when all that was asked for is written, or was refused."""
        await self._idle.wait()

    def _answer(self, persist: Persist, outcome: Outcome) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._idle.set()
        now_ms = self._clock.now_ms()
        if outcome is None:
            self._deliver(Persisted(persist.token, now_ms))
        elif isinstance(outcome, StorageFailed):
            is_full = isinstance(outcome, StorageFull)
            self._deliver(PersistFailed(persist.token, str(outcome), is_full, now_ms))
        else:
            raise outcome

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        """What the thread does until it is told that nothing more comes."""
        while (persist := self._queue.get()) is not None:
            outcome: Outcome = None
            try:
                self._stores.carry_out(persist.operations)
            except Exception as error:  # noqa: BLE001  the loop tells of it: a refusal to the node, else a fault
                outcome = error
            self._done.append((persist, outcome))
            try:
                token.run_sync_soon(self._wake_up)
            except trio.RunFinishedError:
                return

    def _wake_up(self) -> None:
        self._wake.set()
