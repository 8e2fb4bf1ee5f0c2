"""A disk in memory that forgets what a crash makes a disk forget.

Every call that changes something is counted and named, so that a test can crash inside each one in turn,
or let each one fail. What is left after a crash is drawn at random, within what
`replispec.runtime.storage` promises.

    disk = Disk(Rng(seed))
    disk.crash_at(7, Left.PART)              # inside the seventh change from now on
    node = make_node(SimulatedFiles(disk), SimulatedJournal(disk))
    ...                                      # Crashed comes out of the seventh change
    disk.crash()                             # what was open is dead; what is left is there
    node = make_node(SimulatedFiles(disk), SimulatedJournal(disk))
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.rng import Rng
from replispec.runtime.storage import StorageFailed, StorageFull

WRITE: Final = "write "
"""How the name of a change begins that puts bytes into a region: into memory, until a flush."""


class Crashed(Exception):
    """The process died inside a call, or calls on after it died. Code of a role may not catch this."""


class Left(enum.Enum):
    """How much of the change that a crash or a failure interrupts has taken effect. A change that is
    promised in one step happens whole for PART too, or not at all, at random."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


@dataclass(slots=True)
class Write:
    """Bytes put into a region and not yet on the disk: what was there before, and what is there now."""

    at: int
    before: bytes
    after: bytes


@dataclass(slots=True, eq=False)
class Content:
    """One file: what a reader sees, and which of it the disk may still lose."""

    data: bytearray
    unflushed: list[Write] = field(default_factory=list)
    # Of a flush that failed: a later flush that succeeds does not bring these back (as Linux does it).
    abandoned: list[Write] = field(default_factory=list)
    # Of a file that grows: how long it is on the disk; None when it is not there yet. -1: it does not grow.
    kept_size: int | None = -1

    def flush(self, *, succeeds: bool) -> None:
        """Make what was written durable, or never durable but by being written again."""
        if succeeds:
            self.kept_size = self.kept_size if self.kept_size == -1 else len(self.data)
            again = [(one.at, one.at + len(one.after)) for one in self.unflushed]
            self.abandoned = [
                one
                for one in self.abandoned
                if not any(start < one.at + len(one.after) and one.at < end for start, end in again)
            ]
        else:
            self.abandoned.extend(self.unflushed)
        self.unflushed.clear()


@dataclass(slots=True, eq=False)
class RecordedChanges:
    """What a journal holds: records by index, in order, and the value beside them. Of `damaged` ones
    the checksum does not fit."""

    records: dict[int, bytes] = field(default_factory=dict)
    state: bytes | None = None
    snapshot: tuple[int, bytes] | None = None
    damaged: list[int] = field(default_factory=list)
    # What a loss of power leaves, where the disk does not keep what it is told to.
    durable: tuple[dict[int, bytes], bytes | None, tuple[int, bytes] | None] | None = None


Plan = Callable[[str], str | None]
"""Given the name of a call ("write commitlog/0 at 300", "flush a b", "read x"), why it fails; None: it
does not. "read" and "records" are asked too, though they change nothing."""


