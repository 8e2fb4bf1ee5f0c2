"""What members of a group say to each other, frame by frame.

A message is told by its code and by being no answer; all of them are one-way. Their order is that of the
bytes within a direction: the order of arrival says no more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.capture.groups import running_maximum
from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import Directions, seen_whole, values
from replispec.replay.events.observation import Member, Observation, Place, Undecodable
from replispec.replay.frames.raft.family import REMOTING
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.framings import RemotingFlag
from replispec.wire.raft import member as wire
from replispec.wire.raft.commands import REQUEST_HEADERS
from replispec.wire.raft.constants import GROUP_VERSION

CODES: Final = frozenset(REQUEST_HEADERS)
"""The codes by which the messages of members are told."""
_COLUMNS: Final = (
    *("capture", "connection", "direction", "sequence", "index", "time_ns", "record_offset"),
    *("code", "ext_fields", "body_size", "body_digest", "entries"),
)
Side = tuple[str, int]


def observe_members(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    """What members say in frames (FRAMES, all of a connection or those with CODES); see `ObservedFamily`."""
    own = _messages(frames)
    if not own.num_rows:
        return [], []
    whole, opened = _whole(holes, streams), _opened(streams)
    found: list[Observation] = []
    for order, row in zip(_orders(own), own.to_pylist(), strict=True):
        side = row["connection"], row["direction"]
        at = Place(row["capture"], order, row["time_ns"], *side, row["sequence"], row["index"])
        try:
            told = _told(row)
        except RemoteProtocolError as fault:
            found.append(Undecodable(*at, code=row["code"], text=str(fault)[:200]))
            continue
        if told is not None:
            found.append(Member(*at, **told, opened=opened.get(side), whole=side in whole))
    return found, []


def _messages(frames: pa.Table) -> pa.Table:
    """The rows of members' messages, sorted by direction and bytes."""
    codes = pc.is_in(frames.column("code"), pa.array(sorted(CODES), pa.int32()))
    if not pc.any(codes).as_py():
        return frames.slice(0, 0)
    asks = pc.equal(pc.bit_wise_and(frames.column("flag"), int(RemotingFlag.RESPONSE)), 0)
    own = pc.and_(pc.and_(codes, asks), pc.equal(frames.column("protocol"), REMOTING))
    order = [(name, "ascending") for name in ("capture", "connection", "direction", "sequence", "index")]
    return frames.filter(own).select(_COLUMNS).sort_by(order)


def _orders(own: pa.Table) -> list[int]:
    """Where in the capture each message came: never before one that precedes it in its direction."""
    names = [f"{name} {side}" for name, side in zip(*values(own, "connection", "direction"), strict=True)]
    _, sides = np.unique(np.array(names), return_inverse=True)
    found: list[int] = running_maximum(
        sides.astype(np.int64), np.asarray(own.column("record_offset"))
    ).tolist()
    return found


def _whole(holes: pa.Table, streams: pa.Table) -> Directions:
    """Directions of which every byte was seen, from the first one on, and is of a frame."""
    holed = frozenset(zip(*values(holes, "connection", "direction"), strict=True))
    unread = streams.filter(pc.greater(streams.column("bytes_undecoded"), 0))
    return (
        seen_whole(streams) - holed - frozenset(zip(*values(unread, "connection", "direction"), strict=True))
    )


def _opened(streams: pa.Table) -> Mapping[Side, bool]:
    """Whether the sender of each direction opened its connection."""
    rows = zip(*values(streams, "connection", "direction", "accepted"), strict=True)
    return {(connection, direction): not accepted for connection, direction, accepted in rows}


def _told(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of one message; None for one of another version. Raises RemoteProtocolError when one breaks
    its type, or its entries cannot be read."""
    kind = REQUEST_HEADERS[row["code"]]
    header: Any = kind.from_ext_fields(dict(row["ext_fields"] or ()))
    names = header.group, header.member, header.term
    if header.version != GROUP_VERSION or None in names:
        return None
    entries = row["entries"] if row["body_size"] else []
    if entries is None and kind is wire.RaftEntriesRequest and row["body_digest"] is not None:
        raise RemoteProtocolError("its body holds no entries")
    group, member, term = names
    said = dict(_FIELDS.get(kind, _nothing)(header, entries))
    return {"name": group, "member": member, "message": kind.__name__, "term": term, **said}


def _nothing(_header: Any, _entries: Any) -> Iterator[tuple[str, Any]]:
    yield from ()


def _vote_request(header: wire.RaftVoteRequest, _: Any) -> Iterator[tuple[str, Any]]:
    yield "is_pre", bool(header.is_pre)
    yield "log_index", header.last_index
    yield "log_term", header.last_term


def _vote_answer(header: wire.RaftVoteAnswer, _: Any) -> Iterator[tuple[str, Any]]:
    yield "is_pre", bool(header.is_pre)
    yield "accepted", bool(header.granted)


def _entries(header: wire.RaftEntriesRequest, entries: Any) -> Iterator[tuple[str, Any]]:
    yield "log_index", header.prev_index
    yield "log_term", header.prev_term
    yield "commit", header.commit
    yield "entries", entries


def _entries_answer(header: wire.RaftEntriesAnswer, _: Any) -> Iterator[tuple[str, Any]]:
    yield "accepted", bool(header.accepted)
    yield "log_index", header.index


def _part(header: wire.RaftSnapshotPartRequest, _: Any) -> Iterator[tuple[str, Any]]:
    yield "log_index", header.index
    yield "log_term", header.last_term


_FIELDS: Final[Mapping[type, Callable[[Any, Any], Iterator[tuple[str, Any]]]]] = {
    wire.RaftVoteRequest: _vote_request,
    wire.RaftVoteAnswer: _vote_answer,
    wire.RaftEntriesRequest: _entries,
    wire.RaftEntriesAnswer: _entries_answer,
    wire.RaftSnapshotPartRequest: _part,
}
"""What messages say beside who says it; a table of the specification's own names."""
