"""Offsets of logical queues in answers, and whether the broker of a segment said so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

from replispec.replay.events.observation import ends_of
from replispec.replay.events.queue_observations import Limit, Position
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.queue_segments import Segment
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

Question = tuple[int, str, str, int, int]
"""A code, which group asks (none but for positions), the host of who leads, the logical queue, an offset."""
Inner = defaultdict[Hashable, list[Limit | Position]]
"""What was answered, by code, group and the host that asked."""


def answer_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every end, time and position that was answered about a logical queue."""
    rows: list[Limit | Position] = [*seen.limits, *(each for each in seen.positions if not each.committed)]
    rows = [each for each in rows if each.code == ResponseCode.SUCCESS and _is_offset(each)]
    handed = {asked for each in rows if (asked := _handed(seen, each)) is not None}
    inner: Inner = defaultdict(list)
    for each in rows:
        inner[_inner(each, _host(ends_of(each.connection)[1 - each.direction]))].append(each)
    for row in rows:
        if row.queue_id is None or row.queue_offset is None or not seen.is_logical(row):
            continue
        yield seen.event(
            "answers",
            "told",
            row,
            index=row.queue_id,
            code=_code(row),
            offset=row.queue_offset,
            language=row.language or "",
            explained=_explained(seen, row, row.queue_id, row.queue_offset, handed, inner),
        )


def _is_offset(row: Limit | Position) -> bool:
    return row.queue_offset is not None and row.queue_offset >= 0


def _code(row: Limit | Position) -> int:
    return int(RequestCode.QUERY_CONSUMER_OFFSET) if isinstance(row, Position) else row.asked_code or 0


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _handed(seen: SeenTopic, row: Limit | Position) -> Question | None:
    """What a broker was asked and answered, as a broker that asked it has to pass it on: the one of a segment
    about that, or who leads about the logical queue."""
    asks = _host(ends_of(row.connection)[1 - row.direction])
    if row.logical is not False:
        if not row.logical or row.queue_id is None or row.queue_offset is None:
            return None
        return _code(row), row.consumer_group or "", asks, row.queue_id, row.queue_offset
    broker = seen.brokers.get(row.address or "")
    if broker is None or row.queue_id is None or row.queue_offset is None:
        return None
    place = seen.mapping.logical(broker, row.queue_id, row.queue_offset, at_end=True)
    if place is None:
        return None
    return _code(row), row.consumer_group or "", asks, *place


def _explained(
    seen: SeenTopic, row: Limit | Position, index: int, offset: int, handed: set[Question], inner: Inner
) -> Any:
    """What nobody was seen to say may have been said where nobody captured. So an answer is wrong only where
    the broker of the segment was asked while it was made, and none of what that one said is it."""
    leader = seen.brokers.get(row.address or "")
    segments = [each for each in seen.mapping.segments(index) if each.start <= offset]
    if leader is None or not segments:
        return UNKNOWN
    asked = _code(row), row.consumer_group or "", _host(row.address or ""), index, offset
    if asked in handed or any(each.broker == leader for each in segments):
        return True
    unsure = seen.unseen & seen.brokers.keys() or not _is_contradicted(seen, row, segments[-1], inner)
    return UNKNOWN if unsure or seen.mapping.border(index, segments[-1]) is None else False


def _inner(row: Limit | Position, asks: str) -> Hashable:
    return _code(row), row.consumer_group or "", asks


def _is_contradicted(seen: SeenTopic, row: Limit | Position, segment: Segment, inner: Inner) -> bool:
    """Whether who leads asked the broker of a segment about it while it made an answer."""
    began = row.order if row.request_order is None else row.request_order
    return any(
        began < (each.request_order or 0) and each.order < row.order
        for each in inner[_inner(row, _host(row.address or ""))]
        if each.logical is False
        and each.queue_id == segment.queue_id
        and seen.brokers.get(each.address or "") == segment.broker
    )
