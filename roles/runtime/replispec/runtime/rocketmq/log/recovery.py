"""Where a log that was found on a disk ends, and whether what follows is a torn tail or damage.

Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog.recoverAbnormally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from replispec.runtime.rocketmq.log.flushed_file import FlushedMark, Saying
from replispec.runtime.rocketmq.log.log_sums import LogSums
from replispec.runtime.rocketmq.log.records import Placed, View, next_record, walk
from replispec.runtime.storage import FilesReader, Region, StorageFailed
from replispec.runtime.world import Level
from replispec.wire.rocketmq.constants import COMMIT_LOG_NAME_DIGITS, FLUSHED_FILE
from replispec.wire.rocketmq.store import FlushedRun, LogRecord

_BYTES_AT_ONCE: Final = 1024 * 1024
_ZEROS: Final = bytes(_BYTES_AT_ONCE)

Known = Callable[[int, LogSums, FlushedMark], tuple[int, int]]
"""Given where a log begins, its checksums and its mark: up to where its records need no reading, and how many
there are."""


def refused(what: str) -> StorageFailed:
    """A store on which nobody may go on, with what to do about it."""
    return StorageFailed(
        f"{what}. Nothing was changed. Where another broker of the set is master: `replispec admin repair` "
        "has this one copy again under its id (or move the store aside, for a new id). Where none is: "
        "`replispec check-store FOLDER` tells what is left, and how to go on with it"
    )


class Layout(NamedTuple):
    """The files of a log: from `first` to before `limit`, each of one size and with a name. `is_apaches`:
    Apache RocketMQ wrote to this store, which leaves records behind a cut."""

    first: int
    limit: int
    file_bytes: int
    view: View
    name: Callable[[int], str]
    is_apaches: bool = False

    def start_of(self, offset: int) -> int:
        """Where the file begins that holds an offset."""
        return offset - offset % self.file_bytes

    def place(self, offset: int) -> str:
        """An offset as a file and a byte in it."""
        start = self.start_of(offset)
        return f"{self.name(start)}, byte {offset - start}"


class Damage(NamedTuple):
    """What is wrong, in the file that begins at `start`; `at`: the offset, None when it is not known."""

    start: int
    at: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log ends at `end`, after so many `messages`; up to `run` it is what `mark` says. With `damage` it
    once ended elsewhere. `behind`: where a whole record lies after the end all the same. `walked`: from where
    on records were read, and not checksums alone."""

    end: int
    messages: int
    mark: FlushedMark | None
    run: FlushedRun
    damage: Damage | None
    behind: int | None = None
    walked: int = 0


def log_files(files: FilesReader, folder: str, file_bytes: int) -> tuple[list[int], list[int]]:
    """Where the files of a log begin, and where those do that are too short and hold nothing.

    Raises StorageFailed when they do not follow each other, for nothing of ours leaves a hole, and when one
    that is too short holds something, or is not among the last.
    """
    names = [name for name in files.names(folder) if name.isdecimal()]
    starts = sorted(int(name) for name in names if len(name) == COMMIT_LOG_NAME_DIGITS)
    first = starts[0] if starts else 0
    if starts != [first + number * file_bytes for number in range(len(starts))]:
        raise refused(
            f"the files of {folder} do not follow each other in steps of mappedFileSizeCommitLog, "
            f"{file_bytes} bytes: one is missing, or they were made with another size"
        )
    short: list[int] = []
    for start in starts:
        name = f"{folder}/{start:0{COMMIT_LOG_NAME_DIGITS}d}"
        region = files.region(name)
        if region.size != file_bytes:
            short.append(start)
        if short and (region.size > file_bytes or last_byte(region)):
            raise refused(f"{name} has {region.size} bytes and should have {file_bytes}")
        region.close()
    return [start for start in starts if not short or start < short[0]], [
        start for start in starts if short and start >= short[0]
    ]


