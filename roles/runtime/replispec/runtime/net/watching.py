"""Files that somebody else writes: what they hold, and again when that has changed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
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


async def contents(name: str) -> AsyncIterator[bytes | None]:
    """What the file holds now, and each time it may have changed; None: it cannot be read, or is too long.

    It is looked at each second; who writes it in pieces may be seen in between.
    """
    seen: object = ()
    while True:
        state = state_of(name)
        if state != seen:
            seen = state
            yield _content(name)
        await trio.sleep(LOOK_S)


def _content(name: str) -> bytes | None:
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, RuntimeError):
        return None
    return data if len(data) <= FILE_BYTES_MAX else None
