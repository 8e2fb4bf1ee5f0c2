"""The log of a member in memory: its entries, which of them are on the disk, and what is to be written next.

Places count from 1. What a snapshot has replaced is known by its last place and term alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.members import GroupMembers, said_by
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.constants import REPLACED_TERM
from replispec.wire.raft.member import RaftEntry

_REPLACED: Final = RaftEntry(term=REPLACED_TERM)


@immutable
class HandedOut:
    """What is to be written: `entries`, each at its place, instead of all that the disk has from the first
    on, and `snapshot`, instead of the one before.

    When it `installs`, nothing of the log before stays, else what is before `kept_from` may be let go.
    """

    entries: Sequence[tuple[int, RaftEntry]] = ()
    snapshot: MemberSnapshot | None = None
    installs: bool = False
    kept_from: int = 0


@dataclass(slots=True)
class _Kept:
    """What a disk holds of a log: the entries after a place, and the snapshot."""

    base_index: int
    base_term: int
    entries: list[RaftEntry]
    snapshot: MemberSnapshot | None

    def forget_before(self, first: int) -> None:
        """Let go of the entries before a place, of which the last one is at hand."""
        count = first - 1 - self.base_index
        if count > 0:
            self.base_index, self.base_term = first - 1, self.entries[count - 1].term
            del self.entries[:count]


class MemberLog(Sequence[RaftEntry]):
    """The entries after `base_index`, whose entry is of `base_term`; all of them are on the disk.

    So is the `snapshot`, which says what was applied up to a place that is not before `base_index`.
    """

    def __init__(
        self,
        entries: Sequence[RaftEntry],
        base_index: int = 0,
        base_term: int = 0,
        snapshot: MemberSnapshot | None = None,
    ) -> None:
        self._written = _Kept(base_index, base_term, list(entries), snapshot)
        self._begin()

    def _begin(self) -> None:
        """Be what the disk holds."""
        written = self._written
        self._now = _Kept(written.base_index, written.base_term, list(written.entries), written.snapshot)
        # The first place at which the disk does not hold the log, and the snapshot that it does not hold.
        self._unwritten = len(self) + 1
        self._unwritten_snapshot = HandedOut()
        self._handed_out = HandedOut()
        # Who the members are, from which place on.
        self._members: list[tuple[int, GroupMembers]] = []
        if written.snapshot is not None:
            self._members.append((written.snapshot.index, written.snapshot.members))
        self._note_members(self.first, written.entries)

    def _note_members(self, first: int, entries: Sequence[RaftEntry]) -> None:
        agreed = 0 if self.snapshot is None else self.snapshot.index
        for index, entry in enumerate(entries, first):
            members = said_by(entry)
            if members is not None and index > agreed:
                self._members.append((index, members))

    def __len__(self) -> int:
        """The place of the last entry."""
        return self._now.base_index + len(self._now.entries)

    @overload
    def __getitem__(self, index: int) -> RaftEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RaftEntry]: ...
    def __getitem__(self, index: int | slice) -> RaftEntry | Sequence[RaftEntry]:
        """The entry at the place `index` + 1; what a snapshot has replaced has the term -1."""
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if index < self._now.base_index:
            return _REPLACED
        return self._now.entries[index - self._now.base_index]

    def __iter__(self) -> Iterator[RaftEntry]:
        """Every entry in order."""
        return (self[index] for index in range(len(self)))

    def term_at(self, index: int) -> int:
        """The term of the entry at a place; 0 before the first, -1 where a snapshot has replaced it."""
        if index == self._now.base_index:
            return self._now.base_term
        return self[index - 1].term

    def members_at(self, index: int) -> tuple[int, GroupMembers] | None:
        """The last place up to this one that says who the members are, and who; None when none does."""
        return next((each for each in reversed(self._members) if each[0] <= index), None)

    @property
    def first(self) -> int:
        """The place of the first entry that is at hand."""
        return self._now.base_index + 1

    @property
    def snapshot(self) -> MemberSnapshot | None:
        """What was applied up to a place, for whoever lacks entries before the first."""
        return self._now.snapshot

    @property
    def stable(self) -> int:
        """Up to here the log is on the disk."""
        return min(self._unwritten - 1, self._written.base_index + len(self._written.entries))

    def part(self, first: int, last: int, size_max: int) -> Sequence[RaftEntry]:
        """Entries from a place up to another one, at least one, of so many bytes of data at most."""
        found: list[RaftEntry] = []
        size = 0
        for index in range(first, last + 1):
            entry = self._now.entries[index - self._now.base_index - 1]
            size += len(entry.data)
            if found and size > size_max:
                break
            found.append(entry)
        return found

    def put(self, prev_index: int, entries: Sequence[RaftEntry]) -> None:
        """Take entries after a place, instead of all that was there."""
        first = prev_index + 1
        del self._now.entries[prev_index - self._now.base_index :]
        self._now.entries += entries
        self._unwritten = min(self._unwritten, first)
        while self._members and self._members[-1][0] > prev_index:
            self._members.pop()
        self._note_members(first, entries)

    def compact(self, snapshot: MemberSnapshot, kept: int) -> None:
        """Let a snapshot replace entries once it is on the disk, but for the last so many of them."""
        kept_from = max(snapshot.index + 1 - kept, self.first)
        self._unwritten_snapshot = HandedOut(snapshot=snapshot, kept_from=kept_from)

    def install(self, snapshot: MemberSnapshot) -> None:
        """Be this snapshot and nothing else."""
        self._now = _Kept(snapshot.index, snapshot.term, [], snapshot)
        self._unwritten = snapshot.index + 1
        self._unwritten_snapshot = HandedOut(snapshot=snapshot, installs=True, kept_from=self.first)
        self._members = [(snapshot.index, snapshot.members)]

    def hand_out(self) -> HandedOut:
        """What is to be written."""
        first, what = self._unwritten, self._unwritten_snapshot
        rows = tuple(enumerate(self._now.entries[first - self._now.base_index - 1 :], first))
        self._handed_out = HandedOut(rows, what.snapshot, what.installs, what.kept_from)
        self._unwritten, self._unwritten_snapshot = len(self) + 1, HandedOut()
        return self._handed_out

    def persisted(self) -> None:
        """What was handed out last is on the disk."""
        handed, self._handed_out = self._handed_out, HandedOut()
        snapshot = handed.snapshot
        if snapshot is not None and handed.installs:
            self._written = _Kept(snapshot.index, snapshot.term, [], snapshot)
        written = self._written
        if handed.entries:
            first = handed.entries[0][0]
            del written.entries[first - written.base_index - 1 :]
            written.entries += (entry for _, entry in handed.entries)
        if snapshot is not None and not handed.installs:
            written.snapshot = snapshot
            written.forget_before(handed.kept_from)
            self._compacted(snapshot, handed.kept_from)

    def _compacted(self, snapshot: MemberSnapshot, kept_from: int) -> None:
        """Let go of what a snapshot on the disk replaces, unless another one has come since."""
        if self.snapshot is not None and self.snapshot.index >= snapshot.index:
            return
        self._now.snapshot = snapshot
        self._now.forget_before(kept_from)
        self._members = [
            (snapshot.index, snapshot.members),
            *(each for each in self._members if each[0] > snapshot.index),
        ]

    def refused(self) -> None:
        """Nothing of what was handed out is on the disk: the log is what the disk holds."""
        self._begin()