def recover(
    layout: Layout,
    sums: LogSums,
    mark: FlushedMark | None,
    short: Sequence[int],
    visit: Callable[[Placed], None] | None = None,
    known: Known | None = None,
) -> Recovered:
    """Walk a log; `visit` is shown each message. `sums` has read it to its end then. `known` vouches for all
    before an offset, from which on it is walked."""
    end, messages, stored_ms = layout.first, 0, 0
    if known is not None and mark is not None and mark.runs is not None and layout.first < layout.limit:
        end, messages = known(layout.first, sums, mark)
    walked = end
    torn_from = layout.first if mark is None else mark.offset
    for found in walk(layout.view, walked, layout.limit, torn_from=torn_from):
        if isinstance(found, Placed):
            messages += 1
            end, stored_ms = found.offset + found.size, found.record.store_timestamp
            if visit is not None:
                visit(found)
        else:
            end = found
    behind = None
    if mark is None:
        damage, behind = _without_mark(layout, end, stored_ms)
    else:
        damage = _against(layout, sums, mark, end)
    if damage is None and short and not _was_empty(short[0], end, mark):
        damage = Damage(
            short[0], short[0], f"{layout.name(short[0])} is too short, and may have held messages"
        )
    sums.move(mark.offset if mark is not None and damage is None else layout.first)
    run = sums.last()
    if damage is None:
        sums.move(end)
    return Recovered(end, messages, mark, run, damage, behind, walked)


def _was_empty(start: int, end: int, mark: FlushedMark | None) -> bool:
    """Whether a file without bytes never had any: the log ended before it."""
    return end < start or (mark is not None and mark.offset <= start)


def _against(layout: Layout, sums: LogSums, mark: FlushedMark, end: int) -> Damage | None:
    """What differs from what was once on the disk."""
    for run in mark.runs or ():
        start = layout.start_of(run.start)
        if not layout.first <= run.start < run.end <= min(start + layout.file_bytes, layout.limit):
            return Damage(start, None, f"{layout.name(start)} is missing: {_was(mark, end)}")
        if not sums.holds(run):
            if run.start <= end < run.end:
                break
            where = f"{layout.name(start)} is damaged before byte {run.end - start}"
            return Damage(start, None, f"{where}: its checksum is not that in {FLUSHED_FILE}")
    if end >= mark.offset:
        return None
    start = layout.start_of(end)
    if end >= layout.limit:
        return Damage(start, end, f"{layout.name(start)} is missing: {_was(mark, end)}")
    return Damage(start, end, f"{layout.place(end)} is damaged: {_was(mark, end)}")


def _was(mark: FlushedMark, end: int) -> str:
    further = f", {mark.offset - end} bytes further" if mark.offset > end else ""
    return f"the log was on the disk up to {mark.offset}{further}"


def _without_mark(layout: Layout, end: int, stored_ms: int) -> tuple[Damage | None, int | None]:
    """A log without a mark may have a torn tail; where whole records follow, it is more than that. In a store
    of Apache RocketMQ older ones are left of a cut. In ours nothing is, so that no clock decides: that of the
    next master may be behind."""
    for start in range(layout.start_of(end), layout.limit, layout.file_bytes):
        behind = next_record(layout.view, max(start, end + 1), start + layout.file_bytes)
        if behind is not None and not (layout.is_apaches and _stored_ms(layout, behind) < stored_ms):
            what = (
                f"{layout.place(end)} is damaged: whole records follow from {layout.place(behind)} on, and "
                f"no {FLUSHED_FILE} says that they may be lost"
            )
            return Damage(layout.start_of(end), end, what), behind
    return None, None


def _stored_ms(layout: Layout, offset: int) -> int:
    view = layout.view(offset, layout.file_bytes)
    return LogRecord.decode_at(view, 0, len(view))[0].store_timestamp


def last_byte(region: Region) -> int:
    """After how many bytes of a file all others are zeros."""
    for start, end in reversed(list(region.written())):
        at = end
        while at > start:
            size = min(_BYTES_AT_ONCE, at - start)
            chunk = region.view(at - size, size)
            if chunk != _ZEROS[:size]:
                return at - size + len(bytes(chunk).rstrip(b"\0"))
            at -= size
    return 0


def sayings(found: Recovered, torn_end: int, dropped: Sequence[str]) -> list[Saying]:
    """What a start says of its log: where it ends, and what was cut."""
    said = []
    mark = found.mark
    noted = "none" if mark is None else mark.offset
    if mark is None and found.end:
        said.append(Saying(Level.WARNING, "log without a note of what was on the disk", {"end": found.end}))
    if torn_end > found.end:
        values = {"end": found.end, "cut": torn_end - found.end, "noted": noted}
        said.append(Saying(Level.WARNING, "a torn tail of the log was cut", values))
    if dropped:
        said.append(
            Saying(Level.WARNING, "files of the log without bytes were dropped", {"files": " ".join(dropped)})
        )
    values = {"end": found.end, "messages": found.messages, "noted": noted, "walked_from": found.walked}
    said.append(Saying(Level.INFO, "log read", values))
    return said
