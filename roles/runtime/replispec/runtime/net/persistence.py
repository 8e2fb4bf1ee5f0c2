"""Carries out what one node wants written, in order, so that nobody is held up for long.

Small appends to a quick disk are written in place: a hop to a thread and back costs more than they do. All
else, and every append to a disk that was slow the last time, is a thread's, while the node goes on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.primitives.metrics import Histogram
from replispec.runtime.storage import AppendLines, AppendRecords, StorageFailed, StorageFull, Stores
from replispec.runtime.world import Event, Persist, Persisted, PersistFailed

WAITING_MAX: Final = 100_000
"""Writes that wait; a node that asks for more is broken."""
IN_PLACE_SECONDS_MAX: Final = 0.002
"""An append that took longer sends the next ones to the thread, until one is quicker there."""
IN_PLACE_BYTES_MAX: Final = 64 * 1024
"""The longest append that is written in place."""

Outcome = StorageFailed | Exception | None


class Persistence:
    """The writes of one node. `deliver` hands it their answers, each at a turn of its own, so that what
    arrived meanwhile is asked for together; `seconds` tells how long a write took.

    The thread is its own: a hop to it and back costs half of one to a thread of a pool.
    """

    def __init__(
        self,
        stores: Stores,
        clock: Clock,
        deliver: Callable[[Event], None],
        *,
        seconds: Callable[[], float] = time.perf_counter,
        buckets: Sequence[float] = (),
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._deliver = deliver
        self._seconds = seconds
        self._asked: deque[Persist] = deque()
        self._queue: SimpleQueue[Persist | None] = SimpleQueue()
        self._done: deque[tuple[Persist, Outcome]] = deque()
        self._queued = 0
        self._append_seconds = 0.0
        self.took: Final = Histogram(buckets)
        """How long writes took."""
        self.failures = 0
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Writes that are asked for and not answered."""
        return len(self._asked) + self._queued

    def ask(self, persist: Persist) -> None:
        """Have this written after all that was asked for before."""
        assert len(self._asked) + self._queued < WAITING_MAX, "writes without end"
        if self._idle.is_set():
            self._idle = trio.Event()
        self._asked.append(persist)
        self._wake.set()

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
                    self._queued -= 1
                    self._answer(*self._done.popleft())
                while self._asked:
                    await self._next()
        finally:
            while not self._queue.empty():
                self._queue.get()
            self._queue.put(None)
            thread.join()

    async def finished(self) -> None:
        """Return when all that was asked for is written, or was refused."""
        await self._idle.wait()

    async def _next(self) -> None:
        """Write the next one here, or hand it to the thread."""
        persist = self._asked.popleft()
        if self._queued or self._append_seconds > IN_PLACE_SECONDS_MAX or not _is_small_append(persist):
            self._queued += 1
            self._queue.put(persist)
            return
        self._answer(persist, self._write(persist))
        if self._asked:
            # Whoever sent something meanwhile is heard before the next write.
            await trio.lowlevel.checkpoint()

    def _answer(self, persist: Persist, outcome: Outcome) -> None:
        if not self._asked and not self._queued:
            self._idle.set()
        now_ms = self._clock.now_ms()
        if outcome is None:
            self._deliver(Persisted(persist.token, now_ms))
        elif isinstance(outcome, StorageFailed):
            is_full = isinstance(outcome, StorageFull)
            self.failures += 1
            self._deliver(PersistFailed(persist.token, str(outcome), is_full, now_ms))
        else:
            raise outcome

    def _write(self, persist: Persist) -> Outcome:
        """Carry out one Persist, and remember how long an append took."""
        began = self._seconds()
        try:
            self._stores.carry_out(persist.operations)
        except Exception as error:  # noqa: BLE001  the loop tells of it: a refusal to the node, else a fault
            return error
        finally:
            took = self._seconds() - began
            self.took.observe(took)
            if _is_small_append(persist):
                self._append_seconds = took
        return None

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        """What the thread does until it is told that nothing more comes."""
        while (persist := self._queue.get()) is not None:
            self._done.append((persist, self._write(persist)))
            try:
                token.run_sync_soon(self._wake_up)
            except trio.RunFinishedError:
                return

    def _wake_up(self) -> None:
        self._wake.set()


def _is_small_append(persist: Persist) -> bool:
    """Whether this only appends a few bytes to a journal or a text file."""
    size = 0
    for operation in persist.operations:
        if isinstance(operation, AppendRecords):
            size += sum(len(data) for _, data in operation.records) + len(operation.state or b"")
        elif isinstance(operation, AppendLines):
            size += sum(map(len, operation.lines))
        else:
            return False
    return size <= IN_PLACE_BYTES_MAX
