"""Bringing the log to the disk, many writes at a time."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.rocketmq.log.commit_log import CommitLog
from replispec.runtime.world import Flushed, FlushFailed, Outbox

Then = Callable[[int, int], None]
"""Told up to where the log is durable, and the time in milliseconds."""


class GroupCommit:
    """One flush of the log under way at a time; what is written meanwhile goes with the next.

    One log has one of these, whoever writes it. Each listener is told after each flush. A flush that fails
    halts the process: nobody knows what of it is there, and nothing of it may ever be acknowledged.
    """

    def __init__(self, outbox: Outbox, log: CommitLog, *listeners: Then) -> None:
        self._outbox = outbox
        self._log = log
        self._listeners = list(listeners)
        self._token: int | None = None

    def listen(self, then: Then) -> None:
        """Tell this one too, after those before."""
        self._listeners.append(then)

    def forget(self, then: Then) -> None:
        """Tell this one nothing more."""
        self._listeners.remove(then)

    def request(self) -> None:
        """Make everything that was written durable soon."""
        if self._token is None and self._log.flushed < self._log.end:
            self._token = self._outbox.flush(*self._log.begin_flush())

    def flushed(self, event: Flushed) -> bool:
        """Take the answer to a flush; False when it is somebody else's."""
        if event.token != self._token:
            return False
        self._token = None
        durable = self._log.end_flush()
        self.request()
        for then in tuple(self._listeners):
            then(durable, event.now_ms)
        return True

    def failed(self, event: FlushFailed) -> bool:
        """Take the failure of a flush; False when it is somebody else's."""
        if event.token != self._token:
            return False
        self._outbox.halt(f"the commit log cannot be brought to the disk: {event.reason}")
        return True
