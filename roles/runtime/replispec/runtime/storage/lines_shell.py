"""A text file on a real disk that grows line by line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from replispec.runtime.storage.interface import StorageFailed

CHUNK_BYTES: Final = 64 * 1024
END: Final = b"\n"


class DiskLines:
    """See `replispec.runtime.storage.Lines`. Raises OSError when the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def last(self) -> bytes | None:
        """The last whole line; a part of one behind it is cut."""
        try:
            end = self._end_before(os.fstat(self._descriptor).st_size)
            os.ftruncate(self._descriptor, end)
            if end == 0:
                return None
            start = self._end_before(end - len(END))
            return os.pread(self._descriptor, end - len(END) - start, start)
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def append(self, lines: Sequence[bytes]) -> None:
        """Put lines behind the last."""
        rest = memoryview(b"".join(line + END for line in lines))
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def _end_before(self, size: int) -> int:
        """Where the last line ends that ends within so many bytes; 0 when none does."""
        while size > 0:
            start = max(0, size - CHUNK_BYTES)
            found = os.pread(self._descriptor, size - start, start).rfind(END)
            if found >= 0:
                return start + found + len(END)
            size = start
        return 0
