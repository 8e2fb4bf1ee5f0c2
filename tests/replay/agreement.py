"""Faults put into the capture of a group that elects, agrees, loses its leader and gets it back.

Each says which rules it breaks, and which it leaves in doubt; every other verdict stays ok.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from replispec.runtime.primitives.headers import Header
from replispec.wire.raft.member import (
    RaftEntries,
    RaftEntriesAnswer,
    RaftEntriesRequest,
    RaftEntry,
    RaftSnapshotPartRequest,
    RaftVoteAnswer,
    RaftVoteRequest,
)
from tests.replay.faults import Edit, Frame, Frames, put, taken, with_fields

CAPTURE = Path(__file__).parent / "data" / "agreement.pcap"
TRUTH: dict[str, Any] = json.loads(CAPTURE.with_suffix(".truth.json").read_text())
NUMBERS: dict[str, int] = TRUTH["members"]
PORTS = {name: int(port) for port, name in TRUTH["ports"].items()}
SECOND_NS = 10**9


@cache
def clean() -> tuple[Frame, ...]:
    """All frames of the capture."""
    return tuple(taken(CAPTURE))


def told(frame: Frame, kind: type[Header]) -> Any:
    """The typed header of a message; None for another one."""
    _, header = frame.command()
    return kind.from_ext_fields(dict(header.ext_fields or {})) if header.code in kind.CODES else None


def entries_of(frame: Frame) -> tuple[RaftEntry, ...]:
    """The entries in a message."""
    body = frame.command()[0].body
    return tuple(RaftEntries.decode(body).entries)


def find(frames: Sequence[Frame], kind: type[Header], by: str, to: str, **fields: Any) -> list[int]:
    """Where a member says something to another one, with these fields."""
    return [
        at
        for at, frame in enumerate(frames)
        if frame.destination[1] == PORTS[to]
        and (header := told(frame, kind)) is not None
        and header.member == NUMBERS[by]
        and all(getattr(header, name) == value for name, value in fields.items())
    ]


def two_leaders_of_one_term(frames: Frames) -> Frames:
    """All that the second leader sends to the first one, n2 says."""
    own = find(frames, RaftEntriesRequest, "n3", "n1")[0]
    return [_said_by(each, "n2") if each.connection == frames[own].connection else each for each in frames]


def _said_by(frame: Frame, name: str) -> Frame:
    for kind in (RaftVoteRequest, RaftEntriesRequest):
        if (header := told(frame, kind)) is not None and header.member == NUMBERS["n3"]:
            return with_fields(frame, kind, member=NUMBERS[name])
    return frame


def a_second_vote(frames: Frames) -> Frames:
    """In term 2 n1, which voted for n3, votes for n2 as well, who asked too."""
    refused = find(frames, RaftVoteAnswer, "n1", "n2", granted=False)[0]
    asked = find(frames, RaftVoteRequest, "n2", "n1", is_pre=True)[0]
    frames = put(frames, asked, with_fields(frames[asked], RaftVoteRequest, is_pre=False))
    return put(
        frames, refused, with_fields(frames[refused], RaftVoteAnswer, granted=True, is_pre=False, term=2)
    )


def a_vote_at_two_addresses(frames: Frames) -> Frames:
    """The same, and nobody is seen to be another candidate: it may be the same one at another address."""
    refused = find(frames, RaftVoteAnswer, "n1", "n2", granted=False)[0]
    return put(
        frames, refused, with_fields(frames[refused], RaftVoteAnswer, granted=True, is_pre=False, term=2)
    )


def other_bytes_of_an_entry(frames: Frames) -> Frames:
    """One follower is sent another byte in an entry."""
    at = next(at for at in find(frames, RaftEntriesRequest, "n1", "n2") if entries_of(frames[at]))
    at = next(
        at for at in find(frames, RaftEntriesRequest, "n1", "n2", prev_index=2) if entries_of(frames[at])
    )
    (entry,) = entries_of(frames[at])
    return put(
        frames,
        at,
        _with_entries(frames[at], replace(entry, data=bytes([entry.data[0] ^ 1]) + entry.data[1:])),
    )


def _with_entries(frame: Frame, *entries: RaftEntry) -> Frame:
    return with_fields(frame, RaftEntriesRequest, RaftEntries(entries=list(entries)))


def another_entry_for_an_agreed_one(frames: Frames) -> Frames:
    """The second leader sends an entry of term 1 where it says that one of term 2 is agreed on."""
    at = next(
        at for at in find(frames, RaftEntriesRequest, "n3", "n1", prev_index=4) if entries_of(frames[at])
    )
    (entry,) = entries_of(frames[at])
    return put(frames, at, _with_entries(frames[at], replace(entry, term=1)))


def a_later_leader_lacks_an_agreed_entry(frames: Frames) -> Frames:
    """The second leader says that the entry at 2, agreed on in term 1, is of term 2."""
    at = find(frames, RaftEntriesRequest, "n3", "n2", prev_index=5)[0]
    return put(frames, at, with_fields(frames[at], RaftEntriesRequest, prev_index=2))


def a_snapshot_with_another_entry(frames: Frames) -> Frames:
    """A snapshot is sent that ends with an entry of term 2 at 2."""
    at = find(frames, RaftEntriesRequest, "n3", "n2", prev_index=6)[-1]
    outer, header = frames[at].command()
    said = told(frames[at], RaftEntriesRequest)
    part = RaftSnapshotPartRequest(
        version=said.version,
        group=said.group,
        member=said.member,
        term=2,
        index=2,
        last_term=2,
        size=9,
        offset=0,
    )
    code = RaftSnapshotPartRequest.CODES[0]
    return put(
        frames,
        at,
        frames[at].with_command(replace(header, code=code, ext_fields=part.to_ext_fields()), outer.body),
    )


def a_term_falls(frames: Frames) -> Frames:
    """A follower refuses in a term that is over."""
    at = find(frames, RaftEntriesAnswer, "n2", "n3", term=2)[-1]
    return put(frames, at, with_fields(frames[at], RaftEntriesAnswer, accepted=False, term=1))


def what_is_agreed_on_falls(frames: Frames) -> Frames:
    """A leader says that less is agreed on than it said before."""
    at = find(frames, RaftEntriesRequest, "n3", "n2", commit=6)[-1]
    return put(frames, at, with_fields(frames[at], RaftEntriesRequest, commit=5))


def two_members_on_one_connection(frames: Frames) -> Frames:
    """An answer of n2 names n1."""
    at = find(frames, RaftEntriesAnswer, "n2", "n3", term=2)[-1]
    return put(frames, at, with_fields(frames[at], RaftEntriesAnswer, member=NUMBERS["n1"]))


def more_is_accepted_than_was_sent(frames: Frames) -> Frames:
    """A follower accepts a place that the leader has not named."""
    at = find(frames, RaftEntriesAnswer, "n2", "n3", term=2)[-1]
    return put(frames, at, with_fields(frames[at], RaftEntriesAnswer, index=7))


def more_is_accepted_of_an_election_not_seen(frames: Frames) -> Frames:
    """The same, and nobody is seen to ask for the votes of that term: more may have been sent before."""
    asked = {
        *find(frames, RaftVoteRequest, "n3", "n2", term=2),
        *find(frames, RaftVoteRequest, "n3", "n1", term=2),
    }
    return [each for at, each in enumerate(more_is_accepted_than_was_sent(frames)) if at not in asked]


def founded_again(frames: Frames) -> Frames:
    """The whole story again under the same name, with other bytes in its entries and another first leader."""
    swapped = {NUMBERS["n1"]: NUMBERS["n2"], NUMBERS["n2"]: NUMBERS["n1"]}
    later = 2 * SECOND_NS + frames[-1].time_ns - frames[0].time_ns
    return [*frames, *(_again(each, later, swapped) for each in frames)]


def _again(frame: Frame, later: int, swapped: dict[int, int]) -> Frame:
    for kind in (RaftVoteRequest, RaftVoteAnswer, RaftEntriesRequest, RaftEntriesAnswer):
        header = told(frame, kind)
        if header is not None:
            entries = entries_of(frame) if kind is RaftEntriesRequest else ()
            body = RaftEntries(entries=[replace(each, data=each.data + b"?") for each in entries])
            member = swapped.get(header.member, header.member)
            frame = with_fields(frame, kind, body if entries else None, member=member)
    ends = [
        (host, port + 4_500 if port > max(PORTS.values()) else port)
        for host, port in (frame.source, frame.destination)
    ]
    return replace(
        frame,
        time_ns=frame.time_ns + later,
        connection=f"{frame.connection} again",
        source=ends[0],
        destination=ends[1],
    )


@dataclass(frozen=True)
class Fault:
    """An edit, the rules that it breaks, and those that it leaves unknown."""

    edit: Edit
    breaks: frozenset[str]
    doubts: frozenset[str] = field(default=frozenset())


def _fault(edit: Edit, *breaks: str, doubts: Sequence[str] = ()) -> Fault:
    return Fault(edit, frozenset(breaks), frozenset(doubts))


FAULTS = (
    _fault(two_leaders_of_one_term, "one-leader-per-term"),
    _fault(a_second_vote, "one-vote-per-term"),
    _fault(a_vote_at_two_addresses, doubts=["one-vote-per-term"]),
    _fault(other_bytes_of_an_entry, "logs-match"),
    _fault(another_entry_for_an_agreed_one, "agreed-entry-stays"),
    _fault(a_later_leader_lacks_an_agreed_entry, "agreed-entry-stays"),
    _fault(a_snapshot_with_another_entry, "agreed-entry-stays"),
    _fault(a_term_falls, "terms-grow"),
    _fault(what_is_agreed_on_falls, "terms-grow"),
    _fault(two_members_on_one_connection, "terms-grow"),
    _fault(more_is_accepted_than_was_sent, "accepted-was-sent"),
    _fault(more_is_accepted_of_an_election_not_seen, doubts=["accepted-was-sent"]),
    _fault(founded_again, doubts=["one-leader-per-term", "logs-match"]),
)
