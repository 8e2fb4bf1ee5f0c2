"""The commit log: one sequence of bytes, addressed by offset, in files of one size.

Each file is named by the offset of its first byte, in 20 digits. A record lies in one file; what is too
small for the next one is a blank record. The bytes are those of Apache RocketMQ, so that logs of both,
one copied from the other, are the same files.
Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog, MappedFileQueue, MappedFile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.flushed_file import NO_MARK, FlushedMark, Saying
from replispec.runtime.rocketmq.log.log_sums import LogSums, Reached, Summed
from replispec.runtime.rocketmq.log.records import (
    BLANK_HEAD,
    Placed,
    ends_as_torn,
    is_known,
    record_size,
    walk,
)
from replispec.runtime.rocketmq.log.recovery import (
    Known,
    Layout,
    last_byte,
    log_files,
    recover,
    refused,
    sayings,
)
from replispec.runtime.storage import (
    FilesReader,
    FlushFiles,
    MakeFile,
    Operation,
    Region,
    RemoveFile,
    StorageFailed,
)
from replispec.wire.rocketmq.constants import (
    CHECKPOINT_FILE,
    COMMIT_LOG_FILE_BYTES,
    COMMIT_LOG_FOLDER,
    COMMIT_LOG_NAME_DIGITS,
    LOG_OFFSET_MAX,
)
from replispec.wire.rocketmq.store import FlushedRun, LogBlank, LogBlankFixed, LogRecord

AHEAD_PARTS: Final = 4
"""The next file is made while the last one has less than one part in so many left."""
_ZEROS: Final = bytes(1024 * 1024)


class CommitLog:
    """The log of one broker. Offsets are bytes since the beginning of the set's log.

    It opens with what a crash left: all records are checked but those for which `known` vouches, what lies
    after the last whole one is zeroed; `visit` is shown each message on the way. What was on the disk by
    `mark` no crash takes: StorageFailed for a log that ends before it or is another one there, and nothing of
    it is touched. Without a mark (None) so is one that goes on behind what is no record. `said` tells what
    was found, and what was cut. `file_bytes` must be the same on all brokers of a set.

    Bytes are put into files that are there; all else the disk is asked for by operations. `begin_flush` and
    `end_flush` bring to it what was put or cut, `wanted_file` and `made` see that there is a next file before
    the last one is full. Raises StorageFailed when a file refuses bytes: `broken` says why, and everything
    fails from then on: only opening the log anew removes what lies after the end. The process must end.
    """

    def __init__(
        self,
        files: FilesReader,
        *,
        file_bytes: int = COMMIT_LOG_FILE_BYTES,
        folder: str = COMMIT_LOG_FOLDER,
        mark: FlushedMark | None = NO_MARK,
        visit: Callable[[Placed], None] | None = None,
        known: Known | None = None,
    ) -> None:
        assert file_bytes > BLANK_HEAD
        self.file_bytes = file_bytes
        self.record_bytes_max: Final = file_bytes - BLANK_HEAD
        """The longest record that a file has room for."""
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
        self._reserved = self._limit = self._base = 0
        self._first = self.end = self._whole = 0
        # Where it began, if that was in the middle of the set's log, in this life.
        self.began = 0
        # Where the last record ends whose properties end as those of a torn one do.
        self.odd_end = 0
        self._sums = LogSums(file_bytes, 0, self.view)
        self.said: list[Saying] = []
        # Whether it is known how far it once was on the disk, and nothing was cut.
        self.opened_whole = True
        self._flushed_to = self._claimed_to = Reached.of(self._recover(mark, visit, known))
        self.flushed = self._claimed = self._first

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
        return bytes(self.view(offset, size)) if self._first <= offset <= self.end - size else None

    def sums(self, start: int, end: int, at_most: int, *, may_read: bool = True) -> Summed:
        """Checksums of pieces of the log between two offsets; see `LogSums.sums`."""
        return self._sums.sums(max(start, self._first), min(end, self.end), at_most, may_read=may_read)

    def piece(self, number: int, start: int, end: int) -> tuple[int, int]:
        """Where a piece begins and ends; see `LogSums.piece`."""
        return self._sums.piece(number, start, end)

    def records(self, at: int, end: int) -> Iterator[Placed]:
        """The messages from `at` (where a record starts) on, as long as whole ones lie before `end`, up to
        what is no record; blanks are left out."""
        for found in walk(self.view, at, min(end, self.end)):
            if isinstance(found, Placed):
                yield found

    def whole_end(self) -> int:
        """Where the last whole record ends; after it lies a half-copied one, or nothing."""
        while self._whole < self.end:
            found = self.view(self._whole, self.file_bytes)
            size = record_size(found)
            if size == 0:
                break
            if not found[size - 1]:
                self._note_odd(found[:size])
            self._whole += size
        return self._whole

    @property
    def is_of_other_files(self) -> bool:
        """Whether a record crosses the end of a file: whoever wrote this log has files of another size, and
        nothing behind that record can be read here."""
        at = self.whole_end()
        ends = self._start_of(at) + self.file_bytes
        if self.end >= ends:
            return True
        view = self.view(at, BLANK_HEAD)
        if len(view) < BLANK_HEAD:
            return False
        head = LogBlankFixed.decode(view)
        return is_known(head.magic) and at + head.total_size > ends

    def _note_odd(self, view: memoryview) -> None:
        # Whether its body is right changes nothing here, and whoever reads it finds out.
        with suppress(RemoteProtocolError):
            if ends_as_torn(LogRecord.decode(view).properties):
                self.odd_end = self._whole + len(view)

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
        if ends_as_torn(record.properties):
            self.odd_end = self.end
        return Placed(record.physical_offset, len(data), record)

    def accepts(self, offset: int) -> bool:
        """Whether raw bytes may go to this offset: the end, or, of an empty log, where any file can begin."""
        can_begin = self.is_empty and offset % self.file_bytes == 0 and 0 <= offset <= LOG_OFFSET_MAX
        return offset == self.end or can_begin

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

    @property
    def room(self) -> int:
        """How many raw bytes fit behind the last into the files that are there; 0 for an empty log."""
        return 0 if self.is_empty else self._limit - self.end

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
        """See that raw bytes fit that are put at an offset that the log accepts; whether they do already."""
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
        if size > self.record_bytes_max:
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
        self._claimed = self.end
        self._sums.move(self.whole_end())
        self._claimed_to = self._sums.reached()
        found: list[Operation] = [RemoveFile(name) for name in self._going]
        if self._flushing:
            found.append(FlushFiles([self._name(start) for start in sorted(self._flushing)]))
        return tuple(found)

    def end_flush(self) -> int:
        """The flush that was begun last is done; returns up to where the log is durable."""
        self._flushing.clear()
        self._going.clear()
        self.flushed = max(self.flushed, self._claimed)
        self._flushed_to = self._claimed_to
        return self.flushed

    @property
    def flushed_records(self) -> int:
        """Where the last whole record ends of what is durable."""
        return self._flushed_to.end

    def flushed_runs(self, *, with_flush: bool = False) -> tuple[FlushedRun, ...]:
        """What is durable of the log, up to the end of a record, with its checksums; `with_flush`: when the
        flush that was begun is done."""
        return self._sums.runs((self._claimed_to if with_flush else self._flushed_to).run)

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
        self._reserved *= succeeded
        self._limit += self.file_bytes * succeeded

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
        self._sums.forget_after(offset)
        if max(self._flushed_to.end, self._claimed_to.end) > self._whole:
            # Whole files are known without reading.
            self._flushed_to = self._claimed_to = Reached(self._whole, self._whole)
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
        self._sums.delete_before(self._first)

    # Files

    def _recover(
        self, mark: FlushedMark | None, visit: Callable[[Placed], None] | None, known: Known | None
    ) -> FlushedRun:
        """Open what is there, and cut what a crash left; returns how far the mark is right. Raises
        StorageFailed; nothing is changed then."""
        starts, short = log_files(self._files, self._folder, self.file_bytes)
        self._first = starts[0] if starts else 0
        # Where the oldest file begins; before the first byte of a log it may lie after its end.
        self._base = self._first
        self.end = self._limit = starts[-1] + self.file_bytes if starts else 0
        self._sums.begin(self._first)
        is_apaches = self._files.read(CHECKPOINT_FILE) is not None
        layout = Layout(self._first, self._limit, self.file_bytes, self.view, self._name, is_apaches)
        found = recover(layout, self._sums, mark, short, visit, known)
        if found.damage is not None:
            raise refused(found.damage.what)
        torn_end = found.end
        for start in range(self._start_of(found.end), self._limit, self.file_bytes):
            used = last_byte(self._region(start))
            torn_end = max(torn_end, start + used if used else 0)
        self.end = self._whole = found.end
        self._gone += [self._name(start) for start in reversed(short)]
        self._remove_after(found.end)
        self._zero(found.end, self._start_of(found.end) + self.file_bytes)
        self._dirty.update(range(self._first, found.end, self.file_bytes))
        self.opened_whole = torn_end <= found.end and (found.mark is not None or not found.end)
        self.said += sayings(found, torn_end, [self._name(start) for start in short])
        return found.run

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
        self.began = offset
        self._begin(offset)

    def begin_anew(self) -> None:
        """It has files and no byte: let it take those of any offset."""
        self._begin(0)

    def _begin(self, offset: int) -> None:
        self._first = self.end = self._whole = self.flushed = self._claimed = offset
        self._sums.begin(offset)
        self._flushed_to = self._claimed_to = self._sums.reached()

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
