"""Which message is at which logical offset, what pulls were answered, and what consumer groups went past."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.queue_observations import Pulled
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.queue_segments import Segment
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import ResponseCode

_LEADING_ON: Final = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)


# ---- messages ------------------------------------------------------------------------------------


def place_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every message that was acknowledged or read where its logical offset is known."""
    for sent in seen.sent:
        place = acknowledged_at(seen, sent)
        if place is not None:
            stored = seen.brokers.get(sent.address or "", UNKNOWN)
            yield _placed(seen, sent, place, (sent.address, sent.offset), stored, "acknowledged")
    for row in seen.pulled:
        for number, each in enumerate(row.pulled or ()):
            read = _read_at(seen, row, each)
            if read is None:
                continue
            stored = seen.brokers.get(each["address"], UNKNOWN)
            lies = stored if stored is UNKNOWN else f"{stored}/{each['queue_id']}"
            yield _placed(seen, row, read, (each["address"], each["offset"]), lies, "read", number)


def _placed(
    seen: SeenTopic,
    row: Observation,
    place: tuple[int, int],
    message: tuple[str | None, int | None],
    lies: Any,
    how: str,
    within: int = 0,
) -> StreamEvent:
    index, offset = place
    return seen.event(
        "places",
        "placed",
        row,
        index=index,
        offset=offset,
        message=f"{message[0]} at {message[1]}",
        at=f"{index}:{offset}",
        lies=lies,
        belongs=_belongs(seen, place, lies, queue=how == "read"),
        how=how,
        in_doubt=seen.mapping.deleted,
        within=within,
    )


def _belongs(seen: SeenTopic, place: tuple[int, int], lies: Any, *, queue: bool) -> Any:
    """Where the message of a logical offset should lie. Behind the start of the last segment there may be
    others that were not seen."""
    segment = seen.mapping.holding(*place)
    if segment is None or lies is UNKNOWN:
        return UNKNOWN
    found = segment.place if queue else segment.broker
    if found != lies and seen.mapping.border(place[0], segment) is None:
        return UNKNOWN
    return found


def acknowledged_at(seen: SeenTopic, sent: Acknowledged) -> tuple[int, int] | None:
    """Index and logical offset that a producer was told; None where that is not known, or undecided."""
    if sent.queue_id is None or sent.queue_offset is None or sent.queue_offset < 0:
        return None
    if seen.mapping.form == LOGICAL or sent.physical:
        broker = seen.brokers.get(sent.address or "")
        return seen.mapping.logical(broker, sent.queue_id, sent.queue_offset) if broker else None
    return None if sent.physical is None else (sent.queue_id, sent.queue_offset)


def _read_at(seen: SeenTopic, row: Pulled, message: Mapping[str, Any]) -> tuple[int, int] | None:
    """Index and logical offset of a message that was read."""
    if seen.is_logical(row):
        if row.offset_delta is None or row.queue_id is None:
            return None
        return row.queue_id, message["queue_offset"] + row.offset_delta
    broker = seen.brokers.get(row.address or "")
    if broker is None or row.queue_id is None:
        return None
    return seen.mapping.logical(broker, row.queue_id, message["queue_offset"])


# ---- answers to pulls ----------------------------------------------------------------------------


def read_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """What pulls were answered that got messages."""
    for row in seen.pulled:
        if row.code != ResponseCode.SUCCESS or not row.pulled or row.queue_id is None:
            continue
        is_logical = seen.is_logical(row)
        delta = row.offset_delta if is_logical else 0
        if delta is None or None in (row.asked, row.next_begin):
            continue
        first = row.pulled[0]["queue_offset"] + delta
        segment = seen.mapping.holding(row.queue_id, first) if is_logical else None
        yield seen.event(
            "reads",
            "read",
            row,
            index=row.queue_id,
            reader=row.consumer_group or "",
            asked=row.asked,
            first=first,
            last=row.pulled[-1]["queue_offset"] + delta,
            count=len(row.pulled),
            next=row.next_begin,
            border=_border(seen, row.queue_id, segment) if is_logical else None,
            filtered=bool(row.filtered),
            delta=delta if is_logical else None,
            segment_delta=_delta(seen, row, segment) if is_logical else None,
        )


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


# ---- consumer groups -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Went:
    """What one group read of one logical queue. `passed`: acknowledged offsets that it went past, each with
    the answer that led it, and whether it surely did."""

    read: set[int] = field(default_factory=set)
    passed: dict[int, tuple[Pulled, bool]] = field(default_factory=dict)
    unread: bool = False


def delivery_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every acknowledged message that a group went past which wants all of them."""
    acknowledged: dict[int, set[int]] = defaultdict(set)
    for sent in seen.sent:
        if (place := acknowledged_at(seen, sent)) is not None:
            acknowledged[place[0]].add(place[1])
    offsets = {index: sorted(own) for index, own in acknowledged.items()}
    went: dict[tuple[str, int], _Went] = defaultdict(_Went)
    for row in seen.pulled:
        if row.queue_id is not None and not row.filtered and seen.is_logical(row):
            _go(seen, went[row.consumer_group or "", row.queue_id], row, offsets.get(row.queue_id, []))
    all_seen = not seen.unseen & {address for address, name in seen.brokers.items() if name}
    for (reader, index), own in sorted(went.items()):
        for offset, (row, surely) in sorted(own.passed.items()):
            yield seen.event(
                "deliveries",
                "passed",
                row,
                index=index,
                offset=offset,
                reader=reader,
                read=offset in own.read,
                surely=surely and all_seen and not own.unread,
                within=offset,
            )


def _go(seen: SeenTopic, went: _Went, row: Pulled, offsets: list[int]) -> None:
    """Take one answer."""
    if row.code not in _LEADING_ON or row.asked is None or row.next_begin is None:
        return
    if row.pulled is None or (row.pulled and row.offset_delta is None):
        went.unread = True
        return
    went.read |= {each["queue_offset"] + (row.offset_delta or 0) for each in row.pulled}
    first, behind = bisect_left(offsets, row.asked), bisect_left(offsets, row.next_begin)
    surely = bool(row.pulled) or _is_border(seen, row)
    for offset in offsets[first:behind]:
        _, before = went.passed.get(offset, (row, False))
        went.passed[offset] = row, before or surely


def _is_border(seen: SeenTopic, row: Pulled) -> bool:
    """Whether an answer leads on to the start of the next segment."""
    segment = seen.mapping.holding(row.queue_id or 0, row.asked or 0)
    return segment is not None and seen.mapping.border(row.queue_id or 0, segment) == row.next_begin
