"""A log on a disk looked at as a whole: what a start would find, and what lies behind the first damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.flushed_file import FlushedMark, read_mark, written
from replispec.runtime.rocketmq.log.log_sums import LogSums
from replispec.runtime.rocketmq.log.records import Placed, next_record, walk
from replispec.runtime.rocketmq.log.recovery import Layout, last_byte, recover
from replispec.runtime.storage import FilesReader, Region, ReplaceFile
from replispec.wire.rocketmq.constants import (
    CHECKPOINT_FILE,
    COMMIT_LOG_FILE_BYTES,
    COMMIT_LOG_NAME_DIGITS,
    FLUSHED_FILE,
)

Tell = Callable[[str, int, int], None]
"""Called with the file that is read, how many bytes were, and how many will be."""
READ_AT_ONCE: Final = 1 << 23
"""Bytes that are read between two calls of it."""
PLACES_MAX: Final = 1_000
"""Damaged places of a file that are looked behind."""


@dataclass(slots=True)
class CheckedFile:
    """One file: messages that are whole, where its last byte is that is no zero, and what is wrong."""

    name: str
    size: int
    used: int
    messages: int = 0
    damage: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CheckedLog:
    """Where a start would let the log end; `damage`: why it is refused. `behind`: whole messages after it."""

    mark: FlushedMark | None
    end: int
    messages: int
    behind: int
    torn_bytes: int
    damage: str
    files: list[CheckedFile]
    sums: LogSums
    may_be_accepted: bool

    def accepted(self) -> tuple[ReplaceFile, ...]:
        """What notes that the log ends here."""
        if not self.damage:
            return ()
        self.sums.move(self.end)
        return (written(self.sums.runs(self.sums.last())),)


class Told:
    """How far two readings of a log are, told now and then."""

    def __init__(self, tell: Tell, first: int, size_bytes: int) -> None:
        self._tell = tell
        self._first = first
        self._size = size_bytes
        self._before = 0
        self._next = first + READ_AT_ONCE

    def read(self, offset: int, name: Callable[[], str]) -> None:
        """What lies before this offset was read."""
        if offset >= self._next:
            self._next = offset + READ_AT_ONCE
            self._tell(name(), self._before + offset - self._first, 2 * self._size)

    def again(self) -> None:
        """The first reading is done, the second begins."""
        self._before = self._size
        self._next = self._first + READ_AT_ONCE


def check_log(files: FilesReader, folder: str, tell: Tell = lambda _name, _done, _total: None) -> CheckedLog:
    """Look at all files of a log, twice: where it ends, then its messages. `tell` hears how far that is.
    Raises StorageFailed when one cannot be read."""
    names = [name for name in files.names(folder) if name.isdecimal()]
    starts = sorted(int(name) for name in names if len(name) == COMMIT_LOG_NAME_DIGITS)
    regions = {start: files.region(f"{folder}/{start:0{COMMIT_LOG_NAME_DIGITS}d}") for start in starts}
    file_bytes = _file_bytes(starts, regions)
    kept = _followed(starts, regions, file_bytes)
    first = kept[0] if kept else 0

    told = Told(tell, first, len(kept) * file_bytes)

    def view(offset: int, size: int) -> memoryview:
        start = offset - offset % file_bytes
        told.read(offset, lambda: layout.name(start))
        return regions[start].view(offset - start, min(size, start + file_bytes - offset))

    layout = Layout(
        first,
        kept[-1] + file_bytes if kept else 0,
        file_bytes,
        view,
        lambda start: f"{folder}/{start:0{COMMIT_LOG_NAME_DIGITS}d}",
        files.read(CHECKPOINT_FILE) is not None,
    )
    sums = LogSums(file_bytes, first, view)
    mark = _mark(files)
    found = recover(layout, sums, mark, ())
    checked = [
        CheckedFile(layout.name(start), regions[start].size, last_byte(regions[start])) for start in starts
    ]
    by_start = dict(zip(starts, checked, strict=True))
    for start in starts:
        if start not in kept and (regions[start].size or start == starts[0] or start < found.end):
            by_start[start].damage.append(
                f"{regions[start].size} bytes, or at an offset that no other file leads to"
            )
    if found.damage is not None and found.damage.start in by_start:
        by_start[found.damage.start].damage.append(found.damage.what)
    told.again()
    behind = _count(layout, kept, by_start, found.end)
    torn_bytes = (
        max((start + by_start[start].used for start in kept if by_start[start].used), default=0) - found.end
    )
    damage = next(
        (each for file in checked for each in file.damage), found.damage.what if found.damage else ""
    )
    end = found.end
    if found.damage is not None and found.damage.at is None:
        end = min(end, found.damage.start)
    may_be_accepted = kept == starts
    return CheckedLog(
        mark, end, found.messages, behind, max(torn_bytes, 0), damage, checked, sums, may_be_accepted
    )


def _mark(files: FilesReader) -> FlushedMark | None:
    data = files.read(FLUSHED_FILE)
    try:
        return None if data is None else read_mark(data)
    except RemoteProtocolError:
        return None


def _file_bytes(starts: list[int], regions: dict[int, Region]) -> int:
    """The size that the files have, or should have."""
    sizes = [regions[start].size for start in starts if regions[start].size]
    return max(sizes, key=sizes.count) if sizes else COMMIT_LOG_FILE_BYTES


def _followed(starts: list[int], regions: dict[int, Region], file_bytes: int) -> list[int]:
    """The files from the first on that are whole and follow each other."""
    kept: list[int] = []
    for start in starts:
        if (
            regions[start].size != file_bytes
            or start % file_bytes
            or (kept and start != kept[-1] + file_bytes)
        ):
            break
        kept.append(start)
    return kept


def _count(layout: Layout, kept: list[int], by_start: dict[int, CheckedFile], end: int) -> int:
    """Count the messages of each file; returns how many whole ones lie behind the end."""
    behind = 0
    for start in kept:
        for found in _all_records(layout, start):
            by_start[start].messages += 1
            behind += found.offset >= end
    return behind


def _all_records(layout: Layout, start: int) -> Iterator[Placed]:
    """The whole records of one file, also behind what is none."""
    at: int | None = start
    limit = start + layout.file_bytes
    for _ in range(PLACES_MAX):
        if at is None or at >= limit:
            return
        for found in walk(layout.view, at, limit):
            if isinstance(found, Placed):
                yield found
                at = found.offset + found.size
            else:
                at = found
        at = next_record(layout.view, at + 1, limit)
