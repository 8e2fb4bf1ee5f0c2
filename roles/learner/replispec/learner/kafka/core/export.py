"""Committed records as JSON lines, each once, and a file that says how far they are.

Lines are put into the export, which is flushed; then the other file says how far each partition is and how
long the export is. Whoever begins again cuts what is beyond that, and reads it once more.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import dumps
from replispec.runtime.storage import (
    CutFile,
    FlushFiles,
    FoldersReader,
    Operation,
    ReplaceFile,
    StorageFailed,
    StorageFull,
)
from replispec.runtime.world import Persisted, Writes, Written
from replispec.wire.kafka import paths
from replispec.wire.kafka.learner import LearnedPosition, LearnedPositions
from replispec.wire.kafka.records import Record

PartitionName = tuple[str, int]
"""The topic and the number of a partition."""
LINES_AT_ONCE: Final = 5_000
"""So many lines are written in one go."""
EXPORT: Final = paths.LEARNER_EXPORT.at()
POSITIONS: Final = paths.LEARNER_POSITIONS.at()


class RecordExport:
    """`positions`: the first offset of each partition that is not exported, on the disk. `went_on` is called
    when more was written, `refused` with the reason when there was no room: `retry` tries again. Raises
    StorageFailed for a folder that is not a learner's, or that lacks records."""

    def __init__(
        self,
        writes: Writes,
        files: FoldersReader,
        went_on: Callable[[int], None],
        refused: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        self._writes = writes
        self._file = files.growing(EXPORT)
        self._went_on = went_on
        self._refused = refused
        self._failed = failed
        self._waiting: list[tuple[PartitionName, int, bytes]] = []
        self.waiting_bytes = 0
        self.written = 0
        self._is_writing = False
        self.positions, self._size = _known(files, self._file.size)

    @property
    def size(self) -> int:
        """How long the export is."""
        return self._size

    def begin(self) -> None:
        """Take the folder: cut what was not said to be there."""
        cut: list[Operation] = [CutFile(EXPORT, self._size)] if self._file.size > self._size else []
        self._persist(*cut, *self._positions_file())

    def put(self, partition: PartitionName, end: int, line: bytes) -> None:
        """Have a line written; the partition is at `end` then."""
        self._waiting.append((partition, end, line))
        self.waiting_bytes += len(line)

    def retry(self) -> None:
        """Write what waits, unless a write is under way."""
        if self._is_writing or not self._waiting:
            return
        some = self._waiting[:LINES_AT_ONCE]
        data = b"".join(line + b"\n" for _, _, line in some)
        try:
            self._file.append(self._size, data)
        except StorageFull as error:
            self._refused(str(error))
            return
        except StorageFailed as error:
            self._failed(str(error))
            return
        del self._waiting[: len(some)]
        self.waiting_bytes -= len(data) - len(some)
        self._size += len(data)
        self.written += len(some)
        self.positions.update({partition: end for partition, end, _ in some})
        self._persist(FlushFiles([EXPORT]), *self._positions_file())

    def _positions_file(self) -> Sequence[Operation]:
        found = [LearnedPosition(*each, offset) for each, offset in sorted(self.positions.items())]
        said = LearnedPositions(export_bytes=self._size, positions=found)
        return (ReplaceFile(POSITIONS, said.encode()),)

    def _persist(self, *operations: Operation) -> None:
        self._is_writing = True
        self._writes.persist(*operations, then=self._is_written)

    def _is_written(self, event: Written) -> None:
        self._is_writing = False
        if isinstance(event, Persisted):
            self._went_on(event.now_ms)
            self.retry()
        else:
            # What a failed flush left is not known: whoever begins again cuts it.
            self._failed(event.reason)


def _known(files: FoldersReader, size: int) -> tuple[dict[PartitionName, int], int]:
    """How far each partition is, and how much of the export that is."""
    data = files.read(POSITIONS)
    if data is None:
        if size:
            raise StorageFailed(f"{EXPORT} is there and {POSITIONS} is not: nothing says how far it is")
        return {}, 0
    try:
        said = LearnedPositions.decode(data)
    except RemoteProtocolError as error:
        raise StorageFailed(f"{POSITIONS} is damaged: {error}") from error
    if said.export_bytes > size:
        raise StorageFailed(f"{EXPORT} has {size} bytes, not the {said.export_bytes} that {POSITIONS} names")
    return {(each.topic, each.partition): each.offset for each in said.positions}, said.export_bytes


def record_line(partition: PartitionName, offset: int, time_ms: int, record: Record) -> bytes:
    """A record as a line."""
    topic, number = partition
    line: dict[str, Any] = {"topic": topic, "partition": number, "offset": offset, "time_ms": time_ms}
    line |= _said("key", record.key) if record.key is not None else {}
    line |= _said("value", record.value)
    if record.headers:
        line["headers"] = [[each.key, _said("value", each.value)] for each in record.headers]
    return dumps(line)


def cut_line(partition: PartitionName, offset: int) -> bytes:
    """A line that says that records from an offset on, which were exported, are lost."""
    topic, number = partition
    return dumps({"topic": topic, "partition": number, "cut": offset})


def _said(name: str, value: bytes | None) -> dict[str, Any]:
    """Bytes as a text, or in base64 under a name that says so."""
    try:
        return {name: None if value is None else bytes(value).decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode()}
