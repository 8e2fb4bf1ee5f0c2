"""Nodes of a store as its answers show them: read, made, changed, removed, listed, or told of.

An answer is read by its request. What a request that failed wanted is nothing that happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import FoundFrame, frames_of, hidden, of_kinds
from replispec.replay.events.observation import Observation, Undecodable
from replispec.replay.events.partition_observations import Node
from replispec.replay.frames.zookeeper.readers import ANSWERS, REQUESTS
from replispec.replay.pairing.in_order import pair_in_order
from replispec.replay.pairing.pairs import ANSWER, ONE_WAY, REQUEST
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.zookeeper import operations as wire
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ConnectResponse, ReplyFrame, RequestFrame

KINDS: Final = (REQUESTS, ANSWERS)
_COLUMNS: Final = (
    *("time_ns", "sequence", "index", "said", "xid", "op_code", "zxid", "error", "session_id"),
    *("body_size", "body_hex"),
)


class How(StrEnum):
    """What was done with a node, or how it was seen."""

    READ = "read"
    MADE = "made"
    CHANGED = "changed"
    REMOVED = "removed"
    LISTED = "listed"
    ABSENT = "absent"
    NOTIFIED = "notified"
    ENDED = "ended"


Told = tuple[str, str, dict[str, Any]]
"""How, a path, and the other fields."""


def observe_nodes(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    """What answers and notifications say in FRAMES, and what of them was not seen."""
    own = of_kinds(frames, streams, KINDS)
    found: list[Observation] = [*hidden(holes, streams, KINDS)]
    if not len(own):
        return found, []
    rows = frames_of(own, _COLUMNS)
    roles = [_role(each.said) for each in rows]
    asked = pair_in_order(own, roles, [each.said["xid"] for each in rows]).tolist()
    sessions: dict[str, int] = {}
    for row, role, request in zip(rows, roles, asked, strict=True):
        if row.said["said"] == ConnectResponse.__name__:
            sessions[row.place.connection] = row.said["session_id"]
        elif role == ANSWER:
            session = sessions.get(row.place.connection)
            found += _observed(row, rows[request] if request >= 0 else None, session)
    return found, []


def _role(said: Mapping[str, Any]) -> int:
    if said["said"] == RequestFrame.__name__:
        return REQUEST
    return ANSWER if said["said"] == ReplyFrame.__name__ else ONE_WAY


def _body(said: Mapping[str, Any]) -> bytes:
    """The body of a frame. Raises RemoteProtocolError when it was too long to be kept."""
    if said["body_hex"] is None:
        if said["body_size"]:
            raise RemoteProtocolError(f"a body of {said['body_size']} bytes is not kept")
        return b""
    return bytes.fromhex(said["body_hex"])


def _observed(row: FoundFrame, request: FoundFrame | None, session: int | None) -> Iterator[Observation]:
    code = None if request is None else request.said["op_code"]
    if code == OpCode.AUTH:
        return
    try:
        told = [*(_notified(row.said) if request is None else _answered(row.said, request.said))]
    except RemoteProtocolError as fault:
        yield Undecodable(*row.place, code=code, text=str(fault)[:200])
        return
    since = None if request is None else row.place.time_ns - request.place.time_ns
    asked = None if request is None else request.place.order
    for how, path, fields in told:
        about: dict[str, Any] = {"zxid": row.said["zxid"], **fields}
        yield Node(
            *row.place, duration_ns=since, how=how, path=path, session=session, request_order=asked, **about
        )


def _notified(said: Mapping[str, Any]) -> Iterator[Told]:
    """What is told of a node that somebody watches."""
    frame = ReplyFrame(said["xid"], said["zxid"], said["error"], _body(said))
    message: Any = REPLY_FRAME.read_unasked(frame)
    if message is not None and message.path:
        yield How.NOTIFIED, message.path, {"zxid": None}


def _answered(said: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[Told]:
    asked_frame = RequestFrame(request["xid"], request["op_code"], _body(request))
    frame = ReplyFrame(said["xid"], said["zxid"], said["error"], _body(said))
    form = REPLY_FRAME.form_of(request["op_code"])
    if form is None:
        return
    asked: Any = REPLY_FRAME.read_request(asked_frame)
    if (
        said["error"] == ErrorCode.NO_NODE
        and getattr(asked, "path", None)
        and not isinstance(asked, _CHANGES)
    ):
        yield How.ABSENT, asked.path, {}
        return
    if said["error"]:
        return
    message: Any = REPLY_FRAME.read_answer(frame, REPLY_FRAME.asked(asked_frame))
    if tell := _TOLD.get(type(asked)):
        yield from tell(asked, message)


_CHANGES: Final = (wire.CreateRequest, wire.DeleteRequest, wire.SetDataRequest)


def _read(asked: wire.GetDataRequest, said: wire.GetDataResponse) -> Iterator[Told]:
    about = {"data": said.data, "version": said.stat.version, "zxid": said.stat.mzxid}
    yield How.READ, asked.path or "", about


def _made(asked: wire.CreateRequest, said: wire.CreateResponse) -> Iterator[Told]:
    yield How.MADE, said.path or "", {"data": asked.data, "version": 0}


def _changed(asked: wire.SetDataRequest, said: wire.SetDataResponse) -> Iterator[Told]:
    about = {"data": asked.data, "version": said.stat.version, "zxid": said.stat.mzxid}
    yield How.CHANGED, asked.path or "", about


def _removed(asked: wire.DeleteRequest, said: Any) -> Iterator[Told]:  # noqa: ARG001 (it says nothing)
    yield How.REMOVED, asked.path or "", {}


def _listed(
    asked: wire.GetChildrenRequest | wire.GetChildren2Request,
    said: wire.GetChildrenResponse | wire.GetChildren2Response,
) -> Iterator[Told]:
    yield How.LISTED, asked.path or "", {"children": said.children or []}


def _ended(asked: wire.CloseSessionRequest, said: Any) -> Iterator[Told]:  # noqa: ARG001 (neither says more)
    yield How.ENDED, "", {}


def _multi(asked: wire.MultiRequest, said: wire.MultiResponse) -> Iterator[Told]:
    """All of them, or none."""
    if any(each.error for each in said.results):
        return
    for wish, done in zip(asked.operations, said.results, strict=False):
        if wish.create is not None and done.create is not None:
            yield from _made(wish.create, done.create)
        elif wish.set_data is not None and done.set_data is not None:
            yield from _changed(wish.set_data, done.set_data)
        elif wish.delete is not None:
            yield from _removed(wish.delete, None)


_TOLD: Final[Mapping[type, Callable[[Any, Any], Iterator[Told]]]] = {
    wire.GetDataRequest: _read,
    wire.CreateRequest: _made,
    wire.SetDataRequest: _changed,
    wire.DeleteRequest: _removed,
    wire.GetChildrenRequest: _listed,
    wire.GetChildren2Request: _listed,
    wire.MultiRequest: _multi,
    wire.CloseSessionRequest: _ended,
}
