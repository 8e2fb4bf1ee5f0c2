"""What clients are answered and told, as bytes: what the machines of the specification say, in its frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from replispec.metastore.zookeeper.core.deciding import CODES
from replispec.metastore.zookeeper.core.values import Happened, NodeStat, Result, TreeOutcome
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.codes import ErrorCode, OpCode, SessionStatus, WatchEvent
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ReplyFrame
from replispec.wire.zookeeper.constants import NO_ZXID
from replispec.wire.zookeeper.machines import metastore_operation as operation
from replispec.wire.zookeeper.machines import metastore_operation_wire as operation_wire
from replispec.wire.zookeeper.machines import metastore_request as request
from replispec.wire.zookeeper.machines import metastore_request_wire as request_wire
from replispec.wire.zookeeper.operations import MultiResult, Stat, WatchNotification

_EVENTS: Final = {each: WatchEvent[each.name] for each in Happened}
(_UNASKED,) = REPLY_FRAME.unasked
_SAID: Final[Mapping[str, Callable[[Any], Any]]] = {
    "answer_children": request_wire.answer_children,
    "answer_children_2": request_wire.answer_children_2,
    "answer_create": operation_wire.answer_create,
    "answer_data": request_wire.answer_data,
    "answer_exists": request_wire.answer_exists,
    "answer_multi": request_wire.answer_multi,
    "answer_replace": operation_wire.answer_replace,
    "answer_sync": request_wire.answer_sync,
    "list_create": operation_wire.list_create,
    "list_failed": operation_wire.list_failed,
    "list_replace": operation_wire.list_replace,
}
"""What effects say of their events; each of them is a function of the specification."""
_LISTED: Final[Mapping[str, Callable[[], MultiResult]]] = {
    "list_check": operation_wire.list_check,
    "list_not_done": operation_wire.list_not_done,
    "list_remove": operation_wire.list_remove,
    "list_undone": operation_wire.list_undone,
}
"""What effects say of no matter what."""
_NOTHING: Final = request.MACHINE.variables
_OPERATION: Final = operation.MACHINE.variables
_MULTI_FAILED: Final = (operation.State.DONE, operation.State.REFUSED, operation.State.TAKEN)
"""What the operations are before the one that was refused, itself, and behind it."""


def reply(xid: int, zxid: int, body: bytes, error: int) -> bytes:
    """The frame of an answer."""
    return ReplyFrame(xid, zxid, error, body).encode()


def said(xid: int, zxid: int, effect: str, event: Any = None) -> bytes:
    """The frame of the answer that an effect gives to an event."""
    code = CODES[effect]
    say = _SAID.get(effect)
    return reply(xid, zxid, b"" if say is None else say(event).header.encode(), code)


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


def decided(state: request.State, event: request.Event) -> tuple[request.State, tuple[str, ...]]:
    """What comes of an event of a request: how it stands then, and the effects."""
    edge = edge_of(request.MACHINE, state, _NOTHING, event, rules)
    return edge.to, edge.do


def written(xid: int, zxid: int, outcome: TreeOutcome) -> bytes:
    """The answer to one change."""
    if outcome.refusal is not None:
        return said(xid, zxid, outcome.refusal.effect)
    (result,) = outcome.results
    event = _told(result)
    (effect,) = edge_of(operation.MACHINE, operation.State.DONE, _OPERATION, event, rules).do
    return said(xid, zxid, effect, event)


def written_all(xid: int, zxid: int, kinds: Sequence[int], outcome: TreeOutcome) -> bytes:
    """The answer to changes of which all or none were made; `kinds` are their types."""
    if outcome.refusal is not None and outcome.refusal.is_of_all:
        return said(xid, zxid, outcome.refusal.effect)
    event = request.ResultsTold(tuple(_results(kinds, outcome)))
    _, (effect,) = decided(request.State.APPLIED, event)
    return said(xid, zxid, effect, event)


def _results(kinds: Sequence[int], outcome: TreeOutcome) -> Iterator[MultiResult]:
    if outcome.refusal is None:
        for kind, result in zip(kinds, outcome.results, strict=True):
            yield _listed(operation.State.DONE, _told_of_many(kind, result))
        return
    event = operation.FailureListed(CODES[outcome.refusal.effect])
    before, itself, behind = _MULTI_FAILED
    for place in range(len(kinds)):
        at = outcome.refused_at
        yield _listed(before if place < at else itself if place == at else behind, event)


def _listed(state: operation.State, event: operation.Event) -> MultiResult:
    (effect,) = edge_of(operation.MACHINE, state, _OPERATION, event, rules).do
    if (say := _LISTED.get(effect)) is not None:
        return say()
    listed: MultiResult = _SAID[effect](event)
    return listed


def _told(result: Result) -> operation.Event:
    if result is None:
        return operation.RemoveTold()
    if isinstance(result, str):
        return operation.CreateTold(result)
    return operation.ReplaceTold(stat_of(result))


def _told_of_many(kind: int, result: Result) -> operation.Event:
    if result is None:
        return operation.RemoveListed() if kind == OpCode.DELETE else operation.CheckListed()
    if isinstance(result, str):
        return operation.CreateListed(result)
    return operation.ReplaceListed(stat_of(result))
