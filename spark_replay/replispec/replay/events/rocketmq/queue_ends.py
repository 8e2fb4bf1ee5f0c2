"""How far queues go, as brokers tell it: to who asks, and in answers to pulls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from replispec.replay.events.queue_observations import Limit, Pulled
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.stream_event import StreamEvent
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode


def end_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every end that was told, with the greatest one that was told on its connection before."""
    rows: list[tuple[Pulled | Limit, int]] = [
        *((row, row.end_offset) for row in seen.pulled if row.pulled and row.end_offset is not None),
        *((row, row.queue_offset) for row in seen.limits if _is_end(row) and row.queue_offset is not None),
    ]
    before: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for row, end in sorted(rows, key=lambda each: each[0].order):
        about = _about(seen, row)
        if about is None or row.code != ResponseCode.SUCCESS:
            continue
        own = before[row.connection, row.direction, about]
        asked = row.order if row.request_order is None else row.request_order
        # The greatest one so far is the last of them: what fell is not taken.
        floor = next((offset for order, offset in reversed(own) if order < asked), None)
        yield seen.event(
            "ends",
            "told",
            row,
            queue=f"logical queue {row.queue_id}" if seen.is_logical(row) else f"queue {row.queue_id}",
            offset=end,
            before=floor,
            language=row.language or "",
            in_doubt=seen.in_doubt or row.address in seen.several,
        )
        if not own or end >= own[-1][1]:
            own.append((row.order, end))


def _is_end(row: Limit) -> bool:
    """What is not confirmed is stored and may be lost: such an end may fall."""
    return row.asked_code == RequestCode.GET_MAX_OFFSET and row.committed is not False


def _about(seen: SeenTopic, row: Pulled | Limit) -> Hashable | None:
    """Of which queue an end is told: of all of it, or of a segment that others follow."""
    if not seen.is_logical(row):
        held = None if isinstance(row, Limit) else seen.held(row, row.asked)
        is_open = held is None or held.segment.end is None
        return ("physical", row.queue_id) if is_open else ("physical", row.queue_id, held)
    if isinstance(row, Limit):
        return "logical", row.queue_id
    if row.offset_delta is None or row.queue_id is None or not row.pulled:
        return None
    first = row.pulled[0]["queue_offset"] + row.offset_delta
    segment = seen.mapping.holding(row.queue_id, first)
    if segment is None:
        return None
    if seen.mapping.border(row.queue_id, segment) is None and segment.delta == row.offset_delta:
        return "logical", row.queue_id
    return "segment", row.queue_id, row.offset_delta
