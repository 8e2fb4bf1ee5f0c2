"""Folders of a real disk: made and brought there durably."""

from __future__ import annotations

import os
from pathlib import Path

from replispec.runtime.storage.interface import StorageFailed


def make_folder(path: Path) -> None:
    """Make a folder and those above it, durably. Raises OSError, StorageFailed."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Bring a folder's entries to the disk. No failure here is a StorageFull: what they name is there.

    Raises StorageFailed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}") from error
