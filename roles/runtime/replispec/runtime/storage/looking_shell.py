"""A folder of a real disk that is looked at and never changed, whoever else has it open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from replispec.runtime.storage.disk_shell import DiskRegion, disk_use
from replispec.runtime.storage.interface import DiskUse, StorageFailed


class LookedAtFiles:
    """The files of a folder; see `replispec.runtime.storage.FilesReader`. Their regions cannot be written."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, folder: str = "") -> Sequence[str]:
        """The names of all files in a folder, ascending."""
        try:
            return sorted(entry.name for entry in os.scandir(self._root / folder) if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> bytes | None:
        """A whole small file; None when it is not there. Raises StorageFailed."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed(f"{name}: {error.strerror}") from error

    def region(self, name: str) -> DiskRegion:
        """A file as a region. Raises StorageFailed."""
        path = self._root / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return DiskRegion(path, descriptor, os.fstat(descriptor).st_size)
        except OSError as error:
            raise StorageFailed(f"{name}: {error.strerror}") from error

    def disk_use(self) -> DiskUse | None:
        """How full the disk is."""
        return disk_use(self._root)
