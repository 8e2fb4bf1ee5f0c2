"""One segment of a log: a file of batches, and where in it offsets and times are found.

Of the segment that is written the entries of both indexes are in memory; those of all others are read from
their files when they are asked for, or made again of the segment where such a file is missing or wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from replispec.runtime.primitives.binary import Buffer
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import (
    FoldersReader,
    GrowingFile,
    Operation,
    RemoveFile,
    ReplaceFile,
    StorageFailed,
)
from replispec.wire.kafka import paths
from replispec.wire.kafka.constants import NO_TIME
from replispec.wire.kafka.records import RecordBatchFixed
from replispec.wire.kafka.segments import OffsetIndexEntry, TimeIndexEntry
from replispec.wire.kafka.streams import SEGMENT

HEAD_BYTES: Final = sum(size for _, size in RecordBatchFixed.places().values())
WALKED_BYTES_AT_ONCE: Final = 64 * 1024
"""How much of a segment is read at a time while batches are passed over."""
OFFSET_ENTRY_BYTES: Final = len(OffsetIndexEntry().encode())
TIME_ENTRY_BYTES: Final = len(TimeIndexEntry().encode())


class Found(NamedTuple):
    """A batch in a segment: its first byte, its size, and its head."""

    position: int
    size: int
    head: RecordBatchFixed

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.head.base_offset + self.head.last_offset_delta


class LogSegment:
    """The batches from the offset `base` on. `created_ms`: when its first one may have been put."""

    def __init__(
        self, files: FoldersReader, topic: str, partition: int, base: int, *, created_ms: int
    ) -> None:
        self.base = base
        self._files = files
        self._names: dict[str, str | int] = {"topic": topic, "partition": partition, "base_offset": base}
        self.name = paths.FOLDER_SEGMENT.at(**self._names)
        self._file = files.growing(self.name)
        self.size = 0
        self.next_offset = base
        self.newest_ms = NO_TIME
        self._newest_offset = base
        self.began_ms = created_ms
        self._since_entry = 0
        # Entries of both indexes: offsets and times count from zero, as in messages.
        self._offsets, self._positions = array("q"), array("q")
        self._times, self._time_offsets = array("q"), array("q")
        self.is_indexed = True

    # Growing

    def put(self, data: Buffer, batches: list[Found], interval: int) -> None:
        """Put batches after the last one; their places count from the first byte of `data`. Raises
        StorageFull, and nothing happened, and StorageFailed."""
        self._file.append(self.size, data)
        self._note(batches, len(data), interval)

    def make(self) -> None:
        """Have the file made, without a byte. Raises StorageFailed."""
        self._file.append(0, b"")

    def _note(self, batches: list[Found], size: int, interval: int) -> None:
        if self.size == 0 and batches:
            self.began_ms = max(batches[0].head.max_timestamp, 0) or self.began_ms
        for each in batches:
            if each.head.max_timestamp > self.newest_ms:
                self.newest_ms, self._newest_offset = each.head.max_timestamp, each.last_offset
            self.next_offset = each.last_offset + 1
        if self._since_entry > interval:
            self._add_entry(batches[-1].last_offset, self.size)
        self._since_entry += size
        self.size += size

    def _add_entry(self, offset: int, position: int) -> None:
        self._offsets.append(offset)
        self._positions.append(position)
        self._add_time()
        self._since_entry = 0

    def _add_time(self) -> None:
        if self.newest_ms > (self._times[-1] if self._times else NO_TIME):
            self._times.append(self.newest_ms)
            self._time_offsets.append(self._newest_offset)

    # Its indexes

    def index_files(self) -> tuple[Operation, ...]:
        """The writes that make the files of its indexes what is in memory, the newest time with it."""
        if not self.is_indexed:
            return ()
        self._add_time()
        offsets = b"".join(
            OffsetIndexEntry(offset - self.base, position).encode()
            for offset, position in zip(self._offsets, self._positions, strict=True)
        )
        times = b"".join(
            TimeIndexEntry(time, offset - self.base).encode()
            for time, offset in zip(self._times, self._time_offsets, strict=True)
        )
        return ReplaceFile(self._offset_file, offsets), ReplaceFile(self._time_file, times)

    def forget_index(self) -> None:
        """Its index files are on the disk: they are read from now on."""
        self._offsets, self._positions = array("q"), array("q")
        self._times, self._time_offsets = array("q"), array("q")
        self.is_indexed = False

    def no_index_files(self) -> tuple[Operation, ...]:
        """The writes that remove the files of its indexes."""
        return RemoveFile(self._offset_file), RemoveFile(self._time_file)

    def removed(self) -> tuple[Operation, ...]:
        """The writes that remove the segment: what hangs on its batches goes before them."""
        producers = paths.FOLDER_PRODUCERS.at(
            topic=self._names["topic"], partition=self._names["partition"], offset=self.base
        )
        return (*self.no_index_files(), RemoveFile(producers), RemoveFile(self.name))

    @property
    def _offset_file(self) -> str:
        return paths.FOLDER_OFFSET_INDEX.at(**self._names)

    @property
    def _time_file(self) -> str:
        return paths.FOLDER_TIME_INDEX.at(**self._names)

    def _entry_before(self, offset: int) -> int:
        """The place of the last batch that the index names and that does not end after an offset; else 0."""
        if self.is_indexed:
            number = bisect_right(self._offsets, offset)
            return self._positions[number - 1] if number else 0
        low, high = 0, self._files.growing(self._offset_file).size // OFFSET_ENTRY_BYTES
        file, found = self._files.growing(self._offset_file), 0
        while low < high:
            middle = (low + high) // 2
            data = file.read(middle * OFFSET_ENTRY_BYTES, OFFSET_ENTRY_BYTES)
            entry = OffsetIndexEntry.decode(data)
            if self.base + entry.relative_offset <= offset:
                found, low = entry.position, middle + 1
            else:
                high = middle
        return found

    def _offset_before(self, time_ms: int) -> int:
        """An offset before which no record of the segment is as new as this."""
        if self.is_indexed:
            number = bisect_right(self._times, time_ms - 1)
            return self._time_offsets[number - 1] if number else self.base
        file = self._files.growing(self._time_file)
        low, high, found = 0, file.size // TIME_ENTRY_BYTES, self.base
        while low < high:
            middle = (low + high) // 2
            entry = TimeIndexEntry.decode(file.read(middle * TIME_ENTRY_BYTES, TIME_ENTRY_BYTES))
            if entry.timestamp < time_ms:
                found, low = self.base + entry.relative_offset, middle + 1
            else:
                high = middle
        return found

    # Reading

    def walk(self, position: int) -> Iterator[Found]:
        """The batches from a place on where one begins; ends before what is no whole batch."""
        return walk(self._file, position, self.size)

    def at_or_after(self, offset: int) -> Found | None:
        """The first batch that does not end before an offset. Raises StorageFailed for a segment that is no
        run of batches."""
        try:
            start = self._entry_before(offset)
        except RemoteProtocolError:
            start = 0
        for first in (start, 0) if start else (0,):
            end = first
            for found in self.walk(first):
                if found.last_offset >= offset:
                    return found
                end = found.position + found.size
            if end == self.size:
                return None
        raise StorageFailed(f"{self.name}: there is no batch at byte {end}")

    def read(self, offset: int, bytes_max: int, upper: int, *, at_least_one: bool) -> bytes:
        """Whole batches from the one that holds an offset on, and none that ends at or after `upper`: at most
        so many bytes, but the first is whole if `at_least_one`. Raises StorageFailed."""
        first = self.at_or_after(offset)
        if first is None or first.last_offset >= upper:
            return b""
        last = None if upper >= self.next_offset else self.at_or_after(upper)
        end = self.size if last is None else last.position
        wanted = max(bytes_max, first.size if at_least_one else 0)
        return _whole(self._file.read(first.position, min(wanted, end - first.position)))

    def first_since(self, time_ms: int) -> Iterator[tuple[Found, bytes]]:
        """The batches with a record that is as new, and their bytes. Raises StorageFailed."""
        try:
            before = self._offset_before(time_ms)
        except RemoteProtocolError:
            before = self.base
        start = self.at_or_after(before)
        for found in self.walk(start.position) if start is not None else ():
            if found.head.max_timestamp >= time_ms:
                yield found, self._file.read(found.position, found.size)

    # Opening and cutting

    def trust(self, next_offset: int) -> bool:
        """Take the segment as it is, with its index files, as one that is followed by another one at this
        offset; whether its index files can be believed."""
        self.size, self.next_offset = self._file.size, next_offset
        offsets, times = self._files.growing(self._offset_file), self._files.growing(self._time_file)
        if not times.size or offsets.size % OFFSET_ENTRY_BYTES or times.size % TIME_ENTRY_BYTES:
            return False
        try:
            newest = TimeIndexEntry.decode(times.read(times.size - TIME_ENTRY_BYTES, TIME_ENTRY_BYTES))
            if offsets.size:
                last = OffsetIndexEntry.decode(
                    offsets.read(offsets.size - OFFSET_ENTRY_BYTES, OFFSET_ENTRY_BYTES)
                )
                if last.position + HEAD_BYTES > self.size or self.base + last.relative_offset >= next_offset:
                    return False
        except RemoteProtocolError:
            return False
        self.newest_ms, self._newest_offset = newest.timestamp, self.base + newest.relative_offset
        self.forget_index()
        return True

    def scan(self, interval: int, *, checked: bool) -> Iterator[Found]:
        """Make the indexes again of the file: each batch, once it is noted. The segment ends after the last
        whole one, of which the checksum holds where they are `checked`."""
        end = self._file.size
        self.size, self.next_offset, self.newest_ms, self._since_entry = 0, self.base, NO_TIME, 0
        self.forget_index()
        self.is_indexed = True
        for found in walk(self._file, 0, end):
            if found.head.base_offset < self.next_offset or (checked and not self._is_right(found)):
                return
            self._note([found], found.size, interval)
            yield found

    def _is_right(self, found: Found) -> bool:
        return RecordBatchFixed.crc_holds(self._file.read(found.position, found.size), 0, found.size)

    @property
    def file_size(self) -> int:
        """How long its file is. Raises StorageFailed."""
        return self._file.size

    def cut(self, position: int, interval: int) -> None:
        """End before the batch at a place: what follows it is not there any more for whoever reads here."""
        kept = [found for found in self.walk(0) if found.position < position]
        self.size, self.next_offset, self.newest_ms, self._since_entry = 0, self.base, NO_TIME, 0
        self.forget_index()
        self.is_indexed = True
        for found in kept:
            self._note([found], found.size, interval)


def walk(file: GrowingFile, position: int, end: int) -> Iterator[Found]:
    """The batches of a file from a place on where one begins, without a look at their records. Ends before
    what is no whole batch."""
    buffer, start = b"", position
    while position + HEAD_BYTES <= end:
        if position + HEAD_BYTES > start + len(buffer):
            buffer, start = file.read(position, min(WALKED_BYTES_AT_ONCE, end - position)), position
        try:
            size = SEGMENT.measure(buffer, position - start, len(buffer))
            head = RecordBatchFixed.decode(buffer, position - start)
        except RemoteProtocolError:
            return
        if size <= 0 or position + size > end or head.last_offset_delta < 0:
            return
        yield Found(position, size, head)
        position += size


def _whole(data: bytes) -> bytes:
    """As many whole batches as there are at the beginning of some bytes."""
    at = 0
    while at + HEAD_BYTES <= len(data):
        size = SEGMENT.measure(data, at, len(data))
        if size <= 0 or at + size > len(data):
            break
        at += size
    return data if at == len(data) else data[:at]
