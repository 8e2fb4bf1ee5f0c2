"""The log of one partition: offsets, in segments of batches.

Batches are put into files at once, where everybody reads them; all else that changes the disk leaves as
operations. Nothing is appended while `is_settled` is false, which is until what a cut asked for is done.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from replispec.runtime.kafka.batches import Batch, batches_in, next_offset, place, records_of, set_append_time
from replispec.runtime.kafka.log.epoch_cache import LogEpochs
from replispec.runtime.kafka.log.segment import Found, LogSegment
from replispec.runtime.kafka.log.settings import PartitionLogSettings
from replispec.runtime.primitives.binary import Buffer
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import (
    CutFile,
    FoldersReader,
    MakeFile,
    Operation,
    StorageFailed,
    StorageFull,
)
from replispec.wire.kafka.codes import BatchAttribute
from replispec.wire.kafka.constants import NO_TIME, OFFSET_MAX, SEGMENT_OFFSETS_MAX
from replispec.wire.kafka.records import RecordBatchFixed


class Appended(NamedTuple):
    """What an append gave to records: offsets of the first and the last, and the time (ms; -1: their own)."""

    base_offset: int
    last_offset: int
    append_time_ms: int


class PartitionLog:
    """Records from `start` to before `end`, of which those below `high_watermark` are known to be committed
    and those below `flushed` on the disk. `broken` says why nothing can be appended any more."""

    def __init__(
        self, files: FoldersReader, topic: str, partition: int, settings: PartitionLogSettings, now_ms: int
    ) -> None:
        self.topic: Final = topic
        self.partition: Final = partition
        self.settings = settings
        self.epochs = LogEpochs()
        self.start = self.high_watermark = self.flushed = self.recovery_point = 0
        self.broken = ""
        self._files = files
        self._segments = [LogSegment(files, topic, partition, 0, created_ms=now_ms)]
        self._claimed = 0
        # What is to be done before anything is appended, and what may be done at any time.
        self._cuts: list[Operation] = []
        self._operations: list[Operation] = []
        self._cutting = False
        # Files with bytes that are not flushed; segments that are complete and whose indexes are not written.
        self._dirty: set[str] = set()
        self._complete: list[LogSegment] = []
        self._completing: list[LogSegment] = []

    @property
    def end(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].next_offset

    @property
    def claimed(self) -> int:
        """Up to where it is on the disk when the write that was begun last is done."""
        return max(self._claimed, self.flushed)

    @property
    def size(self) -> int:
        """How many bytes of batches there are."""
        return sum(each.size for each in self._segments)

    @property
    def first_base(self) -> int:
        """The offset at which the oldest segment begins."""
        return self._segments[0].base

    @property
    def is_settled(self) -> bool:
        """Whether all that a cut or the start asked for is done, so that records may be appended."""
        return not (self._cuts or self._cutting)

    @property
    def is_clean(self) -> bool:
        """Whether nothing waits to be brought to the disk."""
        return not (self._dirty or self._cuts or self._operations or self._complete or self._cutting)

    # Growing

    def append_as_leader(self, data: Buffer, leader_epoch: int, now_ms: int) -> Appended:
        """Put the one batch that a producer sent, of which `batches.fault_of` finds no fault.

        Raises StorageFull when there is no room and nothing was put, and StorageFailed.
        """
        buffer = bytearray(data)
        batch = next(batches_in(buffer, may_be_cut=False))
        base = self.end
        if base > OFFSET_MAX - batch.head.last_offset_delta - 1:
            raise StorageFailed(f"{self.topic}-{self.partition}: no offsets are left")
        time_ms = NO_TIME
        if self.settings.appends_time:
            set_append_time(buffer, batch, now_ms)
            time_ms = now_ms
        place(buffer, batch, base, leader_epoch)
        self._put(buffer, [Batch(0, len(buffer), RecordBatchFixed.decode(buffer))], now_ms)
        return Appended(base, base + batch.head.last_offset_delta, time_ms)

    def append_as_follower(self, data: Buffer, now_ms: int) -> int:
        """Put whole batches of the leader as they are, a cut one at the end left out; how many there were.
        Those that are here already are passed over.

        Raises RemoteProtocolError, and nothing was put, for batches that are damaged, do not follow the last
        one or one another, or are of an older epoch than those before; StorageFull, when only what `end` says
        was put; StorageFailed.
        """
        wanted: list[Batch] = []
        end, epoch = self.end, self.epochs.newest
        for batch in batches_in(data, may_be_cut=True):
            head = batch.head
            if next_offset(head) <= end and not wanted:
                continue
            if not end <= head.base_offset <= OFFSET_MAX - head.last_offset_delta - 1:
                raise RemoteProtocolError(f"a batch at {head.base_offset} after {end}", offset=batch.start)
            if epoch is not None and head.partition_leader_epoch < epoch:
                raise RemoteProtocolError(
                    f"epoch {head.partition_leader_epoch} after {epoch}", offset=batch.start
                )
            if not RecordBatchFixed.crc_holds(data, batch.start, batch.end):
                raise RemoteProtocolError("the checksum of a batch does not fit", offset=batch.start)
            end, epoch = next_offset(head), head.partition_leader_epoch
            wanted.append(batch)
        for run in _runs(wanted, self.settings.segment_bytes):
            first, last = run[0].start, run[-1].end
            moved = [Batch(each.start - first, each.end - first, each.head) for each in run]
            self._put(memoryview(data)[first:last], moved, now_ms)
        return len(wanted)

    def begin_epoch(self, leader_epoch: int) -> None:
        """This broker leads in an epoch from here on."""
        self.epochs.assign(leader_epoch, self.end)

    def _put(self, data: Buffer, batches: list[Batch], now_ms: int) -> None:
        assert self.is_settled, f"{self.topic}-{self.partition}: appended while it is being cut"
        if self.broken:
            raise StorageFailed(f"{self.topic}-{self.partition} is broken: {self.broken}")
        found = [Found(each.start, each.end - each.start, each.head) for each in batches]
        try:
            self._roll_if_due(found[-1].last_offset, len(data), found[0].head.max_timestamp, now_ms)
            self._segments[-1].put(data, found, self.settings.index_interval_bytes)
        except StorageFull:
            raise
        except StorageFailed as error:
            self.broken = str(error)
            raise
        self._dirty.add(self._segments[-1].name)
        for each in found:
            self.epochs.assign(each.head.partition_leader_epoch, each.head.base_offset)

    def _roll_if_due(self, last_offset: int, size: int, time_ms: int, now_ms: int) -> None:
        active = self._segments[-1]
        waited = (time_ms if time_ms > NO_TIME else now_ms) - active.began_ms
        is_long = active.size + size > self.settings.segment_bytes
        if (
            active.size and (is_long or waited > self.settings.roll_ms)
        ) or last_offset - active.base > SEGMENT_OFFSETS_MAX:
            self._roll(now_ms)

    def _roll(self, now_ms: int) -> None:
        segment = LogSegment(self._files, self.topic, self.partition, self.end, created_ms=now_ms)
        segment.make()
        self._dirty.add(segment.name)
        self._complete.append(self._segments[-1])
        self._segments.append(segment)

    # Reading

    def read(self, offset: int, bytes_max: int, upper: int, *, at_least_one: bool = True) -> bytes:
        """Whole batches from the one that holds an offset on, and none that ends at or after `upper`: at most
        so many bytes, but the first is whole if `at_least_one`. They are of one segment.

        Raises StorageFailed. The offset lies in the log.
        """
        assert self.start <= offset <= self.end, f"{offset} is outside {self.start}..{self.end}"
        for segment in self._segments[self._number_of(offset) :] if offset < upper else ():
            if segment.base >= upper:
                break
            found = segment.read(offset, bytes_max, upper, at_least_one=at_least_one)
            if found or segment.at_or_after(offset) is not None:
                return found
        return b""

    def _number_of(self, offset: int) -> int:
        return max(0, bisect_right(self._segments, offset, key=lambda each: each.base) - 1)

    def offset_of_time(self, time_ms: int, upper: int) -> tuple[int, int] | None:
        """Offset and time of the first record below `upper` that is as new as a time; None when there is
        none. Of records that cannot be unpacked here it is the first of their batch. Raises StorageFailed."""
        for segment in self._segments:
            if segment.newest_ms < time_ms:
                continue
            for found, data in segment.first_since(time_ms):
                each = _first_record(data, found, time_ms, self.start)
                if each is not None:
                    return each if each[0] < upper else None
        return None

    # Cutting

    def truncate(self, offset: int) -> None:
        """End at an offset, or before it where a batch goes beyond it."""
        if offset >= self.end:
            # An epoch in which this broker led and nothing was written may be none of the leader's.
            self.epochs.end_at(self.end)
            return
        if offset < max(self.start, self.first_base):
            self.start_anew(offset)
            return
        self._complete = [each for each in self._complete if each.base < offset]
        while self._segments[-1].base > offset or (
            self._segments[-1].base == offset and len(self._segments) > 1
        ):
            self._drop(self._segments.pop())
        active = self._segments[-1]
        found = active.at_or_after(offset)
        self._cuts.extend(active.no_index_files())
        if found is not None:
            active.cut(found.position, self.settings.index_interval_bytes)
            self._cuts.append(CutFile(active.name, found.position))
        elif not active.is_indexed:
            active.cut(active.size, self.settings.index_interval_bytes)
        self._dirty.add(active.name)
        self._complete = [each for each in self._complete if each is not active]
        self._ended_at(self.end)

    def start_anew(self, offset: int) -> None:
        """Drop everything; the log begins and ends at an offset."""
        while self._segments:
            self._drop(self._segments.pop())
        self._complete = []
        segment = LogSegment(self._files, self.topic, self.partition, offset, created_ms=0)
        self._segments = [segment]
        # What has this name already goes with the others.
        self._cuts.append(MakeFile(segment.name, 0))
        self.start = offset
        self.epochs.end_at(0)
        self._ended_at(offset)
        # Of what the file of epochs says nothing holds any more.
        self.recovery_point = 0
        self.high_watermark = offset

    def _drop(self, segment: LogSegment) -> None:
        self._cuts.extend(segment.removed())
        self._dirty.discard(segment.name)

    def _ended_at(self, end: int) -> None:
        self.epochs.end_at(end)
        self.flushed, self._claimed = min(self.flushed, end), min(self._claimed, end)
        self.recovery_point = min(self.recovery_point, end)
        self.high_watermark = min(self.high_watermark, end)

    # Aging

    def advance_start(self, offset: int) -> None:
        """Records below an offset, which is committed, are not kept any more; a follower hears it of its
        leader."""
        if self.start < offset <= self.end:
            self.start = offset
            self.epochs.begin_at(offset)
            self._drop_old(lambda following: following <= self.start)

    def age(self, now_ms: int) -> None:
        """Let go of segments that are too old, or too many, of which all is committed."""
        keep_ms, keep_bytes = self.settings.retention_ms, self.settings.retention_bytes
        old = 0
        for number, each in enumerate(self._segments):
            following = self._segments[number + 1].base if number + 1 < len(self._segments) else self.end
            is_old = keep_ms is not None and each.newest_ms > NO_TIME and now_ms - each.newest_ms > keep_ms
            rest = sum(other.size for other in self._segments[number + 1 :])
            is_much = keep_bytes is not None and rest >= keep_bytes and number + 1 < len(self._segments)
            if not each.size or following > self.high_watermark or not (is_old or is_much):
                break
            old = number + 1
        if old == len(self._segments):
            self._roll(now_ms)
        if old:
            self.advance_start(max(self.start, self._segments[old].base))

    def _drop_old(self, is_old: Callable[[int], bool]) -> None:
        while len(self._segments) > 1 and is_old(self._segments[1].base):
            gone = self._segments.pop(0)
            self._operations.extend(gone.removed())
            self._dirty.discard(gone.name)
            self._complete = [each for each in self._complete if each is not gone]

    # Opening

    def make(self) -> None:
        """Have the first file made. Raises StorageFailed."""
        self._segments[0].make()
        self._dirty.add(self._segments[0].name)

    def take_over(self, segments: list[LogSegment], start: int, repairs: Sequence[Operation]) -> None:
        """Be what was found in the folder; `repairs` make its files so, before anything is appended."""
        self._segments = segments
        self.start = max(start, self.first_base)
        self._cuts.extend(repairs)
        self._complete = [each for each in segments[:-1] if each.is_indexed]
        self._dirty.update(segment.name for segment in segments if segment.next_offset > self.recovery_point)
        self.flushed = min(self.recovery_point, self.end)

    # Bringing it to the disk

    def begin_write(self) -> tuple[list[Operation], list[str], list[Operation]]:
        """What is to be done, in order: operations, files to be flushed, operations. Afterwards everything up
        to the end is on the disk."""
        before = [*self._cuts, *self._operations]
        self._cutting = self._cutting or bool(self._cuts)
        self._cuts, self._operations = [], []
        self._completing, self._complete = [*self._completing, *self._complete], []
        names, self._dirty = sorted(self._dirty), set()
        self._claimed = self.end
        return before, names, [each for segment in self._completing for each in segment.index_files()]

    def end_write(self) -> None:
        """What `begin_write` gave is done."""
        self._cutting = False
        self.flushed = max(self.flushed, self._claimed)
        for each in self._completing:
            if each is not self._segments[-1]:
                each.forget_index()
        self._completing = []


def _runs(batches: list[Batch], bytes_max: int) -> list[list[Batch]]:
    """Batches that follow one another, in runs of at most so many bytes, a longer one alone."""
    runs: list[list[Batch]] = []
    for each in batches:
        if runs and runs[-1][-1].end == each.start and each.end - runs[-1][0].start <= bytes_max:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _first_record(data: bytes, found: Found, time_ms: int, start: int) -> tuple[int, int] | None:
    """Offset and time of the first record of a batch that is as new as a time and not before the log."""
    head = found.head
    if head.attributes & BatchAttribute.APPEND_TIME:
        return max(head.base_offset, start), head.max_timestamp
    try:
        records = records_of(data, Batch(0, found.size, head))
    except RemoteProtocolError:
        return max(head.base_offset, start), head.max_timestamp
    for each in records:
        offset, time = head.base_offset + each.offset_delta, head.first_timestamp + each.timestamp_delta
        if time >= time_ms and offset >= start:
            return offset, time
    return None
