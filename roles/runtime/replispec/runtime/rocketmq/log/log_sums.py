"""Checksums of what a commit log holds, file by file, also of what no record has a checksum of."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable
from typing import Final, NamedTuple

from replispec.wire.rocketmq.constants import DIGEST_PIECE_BYTES
from replispec.wire.rocketmq.store import FlushedRun

STEP_BYTES_MAX: Final = 8 * DIGEST_PIECE_BYTES
"""After a cut no more than this is read again."""


class Summed(NamedTuple):
    """Checksums (CRC-32) of pieces of a log; the last one ends at `end`, and so many of its bytes were read
    for this."""

    sums: list[int]
    end: int
    read_bytes: int = 0


class Reached(NamedTuple):
    """How far a file was read: its CRC-32 up to a piece, and that of so many bytes behind.

    They are put together when somebody asks (`run`): who flushes often asks seldom, and no byte is summed
    twice.
    """

    start: int
    end: int
    crc: int = 0
    piece_crc: int = 0
    piece_bytes: int = 0

    @property
    def run(self) -> FlushedRun:
        """With the one checksum of the file's bytes from `start` to `end`."""
        return FlushedRun(self.start, self.end, _followed(self.crc, self.piece_bytes) ^ self.piece_crc)

    @classmethod
    def of(cls, run: FlushedRun) -> Reached:
        """A run of which the checksum is known."""
        return cls(run.start, run.end, piece_crc=run.crc)


