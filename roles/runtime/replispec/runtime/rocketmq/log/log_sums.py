"""Checksums of what a commit log holds, file by file, also of what no record has a checksum of."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from replispec.wire.rocketmq.store import FlushedRun

STEP_BYTES_MAX: Final = 8 * 1024 * 1024
"""After a cut no more than this is read again."""


class LogSums:
    """The checksum of each file of a log up to `end`, which follows the log: `move` reads what lies between.

    `view` gives the bytes from an offset on, at most so many, none after the end of a file.
    """

    def __init__(self, file_bytes: int, first: int, view: Callable[[int, int], memoryview]) -> None:
        self._file_bytes = file_bytes
        self._view = view
        self.begin(first)

    def begin(self, first: int) -> None:
        """The log begins here, and nothing of it was read."""
        self.end = self._first = first
        self._crc = 0
        self._files: dict[int, int] = {}
        self._steps: dict[int, int] = {}

    def move(self, offset: int) -> None:
        """Read on, or back, to an offset."""
        self.forget_after(offset)
        while self.end < offset:
            start = self._start_of(self.end)
            within = self.end - start
            size = min(offset - self.end, self._file_bytes - within, STEP_BYTES_MAX - within % STEP_BYTES_MAX)
            self._crc = zlib.crc32(self._view(self.end, size), self._crc)
            self.end += size
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
        self.end = back
        self._files = {each: crc for each, crc in self._files.items() if each < start}
        self._steps = {each: crc for each, crc in self._steps.items() if each <= back}

    def delete_before(self, first: int) -> None:
        """The oldest files are gone."""
        if self.end < first:
            self.begin(first)
        self._first = first
        self._files = {each: crc for each, crc in self._files.items() if each >= first}

    def last(self) -> FlushedRun:
        """What was read of the file that holds the last byte."""
        start = self._start_of(self.end)
        if start == self.end > self._first:
            start -= self._file_bytes
            return FlushedRun(start, self.end, self._files[start])
        return FlushedRun(start, self.end, self._crc)

    def runs(self, last: FlushedRun) -> tuple[FlushedRun, ...]:
        """The runs of all files up to one that `last` gave, and that was not cut since."""
        whole = [
            FlushedRun(start, start + self._file_bytes, self._files[start])
            for start in range(self._first, last.start, self._file_bytes)
        ]
        return (*whole, last) if last.end > last.start else tuple(whole)

    def _start_of(self, offset: int) -> int:
        return offset - offset % self._file_bytes
