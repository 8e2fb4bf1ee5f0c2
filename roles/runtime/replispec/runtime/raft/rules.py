"""Pure algorithms of the agreement on one log: counting voters, and where two logs part.

What `rules` means to the machine `member`: the functions that the generated protocol
`replispec.wire.raft.rules.Rules` lists. Members are numbers, places in a log count from 1. Decided by the
golden examples in spec/vectors/raft/agreement.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.constants import REPLACED_TERM
from replispec.wire.raft.member import RaftEntry

__all__ = [
    "conflict",
    "follows",
    "greatest",
    "is_majority",
    "last_term",
    "members_places",
    "ordered",
    "reached",
    "with_entry",
    "with_members",
    "with_replaced",
]


def is_majority(voters: frozenset[int], members: frozenset[int]) -> bool:
    """Whether more than half of the voters are among the members."""
    return 2 * len(voters.intersection(members)) > len(voters)


def reached(voters: frozenset[int], marks: Mapping[int, int]) -> int:
    """The greatest number that a majority of the voters has reached; 0 for a voter without a mark."""
    ordered = sorted(marks.get(voter, 0) for voter in voters)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0


def greatest(numbers: frozenset[int]) -> int:
    """The greatest of some numbers; 0 for none."""
    return max(numbers, default=0)


def follows(log: Sequence[RaftEntry], prev_index: int, prev_term: int) -> bool:
    """Whether entries that follow this place and term fit the log."""
    if prev_index <= 0 or prev_index > len(log):
        return prev_index == prev_term == 0
    return log[prev_index - 1].term in (prev_term, REPLACED_TERM)


def ordered(entries: Sequence[RaftEntry], prev_term: int, term: int) -> bool:
    """Whether the terms of entries that follow `prev_term` never fall, and none is newer than `term`."""
    terms = [prev_term, *(entry.term for entry in entries), term]
    return prev_term >= 0 and all(entry.term > 0 for entry in entries) and terms == sorted(terms)


def conflict(log: Sequence[RaftEntry], prev_index: int, entries: Sequence[RaftEntry]) -> int | None:
    """The first place after `prev_index` at which the log holds an entry of another term than is sent."""
    for index in range(prev_index, min(prev_index + len(entries), len(log))):
        if log[index].term not in (entries[index - prev_index].term, REPLACED_TERM):
            return index + 1
    return None


def last_term(entries: Sequence[RaftEntry], prev_term: int) -> int:
    """The term of the last entry, or that of the one before them when there is none."""
    return entries[-1].term if entries else prev_term


def with_entry(log: Sequence[RaftEntry], term: int) -> Sequence[RaftEntry]:
    """The log with one more entry of this term, of no data."""
    return (*log, RaftEntry(term=term))


def with_members(log: Sequence[RaftEntry], term: int) -> Sequence[RaftEntry]:
    """The log with one more entry of this term, which says who the members are."""
    return (*log, RaftEntry(term=term, kind=EntryKind.MEMBERS))


def members_places(log: Sequence[RaftEntry]) -> frozenset[int]:
    """The places of the entries of the log that say who the members are."""
    return frozenset(at for at, entry in enumerate(log, 1) if entry.kind == EntryKind.MEMBERS)


def with_replaced(log: Sequence[RaftEntry], index: int) -> Sequence[RaftEntry]:
    """The log of which a snapshot has replaced the entries up to this place."""
    if index <= 0:
        return log
    return (*(RaftEntry(term=REPLACED_TERM) for _ in log[:index]), *log[index:])
