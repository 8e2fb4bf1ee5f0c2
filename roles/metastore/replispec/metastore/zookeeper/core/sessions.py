"""Which sessions are heard of, on which connection, and which one was not heard of in time: what the machine
`metastore_session` says of each, for all of them by one timer.

That a session lives is on record (`Tree.sessions`); when it was heard of is not: whoever starts hears of all
sessions anew. Source: apache/zookeeper 3.5.9, SessionTrackerImpl, ExpiryQueue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replispec.runtime.zookeeper.rules import ticks_of


@dataclass(slots=True, eq=False)
class _Heard:
    timeout_ms: int
    due_ms: int
    connection: int | None = None
    is_closing: bool = False


class Sessions:
    """The sessions that live. Time counts in ticks: who is silent for longer than its timeout is told of at
    the end of the tick."""

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._heard: dict[int, _Heard] = {}
        # Sessions by the end of the tick in which their time is over.
        self._due: dict[int, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def begin(self, session: int, timeout_ms: int, now_ms: int) -> None:
        """A session is on record; its time begins."""
        found = _Heard(timeout_ms, self._due_ms(timeout_ms, now_ms))
        self._heard[session] = found
        self._due.setdefault(found.due_ms, {})[session] = None

    def hear(self, session: int, now_ms: int) -> None:
        """A sign of life; of one that ends it does not count."""
        found = self._heard.get(session)
        if found is None or found.is_closing:
            return
        due_ms = self._due_ms(found.timeout_ms, now_ms)
        if due_ms > found.due_ms:
            self._move(session, found, due_ms)

    def grant(self, session: int, timeout_ms: int, now_ms: int) -> None:
        """A client goes on with a session, and another timeout."""
        found = self._heard[session]
        found.timeout_ms = timeout_ms
        self._move(session, found, self._due_ms(timeout_ms, now_ms))

    def attach(self, session: int, connection: int) -> int | None:
        """The session is spoken for on this connection; the one on which it was before."""
        found = self._heard[session]
        before, found.connection = found.connection, connection
        return before

    def detach(self, session: int, connection: int) -> None:
        """This connection of a session is gone."""
        found = self._heard.get(session)
        if found is not None and found.connection == connection:
            found.connection = None

    def connection(self, session: int) -> int | None:
        """On which connection a session is spoken for."""
        found = self._heard.get(session)
        return None if found is None else found.connection

    def close(self, session: int) -> bool:
        """A session is to end: nobody may go on with it. False when it does already, or has."""
        found = self._heard.get(session)
        if found is None or found.is_closing:
            return False
        found.is_closing = True
        return True

    def reopen(self, session: int, now_ms: int) -> None:
        """A session is not to end after all: that could not be put on record."""
        found = self._heard.get(session)
        if found is not None:
            found.is_closing = False
            self.hear(session, now_ms)

    def is_open(self, session: int) -> bool:
        """Whether a client may go on with a session."""
        found = self._heard.get(session)
        return found is not None and not found.is_closing

    def end(self, session: int) -> int | None:
        """A session has ended, as is on record; the connection on which it was spoken for."""
        found = self._heard.pop(session, None)
        if found is None:
            return None
        self._drop(session, found.due_ms)
        return found.connection

    def expired(self, now_ms: int) -> tuple[int, ...]:
        """Sessions whose time is over; told of again at each tick until they end."""
        over = [due_ms for due_ms in self._due if due_ms <= now_ms]
        found = tuple(session for due_ms in sorted(over) for session in self._due[due_ms])
        for session in found:
            self._move(session, self._heard[session], self._end(now_ms + 1))
        return tuple(session for session in found if not self._heard[session].is_closing)

    def excuse(self, late_ms: int, now_ms: int) -> None:
        """For so long nobody was listened to: no session pays for it."""
        waiting = [(session, found) for session, found in self._heard.items()]
        for session, found in waiting:
            self._move(session, found, self._end(max(found.due_ms, now_ms - late_ms) + late_ms))

    def deadline_ms(self) -> int | None:
        """When the next one may be over."""
        return min(self._due, default=None)

    def begin_all(self, on_record: Iterable[tuple[int, int]], now_ms: int) -> None:
        """The sessions of a log that was read, with their timeouts: each has its whole time."""
        for session, timeout_ms in on_record:
            self.begin(session, timeout_ms, now_ms)

    def _due_ms(self, timeout_ms: int, now_ms: int) -> int:
        """At the end of which tick a timeout is over that begins now."""
        ticks = ticks_of(timeout_ms, self._tick_ms)
        return self._end(now_ms) + (ticks - 1) * self._tick_ms

    def _end(self, at_ms: int) -> int:
        """The end of the tick of a moment."""
        return (at_ms // self._tick_ms + 1) * self._tick_ms

    def _move(self, session: int, found: _Heard, due_ms: int) -> None:
        self._drop(session, found.due_ms)
        found.due_ms = due_ms
        self._due.setdefault(due_ms, {})[session] = None

    def _drop(self, session: int, due_ms: int) -> None:
        others = self._due[due_ms]
        del others[session]
        if not others:
            del self._due[due_ms]


def granted_ms(wish_ms: int, least_ms: int, most_ms: int) -> int:
    """The timeout that a session gets for a wish."""
    return min(max(wish_ms, least_ms), most_ms)
