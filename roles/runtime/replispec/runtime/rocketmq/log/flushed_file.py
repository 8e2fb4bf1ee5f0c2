"""Up to where a commit log once was on the disk, and what it was there: so rot is told from a torn tail.

A crash takes only bytes that were not flushed. A log that ends before what this file names, or is another
one there, was damaged later: to go on would throw away messages that were acknowledged, at replicas too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import offset_line
from replispec.runtime.storage import FilesReader, Operation, RemoveFile, ReplaceFile
from replispec.runtime.world import Level
from replispec.wire.rocketmq.constants import FLUSHED_FILE
from replispec.wire.rocketmq.store import FlushedRun, FlushedRuns


class Saying(NamedTuple):
    """A line for the log of the process."""

    level: Level
    what: str
    values: Mapping[str, object]


class FlushedMark(NamedTuple):
    """The log was on the disk up to `offset`. `runs`: with these checksums; None: a release of ours before,
    which kept none."""

    offset: int
    runs: tuple[FlushedRun, ...] | None


NO_MARK: Final = FlushedMark(0, ())
"""Nothing is known to have been on the disk."""


class FlushedFile:
    """The mark on the disk. It may lag behind, and is set back before a cut below it reaches the disk.

    `mark` is what the file says; None when it is not there, or (`said` tells why) cannot be read. Then the
    first write is the mark, so that from then on a missing one tells something.
    """

    def __init__(self, files: FilesReader) -> None:
        data = files.read(FLUSHED_FILE)
        self.said: list[Saying] = []
        self.mark: FlushedMark | None = None
        if data is not None:
            try:
                self.mark = read_mark(data)
            except RemoteProtocolError as error:
                values = {"file": FLUSHED_FILE, "reason": str(error)}
                self.said.append(
                    Saying(Level.WARNING, "the note of what was on the disk cannot be read", values)
                )
        # The largest that may be on the disk.
        self._asked = self.mark.offset if self.mark is not None else 0
        self._is_wrong = self.mark is None
        self._has_no_room = False
        # Counts what makes the mark wrong, so that what comes while it is being set back is not forgotten.
        self._changes = self._claimed = 0
        self._lowest = 0

    @property
    def is_wrong(self) -> bool:
        """Whether it has to be written anew before a byte of the log changes."""
        return self._is_wrong

    def truncated(self, offset: int) -> None:
        """The log is cut here."""
        if offset < self._asked:
            self._is_wrong = True
            self._changes += 1

    def deleted(self) -> None:
        """The oldest files of the log go."""
        self._is_wrong = True
        self._changes += 1

    def lags(self, flushed: int) -> bool:
        """Whether the log is on the disk further than is noted."""
        return not self._is_wrong and flushed > self._asked

    def forwarded(self, runs: Sequence[FlushedRun]) -> ReplaceFile:
        """What is to be written now that the log is on the disk so far; when it cannot be, the older mark is
        as true."""
        self._asked = max(self._asked, _offset(runs))
        return written(runs)

    def set_back(self, runs: Sequence[FlushedRun]) -> Operation:
        """What is to be written before a cut. Where there is no room even for that the file goes."""
        self._claimed, self._lowest = self._changes, _offset(runs)
        return RemoveFile(FLUSHED_FILE) if self._has_no_room else written(runs)

    def is_set_back(self) -> None:
        """What `set_back` gave is on the disk."""
        self._asked, self._has_no_room = self._lowest, False
        self._is_wrong = self._claimed != self._changes

    def no_room(self) -> None:
        """There was no room for what `set_back` gave."""
        self._has_no_room = self._is_wrong


def read_mark(data: bytes) -> FlushedMark:
    """The mark that a file holds. Raises RemoteProtocolError."""
    if b" " in data:
        return FlushedMark(offset_line.decoded(data), None)
    runs = tuple(FlushedRuns.decode(data).runs)
    if any(before.end != after.start for before, after in pairwise(runs)):
        raise RemoteProtocolError("its runs do not follow each other", offset=0)
    return FlushedMark(_offset(runs), runs)


def _offset(runs: Sequence[FlushedRun]) -> int:
    return runs[-1].end if runs else 0


def written(runs: Sequence[FlushedRun]) -> ReplaceFile:
    """What makes the file say this."""
    return ReplaceFile(FLUSHED_FILE, FlushedRuns(runs=list(runs)).encode())


def beyond(offset: int) -> ReplaceFile:
    """What makes the file say that more was on the disk than is there: a log that ends before this offset is
    refused, whatever else is in it."""
    return ReplaceFile(FLUSHED_FILE, offset_line.encoded(offset))
