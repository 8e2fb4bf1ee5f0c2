"""The streams of events that the rules of an agreement speak about, made from what members said in a capture.

Which attributes an event has is declared in spec/invariants/raft/streams.yaml; what was not seen is UNKNOWN.
Every event carries its observation as `row`, which is its evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.observation import Member, Observation, ends_of
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.raft.member import (
    RaftEntriesAnswer,
    RaftEntriesRequest,
    RaftLeadRequest,
    RaftSnapshotPartRequest,
    RaftVoteAnswer,
    RaftVoteRequest,
)

VOTE, GRANT = RaftVoteRequest.__name__, RaftVoteAnswer.__name__
ENTRIES, ACCEPTED = RaftEntriesRequest.__name__, RaftEntriesAnswer.__name__
PART, LEAD = RaftSnapshotPartRequest.__name__, RaftLeadRequest.__name__
LEADING: Final = (ENTRIES, PART, LEAD)
"""What a leader alone sends."""


@dataclass(frozen=True, slots=True)
class _Held:
    """An entry that a leader had: its place, its term, its digest where it was seen, and who told it."""

    index: int
    term: int
    digest: int | None
    row: Member


def _side(row: Member) -> tuple[int | None, str, int]:
    return row.member, row.connection, row.direction


@dataclass(slots=True)
class _Life:
    """What one process of a member said. `until`: the place of the last message on the connections on which
    it has spoken so far; `first_term`, `last_term`: the least and the greatest term of its own."""

    until: int = -1
    wrote: bool = False
    asked_empty: bool = False
    first_term: int | None = None
    last_term: int | None = None

    def take(self, row: Member, last: int) -> None:
        """One more message; `last`: the place of the last one on its connection."""
        self.until = max(self.until, last)
        self.wrote |= row.message == ENTRIES or bool(
            row.message == ACCEPTED and row.accepted and row.log_index
        )
        self.asked_empty |= row.message == VOTE and not row.log_index
        if not row.is_pre and row.term is not None:
            self.first_term = row.term if self.first_term is None else min(self.first_term, row.term)
            self.last_term = row.term if self.last_term is None else max(self.last_term, row.term)


def _forgot(lives: Sequence[_Life]) -> bool:
    """Whether a later life shows less than an earlier one had."""
    return any(
        (one.wrote and other.asked_empty)
        or (one.last_term is not None and other.first_term is not None and other.first_term < one.last_term)
        for at, other in enumerate(lives)
        for one in lives[:at]
    )


@dataclass
class _Said:
    """All that members of one group said, in the order of the capture."""

    group: str
    rows: list[Member] = field(default_factory=list)

    @cached_property
    def begun_again(self) -> bool:
        """Whether a process of a member had forgotten what the member had: it asked for votes with an empty
        log after one that was not, or spoke of an older term."""
        return any(_forgot(lives) for lives in self._lives().values())

    def _lives(self) -> Mapping[int, list[_Life]]:
        """The lives of each member's processes: one ends where none of the connections speaks any more on
        which the member has spoken. What is only late comes while others go on."""
        last = {_side(row): at for at, row in enumerate(self.rows)}
        found: dict[int, list[_Life]] = defaultdict(list)
        for at, row in enumerate(self.rows):
            assert row.member is not None
            lives = found[row.member]
            if not lives or at > lives[-1].until:
                lives.append(_Life())
            lives[-1].take(row, last[_side(row)])
        return found

    @cached_property
    def candidates(self) -> Mapping[int, frozenset[int]]:
        """Who asked for votes, by terms."""
        found: dict[int, set[int]] = defaultdict(set)
        for row in self.rows:
            if row.message == VOTE and not row.is_pre and row.term is not None and row.member is not None:
                found[row.term].add(row.member)
        return {term: frozenset(members) for term, members in found.items()}

    @cached_property
    def agreed_upto(self) -> Mapping[int, int]:
        """Up to where the leader of each term said that the log is agreed on."""
        found: dict[int, int] = {}
        for row in self.rows:
            if row.message == ENTRIES and row.term is not None and row.commit is not None:
                found[row.term] = max(found.get(row.term, 0), row.commit)
        return found


def agreement_events(rows: Iterable[Observation]) -> Iterator[StreamEvent]:
    """The events of all streams; `rows`: what members said, in the order of the capture."""
    groups: dict[str, _Said] = {}
    for row in rows:
        if isinstance(row, Member) and row.name is not None:
            groups.setdefault(row.name, _Said(row.name)).rows.append(row)
    for said in groups.values():
        for make in (_leads, _votes, _entries, _logs, _words, _accepted):
            yield from make(said)


def _event(stream: str, name: str, said: _Said, row: Member, /, **told: Any) -> StreamEvent:
    return StreamEvent(stream, name, SimpleNamespace(group=said.group, row=row, **told))


def _leads(said: _Said) -> Iterator[StreamEvent]:
    known: set[tuple[Any, ...]] = set()
    for row in said.rows:
        new = row.connection, row.direction, row.term, row.member
        if row.message in LEADING and new not in known:
            known.add(new)
            told = {"term": row.term, "leader": row.member, "begun_again": said.begun_again}
            yield _event("leads", "led", said, row, **told)


def _votes(said: _Said) -> Iterator[StreamEvent]:
    for row in said.rows:
        if row.message == GRANT and row.accepted and not row.is_pre:
            yield _event(
                "votes",
                "voted",
                said,
                row,
                member=row.member,
                term=row.term,
                candidate=_other_end(row) if row.opened else UNKNOWN,
                candidates=said.candidates.get(row.term or 0, frozenset()),
                begun_again=said.begun_again,
            )


def _other_end(row: Member) -> str:
    """The address that a message goes to."""
    return ends_of(row.connection)[1 - row.direction]


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _entries(said: _Said) -> Iterator[StreamEvent]:
    known: set[tuple[Any, ...]] = set()
    for row in said.rows:
        for each in _held_by(row):
            new = row.connection, row.direction, row.term, each.index, each.term, each.digest
            if each.digest is not None and new not in known:
                known.add(new)
                told = {"index": each.index, "term": each.term, "digest": each.digest}
                yield _event("entries", "entry", said, row, **told, begun_again=said.begun_again)


def _held_by(row: Member) -> Iterator[_Held]:
    """The entries that a leader shows to have by one message."""
    if row.message not in (ENTRIES, PART):
        return
    if row.log_index and row.log_term:
        yield _Held(row.log_index, row.log_term, None, row)
    for each in row.entries or ():
        yield _Held(each["index"], each["term"], each["digest"], row)


def _logs(said: _Said) -> Iterator[StreamEvent]:
    """Each entry that a leader of some term had, once: the log of a leader only grows."""
    known: set[tuple[int, int, int]] = set()
    for row in said.rows:
        for each in _held_by(row):
            assert row.term is not None
            new = row.term, each.index, each.term
            told = {"index": each.index, "term": each.term, "by": row.term}
            if new in known:
                continue
            known.add(new)
            if row.message == PART or each.index <= said.agreed_upto.get(row.term, 0):
                yield _event("logs", "agreed", said, row, **told)
            yield _event("logs", "held", said, row, **told, begun_again=said.begun_again)


def _words(said: _Said) -> Iterator[StreamEvent]:
    for row in said.rows:
        asks = row.message in (VOTE, GRANT) and row.is_pre
        told = {"stream": f"{row.connection} {row.direction}", "member": row.member}
        told |= {"term": None if asks else row.term, "commit": row.commit}
        yield _event("words", "said", said, row, **told)


@dataclass(slots=True)
class _Sent:
    """What the leader of one term sent from one host to another: the last place it named, whether all of it
    was seen."""

    last: int = 0
    whole: bool = True


def _accepted(said: _Said) -> Iterator[StreamEvent]:
    sent: dict[tuple[int | None, str, str], _Sent] = defaultdict(_Sent)
    for row in said.rows:
        if row.message in (ENTRIES, PART):
            each = sent[row.term, *_hosts(row)]
            each.last = max(each.last, (row.log_index or 0) + len(row.entries or ()))
            each.whole &= bool(row.whole)
    leaders = {(row.term, row.member) for row in said.rows if row.message in LEADING}
    elected = {
        term
        for term, member in leaders
        if term is not None and member in said.candidates.get(term, frozenset())
    }
    for row in said.rows:
        if row.message == ACCEPTED and row.accepted:
            source, destination = _hosts(row)
            found = sent.get((row.term, destination, source))
            known = found.last if found is not None and found.whole and row.term in elected else UNKNOWN
            told = {"member": row.member, "term": row.term, "index": row.log_index or 0, "sent": known}
            yield _event("accepted", "accepted", said, row, **told)


def _hosts(row: Member) -> tuple[str, str]:
    """The hosts that a message goes from and to."""
    ends = ends_of(row.connection)
    return _host(ends[row.direction]), _host(ends[1 - row.direction])
