"""A folder of logs, as one broker has it: its logs, and the files that say of all of them how far they are.

`begin_write` gives everything that is to be done for all that was put into any log to be on the disk: one
flush for what many partitions wait for. One such write is under way at a time. Nothing is appended before the
first of them is done, which takes the folder from whoever had it before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from replispec.runtime.kafka.log.partition_log import PartitionLog
from replispec.runtime.kafka.log.recovering import KnownPoints, LogFinding, open_log
from replispec.runtime.kafka.log.settings import PartitionLogSettings
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import (
    FlushFiles,
    FoldersReader,
    Operation,
    RemoveFile,
    RemoveFolder,
    RenameFolder,
    ReplaceFile,
    StorageFailed,
)
from replispec.wire.kafka import paths
from replispec.wire.kafka.folder import MetaProperties, OffsetCheckpoint, PartitionOffset

EPOCH_FILES_MAX: Final = 64
"""So many files of epochs are written with one checkpoint; recovery points of others stay until theirs is."""

Key = tuple[str, int]


class LogFolder:
    """All logs of a folder, by topic and partition. Raises StorageFailed for a folder that cannot be read, or
    a log in it that was damaged; `findings` tell how each was found."""

    def __init__(self, files: FoldersReader, settings: PartitionLogSettings, now_ms: int) -> None:
        self.logs: Final[dict[Key, PartitionLog]] = {}
        self.settings: Final = settings
        self.findings: Final[list[LogFinding]] = []
        self._files = files
        self._now_ms = now_ms
        self._taken = False
        self._wants_checkpoint = False
        self._before: list[Operation] = []
        self._gone: list[Operation] = []
        # Logs that were given up and whose folders may still be there; those of them that the write takes.
        self._leaving: set[Key] = set()
        self._left: set[Key] = set()
        # What was asked for and is not known to be done.
        self._refused: tuple[Operation, ...] = ()
        # Recovery points as the file says them, and as it will say them when the write under way is done.
        self._points: dict[Key, int] = {}
        self._wrote: list[PartitionLog] = []
        self.was_left_in_order: Final = files.read(paths.FOLDER_CLEAN_SHUTDOWN.at()) is not None
        self.identity: MetaProperties | None = self._read_identity()
        self._open_logs()

    def _read_identity(self) -> MetaProperties | None:
        data = self._files.read(paths.FOLDER_IDENTITY.at())
        try:
            return None if data is None else MetaProperties.decode(data)
        except RemoteProtocolError as error:
            raise StorageFailed(f"{paths.FOLDER_IDENTITY.at()}: {error}") from error

    def _open_logs(self) -> None:
        points = self._checkpoint_in(paths.FOLDER_RECOVERY_POINTS.at())
        marks = self._checkpoint_in(paths.FOLDER_OFFSETS.at())
        starts = self._checkpoint_in(paths.FOLDER_LOG_STARTS.at())
        for name in self._files.folders():
            if paths.FOLDER_DELETED_LOG.read(name) is not None:
                self._before.append(RemoveFolder(name))
                continue
            found = paths.FOLDER_LOG.read(name)
            if found is None:
                continue
            key = str(found["topic"]), int(found["partition"])
            log = PartitionLog(self._files, *key, self.settings, self._now_ms)
            known = KnownPoints(
                points.get(key, 0), marks.get(key, 0), starts.get(key, 0), self.was_left_in_order
            )
            self.findings.append(open_log(self._files, log, known, self._now_ms))
            self.logs[key] = log
            self._points[key] = log.recovery_point
        if self.was_left_in_order:
            self._before.append(RemoveFile(paths.FOLDER_CLEAN_SHUTDOWN.at()))

    def _checkpoint_in(self, name: str) -> dict[Key, int]:
        """What a checkpoint says; nothing when it is not there or is not what it says."""
        data = self._files.read(name)
        try:
            found = OffsetCheckpoint() if data is None else OffsetCheckpoint.decode(data)
        except RemoteProtocolError:
            return {}
        return {(each.topic, each.partition): each.offset for each in found.partitions}

    # Its logs

    @property
    def is_taken(self) -> bool:
        """Whether the first write is done, so that logs may be changed."""
        return self._taken

    def identify(self, broker_id: int, cluster_id: str) -> None:
        """The folder is this broker's of this cluster, from the next write on."""
        self.identity = MetaProperties(broker_id=broker_id, cluster_id=cluster_id)
        self._before.append(ReplaceFile(paths.FOLDER_IDENTITY.at(), self.identity.encode()))

    def make(self, topic: str, partition: int, now_ms: int) -> PartitionLog:
        """A new, empty log; the one that is there, if there is one. Raises StorageFailed."""
        assert self.may_make(topic, partition), f"{topic}-{partition} is made while its folder goes"
        key = (topic, partition)
        if key not in self.logs:
            log = PartitionLog(self._files, topic, partition, self.settings, now_ms)
            log.make()
            self.logs[key] = log
        return self.logs[key]

    def may_make(self, topic: str, partition: int) -> bool:
        """Whether a log that had this name is gone for good, or there was none."""
        return self._taken and (topic, partition) not in self._leaving

    def delete(self, topic: str, partition: int, unique: str) -> None:
        """Give a log up: it is gone after the next write, whatever becomes of its files."""
        log = self.logs.pop((topic, partition))
        self._points.pop((topic, partition), None)
        name = paths.FOLDER_LOG.at(topic=log.topic, partition=log.partition)
        gone = paths.FOLDER_DELETED_LOG.at(topic=log.topic, partition=log.partition, unique=unique)
        self._leaving.add((topic, partition))
        self._gone.extend((RenameFolder(name, gone), RemoveFolder(gone)))

    # Bringing it to the disk

    def checkpoint(self) -> None:
        """Have noted with the next write how far all logs are on the disk and committed."""
        self._wants_checkpoint = True

    def begin_write(self) -> tuple[Operation, ...]:
        """What is to be done, in order, for everything in the logs to be on the disk; nothing when it is.

        Only when the write before is done, or was refused: then all of it is asked for again."""
        self._left = set(self._leaving)
        found: list[Operation] = [*self._refused, *self._before, *self._lowered()]
        names: list[str] = []
        after: list[Operation] = []
        written = [log for log in self.logs.values() if not log.is_clean]
        self._wrote.extend(written)
        for log in written:
            first, flushed, last = log.begin_write()
            found.extend(first)
            names.extend(flushed)
            after.extend(last)
        if names:
            found.append(FlushFiles(names))
        found.extend((*after, *self._gone))
        self._before, self._gone = [], []
        if self._wants_checkpoint:
            found.extend(self._checkpoints(EPOCH_FILES_MAX))
        self._refused = tuple(found)
        return self._refused

    def end_write(self) -> None:
        """The write that was begun last is done."""
        self._taken = True
        self._refused = ()
        self._leaving -= self._left
        self._left = set()
        for log in self._wrote:
            log.end_write()
        self._wrote = []

    def stop_write(self) -> tuple[Operation, ...]:
        """What is to be done, in order, when the process ends in order."""
        self._wants_checkpoint = False
        found = [*self.begin_write(), *self._checkpoints(len(self.logs))]
        return (*found, ReplaceFile(paths.FOLDER_CLEAN_SHUTDOWN.at(), b""))

    def _lowered(self) -> list[Operation]:
        """The write of recovery points, when logs are being cut below theirs: it goes before the cut."""
        lowered = {
            key: log.recovery_point
            for key, log in self.logs.items()
            if log.recovery_point < self._points.get(key, 0)
        }
        self._points.update(lowered)
        return [_points_file(self._points)] if lowered else []

    def _checkpoints(self, epoch_files_max: int) -> Iterable[Operation]:
        """The writes of all checkpoints, given that all that was put is on the disk before them."""
        self._wants_checkpoint = False
        changed = [log for log in self.logs.values() if log.epochs.is_changed]
        for log in changed[:epoch_files_max]:
            log.epochs.is_changed = False
            name = paths.FOLDER_EPOCHS.at(topic=log.topic, partition=log.partition)
            yield ReplaceFile(name, log.epochs.encode())
        for key, log in self.logs.items():
            if not log.epochs.is_changed:
                log.recovery_point = log.claimed
            self._points[key] = log.recovery_point
        self._wants_checkpoint = len(changed) > epoch_files_max
        yield _points_file(self._points)
        yield _offsets_file(
            paths.FOLDER_OFFSETS.at(), {key: log.high_watermark for key, log in self.logs.items()}
        )
        starts = {key: log.start for key, log in self.logs.items() if log.start > log.first_base}
        yield _offsets_file(paths.FOLDER_LOG_STARTS.at(), starts)


def _points_file(points: dict[Key, int]) -> Operation:
    return _offsets_file(paths.FOLDER_RECOVERY_POINTS.at(), points)


def _offsets_file(name: str, offsets: dict[Key, int]) -> Operation:
    lines = [PartitionOffset(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    return ReplaceFile(name, OffsetCheckpoint(lines).encode())
