"""What a start need not read again: where the messages of each queue lie, but for the newest part of the log.

A checkpoint names the checksums of the log that it is of, and counts where the log has them: it is a memory
of what was read, and nothing rests on it. One that is missing, late, damaged or of a log that was cut since
costs the time to read that part again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.flushed_file import FlushedMark
from replispec.runtime.rocketmq.log.log_sums import LogSums
from replispec.runtime.rocketmq.log.queue_index import QueueIndex
from replispec.runtime.storage import FilesReader, Operation, RemoveFile, ReplaceFile, StorageFailed
from replispec.wire.rocketmq.constants import (
    CHECKPOINT_MESSAGES,
    CHECKPOINT_PARTS,
    COMMIT_LOG_NAME_DIGITS,
    INDEX_FOLDER,
)
from replispec.wire.rocketmq.store import Checkpoint, CheckpointFile, CheckpointRun, FlushedRun


class _Part(NamedTuple):
    """A part of the log of which there is a checkpoint: offsets, and messages up to its end."""

    start: int
    end: int
    messages: int


class Checkpoints:
    """The checkpoints of one log. `end`: up to where there are some, without a gap from its first byte on.

    `index` gets what they hold, and is what the next ones are made of.
    """

    def __init__(self, files: FilesReader, index: QueueIndex, file_bytes: int) -> None:
        self._files = files
        self._index = index
        self._step_bytes = max(1, file_bytes // CHECKPOINT_PARTS)
        self._parts: list[_Part] = []
        # Files that are of no use any more.
        self._stale: set[int] = set()
        # How the log was when the next one fell due; consumers' positions may lag behind it.
        self._due: Sequence[FlushedRun] = ()
        self._before: tuple[_Part, ...] | None = None
        self.end = self._kept = 0

    @property
    def kept(self) -> int:
        """Up to where they are on the disk: queues of which all messages before it are deleted are known."""
        return min(self._kept, self.end)

    # Starting

    def load(self, first: int, sums: LogSums, mark: FlushedMark) -> tuple[int, int]:
        """Take over what is right, of a log that begins at `first` and was on the disk up to `mark`; returns
        where the rest begins, and how many messages lie before it. `sums` has read the log up to there."""
        self.end = first
        starts = sorted(int(name) for name in self._files.names(INDEX_FOLDER) if _is_start(name))
        self._stale = set(starts)
        for start in starts[max(0, bisect_right(starts, first) - 1) :]:
            found = self._read(start)
            is_right = found is not None and self._is_next(found, first, mark) and _holds(found, first, sums)
            if found is not None and is_right and self._index.load(found, first):
                self._stale.discard(start)
                self._parts.append(_Part(found.start, found.until, self._index.count))
                self.end = found.until
        self._kept = self.end
        return self.end, self._index.count

    def _read(self, start: int) -> Checkpoint | None:
        try:
            file = CheckpointFile.decode(self._files.read(_name(start)) or b"")
            return Checkpoint.decode(file.content) if file.crc_holds else None
        except (RemoteProtocolError, StorageFailed):
            return None

    def _is_next(self, found: Checkpoint, first: int, mark: FlushedMark) -> bool:
        """Whether it goes on where those before end. Of the first one the beginning may be deleted."""
        follows = found.start == self.end or (not self._parts and found.start < first)
        return follows and self.end < found.until <= mark.offset

    # Making

    def wanted(self, first: int, flushed: Sequence[FlushedRun], *, stops: bool = False) -> list[Operation]:
        """What is to be written after the note that the log was on the disk with these checksums; nothing as
        long as little was added, unless the process `stops`. `failed` takes it back."""
        self._before = None
        self.end = max(self.end, first)
        end = flushed[-1].end if flushed else 0
        if not self._due and self._is_due(end, stops=stops):
            self._due = tuple(flushed)
        if not self._due or self._index.read < self._due[-1].end:
            return []
        due, self._due = self._due, ()
        self._before = tuple(self._parts)
        start = self.end
        if self._parts and self._parts[-1].end - self._parts[-1].start < self._step_bytes:
            # Many starts leave one file.
            start = self._parts.pop().start
        file = self._written(max(start, first), due)
        self._stale.discard(max(start, first))
        gone: list[Operation] = [RemoveFile(_name(each)) for each in sorted(self._stale)]
        self._stale.clear()
        return [*gone, file]

    def written(self) -> None:
        """What was wanted last is on the disk."""
        self._kept = self.end

    def failed(self) -> None:
        """What was wanted last is not there."""
        if self._before is not None:
            self._parts, self._before = list(self._before), None
            self.end = self._parts[-1].end if self._parts else 0

    def _is_due(self, end: int, *, stops: bool) -> bool:
        counted = self._parts[-1].messages if self._parts else 0
        is_much = end - self.end >= self._step_bytes or self._index.count - counted >= CHECKPOINT_MESSAGES
        return end > self.end and (stops or is_much)

    def _written(self, start: int, flushed: Sequence[FlushedRun]) -> ReplaceFile:
        end = flushed[-1].end
        queues = self._index.part(start, end)
        runs = [CheckpointRun(each.start, each.end, each.crc) for each in flushed if each.end > start]
        content = Checkpoint(start, end, self._index.count, runs, queues).encode()
        self._parts.append(_Part(start, end, self._index.count))
        self.end = end
        return ReplaceFile(_name(start), CheckpointFile(content=content).encode())

    # Cutting

    def truncated(self, offset: int) -> None:
        """The log is cut at an offset: what reaches behind it is another log's."""
        if self._due and self._due[-1].end > offset:
            self._due = ()
        while self._parts and self._parts[-1].end > offset:
            self._stale.add(self._parts.pop().start)
        self.end = self._parts[-1].end if self._parts else 0
        self._before = None

    def deleted(self, first: int) -> None:
        """The log begins here now. The checkpoint over its first byte stays: it has the positions of queues
        of which no message is left."""
        while len(self._parts) > 1 and self._parts[0].end <= first:
            self._stale.add(self._parts.pop(0).start)
        self._before = None


def _holds(found: Checkpoint, first: int, sums: LogSums) -> bool:
    """Whether the log has the checksums that it was made of, up to its end."""
    runs = [FlushedRun(each.start, each.until, each.crc) for each in found.runs if each.until > first]
    return bool(runs) and runs[-1].end == found.until and all(sums.holds(each) for each in runs)


def _is_start(name: str) -> bool:
    return name.isdecimal() and len(name) == COMMIT_LOG_NAME_DIGITS


def _name(start: int) -> str:
    return f"{INDEX_FOLDER}/{start:0{COMMIT_LOG_NAME_DIGITS}d}"