class Disk:
    """What outlives the processes that use it, one at a time. `room_bytes` bounds the sum of all files.

    A disk that lies (`keeps_flushes` is false) loses with the power whatever regions and journals were
    told to keep; for tests of tests. While it `forbids_changes`, whoever makes one but by writing into an
    open region is at fault: the world sets this while a node takes an event.
    """

    def __init__(self, rng: Rng, *, room_bytes: int | None = None) -> None:
        self.rng = rng
        self.room_bytes = room_bytes
        self.contents: dict[str, Content] = {}
        self.journals: dict[str, RecordedChanges] = {}
        self.changes: list[str] = []
        self.plan: Plan | None = None
        self.keeps_flushes = True
        self.forbids_changes = False
        self._life = 0
        self._crash_at: int | None = None
        self._crash_left: Left | None = None

    @property
    def life(self) -> int:
        """Which process uses the disk: grows with each crash."""
        return self._life

    def crash_at(self, number: int, left: Left | None = None) -> None:
        """Crash inside the `number`-th change from now on, the first being 1. Without `left`, the rng
        decides how much of it takes effect."""
        self._crash_at = len(self.changes) + number
        self._crash_left = left

    def mend(self) -> None:
        """No more failures by plan, and no crash that was asked for and has not come."""
        self.plan = None
        self._crash_at = None

    def crash(self, *, power: bool = True) -> None:
        """End the process that uses the disk. With `power` lost, what was not flushed is kept, lost or
        torn, write by write; otherwise the operating system lives on and keeps it."""
        self._life += 1
        self._crash_at = None
        for journal in self.journals.values():
            if power and journal.durable is not None:
                journal.records, journal.state, journal.snapshot = journal.durable
            journal.durable = None if power else journal.durable
        for name in sorted(self.contents):
            content = self.contents[name]
            data = bytearray(content.data)
            writes = [*content.abandoned, *content.unflushed]
            size = content.kept_size
            if power:
                self._forget(data, writes)
                writes = []
                if size != -1 and not self._shorten(name, data, size):
                    continue
                size = size if size == -1 else len(data)
            self.contents[name] = Content(data, unflushed=writes, kept_size=size)

    def used_bytes(self) -> int:
        """The sum of the sizes of all files and records."""
        held = sum(len(record) for journal in self.journals.values() for record in journal.records.values())
        return held + sum(len(content.data) for content in self.contents.values())

    def check(self, life: int) -> None:
        """Raise Crashed when the process that calls is dead."""
        if life != self._life:
            raise Crashed("the process that opened this has died")

    def reading(self, life: int, what: str) -> None:
        """A call that only reads: may fail by plan."""
        self.check(life)
        reason = self.plan(what) if self.plan is not None else None
        if reason is not None:
            raise StorageFailed(reason)

    def change(self, life: int, what: str, take_effect: Callable[[Left], None], more_bytes: int = 0) -> None:
        """A call that changes something: count it, let it take effect, or crash or fail in it."""
        self.check(life)
        assert not self.forbids_changes or what.startswith(WRITE), f"a node writes by itself: {what}"
        self.changes.append(what)
        if self._crash_at is not None and len(self.changes) >= self._crash_at:
            left = self._crash_left or self.rng.one_of(tuple(Left))
            take_effect(left)
            self._crash_at = None
            self._life += 1
            raise Crashed(f"change {len(self.changes)}: {what}")
        reason = self.plan(what) if self.plan is not None else None
        if reason is not None:
            take_effect(Left.PART)
            raise StorageFailed(reason)
        if self.room_bytes is not None and more_bytes and self.used_bytes() + more_bytes > self.room_bytes:
            raise StorageFull(f"{what}: no space left on device")
        take_effect(Left.ALL)

    def whole(self, left: Left) -> bool:
        """Whether a change that is promised in one step has happened."""
        return left is Left.ALL or (left is Left.PART and self.rng.happens(500))

    def _forget(self, data: bytearray, writes: list[Write]) -> None:
        for write in reversed(writes):
            data[write.at : write.at + len(write.before)] = write.before
        for write in writes:
            kept = self.rng.one_of((b"", write.after, self._torn(write)))
            data[write.at : write.at + len(kept)] = kept

    def _shorten(self, name: str, data: bytearray, kept_size: int | None) -> bool:
        """Lose some of what a file grew by since it was flushed; whether it is there at all."""
        if kept_size is None and self.rng.happens(300):
            del self.contents[name]
            return False
        least = kept_size or 0
        if len(data) > least:
            del data[self.rng.one_of((least, len(data), self.rng.between(least, len(data)))) :]
        return True

    def _torn(self, write: Write) -> bytes:
        """A mixture: new bytes up to some place and old ones after it, or the other way round."""
        cut = self.rng.below(len(write.after) + 1)
        if self.rng.happens(500):
            return write.after[:cut] + write.before[cut:]
        return write.before[:cut] + write.after[cut:]
