"""The commit log: one sequence of bytes, addressed by offset, in files of one size.

Each file is named by the offset of its first byte, in 20 digits. A record lies in one file; what is too
small for the next one is a blank record. The bytes are those of Apache RocketMQ, so that logs of both,
one copied from the other, are the same files.
Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog, MappedFileQueue, MappedFile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import (
    FilesReader,
    FlushFiles,
    MakeFile,
    Operation,
    Region,
    RemoveFile,
    StorageFailed,
)
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.constants import (
    COMMIT_LOG_FILE_BYTES,
    COMMIT_LOG_FOLDER,
    COMMIT_LOG_NAME_DIGITS,
    FLUSHED_FILE,
)
from replispec.wire.rocketmq.store import LogBlank, LogBlankFixed, LogRecord

BLANK_HEAD: Final = len(LogBlank().encode())
"""Bytes that tell size and kind of any record."""
AHEAD_PARTS: Final = 4
"""The next file is made while the last one has less than one part in so many left."""
_ZEROS: Final = bytes(1024 * 1024)


class Placed(NamedTuple):
    """A record, the offset of its first byte and its size in bytes."""

    offset: int
    size: int
    record: LogRecord


class CommitLog:
    """The log of one broker. Offsets are bytes since the beginning of the set's log.

    It opens with what a crash left: records are checked from `from_offset` on (an offset at which one
    is known to start; None: the first byte), what lies after the last whole one is zeroed; `visit` is shown
    each message on the way. What was on the disk up to `durable` no crash takes: StorageFailed for a log that
    ends before it otherwise than by a cut, and nothing of it is touched. `file_bytes` must be the same on all
    brokers of a set.

    Bytes are put into files that are there; all else the disk is asked for by operations. `begin_flush` and
    `end_flush` bring to it what was put or cut, `wanted_file` and `made` see that there is a next file
    before the last one is full. Raises StorageFailed when a file that is there refuses bytes: `broken` says
    why, and everything fails from then on: part of them may lie after the end, and only opening the log anew
    removes it. The process must end.
    """

    def __init__(
        self,
        files: FilesReader,
        *,
        file_bytes: int = COMMIT_LOG_FILE_BYTES,
        folder: str = COMMIT_LOG_FOLDER,
        from_offset: int | None = None,
        durable: int = 0,
        visit: Callable[[Placed], None] | None = None,
    ) -> None:
        assert file_bytes > BLANK_HEAD
        self.file_bytes = file_bytes
        self._files = files
        self._folder = folder
        self._regions: dict[int, Region] = {}
        self.broken = ""
        self._dirty: set[int] = set()
        self._flushing: set[int] = set()
        # Files that are to be removed, in this order, and those of them that are being.
        self._gone: list[str] = []
        self._going: list[str] = []
        # Up to where something else than zeros may lie after the end.
        self._uncut_end = 0
        self._making: int | None = None
        self._reserved = 0
        self._limit = 0
        starts = self._starts()
        self._first = starts[0] if starts else 0
        self._limit = starts[-1] + file_bytes if starts else 0
        # Where the oldest file begins; before the first byte of a log it may lie after its end.
        self._base = self._first
        self.end = self._first
        self._whole = self._first
        self.flushed = self._claimed = self._first
        # Where the last whole record ends of what is durable, or will be with the flush under way.
        self.flushed_records = self._claimed_records = self._first
        self._recover(from_offset, durable, visit)

    # What is there

    @property
    def first(self) -> int:
        """The offset of the oldest byte that is kept; 0 in a log that never had any."""
        return self._first

    @property
    def is_empty(self) -> bool:
        """True when the log takes bytes of any offset: it has none and never had."""
        return self.end == 0

    @property
    def last_file(self) -> int:
        """The offset of the first byte of the newest file that has bytes."""
        return max(self._first, self._start_of(max(self.end - 1, 0)))

    def view(self, offset: int, size_max: int) -> memoryview:
        """The bytes from an offset on without a copy: at most so many, none after the end of its file
        or of the log. They change when the log is cut."""
        assert self._first <= offset <= self.end, f"{offset} is outside {self._first}..{self.end}"
        start = self._start_of(offset)
        size = min(size_max, self.end - offset, start + self.file_bytes - offset)
        return self._region(start).view(offset - start, size) if size > 0 else memoryview(b"")

    def read(self, offset: int, size: int) -> bytes | None:
        """One record as bytes, known by its place and size; None when the log no longer has it."""
        if not self._first <= offset <= self.end - size:
            return None
        return bytes(self.view(offset, size))

    def records(self, at: int, end: int) -> Iterator[Placed]:
        """The messages from `at` (where a record starts) on, as long as whole ones lie before `end`.

        Stops at what is no record; blanks are left out.
        """
        for offset, size, record in self._walk(at, min(end, self.end)):
            if record is not None:
                yield Placed(offset, size, record)

    def _walk(self, at: int, end: int) -> Iterator[tuple[int, int, LogRecord | None]]:
        """Offset, size and record, None for a blank, of all that is whole and right from `at` on."""
        while at < end:
            view = self.view(at, end - at)
            size = _record_size(view)
            if size == 0:
                return
            record = None if _is_blank(view) else _decoded(view[:size], at)
            if record is None and not _is_blank(view):
                return
            yield at, size, record
            at += size

    def whole_end(self) -> int:
        """Where the last whole record ends; after it lies a half-copied one, or nothing."""
        while self._whole < self.end:
            size = _record_size(self.view(self._whole, self.file_bytes))
            if size == 0:
                break
            self._whole += size
        return self._whole

    # Growing

    def append(self, record: LogRecord) -> Placed:
        """Put a message after the last; its physical offset is filled in. A file without room for it and
        for a blank after it is closed with a blank.

        Raises ValueError when it is longer than a file can hold.
        """
        record.physical_offset = self.end
        data = record.encode()
        self._check_size(len(data))
        room = self.file_bytes - self.end % self.file_bytes
        if len(data) + BLANK_HEAD > room:
            self._put(LogBlank(undefined=bytes(room - BLANK_HEAD)).encode())
            record.physical_offset = self.end
            data = record.encode()
        self._put(data)
        return Placed(record.physical_offset, len(data), record)

    def accepts(self, offset: int) -> bool:
        """Whether raw bytes may be appended at this offset: at the end, or at the start of any file
        when the log is empty."""
        return offset == self.end or (self.is_empty and offset % self.file_bytes == 0)

    def append_bytes(self, offset: int, data: bytes | memoryview) -> None:
        """Put a run of a master's log after ours; it may be cut anywhere."""
        assert self.accepts(offset), f"bytes at {offset} after {self.end}"
        if offset != self.end:
            self._begin_at(offset)
        self._write(data)

    def _put(self, data: bytes) -> None:
        whole = self._whole == self.end
        self._write(data)
        if whole:
            self._whole = self.end

    def has_room(self, bytes_at_most: int) -> bool:
        """Whether records of no more bytes than these fit into the files that are there."""
        if self._base > self.end:
            return False
        within = self.end - self._start_of(self.end)
        if self.end < self._limit and within + bytes_at_most + BLANK_HEAD <= self.file_bytes:
            return True
        fits = bytes_at_most + BLANK_HEAD <= self.file_bytes
        return fits and self._limit >= self._start_of(self.end) + 2 * self.file_bytes

    def reserve(self, sizes: Iterable[int]) -> bool:
        """See that records of these sizes will fit, one after the other; whether they do already.

        Raises ValueError when one is longer than a file can hold.
        """
        if self.is_empty:
            self._place(self.end)
        end = self.end
        for size in sizes:
            self._check_size(size)
            if size + BLANK_HEAD > self.file_bytes - end % self.file_bytes:
                end = self._start_of(end) + self.file_bytes
            end += size
        return self._reserve_to(end)

    def reserve_bytes(self, offset: int, size: int) -> bool:
        """See that raw bytes will fit that are appended at an offset that the log accepts; whether they do
        already."""
        assert self.accepts(offset), f"bytes at {offset} after {self.end}"
        if self.is_empty:
            self._place(offset)
        return self._reserve_to(offset + size)

    def _reserve_to(self, end: int) -> bool:
        self._reserved = max(self._reserved, end)
        return end <= self._limit

    def _write(self, data: bytes | memoryview) -> None:
        self.finish_cut()
        rest = memoryview(data)
        while rest:
            start = self._start_of(self.end)
            assert start < self._limit, f"no file was made for {self.end}"
            run = rest[: start + self.file_bytes - self.end]
            self._write_to(self._region(start), self.end - start, run)
            self._dirty.add(start)
            self.end += len(run)
            rest = rest[len(run) :]

    def _write_to(self, region: Region, at: int, run: memoryview) -> None:
        self._check()
        try:
            region.write(at, run)
        except StorageFailed as error:
            self.broken = str(error)
            raise

    def _check_size(self, size: int) -> None:
        if size + BLANK_HEAD > self.file_bytes:
            raise ValueError(f"{size} bytes do not fit into a file of {self.file_bytes}")

    def _check(self) -> None:
        if self.broken:
            raise StorageFailed(f"the commit log is broken: {self.broken}")

    # Bringing it to the disk

    @property
    def is_clean(self) -> bool:
        """Whether everything that was put or cut is on the disk."""
        return not (self._dirty or self._flushing or self._uncut_end or self.is_being_cut)

    @property
    def is_being_cut(self) -> bool:
        """Whether files are still to be removed: until they are, none is made."""
        return bool(self._gone or self._going)

    def begin_flush(self) -> tuple[Operation, ...]:
        """What is to be done, in order, for everything up to the end to be durable, and nothing after it."""
        self._flushing, self._dirty = self._flushing | self._dirty, set()
        self._going, self._gone = self._going + self._gone, []
        self._claimed, self._claimed_records = self.end, self.whole_end()
        found: list[Operation] = [RemoveFile(name) for name in self._going]
        if self._flushing:
            found.append(FlushFiles([self._name(start) for start in sorted(self._flushing)]))
        return tuple(found)

    def end_flush(self) -> int:
        """The flush that was begun last is done; returns up to where the log is durable."""
        self._flushing.clear()
        self._going.clear()
        self.flushed = max(self.flushed, self._claimed)
        self.flushed_records = max(self.flushed_records, self._claimed_records)
        return self.flushed

    # Its files

    def wanted_file(self) -> MakeFile | None:
        """The next file, when it is time to make it; it is asked for once, until `made` has said more."""
        ahead = self.end + self.file_bytes // AHEAD_PARTS
        if self._making is not None or self._gone or self._limit >= max(ahead, self._reserved):
            return None
        self._making = self._limit
        return MakeFile(self._name(self._limit), self.file_bytes)

    def made(self, file: MakeFile, *, succeeded: bool) -> None:
        """A wanted file is there, or cannot be made. What was cut meanwhile is not wanted any more."""
        if self._making is None or file.name != self._name(self._making):
            return
        self._making = None
        self._reserved = self._reserved if succeeded else 0
        if succeeded:
            self._limit += self.file_bytes

    # Cutting

    def truncate(self, offset: int, *, later: bool = False) -> None:
        """Cut the log at an offset; what was after it is zeros, for readers of ours and of Apache's. An
        offset before the first byte cuts everything. Nobody may be told of the cut log before it is clean.
        `later`: no byte changes before `finish_cut`, or before others take their place."""
        offset = max(offset, self._first)
        if offset >= self.end:
            return
        self._check()
        self._uncut_end = max(self._uncut_end, self.end)
        self.end = offset
        self._whole = self._whole if self._whole <= offset else max(self._first, self._start_of(offset))
        self._remove_after(offset)
        self.flushed = self._claimed = min(self.flushed, offset)
        self.flushed_records = self._claimed_records = min(self.flushed_records, self._whole)
        if not later:
            self.finish_cut()

    def finish_cut(self) -> None:
        """Write the zeros of cuts that were put off. Raises StorageFailed."""
        end, self._uncut_end = self._uncut_end, 0
        if end > self.end:
            self._zero(self.end, min(end, self._start_of(self.end) + self.file_bytes))

    def delete_before(self, offset: int) -> None:
        """Remove the oldest files of which every byte lies before an offset; the newest always stays."""
        while self._first + self.file_bytes <= min(offset, self.last_file):
            self._forget(self._first)
            self._first += self.file_bytes
            self._base = self._first
        self._whole = max(self._whole, self._first)

    # Files

    def _starts(self) -> list[int]:
        """The starts of all files. Raises StorageFailed when they do not follow each other: nothing of ours
        leaves a hole, so somebody must look before anything is removed."""
        names = [name for name in self._files.names(self._folder) if name.isdecimal()]
        starts = sorted(int(name) for name in names if len(name) == COMMIT_LOG_NAME_DIGITS)
        first = starts[0] if starts else 0
        if starts != [first + number * self.file_bytes for number in range(len(starts))]:
            raise StorageFailed(
                f"the files of {self._folder} do not follow each other in steps of mappedFileSizeCommitLog, "
                f"{self.file_bytes} bytes: one is missing, or they were made with another size"
            )
        for start in starts:
            self._region(start)
        return starts

    def _recover(self, from_offset: int | None, durable: int, visit: Callable[[Placed], None] | None) -> None:
        is_known = from_offset is not None and self._first <= from_offset <= self._limit
        at = end = from_offset if is_known and from_offset is not None else self._first
        self.end = self._limit
        for offset, size, record in self._walk(at, self._limit):
            end = offset + size
            if record is not None and visit is not None:
                visit(Placed(offset, size, record))
        if end < durable:
            self._check_cut(end, durable)
        self.end = self._whole = end
        self._remove_after(end)
        self._zero(end, self._start_of(end) + self.file_bytes)
        self._dirty.update(range(self._start_of(at), end, self.file_bytes))

    def _check_cut(self, end: int, durable: int) -> None:
        """A cut leaves zeros, which no record begins with. Raises StorageFailed."""
        start = self._start_of(end)
        fault = "is missing"
        if end < self._limit:
            head = self._region(start).view(end - start, min(BLANK_HEAD, start + self.file_bytes - end))
            if not any(head):
                return
            fault = f"is damaged at byte {end - start}"
        raise StorageFailed(
            f"{self._name(start)} {fault}: the log was on the disk up to {durable}, {durable - end} bytes "
            f"further; take a copy of another broker's, or remove {FLUSHED_FILE} to lose them"
        )

    def _remove_after(self, offset: int) -> None:
        """Remove all files after the one with this offset, the newest first: no crash leaves a hole."""
        last = self._start_of(offset)
        self._reserved = 0
        if self._making is not None and self._making > last:
            self._gone.append(self._name(self._making))
            self._making = None
        while self._limit - self.file_bytes > last:
            self._forget(self._limit - self.file_bytes)
            self._limit -= self.file_bytes

    def _zero(self, at: int, end: int) -> None:
        """Write zeros wherever something else is, within one file."""
        start = self._start_of(at)
        if at >= self._limit:
            return
        region = self._region(start)
        for run_start, run_end in region.written():
            place = max(run_start, at - start)
            while place < min(run_end, end - start):
                size = min(len(_ZEROS), run_end - place, end - start - place)
                if region.view(place, size) != _ZEROS[:size]:
                    self._write_to(region, place, memoryview(_ZEROS)[:size])
                    self._dirty.add(start)
                place += size

    def _begin_at(self, offset: int) -> None:
        """An empty log begins in the middle."""
        self._place(offset)
        self._first = self.end = self._whole = self.flushed = self._claimed = offset
        self.flushed_records = self._claimed_records = offset

    def _place(self, offset: int) -> None:
        """Have the files of an empty log, all of zeros, begin here: others go."""
        if self._base == offset:
            return
        if self._making is not None:
            self._gone.append(self._name(self._making))
            self._making = None
        while self._limit > self._base:
            self._limit -= self.file_bytes
            self._forget(self._limit)
        self._base = self._limit = offset

    def _forget(self, start: int) -> None:
        region = self._regions.pop(start, None)
        if region is not None:
            region.close()
        self._dirty.discard(start)
        self._flushing.discard(start)
        self._gone.append(self._name(start))

    def _region(self, start: int) -> Region:
        region = self._regions.get(start)
        if region is None:
            region = self._files.region(self._name(start))
            if region.size != self.file_bytes:
                raise StorageFailed(
                    f"{self._name(start)} has {region.size} bytes and should have {self.file_bytes}"
                )
            self._regions[start] = region
        return region

    def _start_of(self, offset: int) -> int:
        return offset - offset % self.file_bytes

    def _name(self, start: int) -> str:
        return f"{self._folder}/{start:0{COMMIT_LOG_NAME_DIGITS}d}"


def _record_size(view: memoryview) -> int:
    """The size of the record or blank that starts here; 0 when no whole one does."""
    if len(view) < BLANK_HEAD:
        return 0
    head = LogBlankFixed.decode(view)
    is_known = head.magic in (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2, LogMagic.BLANK)
    return head.total_size if is_known and BLANK_HEAD <= head.total_size <= len(view) else 0


def _is_blank(view: memoryview) -> bool:
    return LogBlankFixed.decode(view).magic == LogMagic.BLANK


def _decoded(view: memoryview, offset: int) -> LogRecord | None:
    """The record that these bytes are, if they are what was written at this offset; no blank is."""
    try:
        record = LogRecord.decode(view)
    except RemoteProtocolError:
        return None
    is_right = record.body_crc_holds and record.physical_offset == offset and not _is_torn(record)
    return record if is_right else None


def _is_torn(record: LogRecord) -> bool:
    """Whether the end of a record is missing. The checksum is of the body alone, but what lies after the
    end of a log is zeros: a write of which the disk kept the beginning ends with them."""
    return "\0" in record.topic or not record.topic or (record.properties + record.tail).endswith(b"\0")
