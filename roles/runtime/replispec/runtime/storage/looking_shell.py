"""A folder of a real disk that is looked at and never changed, whoever else has it open."""

from __future__ import annotations

import os
import stat
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
            with open(self._opened(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed(f"{name}: {error.strerror}") from error

    def region(self, name: str) -> DiskRegion:
        """A file as a region. Raises StorageFailed."""
        try:
            descriptor = self._opened(name)
            return DiskRegion(self._root / name, descriptor, os.fstat(descriptor).st_size)
        except OSError as error:
            raise StorageFailed(f"{name}: {error.strerror}") from error

    def _opened(self, name: str) -> int:
        """A file, of which nobody has to wait for bytes; a pipe or a device has none that end.

        Raises OSError and StorageFailed.
        """
        descriptor = os.open(self._root / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StorageFailed(f"{name}: it is no file")
        return descriptor

    def disk_use(self) -> DiskUse | None:
        """How full the disk is."""
        return disk_use(self._root)
