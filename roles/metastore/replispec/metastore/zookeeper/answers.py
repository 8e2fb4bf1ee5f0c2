"""What clients are answered and told, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.metastore.zookeeper.core.values import (
    Happened,
    NodeStat,
    TreeOutcome,
    TreeRefusal,
)
from replispec.wire.zookeeper.codes import ErrorCode, OpCode, SessionStatus, WatchEvent
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ConnectResponse, ReplyFrame
from replispec.wire.zookeeper.constants import NO_SESSION, NO_ZXID, PASSWORD_BYTES
from replispec.wire.zookeeper.operations import (
    CreateResponse,
    ExistsResponse,
    GetChildren2Response,
    GetChildrenResponse,
    GetDataResponse,
    MultiResponse,
    MultiResult,
    SetDataResponse,
    Stat,
    SyncResponse,
    WatchNotification,
)

CODES: Final = {each: ErrorCode[each.name] for each in TreeRefusal}
"""The number of each refusal."""
_EVENTS: Final = {each: WatchEvent[each.name] for each in Happened}
(_UNASKED,) = REPLY_FRAME.unasked
# A request as a whole is refused so, whatever it consists of.
_OF_ALL: Final = frozenset({TreeRefusal.SESSION_EXPIRED, TreeRefusal.SYSTEM_ERROR})


def reply(xid: int, zxid: int, body: bytes = b"", error: int = ErrorCode.OK) -> bytes:
    """The frame of an answer."""
    return ReplyFrame(xid, zxid, error, body).encode()


def refusal(xid: int, zxid: int, why: TreeRefusal) -> bytes:
    """The frame of an answer that refuses."""
    return ReplyFrame(xid, zxid, CODES[why], b"").encode()


def notification(happened: Happened, path: str) -> bytes:
    """What a client is told that watched."""
    told = WatchNotification(_EVENTS[happened], SessionStatus.CONNECTED, path)
    return ReplyFrame(_UNASKED, NO_ZXID, ErrorCode.OK, told.encode()).encode()


def stat_of(stat: NodeStat) -> Stat:
    """What is told of a node."""
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        ctime=stat.ctime_ms,
        mtime=stat.mtime_ms,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeral_owner,
        data_length=stat.data_length,
        num_children=stat.num_children,
        pzxid=stat.pzxid,
    )


def greeting(timeout_ms: int, session: int, password: bytes, *, read_only: bool | None) -> bytes:
    """The answer to who begins or goes on with a session; who did not say whether it wants to read only is
    not told either."""
    said = None if read_only is None else False
    return ConnectResponse(timeout=timeout_ms, session_id=session, password=password, read_only=said).encode()


def no_session(*, read_only: bool | None) -> bytes:
    """The answer to who wants to go on with a session that is none."""
    return greeting(0, NO_SESSION, bytes(PASSWORD_BYTES), read_only=read_only)


def written(xid: int, zxid: int, outcome: TreeOutcome) -> bytes:
    """The answer to one change."""
    if outcome.refusal is not None:
        return refusal(xid, zxid, outcome.refusal)
    (result,) = outcome.results
    if result is None:
        return reply(xid, zxid)
    if isinstance(result, str):
        return reply(xid, zxid, CreateResponse(result).encode())
    return reply(xid, zxid, SetDataResponse(stat_of(result)).encode())


def written_all(xid: int, zxid: int, kinds: Sequence[int], outcome: TreeOutcome) -> bytes:
    """The answer to changes of which all or none were made; `kinds` are their types. One that was refused has
    its error, those before it none, those after it that of not having been done."""
    if outcome.refusal in _OF_ALL:
        assert outcome.refusal is not None
        return refusal(xid, zxid, outcome.refusal)
    results = []
    if outcome.refusal is not None:
        for place in range(len(kinds)):
            code = ErrorCode.OK
            if place >= outcome.refused_at:
                code = CODES[
                    outcome.refusal if place == outcome.refused_at else TreeRefusal.RUNTIME_INCONSISTENCY
                ]
            results.append(MultiResult(OpCode.ERROR, code, failed=code))
    else:
        for kind, result in zip(kinds, outcome.results, strict=True):
            made = CreateResponse(result) if isinstance(result, str) else None
            changed = SetDataResponse(stat_of(result)) if isinstance(result, NodeStat) else None
            results.append(MultiResult(kind, ErrorCode.OK, made, changed))
    return reply(xid, zxid, MultiResponse(results).encode())


def there(stat: NodeStat) -> ExistsResponse:
    """A node is there."""
    return ExistsResponse(stat_of(stat))


def data(held: bytes | None, stat: NodeStat) -> GetDataResponse:
    """What a node holds."""
    return GetDataResponse(held, stat_of(stat))


def children(names: Sequence[str]) -> GetChildrenResponse:
    """The names of a node's children."""
    return GetChildrenResponse(list(names))


def children_and_stat(names: Sequence[str], stat: NodeStat) -> GetChildren2Response:
    """The names of a node's children, and what is known of it."""
    return GetChildren2Response(list(names), stat_of(stat))


def synced(path: str) -> SyncResponse:
    """All that was asked before is done."""
    return SyncResponse(path)
