"""Bringing the log to the disk, many writes at a time."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.rocketmq.log.commit_log import CommitLog
from replispec.runtime.storage import FlushFiles
from replispec.runtime.world import Outbox, Persisted, Writes, Written

Then = Callable[[int, int], None]
"""Told up to where the log is durable, and the time in milliseconds."""


class GroupCommit:
    """One flush of the log under way at a time; what is written meanwhile goes with the next.

    One log has one of these, whoever writes it. Each listener is told after each flush. A flush that fails
    halts the process: nobody knows what of it is there, and nothing of it may ever be acknowledged.
    """

    def __init__(self, outbox: Outbox, writes: Writes, log: CommitLog, *listeners: Then) -> None:
        self._outbox = outbox
        self._writes = writes
        self._log = log
        self._listeners = list(listeners)
        self._under_way = False

    def listen(self, then: Then) -> None:
        """Tell this one too, after those before."""
        self._listeners.append(then)

    def forget(self, then: Then) -> None:
        """Tell this one nothing more."""
        self._listeners.remove(then)

    def request(self) -> None:
        """Make everything that was written durable soon."""
        if not self._under_way and self._log.flushed < self._log.end:
            self._under_way = True
            self._writes.persist(FlushFiles(self._log.begin_flush()), then=self._flushed)

    def _flushed(self, event: Written) -> None:
        self._under_way = False
        if not isinstance(event, Persisted):
            self._outbox.halt(f"the commit log cannot be brought to the disk: {event.reason}")
            return
        durable = self._log.end_flush()
        self.request()
        for then in tuple(self._listeners):
            then(durable, event.now_ms)
