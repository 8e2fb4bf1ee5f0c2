"""A text file on a real disk that grows line by line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from replispec.runtime.storage.interface import StorageFailed, StorageFull
from replispec.runtime.storage.no_room import NO_ROOM

CHUNK_BYTES: Final = 64 * 1024
END: Final = b"\n"


class DiskLines:
    """See `replispec.runtime.storage.Lines`. What a crash left of a line is cut when it is opened; raises
    OSError when that cannot be done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = self._end_before(os.fstat(self._descriptor).st_size)
        os.ftruncate(self._descriptor, self._size)

    def last(self) -> bytes | None:
        """The last line."""
        if self._size == 0:
            return None
        try:
            start = self._end_before(self._size - len(END))
            return os.pread(self._descriptor, self._size - len(END) - start, start)
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def append(self, lines: Sequence[bytes]) -> None:
        """Put lines after the last; of those that fail, what is there is cut again."""
        data = b"".join(line + END for line in lines)
        rest = memoryview(data)
        try:
            # What could not be cut after the last failure goes before anything is put after it.
            os.ftruncate(self._descriptor, self._size)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self._cut()
            kind = StorageFull if error.errno in NO_ROOM else StorageFailed
            raise kind(f"{self._path}: {error.strerror}") from error
        self._size += len(data)

    def _cut(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            # Tried again with the next lines; a start cuts what is no whole line.
            return

    def _end_before(self, size: int) -> int:
        """Where the last line ends that ends within so many bytes; 0 when none does."""
        while size > 0:
            start = max(0, size - CHUNK_BYTES)
            found = os.pread(self._descriptor, size - start, start).rfind(END)
            if found >= 0:
                return start + found + len(END)
            size = start
        return 0
