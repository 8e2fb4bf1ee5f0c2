"""What storage promises, whichever twin keeps the promise.

Names are relative paths with `/`. Calls take effect at once for the caller; what a crash leaves of them is
said with each. Every call that changes something may raise StorageFailed, and is a place at which the
simulated twin can crash. Nodes are handed what only reads (`FilesReader`, `JournalReader`); what writes
belongs to whoever carries out their effects, and to what opens and repairs a store before its node lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class StorageFailed(Exception):
    """The disk refused: full, broken, gone, or not ours. What of the call took effect is open, but for
    `Files.replace`, `rename` and `remove`, which happened or did not."""


class StorageFull(StorageFailed):
    """There was no room, and nothing of the call took effect: the same may succeed later."""


class DiskUse(NamedTuple):
    """Of the disk that a folder lies on: bytes that are used, and bytes that are left for this process."""

    used: int
    available: int


class Region(Protocol):
    """One file of fixed size, of which the room is taken on the disk when it is made.

    It is memory that the disk shares: bytes put into it are seen by every reader at once, and are on the
    disk only after a flush.
    """

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


class GrowingFile(Protocol):
    """One file that takes room as it grows: bytes are put after its last one.

    Every reader sees them at once, and they are on the disk only after a flush, as the file itself when it is
    new. It holds nothing of the system's until it is used, and however many there are, only so many are open.
    """

    @property
    def size(self) -> int:
        """Its size in bytes. Raises StorageFailed."""
        ...

    def append(self, at: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes after its last one, which is before `at`. A crash before the next flush leaves any part
        of them, with anything in it. Raises StorageFull when nothing of them is there, and StorageFailed."""
        ...

    def read(self, at: int, size: int) -> bytes:
        """The bytes from a place on, fewer where the file ends. Raises StorageFailed."""
        ...


class FilesReader(Protocol):
    """What a node may do with its folder by itself: look."""

    def names(self, folder: str = "") -> Sequence[str]:
        """The names of all files in a folder, itself left out, ascending; none when it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """A whole small file; None when it is not there. Raises StorageFailed when it cannot be read."""
        ...

    def region(self, name: str) -> Region:
        """Open a file that is there as a region. Raises StorageFailed."""
        ...

    def disk_use(self) -> DiskUse | None:
        """How full the disk is, whoever filled it; None when nobody can say."""
        ...


class FoldersReader(FilesReader, Protocol):
    """Likewise for a node whose folder has others in it, with files that grow."""

    def folders(self, folder: str = "") -> Sequence[str]:
        """The names of all folders in a folder, itself left out, ascending; none when it is not there."""
        ...

    def growing(self, name: str) -> GrowingFile:
        """A file that grows; it is there from its first append on, if it was not before. Raises
        StorageFailed when its folder cannot be made."""
        ...


class Files(FoldersReader, Protocol):
    """The folder that one node owns. One thread at a time changes it, while another may read."""

    def replace(self, name: str, data: bytes) -> None:
        """Make the file hold this, and durably so: after a crash it is the old one or the new one."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Give a file another name, durably and in one step; what had that name is gone. Nothing is done
        when only the new name is there."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file durably; one that is not there is removed already."""
        ...

    def make(self, name: str, size: int) -> None:
        """Make a file of so many zeros when it is not there: its room taken, its name durable."""
        ...

    def cut(self, name: str, size: int) -> None:
        """Make a growing file no longer than this, durably; one that is not there is short enough."""
        ...

    def rename_folder(self, name: str, to: str) -> None:
        """Give a folder with all that is in it another name, durably and in one step. Nothing is done when
        it is not there."""
        ...

    def remove_folder(self, name: str) -> None:
        """Remove a folder and the files in it durably; a crash may leave some of them. Nothing is done when
        it is not there."""
        ...

    def flush(self, names: Iterable[str]) -> None:
        """Bring all that was written to the regions and growing files of these names to the disk. No failure
        of it is a StorageFull: what was written is in memory, and what of it is on the disk is unknown."""
        ...


class JournalReader(Protocol):
    """What a node may do with its journal by itself: read it at its start."""

    def records(self) -> Sequence[tuple[int, bytes]]:
        """All records, ascending by index. Raises StorageFailed when one is not what was written."""
        ...

    def state(self) -> bytes | None:
        """The value written last; None before the first."""
        ...

    def snapshot(self) -> tuple[int, bytes] | None:
        """The value that stands in the place of the first records, and the index of the last of them; None
        when no record was replaced. Raises StorageFailed when it is not what was written."""
        ...


class Journal(JournalReader, Protocol):
    """An ordered log of records with one small value beside it, each with its checksum."""

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Write records after the last (an index that is there already replaces it and all after it),
        and the value if given, all of it durably or nothing. Raises StorageFull when it is nothing, and
        StorageFailed when that is unknown; the process may not go on then."""
        ...

    def replace(
        self,
        index: int,
        snapshot: bytes,
        *,
        records: Sequence[tuple[int, bytes]] = (),
        state: bytes | None = None,
        is_all: bool = False,
    ) -> None:
        """Put a value in the place of all records up to an index, and write records and the value beside
        them as `append` does, all of it durably or nothing; what follows is appended after it. `is_all`: no
        record stays but these, which begin after the index, and that may be beyond the last one of before.
        Raises as `append`."""
        ...


class LinesReader(Protocol):
    """What a node may do with its text file by itself: read at its start where it ends."""

    def last(self) -> bytes | None:
        """The last line, without its end. None when there is none. Raises StorageFailed."""
        ...


class Lines(LinesReader, Protocol):
    """A text file for others to read that only grows, line by line. A crash leaves it with fewer lines;
    a part of one is cut when it is opened."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Put lines, given without their ends, after the last. Raises StorageFailed, and none of them is
        there then; the same may be tried again."""
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

    def content(self, name: str) -> bytes:
        """What a file holds that somebody else writes. Raises StorageFailed, also when it is not there."""
        ...

    def lines(self, name: str) -> Lines:
        """The text file of this name, made when it is not there. Raises StorageFailed."""
        ...