class LogSums:
    """The checksum of each file of a log up to `end`, which follows the log: `move` reads what lies between.

    Of each piece of DIGEST_PIECE_BYTES, counted from the beginning of a file, the checksum is kept, too: four
    bytes a piece, and nothing is read a second time for it.

    `view` gives the bytes from an offset on, at most so many, none after the end of a file.
    """

    def __init__(self, file_bytes: int, first: int, view: Callable[[int, int], memoryview]) -> None:
        self._file_bytes = file_bytes
        self._in_file = -(-file_bytes // DIGEST_PIECE_BYTES)
        self._view = view
        self.begin(first)

    def begin(self, first: int) -> None:
        """The log begins here, and nothing of it was read."""
        self.end = self._first = first
        self._crc = self._piece_crc = 0
        self._files: dict[int, int] = {}
        self._steps: dict[int, int] = {}
        self._pieces = array("I")
        self._pieces_from = self._number_of(first)

    def move(self, offset: int) -> None:
        """Read on, or back, to an offset."""
        self.forget_after(offset)
        while self.end < offset:
            start = self._start_of(self.end)
            within = self.end - start
            in_piece = within % DIGEST_PIECE_BYTES
            size = min(offset - self.end, self._file_bytes - within, DIGEST_PIECE_BYTES - in_piece)
            self._piece_crc = zlib.crc32(self._view(self.end, size), self._piece_crc)
            self.end += size
            if self.end == start + self._file_bytes or in_piece + size == DIGEST_PIECE_BYTES:
                self._end_piece(start, in_piece + size)

    def _end_piece(self, start: int, size: int) -> None:
        """All of a piece was read, so many bytes of the file that begins at `start`."""
        self._pieces.append(self._piece_crc)
        self._crc = _followed(self._crc, size) ^ self._piece_crc
        self._piece_crc = 0
        if self.end == start + self._file_bytes:
            self._files[start], self._crc = self._crc, 0
        elif (self.end - start) % STEP_BYTES_MAX == 0:
            self._steps[self.end] = self._crc

    def holds(self, run: FlushedRun) -> bool:
        """Whether the log has this checksum there; reads on as far as that needs."""
        if run.end - run.start == self._file_bytes and run.end <= self.end:
            return self._files.get(run.start) == run.crc
        self.move(run.end)
        return self.last() == run

    def forget_after(self, offset: int) -> None:
        """The log is cut here: go back to before it, without reading."""
        offset = max(offset, self._first)
        if offset >= self.end:
            return
        start = self._start_of(offset)
        back = max(start + (offset - start) // STEP_BYTES_MAX * STEP_BYTES_MAX, self._first)
        self._crc = self._steps[back] if back > start else 0
        self._piece_crc = 0
        del self._pieces[self._number_of(back) - self._pieces_from :]
        self.end = back
        self._files = {each: crc for each, crc in self._files.items() if each < start}
        self._steps = {each: crc for each, crc in self._steps.items() if each <= back}

    def delete_before(self, first: int) -> None:
        """The oldest files are gone."""
        if self.end < first:
            self.begin(first)
        self._first = first
        self._files = {each: crc for each, crc in self._files.items() if each >= first}
        del self._pieces[: self._number_of(first) - self._pieces_from]
        self._pieces_from = self._number_of(first)

    def reached(self) -> Reached:
        """What was read of the file that holds the last byte."""
        start = self._start_of(self.end)
        if start == self.end > self._first:
            start -= self._file_bytes
            return Reached(start, self.end, piece_crc=self._files[start])
        piece = self._offset_of(self._number_of(self.end))
        return Reached(start, self.end, self._crc, self._piece_crc, self.end - piece)

    def last(self) -> FlushedRun:
        """The run of what was read of that file."""
        return self.reached().run

    def runs(self, last: FlushedRun) -> tuple[FlushedRun, ...]:
        """The runs of all files up to one that `last` gave, and that was not cut since."""
        whole = [
            FlushedRun(start, start + self._file_bytes, self._files[start])
            for start in range(self._first, last.start, self._file_bytes)
        ]
        return (*whole, last) if last.end > last.start else tuple(whole)

    def sums(self, start: int, end: int, at_most: int, *, may_read: bool = True) -> Summed:
        """Checksums of the pieces of a part of the log, from its beginning on, of at most so many. One that
        is cut, by the beginning or the end, or was not read yet, is the last: it is read for this, if it may
        be."""
        found: list[int] = []
        if start >= end:
            return Summed(found, start)
        number = self._number_of(start)
        if start == self._offset_of(number):
            until = min(self._number_of(end), number + at_most) - self._pieces_from
            found = self._pieces[number - self._pieces_from : until].tolist()
            start = self._offset_of(number + len(found))
        if start >= end or len(found) >= at_most or not may_read:
            return Summed(found, start)
        ends = min(end, self._offset_of(self._number_of(start) + 1))
        found.append(zlib.crc32(self._view(start, ends - start)))
        return Summed(found, ends, ends - start)

    def piece(self, number: int, start: int, end: int) -> tuple[int, int]:
        """Where a piece of a part of the log begins and ends, counted from 0 on."""
        first = self._number_of(start) + number
        return max(start, self._offset_of(first)), min(end, self._offset_of(first + 1))

    def _number_of(self, offset: int) -> int:
        """Which piece of the set's log begins at an offset, or holds it."""
        files, within = divmod(offset, self._file_bytes)
        return files * self._in_file + within // DIGEST_PIECE_BYTES

    def _offset_of(self, number: int) -> int:
        """Where a piece begins."""
        files, within = divmod(number, self._in_file)
        return files * self._file_bytes + within * DIGEST_PIECE_BYTES

    def _start_of(self, offset: int) -> int:
        return offset - offset % self._file_bytes


def _followed(crc: int, size: int) -> int:
    """The CRC-32 of some bytes, moved to where that of `size` bytes behind them is added (exclusive or) to
    get the one of both; `size` is at most DIGEST_PIECE_BYTES."""
    for bit, columns in enumerate(_MOVED):
        if size >> bit & 1:
            crc = _moved(columns, crc)
    return crc


def _moved(columns: list[int], crc: int) -> int:
    moved = 0
    for column in columns:
        if crc & 1:
            moved ^= column
        crc >>= 1
    return moved


def _moved_by_zeros() -> list[list[int]]:
    """What each bit of a CRC-32 becomes by 1, 2, 4, ... zeros up to a piece of them: the map is linear, and
    doubled by being done twice."""
    columns = [zlib.crc32(b"\0", 1 << bit) ^ zlib.crc32(b"\0") for bit in range(32)]
    found = [columns]
    while 1 << len(found) <= DIGEST_PIECE_BYTES:
        columns = [_moved(columns, column) for column in columns]
        found.append(columns)
    return found


_MOVED: Final = _moved_by_zeros()
