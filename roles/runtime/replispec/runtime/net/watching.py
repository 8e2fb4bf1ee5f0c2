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
    """What the file holds, and each time it may have changed; None: it cannot be read, or is too long.

    It is looked at each second, and told of once two looks one after the other found the same: who writes it
    in pieces is not seen in between, as long as no piece takes longer.
    """
    seen: object = ()
    found: bytes | None = None
    is_new = False
    while True:
        state = state_of(name)
        if is_new or state != seen:
            seen = state
            before, found = found, content(name)
            is_new = not (is_new and found == before)
            if not is_new:
                yield found
        await trio.sleep(LOOK_S)


def content(name: str) -> bytes | None:
    """What the file holds now; None: it cannot be read, or is too long."""
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, RuntimeError):
        return None
    return data if len(data) <= FILE_BYTES_MAX else None
