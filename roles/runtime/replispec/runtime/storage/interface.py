"""What storage promises, whichever twin keeps the promise.

Names are relative paths with `/`. Calls take effect at once for the caller; what a crash leaves of them is
said with each. Every call that changes something may raise StorageFailed, and is a place at which the
simulated twin can crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class StorageFailed(Exception):
    """The disk refused: full, broken, gone, or not ours. What of the call took effect is open, but for
    `Files.replace`, `rename` and `remove`, which happened or did not."""


class Region(Protocol):
    """One file of fixed size, of which the room is taken on the disk when it is made."""

    @property
    def size(self) -> int:
        """Its size in bytes."""
        ...

    def write(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at a place inside. A crash before the next flush leaves any part of them."""
        ...

    def view(self, at: int, size: int) -> memoryview:
        """Read-only bytes without a copy; later writes show through."""
        ...

    def written(self) -> Iterable[tuple[int, int]]:
        """Start and end of the runs of bytes that may be something else than zeros, ascending: what
        nobody ever wrote need not be read to know it."""
        ...

    def close(self) -> None:
        """Give the file back; views that are still held stay readable."""
        ...


class Files(Protocol):
    """The folder that one node owns."""

    def names(self, folder: str = "") -> Sequence[str]:
        """The names of all files in a folder, itself left out, ascending; none when it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """A whole small file; None when it is not there. Raises StorageFailed when it cannot be read."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Make the file hold this, and durably so: after a crash it is the old one or the new one."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Give a file another name, durably and in one step; what had that name is gone."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file durably; one that is not there is removed already."""
        ...

    def region(self, name: str, size: int | None = None) -> Region:
        """Open a file as a region. With `size`, make it when it is not there: zeros, the room taken,
        the name durable. Raises StorageFailed, for one when there is no room."""
        ...

    def flush(self, names: Iterable[str]) -> None:
        """Bring all that was written to the regions of these names to the disk. Safe to call from
        another thread while the node goes on; the Flush effect does."""
        ...


class Journal(Protocol):
    """An ordered log of records with one small value beside it, each record with its checksum."""

    def records(self) -> Sequence[tuple[int, bytes]]:
        """All records, ascending by index. Raises StorageFailed when one is not what was written."""
        ...

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Write records behind the last (an index that is there already replaces it and all behind it),
        and the value if given, all of it durably or nothing. Raises StorageFailed; nobody may go on then."""
        ...

    def state(self) -> bytes | None:
        """The value written last; None before the first."""
        ...


class Lines(Protocol):
    """A text file for others to read that only grows, line by line. A crash leaves it with fewer lines, and
    perhaps with a part of one."""

    def last(self) -> bytes | None:
        """The last whole line, without its end; what follows it is cut. None when there is none. Raises
        StorageFailed."""
        ...

    def append(self, lines: Sequence[bytes]) -> None:
        """Put lines, given without their ends, behind the last. Raises StorageFailed; a part of them may be
        there then, and `last` is to be asked before more are put."""
        ...


class Storage(Protocol):
    """Everything that one process keeps: opens its folders and journals, each at most once at a time."""

    def files(self, folder: str) -> Files:
        """The files of a folder, which is made when it is not there. Raises StorageFailed, for one when
        another process has it open."""
        ...

    def journal(self, name: str) -> Journal:
        """The journal of this file name. Raises StorageFailed."""
        ...

    def lines(self, name: str) -> Lines:
        """The text file of this name, made when it is not there. Raises StorageFailed."""
        ...
