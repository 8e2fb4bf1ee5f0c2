"""Where the parts of one node put their effects, in one order, and get the numbers that name things."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.storage.operations import Operation
from replispec.runtime.world.effects import (
    Buffer,
    Close,
    Dial,
    Effect,
    Halt,
    Level,
    Note,
    Pause,
    Persist,
    Resume,
    Send,
)


class Outbox:
    """Collects effects between two calls of `take`."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._last_connection = 0
        self._last_token = 0

    def take(self) -> Sequence[Effect]:
        """All effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def dial(self, address: str, *, plain: bool = False) -> int:
        """Ask for a connection to ADDRESS:PORT, `plain` without TLS in any case, and return its number."""
        self._last_connection -= 1
        self._effects.append(Dial(self._last_connection, address, plain))
        return self._last_connection

    def send(self, connection: int, data: Buffer, *, tell: bool = False) -> None:
        """Send bytes; with `tell`, Writable follows."""
        self._effects.append(Send(connection, data, tell))

    def close(self, connection: int) -> None:
        """End a connection after what was sent on it."""
        self._effects.append(Close(connection))

    def pause(self, connection: int) -> None:
        """Take no more bytes from a connection for now."""
        self._effects.append(Pause(connection))

    def resume(self, connection: int) -> None:
        """Take bytes from a connection again."""
        self._effects.append(Resume(connection))

    def persist(self, *operations: Operation) -> int:
        """Ask for these to be written in order and return the token of the answer."""
        self._last_token += 1
        self._effects.append(Persist(self._last_token, operations))
        return self._last_token

    def note(self, level: Level, what: str, **values: object) -> None:
        """Write a line of the log."""
        self._effects.append(Note(level, what, values))

    def record(self, level: Level, what: str, **values: object) -> None:
        """Write a line of the log that is never left out, however many say the same."""
        self._effects.append(Note(level, what, values, always=True))

    def halt(self, reason: str) -> None:
        """End the process as failed."""
        self._effects.append(Halt(reason))
