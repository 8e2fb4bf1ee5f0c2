"""What pulls of logical queues were answered."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from replispec.replay.events.queue_observations import Pulled
from replispec.replay.events.rocketmq.queue_kept import Kept
from replispec.replay.events.rocketmq.queue_seen import SeenTopic, Where
from replispec.replay.events.rocketmq.queue_segments import Held, Segment
from replispec.replay.events.rocketmq.queue_wishes import wish_of
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import ResponseCode


def read_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """What pulls were answered that got messages. Of a queue that nobody maps the offsets are its own."""
    kept = Kept(seen)
    for row in seen.pulled:
        if row.code != ResponseCode.SUCCESS or not row.pulled or row.queue_id is None:
            continue
        is_logical = seen.is_logical(row)
        where = seen.where(row) or (None if is_logical else Where(row.queue_id, 0))
        if where is None or row.asked is None or row.next_begin is None:
            continue
        index, delta = where.index, where.delta
        shift = 0 if is_logical else delta
        first = row.pulled[0]["queue_offset"] + delta
        segment = seen.mapping.holding(index, first) if is_logical else None
        wish = wish_of(seen, row)
        yield seen.event(
            "reads",
            "read",
            row,
            index=index,
            reader=row.consumer_group or "",
            asked=row.asked + shift,
            first=first,
            last=row.pulled[-1]["queue_offset"] + delta,
            count=len(row.pulled),
            next=row.next_begin + shift,
            border=_border(seen, index, segment) if is_logical else None,
            wants=wish.wants.value,
            why=wish.why,
            **_retained(seen, kept, row, where, first),
            in_doubt=seen.in_doubt,
            delta=delta if is_logical else None,
            segment_delta=_delta(seen, row, segment) if is_logical else None,
        )


def _retained(seen: SeenTopic, kept: Kept, row: Pulled, where: Where, first: int) -> dict[str, Any]:
    """What retention has to do with an answer that has messages."""
    shift = 0 if seen.is_logical(row) else where.delta
    held = held_of(seen, row, where, first)
    gone = kept.gone_below(row, where, held)
    floor, least = kept.floor(row), row.min_offset
    end = row.end_offset
    hole = _last_hole(row)
    return {
        "removed": first <= max(gone, (row.asked or 0) + shift) or is_removed(seen, kept, row, where, first),
        "hole_removed": hole is None or hole + where.delta <= gone,
        "floor": None if floor is None else floor + shift,
        "expired": kept.is_expired(row, held),
        "least": None if least is None or least < 0 else least + shift,
        "end": None if end is None or end < 0 else end + shift,
    }


def held_of(seen: SeenTopic, row: Pulled, where: Where, first: int) -> Held | None:
    """The segment that the answer to a pull is from; `first`: its first logical offset."""
    if not seen.is_logical(row):
        return seen.held(row, row.asked)
    segment = seen.mapping.holding(where.index, first)
    return None if segment is None or segment.delta != where.delta else Held(where.index, segment)


def is_removed(seen: SeenTopic, kept: Kept, row: Pulled, where: Where, first: int) -> Any:
    """Whether what was asked for may be gone up to the first message that was answered, where nobody says so:
    unknown where nobody contradicts it."""
    shift = 0 if seen.is_logical(row) else where.delta
    later = kept.kept_from(row)
    return UNKNOWN if later is None or later + shift >= first else False


def _last_hole(row: Pulled) -> int | None:
    """Where messages go on after the last of those that are missing between two."""
    offsets = [each["queue_offset"] for each in row.pulled or ()]
    return max((two for one, two in pairwise(offsets) if two != one + 1), default=None)


def _border(seen: SeenTopic, index: int, segment: Segment | None) -> Any:
    found = None if segment is None else seen.mapping.border(index, segment)
    return UNKNOWN if found is None else found


def _delta(seen: SeenTopic, row: Pulled, segment: Segment | None) -> Any:
    """The distance that the segment has. Behind the start of the last segment there may be others."""
    asked = seen.mapping.holding(row.queue_id or 0, row.asked or 0)
    if segment is None or asked is None:
        return UNKNOWN
    # The distance of the answer says where the messages are: what was asked for says where they should be.
    if asked.delta != row.offset_delta and seen.mapping.border(row.queue_id or 0, asked) is None:
        return UNKNOWN
    return asked.delta
