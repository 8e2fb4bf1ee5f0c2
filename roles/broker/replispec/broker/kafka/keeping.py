"""The folder of logs and its disk: one write at a time, for all that waits for it.

What waits is told when a write that began after it was asked for is done. A disk that fails, or is full, is
not written again: whatever was not acknowledged then never is.
"""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.kafka.log import LogFolder
from replispec.runtime.world import Level, Outbox, Persisted, PersistFailed, Writes

Then = Callable[[], None]


class LogKeeper:
    """Brings the logs to the disk. `flushed` is told each time more is there, `failed` once it is not."""

    def __init__(
        self, outbox: Outbox, writes: Writes, folder: LogFolder, *, flushed: Then, failed: Then
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self.folder = folder
        self._flushed = flushed
        self._failed = failed
        self._next: list[Then] = []
        self._now: list[Then] = []
        self._is_writing = False
        self.is_broken = False

    def when_written(self, then: Then) -> None:
        """Be told when all that is in the logs now is on the disk."""
        self._next.append(then)

    def write(self) -> None:
        """Begin to write what there is, unless a write is under way."""
        while not (self._is_writing or self.is_broken):
            operations = self.folder.begin_write()
            self._now, self._next = self._next, []
            if operations:
                self._is_writing = True
                self._writes.persist(*operations, then=self._written)
                return
            self._end()
            if not self._next:
                return

    def fail(self, reason: str) -> None:
        """The disk took nothing of an append, or failed."""
        if not self.is_broken:
            self.is_broken = True
            self._outbox.record(Level.ERROR, "the disk of the logs failed", reason=reason)
            self._failed()

    def stop(self) -> None:
        """Have the folder left in order, if nothing is being written."""
        if not (self._is_writing or self.is_broken):
            self._writes.persist(*self.folder.stop_write(), then=lambda _: None)

    def _written(self, event: Persisted | PersistFailed) -> None:
        self._is_writing = False
        if isinstance(event, PersistFailed):
            self.fail(event.reason)
        else:
            self._end()

    def _end(self) -> None:
        self.folder.end_write()
        waiting, self._now = self._now, []
        for then in waiting:
            then()
        self._flushed()
