"""What every capture reader shares: the columns of a packet index, splits, warnings, errors."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
ByteOrder = Literal["<", ">"]
Container = Literal["pcap", "pcapng"]

# A record that claims more bytes than this is damage, whatever the file's own limit says.
RECORD_BYTES_MAXIMUM = 64 * 1024 * 1024


class CaptureError(Exception):
    """The file is no capture that can be read: which file, at which byte, and why."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}: {reason} (at byte {offset})")
        self.file = file
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CaptureWarning:
    """Something that was read around: the file's base name, the byte, and what happened."""

    file: str
    offset: int
    reason: str

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
class Split:
    """The records that start in bytes [start, end) of a file, readable without what is before them.

    `path` is the file to map (the decompressed copy of a gzip file), `name` the base name to report.
    `is_first`: no record of the file comes before.
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


@dataclass(frozen=True, slots=True)
class Records:
    """Columns, one row a captured packet, in file order.

    `record_offset`: file offset of the record; `data_offset`: of its first captured byte;
    `captured`, `wire`: bytes kept and bytes seen; `time_ns`: UTC; `link_type`: per packet.
    """

    record_offset: Integers
    data_offset: Integers
    captured: Integers
    wire: Integers
    time_ns: Integers
    link_type: Integers


class Words:
    """Unsigned 32-bit integers of one byte order, gathered at any file offsets at once."""

    def __init__(self, data: mmap.mmap, byte_order: ByteOrder) -> None:
        count = max(0, len(data) - 3)
        self._view: npt.NDArray[np.uint32] = np.ndarray((count,), byte_order + "u4", data, 0, (1,))

    def at(self, offsets: Integers) -> Integers:
        """The integers at the offsets; each offset and the three bytes after it must exist."""
        return self._view[offsets].astype(np.int64)
