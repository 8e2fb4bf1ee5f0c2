"""Files that somebody else writes: what they hold, and again when that has changed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Final

import trio

LOOK_S: Final = 1.0
"""How often files are looked at, at most."""
FILE_BYTES_MAX: Final = 16 * 1024 * 1024


def state_of(name: str) -> object:
    """What tells that a file has changed; None while it is not there."""
    try:
        found = os.stat(Path(name).expanduser())
    except (OSError, RuntimeError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Looks:
    """Looks at files, one after the other, which tell what they hold once two found the same: who writes them
    in pieces is not seen in between, as long as no piece takes longer."""

    def __init__(self, files: Iterable[str], *, are_known: bool = False) -> None:
        """`are_known`: what they hold now is no news."""
        self._files = tuple(files)
        self._seen: object = self._state() if are_known else None
        # What the last look found, until the next one finds the same.
        self._found: tuple[bytes | None, ...] | None = None

    def look(self) -> tuple[bytes | None, ...] | None:
        """What they hold, when they may have changed and two looks found it; None: there is nothing new."""
        state = self._state()
        if state == self._seen and self._found is None:
            return None
        self._seen = state
        before, self._found = self._found, self.held()
        if self._found != before:
            return None
        self._found = None
        return before

    def held(self) -> tuple[bytes | None, ...]:
        """What they hold now."""
        return tuple(map(content, self._files))

    def again(self) -> None:
        """What was told is not what they hold any more."""
        self._seen = None

    def _state(self) -> tuple[object, ...]:
        return tuple(map(state_of, self._files))


async def contents(name: str) -> AsyncIterator[bytes | None]:
    """What the file holds, and each time it may have changed; None: it cannot be read, or is too long.

    It is looked at each second, and told of once two looks found the same.
    """
    looks = Looks((name,))
    while True:
        held = looks.look()
        if held is not None:
            yield held[0]
        await trio.sleep(LOOK_S)


def content(name: str) -> bytes | None:
    """What the file holds now; None: it cannot be read, or is too long."""
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, RuntimeError):
        return None
    return data if len(data) <= FILE_BYTES_MAX else None
