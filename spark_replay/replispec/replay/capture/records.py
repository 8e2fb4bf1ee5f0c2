"""What every capture reader shares: the columns of a packet index, splits, warnings, errors."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
ByteOrder = Literal["<", ">"]
Container = Literal["pcap", "pcapng"]

# A record that claims more bytes than this is damage, whatever the file's own limit says.
RECORD_BYTES_MAXIMUM = 64 * 1024 * 1024
# The link type of packets of which the file does not say on which interface they were.
NO_INTERFACE = -1


class CaptureError(Exception):
    """The file is no capture that can be read: which file, at which byte, and why."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}: {reason} (at byte {offset})")
        self.file = file
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CaptureWarning:
    """Something that was read around: the file's base name, the byte, and what happened.

    `unread`: packets that were captured, or may have been, are missing because of it.
    """

    file: str
    offset: int
    reason: str
    unread: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.reason} (at byte {self.offset})"


@dataclass(frozen=True, slots=True)
class Interface:
    """Where packets came from: link type, time unit, and what `snap_length` (bytes) cut them to."""

    link_type: int
    ticks_per_second: int = 10**6
    offset_s: int = 0
    snap_length: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, [from_ns, until_ns) in UTC; None has no border there."""

    from_ns: int | None = None
    until_ns: int | None = None

    def rows(self, time_ns: Integers) -> npt.NDArray[np.bool_]:
        """Which of these moments lie in it."""
        inside = np.ones(len(time_ns), np.bool_)
        if self.from_ns is not None:
            inside &= time_ns >= self.from_ns
        if self.until_ns is not None:
            inside &= time_ns < self.until_ns
        return inside


ALL_TIME = Window()


@dataclass(frozen=True, slots=True)
class Split:
    """The records that start in bytes [start, end) of a file, readable without what is before them.

    `path` is the file to map (the decompressed copy of a gzip file), `name` the base name to report.
    `base`: added to an offset of the file it is a position in the capture, which several files may hold.
    `capture`: what rows call that capture; `owner`: its number among those that are decoded together.
    `is_first`: no record of the capture comes before. Records outside of `window` are passed over.
    """

    path: str
    name: str
    number: int
    start: int
    end: int
    container: Container
    byte_order: ByteOrder
    interfaces: tuple[Interface, ...]
    is_first: bool = True
    base: int = 0
    capture: str = ""
    owner: int = 0
    window: Window = ALL_TIME


@dataclass(frozen=True, slots=True)
class Records:
    """Columns, one row a captured packet, in file order.

    `record_offset`: file offset of the record; `data_offset`: of its first captured byte;
    `captured`, `wire`: bytes kept and bytes seen; `time_ns`: UTC; `link_type`: per packet;
    `interface`: number of the capturing interface in its section, 0 where the file tells none.
    """

    record_offset: Integers
    data_offset: Integers
    captured: Integers
    wire: Integers
    time_ns: Integers
    link_type: Integers
    interface: Integers

    def take(self, rows: npt.NDArray[np.bool_]) -> Records:
        """The rows chosen by a mask."""
        return Records(*(getattr(self, item.name)[rows] for item in fields(self)))


class CaptureBytes(Protocol):
    """The bytes of a capture by position: a mapped file, or several of them one after the other."""

    def __getitem__(self, where: slice, /) -> bytes:
        """The bytes of a slice with start and stop, which lies in one record."""


class JoinedBytes:
    """Mapped files by position in the capture that they are parts of."""

    def __init__(self, files: Iterable[tuple[int, int, mmap.mmap]]) -> None:
        """`files`: where each starts, its base (see Split), and its bytes."""
        self._files = sorted(files, key=lambda file: file[0])
        self._starts = [start for start, _, _ in self._files]

    def __getitem__(self, where: slice, /) -> bytes:
        """See CaptureBytes."""
        _, base, data = self._files[bisect_right(self._starts, where.start) - 1]
        return data[where.start - base : where.stop - base]


def release(data: mmap.mmap, start: int, end: int) -> None:
    """Let go of the pages of a stretch of a mapped file: they are read again when somebody asks for them."""
    first = start - start % mmap.PAGESIZE
    data.madvise(mmap.MADV_DONTNEED, first, min(end, len(data)) - first)


class Words:
    """Unsigned 32-bit integers of one byte order, gathered at any file offsets at once."""

    def __init__(self, data: mmap.mmap, byte_order: ByteOrder) -> None:
        count = max(0, len(data) - 3)
        self._view: npt.NDArray[np.uint32] = np.ndarray((count,), byte_order + "u4", data, 0, (1,))

    def at(self, offsets: Integers) -> Integers:
        """The integers at the offsets; each offset and the three bytes after it must exist."""
        return self._view[offsets].astype(np.int64)
