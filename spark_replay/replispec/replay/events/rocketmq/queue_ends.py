"""How far queues go, as brokers tell it: to who asks, and in answers to pulls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.queue_observations import Limit, Pulled
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.stream_event import StreamEvent
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

_EVERYWHERE: Final = 1 << 64


def end_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every end that was told, with the greatest one that was told on its connection before, where that one
    has to be no greater."""
    rows: list[tuple[Pulled | Limit, int]] = [
        *((row, row.end_offset) for row in seen.pulled if row.pulled and row.end_offset is not None),
        *((row, row.queue_offset) for row in seen.limits if _is_end(row) and row.queue_offset is not None),
    ]
    told: dict[Hashable, _Ends] = defaultdict(_Ends)
    for row, end in sorted(rows, key=lambda each: each[0].order):
        about = _about(seen, row)
        if about is None or row.code != ResponseCode.SUCCESS:
            continue
        own = told[row.connection, row.direction, about]
        whole = told[row.connection, row.direction, (seen.is_logical(row), row.queue_id)]
        asked = row.order if row.request_order is None else row.request_order
        at = _asked_at(row)
        yield seen.event(
            "ends",
            "told",
            row,
            queue=f"logical queue {row.queue_id}" if seen.is_logical(row) else f"queue {row.queue_id}",
            offset=end,
            before=own.before(asked, at),
            language=row.language or "",
            in_doubt=seen.in_doubt or row.address in seen.several,
        )
        own.take(row.order, end, at)
        if whole is not own and not _is_sealed(seen, row):
            whole.take(row.order, end, at)


@dataclass(slots=True)
class _Ends:
    """Ends of one queue, or of one segment of it, as they grew: the places of the answers, and from where on
    each was asked for."""

    told: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, order: int, end: int, at: int) -> None:
        """An end that is told; what fell is not taken."""
        if not self.told or end >= self.told[-1][1]:
            self.told.append((order, end, at))

    def before(self, asked: int, at: int) -> int | None:
        """The greatest that was told before something was asked, unless it was to who asked further on: of a
        segment that begins later and that nobody told."""
        found = next((each for each in reversed(self.told) if each[0] < asked), None)
        return None if found is None or found[2] > at else found[1]


def _is_end(row: Limit) -> bool:
    """What is not confirmed is stored and may be lost: such an end may fall."""
    return row.asked_code == RequestCode.GET_MAX_OFFSET and row.committed is not False


def _asked_at(row: Pulled | Limit) -> int:
    """From which offset on an end was asked for: for the end of all behind every one."""
    return _EVERYWHERE if isinstance(row, Limit) else row.asked or 0


def _is_sealed(seen: SeenTopic, row: Pulled | Limit) -> bool:
    """Whether messages are of a segment of a physical queue that others follow there."""
    if isinstance(row, Limit) or seen.is_logical(row):
        return False
    held = seen.held(row, row.asked)
    return held is not None and held.segment.end is not None


def _about(seen: SeenTopic, row: Pulled | Limit) -> Hashable | None:
    """Of which queue an end is told: of all of it, or, with messages, of the segment that they are in. That
    one may be followed by another one of which nobody told: its end says nothing of that of all."""
    if isinstance(row, Limit):
        return seen.is_logical(row), row.queue_id
    if not seen.is_logical(row):
        return "physical", row.queue_id, seen.held(row, row.asked) if _is_sealed(seen, row) else None
    if row.offset_delta is None or row.queue_id is None:
        return None
    return "segment", row.queue_id, row.offset_delta
