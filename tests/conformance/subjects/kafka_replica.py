"""A replica of a scripted broker: its batches, its ISR, and what its followers have."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from replispec.runtime.primitives.binary import VersionedBinary
from replispec.wire.kafka.codes import BatchAttribute, ErrorCode
from replispec.wire.kafka.records import RecordBatch, RecordBatchFixed

PLACES = RecordBatchFixed.places()
HEAD = sum(PLACES["records_count"])
AFTER = sum(PLACES["batch_length"])
Key = tuple[str, int]
ZEROS = bytes(4096)


@dataclass
class KeptBatch:
    """One batch of a log."""

    first: int
    end: int
    epoch: int
    time: int
    data: bytes


@dataclass
class ScriptedReplica:
    """What a broker has of a partition, and what it was told of it."""

    key: Key
    log: list[KeptBatch] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)  # each with where it begins
    start: int = 0
    hw: int = 0
    leader: int = -1
    epoch: int = -1
    isr: tuple[int, ...] = ()
    assigned: tuple[int, ...] = ()
    version: int = 0
    decided_by: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    caught_s: dict[int, float] = field(default_factory=dict)
    place: tuple[str, int] | None = None

    @property
    def end(self) -> int:
        """Where the log ends."""
        return self.log[-1].end if self.log else self.start

    def cut(self, end: int) -> None:
        """The log ends here now."""
        self.log = [each for each in self.log if each.end <= end]
        self.epochs = [each for each in self.epochs if each[1] < self.end or each[1] == 0]
        self.hw = min(self.hw, self.end)

    def keep(self, data: bytes) -> None:
        """Append what a leader gave, as it is."""
        for head, batch in split(data):
            if head.base_offset < self.end:
                return
            if not self.log:
                self.start = head.base_offset
            if not self.epochs or self.epochs[-1][0] < head.partition_leader_epoch:
                self.epochs.append((head.partition_leader_epoch, head.base_offset))
            end = head.base_offset + head.last_offset_delta + 1
            kept = KeptBatch(head.base_offset, end, head.partition_leader_epoch, head.max_timestamp, batch)
            self.log.append(kept)

    def append(self, data: bytes, epoch: int) -> int:
        """Append what a producer sent; where it lies."""
        first = self.end
        batch = bytearray(data)
        at, size = PLACES["base_offset"]
        batch[at : at + size] = first.to_bytes(size, "big")
        at, size = PLACES["partition_leader_epoch"]
        batch[at : at + size] = epoch.to_bytes(size, "big", signed=True)
        head = RecordBatchFixed.decode(batch)
        end = first + head.last_offset_delta + 1
        self.log.append(KeptBatch(first, end, epoch, head.max_timestamp, bytes(batch)))
        return first

    def epoch_end(self, asked: int) -> tuple[int, int]:
        """The largest epoch that is not newer, and where it ends; -1 for what is not known."""
        if not self.epochs or asked > self.epochs[-1][0]:
            return -1, -1
        if asked == self.epochs[-1][0]:
            return asked, self.end
        older = [epoch for epoch, _ in self.epochs if epoch <= asked]
        end = next(start for epoch, start in self.epochs if epoch > asked)
        return (older[-1] if older else asked), end


def split(data: bytes) -> Sequence[tuple[RecordBatchFixed, bytes]]:
    """The whole batches of what a leader gave, up to the first one that is damaged."""
    found, at = [], 0
    while len(data) - at >= HEAD:
        head = RecordBatchFixed.decode(data, at)
        end = at + AFTER + head.batch_length
        if end > len(data) or not RecordBatchFixed.crc_holds(data, at, end):
            break
        found.append((head, data[at:end]))
        at = end
    return found


def fault_of(data: bytes) -> ErrorCode:
    """What is wrong with what a producer sent."""
    if len(data) < HEAD:
        return ErrorCode.CORRUPT_MESSAGE if data else ErrorCode.INVALID_RECORD
    head = RecordBatchFixed.decode(data)
    if head.magic != RecordBatch.magic:
        return ErrorCode.INVALID_RECORD
    end = AFTER + head.batch_length
    if head.batch_length < HEAD - AFTER or end > len(data):
        return ErrorCode.CORRUPT_MESSAGE
    if end != len(data):
        return ErrorCode.INVALID_RECORD
    if not RecordBatchFixed.crc_holds(data, 0, end):
        return ErrorCode.CORRUPT_MESSAGE
    if head.producer_id != -1:
        return ErrorCode.INVALID_REQUEST
    counted = head.records_count >= 1 and head.records_count == head.last_offset_delta + 1
    is_mark = head.attributes & BatchAttribute.CONTROL
    return ErrorCode.NONE if counted and not is_mark else ErrorCode.INVALID_RECORD


def whole(message: Any, version: int) -> Any:
    """A message with zeros in the fields that its version has and nobody said."""
    if not dataclasses.is_dataclass(message):
        return message
    kind: Any = type(message)
    if issubclass(kind, VersionedBinary):
        empty, _ = kind.decode_at(ZEROS, 0, len(ZEROS), version=version)
        for each in dataclasses.fields(kind):
            if getattr(message, each.name) is None:
                setattr(message, each.name, getattr(empty, each.name))
    for each in dataclasses.fields(kind):
        value = getattr(message, each.name)
        for inner in value if isinstance(value, list) else ():
            whole(inner, version)
    return message
