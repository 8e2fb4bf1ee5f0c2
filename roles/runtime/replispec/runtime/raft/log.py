"""The log of a member in memory: its entries, which of them are on the disk, and what is to be written next.

Places count from 1. What a snapshot has replaced is known by its last place and term alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, overload

from replispec.wire.raft.constants import REPLACED_TERM
from replispec.wire.raft.member import RaftEntry

_REPLACED: Final = RaftEntry(term=REPLACED_TERM)


class MemberLog(Sequence[RaftEntry]):
    """The entries after `base_index`, whose entry is of `base_term`; all of them are on the disk."""

    def __init__(self, entries: Sequence[RaftEntry], base_index: int = 0, base_term: int = 0) -> None:
        self._base_index, self._base_term = base_index, base_term
        self._entries = list(entries)
        # What the disk holds, and the first place at which it does not hold the log.
        self._written = list(entries)
        self._unwritten = len(self) + 1
        self._handed_out: tuple[tuple[int, RaftEntry], ...] = ()

    def __len__(self) -> int:
        """The place of the last entry."""
        return self._base_index + len(self._entries)

    @overload
    def __getitem__(self, index: int) -> RaftEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RaftEntry]: ...
    def __getitem__(self, index: int | slice) -> RaftEntry | Sequence[RaftEntry]:
        """The entry at the place `index` + 1; what a snapshot has replaced has the term -1."""
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if index < self._base_index:
            return _REPLACED
        return self._entries[index - self._base_index]

    def __iter__(self) -> Iterator[RaftEntry]:
        """Every entry in order."""
        return (self[index] for index in range(len(self)))

    def term_at(self, index: int) -> int:
        """The term of the entry at a place; 0 before the first, -1 where a snapshot has replaced it."""
        if index == self._base_index:
            return self._base_term
        return self[index - 1].term

    @property
    def first(self) -> int:
        """The place of the first entry that is at hand."""
        return self._base_index + 1

    @property
    def stable(self) -> int:
        """Up to here the log is on the disk."""
        return min(self._unwritten - 1, self._base_index + len(self._written))

    def part(self, first: int, last: int, size_max: int) -> Sequence[RaftEntry]:
        """Entries from a place up to another one, at least one, of so many bytes of data at most."""
        found: list[RaftEntry] = []
        size = 0
        for index in range(first, last + 1):
            entry = self._entries[index - self._base_index - 1]
            size += len(entry.data)
            if found and size > size_max:
                break
            found.append(entry)
        return found

    def put(self, prev_index: int, entries: Sequence[RaftEntry]) -> None:
        """Take entries after a place, instead of all that was there."""
        first = prev_index + 1
        del self._entries[prev_index - self._base_index :]
        self._entries += entries
        self._unwritten = min(self._unwritten, first)

    def hand_out(self) -> Sequence[tuple[int, RaftEntry]]:
        """What is to be written, each at its place, instead of all that the disk has from the first on."""
        first = self._unwritten
        rows = enumerate(self._entries[first - self._base_index - 1 :], first)
        self._handed_out = tuple(rows)
        self._unwritten = len(self) + 1
        return self._handed_out

    @property
    def is_written(self) -> bool:
        """Whether nothing is to be written."""
        return self._unwritten > len(self)

    def persisted(self) -> None:
        """What was handed out last is on the disk."""
        if self._handed_out:
            first = self._handed_out[0][0]
            del self._written[first - self._base_index - 1 :]
            self._written += (entry for _, entry in self._handed_out)
        self._handed_out = ()

    def refused(self) -> None:
        """Nothing of what was handed out is on the disk: the log is what the disk holds."""
        self._entries = list(self._written)
        self._handed_out = ()
        self._unwritten = len(self) + 1
