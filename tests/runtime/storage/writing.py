"""Carries out what nodes and their parts want written, without a process around them."""

from __future__ import annotations

from replispec.runtime.storage import Files, Region, StorageFailed, StorageFull, Stores
from replispec.runtime.world import Persist, Persisted, PersistFailed, Written


def carried_out(persist: Persist, stores: Stores, now_ms: int = 0) -> Written:
    """What became of it."""
    try:
        stores.carry_out(persist.operations)
    except StorageFailed as error:
        return PersistFailed(persist.token, str(error), isinstance(error, StorageFull), now_ms)
    return Persisted(persist.token, now_ms)


def made(files: Files, name: str, size: int) -> Region:
    """A new file as a region."""
    files.make(name, size)
    return files.region(name)
