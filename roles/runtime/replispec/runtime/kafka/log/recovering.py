"""What a folder of one partition holds, found out at the start.

After a crash each segment from the recovery point on is read, checksums and all; the log ends before the
first batch that is not whole, and what lies behind it goes. What lies before the recovery point was on the
disk: a log that ends there was damaged, and is refused.
Source: apache/kafka 2.8.2, Log.loadSegments, LogSegment.recover.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from replispec.runtime.kafka.log.epoch_cache import LogEpochs
from replispec.runtime.kafka.log.partition_log import PartitionLog
from replispec.runtime.kafka.log.segment import LogSegment
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import CutFile, FoldersReader, Operation, RemoveFile, StorageFailed
from replispec.wire.kafka import paths
from replispec.wire.kafka.folder import EpochCheckpoint


class KnownPoints(NamedTuple):
    """What the checkpoints of a folder say of one log; `was_left_in_order`: its broker ended in order."""

    recovery_point: int
    high_watermark: int
    start: int
    was_left_in_order: bool


class LogFinding(NamedTuple):
    """What was found of a log: how it ends, and how many bytes behind its end are no batches."""

    topic: str
    partition: int
    start: int
    end: int
    torn_bytes: int
    segments_dropped: int


def open_log(files: FoldersReader, log: PartitionLog, known: KnownPoints, now_ms: int) -> LogFinding:
    """Make `log` what the folder of its partition holds. Raises StorageFailed."""
    folder = paths.FOLDER_LOG.at(topic=log.topic, partition=log.partition)
    names = files.names(folder)
    repairs: list[Operation] = []
    bases = []
    for name in names:
        path = f"{folder}/{name}"
        segment = paths.FOLDER_SEGMENT.read(path)
        if segment is not None:
            bases.append(int(segment["base_offset"]))
        elif paths.FOLDER_SWAPPED_FILE.read(path) is not None:
            raise StorageFailed(
                f"{path}: a segment was being swapped: start Apache Kafka on this folder once"
            )
        elif paths.FOLDER_DELETED_FILE.read(path) or paths.FOLDER_UNFINISHED_FILE.read(path):
            repairs.append(RemoveFile(path))
    found = _Found(files, log, known, now_ms, repairs)
    found.read(sorted(bases))
    return found.settle()


class _Found:
    """The segments of one log while they are read."""

    def __init__(
        self,
        files: FoldersReader,
        log: PartitionLog,
        known: KnownPoints,
        now_ms: int,
        repairs: list[Operation],
    ) -> None:
        self._files = files
        self._log = log
        self._known = known
        self._now_ms = now_ms
        self._repairs = repairs
        self._segments: list[LogSegment] = []
        self._torn_bytes = self._dropped = 0
        epochs = _epochs_in(files, log)
        self._log.epochs = LogEpochs() if epochs is None else epochs
        if not known.was_left_in_order:
            # The file is older than what was cut or put since: that is read off the batches.
            self._log.epochs.end_at(known.recovery_point)
        # Where nothing is known of epochs they are read off all batches.
        self._knows_epochs = epochs is not None

    def read(self, bases: Sequence[int]) -> None:
        """Read the segments that begin at these offsets, as far as they are whole."""
        for number, base in enumerate(bases):
            next_base = bases[number + 1] if number + 1 < len(bases) else None
            segment = LogSegment(
                self._files, self._log.topic, self._log.partition, base, created_ms=self._now_ms
            )
            is_checked = not self._known.was_left_in_order and (
                next_base is None or next_base > self._known.recovery_point
            )
            if self._segments and (base < self._end or (is_checked and base != self._end)):
                self._drop(bases[number:])
                return
            self._segments.append(segment)
            if not self._take(segment, next_base, is_checked=is_checked):
                self._drop(bases[number + 1 :])
                return

    @property
    def _end(self) -> int:
        return self._segments[-1].next_offset if self._segments else 0

    def _take(self, segment: LogSegment, next_base: int | None, *, is_checked: bool) -> bool:
        """Read one segment; whether it is whole."""
        if self._knows_epochs and not is_checked and next_base is not None and segment.trust(next_base):
            return True
        for each in segment.scan(self._log.settings.index_interval_bytes, checked=is_checked):
            self._log.epochs.learn(each.head.partition_leader_epoch, each.head.base_offset)
        torn = segment.file_size - segment.size
        if torn and not is_checked:
            raise StorageFailed(f"{segment.name}: there is no batch at byte {segment.size}")
        if next_base is None or torn:
            self._repairs.extend(segment.no_index_files())
        elif not is_checked:
            segment.next_offset = max(segment.next_offset, next_base)
        if torn:
            self._torn_bytes += torn
            self._repairs.append(CutFile(segment.name, segment.size))
        return not torn

    def _drop(self, bases: Sequence[int]) -> None:
        self._dropped += len(bases)
        for base in reversed(bases):
            gone = LogSegment(self._files, self._log.topic, self._log.partition, base, created_ms=0)
            self._repairs.extend(gone.removed())

    def settle(self) -> LogFinding:
        """Hand all of it to the log. Raises StorageFailed for one that ends before its recovery point."""
        log, known = self._log, self._known
        if self._end < known.recovery_point:
            last = f", byte {self._segments[-1].size} of {self._segments[-1].name}" if self._segments else ""
            raise StorageFailed(
                f"{log.topic}-{log.partition} was on the disk up to offset {known.recovery_point}, and ends"
                f" at {self._end}{last}: it was damaged. Remove the folder of this partition to copy it"
                f" again, or its line in {paths.FOLDER_RECOVERY_POINTS.at()} to go on with what is left"
            )
        if self._segments:
            log.recovery_point = known.recovery_point
            log.take_over(self._segments, known.start, self._repairs)
        else:
            log.make()
        log.epochs.end_at(log.end)
        log.epochs.begin_at(log.start)
        log.high_watermark = min(max(known.high_watermark, log.start), log.end)
        return LogFinding(log.topic, log.partition, log.start, log.end, self._torn_bytes, self._dropped)


def _epochs_in(files: FoldersReader, log: PartitionLog) -> LogEpochs | None:
    """The epochs that the file of a log names; None when there is none, or it is not what it says."""
    data = files.read(paths.FOLDER_EPOCHS.at(topic=log.topic, partition=log.partition))
    try:
        return None if data is None else LogEpochs(EpochCheckpoint.decode(data).epochs)
    except RemoteProtocolError:
        return None
