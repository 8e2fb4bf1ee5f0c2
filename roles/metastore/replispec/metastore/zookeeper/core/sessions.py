"""The sessions that live, each an instance of the machine `metastore_session`, and one timer for all of them.

That a session lives is on record (`Tree.sessions`); when it was heard of is not: whoever starts hears of all
sessions anew. Ticks are told to an instance when something else happens to it, or when it may be over: until
then nobody can tell. Source: apache/zookeeper 3.5.9, SessionTrackerImpl, ExpiryQueue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import step
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.machines import metastore_session as machine

_ALIVE: Final = machine.MACHINE.timers["tick"].states
_OVER: Final = frozenset({machine.State.CLOSED, machine.State.EXPIRED})
_GROWS: Final = "ticks_left"
_HEARD: Final = machine.Heard()
_TICK_OVER: Final = machine.TickOver()


@immutable
class SessionStep:
    """What an event did: the effects in order, what the variables are, and which connection had the session
    before."""

    effects: tuple[str, ...]
    variables: machine.Variables
    before: int | None


@dataclass(slots=True, eq=False)
class _Instance:
    """One session. It was told of all ticks up to `told`, counted from 1970, and of a sign of life in
    `heard`."""

    state: machine.State
    variables: machine.Variables
    told: int
    heard: int = -1
    due: int | None = None


class Sessions:
    """All that are asked for, live or end; those that are over are forgotten. Ticks are of `tick_ms`, wishes
    are granted from `least_ms` to `most_ms`."""

    def __init__(self, tick_ms: int, least_ms: int, most_ms: int) -> None:
        self._tick_ms, self._least_ms, self._most_ms = tick_ms, least_ms, most_ms
        self._found: dict[int, _Instance] = {}
        # Sessions by the tick with which their time may be over.
        self._due: dict[int, dict[int, None]] = {}
        # For how long nobody was listened to: these ticks are none.
        self._skipped_ms = 0

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, session: int) -> bool:
        return session in self._found

    def ask(self, session: int, wish_ms: int, connection: int, now_ms: int) -> SessionStep:
        """A client wants a session, which gets this number."""
        self._found[session] = self._new(now_ms)
        asked = machine.SessionAsked(wish_ms, connection, self._tick_ms, self._least_ms, self._most_ms)
        return self.take(session, asked, now_ms)

    def take_over(
        self, session: int, wish_ms: int, connection: int, now_ms: int, *, owned: bool
    ) -> SessionStep:
        """A client wants to go on with a session; `owned`: it knows the password."""
        asked = machine.TakenOver(owned, wish_ms, connection, self._tick_ms, self._least_ms, self._most_ms)
        return self.take(session, asked, now_ms)

    def restore(self, on_record: Iterable[tuple[int, int]], now_ms: int) -> None:
        """The sessions of a log that was read, with their timeouts: each has its whole time."""
        for session, timeout_ms in on_record:
            self._found[session] = self._new(now_ms)
            self.take(session, machine.Restored(timeout_ms, self._tick_ms), now_ms)

    def hear(self, session: int, now_ms: int) -> None:
        """A sign of life. A second one in a tick changes nothing."""
        found = self._found.get(session)
        if found is not None and found.heard != self._tick(now_ms):
            self.take(session, _HEARD, now_ms)

    def take(self, session: int, event: machine.Event, now_ms: int) -> SessionStep:
        """Have something happen to a session; one that is not known is over. Raises as `step` does."""
        found = self._found.get(session)
        if found is None:
            found = _Instance(machine.State.CLOSED, machine.MACHINE.variables, 0)
        now = self._tick(now_ms)
        if found.due is not None:
            # With the last one it may be over, which is told when that tick ends.
            self._tell_ticks(found, min(now, found.due - 1))
        before = found.variables.connection
        effects, assigned = self._step(found, event)
        if _GROWS in assigned:
            found.told = now
        found.heard = now if event is _HEARD else -1
        self._put(session, found)
        return SessionStep(effects, found.variables, before)

    def connection(self, session: int) -> int | None:
        """On which connection a session is spoken for."""
        found = self._found.get(session)
        return None if found is None else found.variables.connection

    def is_open(self, session: int) -> bool:
        """Whether a client may go on with a session."""
        found = self._found.get(session)
        return found is not None and found.state in _ALIVE

    def over(self, now_ms: int) -> tuple[int, ...]:
        """Have ticks be over. Returns the sessions whose end is to be put on record, the first first."""
        now, ended = self._tick(now_ms), []
        for due in sorted(each for each in self._due if each <= now):
            for session in tuple(self._due[due]):
                found = self._found[session]
                ended += [session] * bool(self._tell_ticks(found, due))
                self._put(session, found)
        return tuple(ended)

    def excuse(self, late_ms: int) -> None:
        """So late is the end of the last tick, as nobody was listened to: no session pays for it, and that
        tick goes on."""
        self._skipped_ms += late_ms + self._tick_ms

    def deadline_ms(self) -> int | None:
        """When the next one may be over."""
        if not self._due:
            return None
        return min(self._due) * self._tick_ms + self._skipped_ms

    def _new(self, now_ms: int) -> _Instance:
        return _Instance(machine.MACHINE.initial, machine.MACHINE.variables, self._tick(now_ms))

    def _tick(self, now_ms: int) -> int:
        """How many ticks have ended since 1970."""
        return (now_ms - self._skipped_ms) // self._tick_ms

    def _tell_ticks(self, found: _Instance, last: int) -> tuple[str, ...]:
        """Tell of the ticks that have ended up to this one; the effects."""
        effects: tuple[str, ...] = ()
        for _ in range(last - found.told):
            effects += self._step(found, _TICK_OVER)[0]
        found.told = max(found.told, last)
        return effects

    def _step(self, found: _Instance, event: machine.Event) -> tuple[tuple[str, ...], Iterable[str]]:
        taken = step(machine.MACHINE, found.state, found.variables, event, rules)
        found.state, found.variables = taken.state, taken.variables
        return taken.effects, taken.edge.assign

    def _put(self, session: int, found: _Instance) -> None:
        """Have it stand where its time may be over, if it runs; one that is over is forgotten."""
        due = found.told + found.variables.ticks_left if found.state in _ALIVE else None
        if due != found.due:
            if found.due is not None:
                others = self._due[found.due]
                del others[session]
                if not others:
                    del self._due[found.due]
            if due is not None:
                self._due.setdefault(due, {})[session] = None
            found.due = due
        if found.state in _OVER:
            self._found.pop(session, None)
