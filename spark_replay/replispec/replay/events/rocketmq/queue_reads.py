"""Which message is at which logical offset, what pulls were answered, and what consumer groups went past."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.queue_observations import Pulled
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_seen import SeenTopic, Where
from replispec.replay.events.rocketmq.queue_segments import Segment
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import ResponseCode

NO_SEGMENT: Final = "no segment"
_LEADING_ON: Final = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)


# ---- messages ------------------------------------------------------------------------------------


def place_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every message that was acknowledged or read where its logical offset is known."""
    for sent in seen.sent:
        place = acknowledged_at(seen, sent)
        message = _message(sent.address, sent.offset)
        if place is not None:
            stored = seen.brokers.get(sent.address or "", UNKNOWN)
            belongs = _belongs(seen, place, stored, queue=False)
            yield _placed(seen, sent, place, message, stored, belongs, "acknowledged")
        elif sent.queue_id is not None and _is_physical(seen, sent):
            at = seen.brokers.get(sent.address or ""), sent.queue_id, sent.queue_offset
            yield from _beyond(seen, sent, at, message, "acknowledged", 0)
    for row in seen.pulled:
        where = seen.where(row)
        for number, each in enumerate(row.pulled or ()):
            message = _message(each["address"], each["offset"])
            stored = seen.brokers.get(each["address"], UNKNOWN)
            if where is not None and not _may_be_taken_again(seen, row, each["queue_offset"]):
                place = where.index, each["queue_offset"] + where.delta
                lies = stored if stored is UNKNOWN else f"{stored}/{each['queue_id']}"
                belongs = _belongs(seen, place, lies, queue=True)
                yield _placed(seen, row, place, message, lies, belongs, "read", number)


def _may_be_taken_again(seen: SeenTopic, row: Pulled, offset: int) -> bool:
    """Whether a physical offset lies behind the end of a known segment, and may be of another one
    that somebody told of unseen."""
    if not seen.unseen or seen.is_logical(row):
        return False
    held = seen.held(row, offset)
    return held is None or not held.has(offset)


def _message(address: str | None, offset: int | None) -> str:
    return f"{address} at {offset}"


def _is_physical(seen: SeenTopic, sent: Acknowledged) -> bool:
    return seen.mapping.form == LOGICAL or bool(sent.physical)


def _beyond(
    seen: SeenTopic,
    row: Observation,
    at: tuple[str | None, int, int | None],
    message: str,
    how: str,
    within: int,
) -> Iterator[StreamEvent]:
    """A message behind the end of a segment, where nothing says that its queue was taken again, and nobody
    may have said so unseen."""
    broker, queue_id, offset = at
    if broker is None or offset is None or offset < 0 or seen.unseen:
        return
    held = seen.mapping.held(broker, queue_id, offset)
    if held is not None and not held.has(offset):
        place = held.index, offset + held.segment.delta
        yield _placed(seen, row, place, message, held.segment.place, NO_SEGMENT, how, within)


def _placed(
    seen: SeenTopic,
    row: Observation,
    place: tuple[int, int],
    message: str,
    lies: Any,
    belongs: Any,
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
        message=message,
        at=f"{index}:{offset}",
        lies=lies,
        belongs=belongs,
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
    if _is_physical(seen, sent):
        broker = seen.brokers.get(sent.address or "")
        return seen.mapping.logical(broker, sent.queue_id, sent.queue_offset) if broker else None
    return None if sent.physical is None else (sent.queue_id, sent.queue_offset)


# ---- answers to pulls ----------------------------------------------------------------------------


def read_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """What pulls were answered that got messages. Of a queue that nobody maps the offsets are its own."""
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
            filtered=UNKNOWN if row.filtered is None else row.filtered,
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
    the answer that led it, and whether it surely did; `redirected`: those from before which it was sent to
    another segment. `first`: the least offset that it asked for; `last`: the greatest that it read."""

    read: set[int] = field(default_factory=set)
    passed: dict[int, tuple[Pulled, bool]] = field(default_factory=dict)
    redirected: set[int] = field(default_factory=set)
    unread: bool = False
    first: int | None = None
    last: tuple[int, Pulled] | None = None

    def takes(self, row: Pulled, asked: int, read: Sequence[int]) -> None:
        """What it asked for in an answer, and read."""
        self.read.update(read)
        self.first = asked if self.first is None else min(self.first, asked)
        if read and (self.last is None or read[-1] > self.last[0]):
            self.last = read[-1], row

    def leaves_out(self, acknowledged: Sequence[int]) -> None:
        """What it neither read nor was led past, between the first offset that it asked for and the last that
        it read: whoever skips messages may mean to."""
        if self.first is None or self.last is None:
            return
        begun, behind = (bisect_left(acknowledged, each) for each in (self.first, self.last[0]))
        for offset in acknowledged[begun:behind]:
            if offset not in self.read:
                self.passed.setdefault(offset, (self.last[1], False))

    def was_led_past(self, offset: int) -> bool:
        """Whether it was sent elsewhere from before an offset, and read on behind it."""
        return offset in self.redirected and max(self.read, default=offset) > offset


def delivery_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every acknowledged message that a group went past which wants all of them."""
    acknowledged: dict[int, set[int]] = defaultdict(set)
    for sent in seen.sent:
        if (place := acknowledged_at(seen, sent)) is not None:
            acknowledged[place[0]].add(place[1])
    offsets = {index: sorted(own) for index, own in acknowledged.items()}
    went: dict[tuple[str, int], _Went] = defaultdict(_Went)
    for row in seen.pulled:
        if row.filtered is not True and row.queue_id is not None:
            _go(seen, went, row, offsets)
    all_seen = not seen.unseen & {address for address, name in seen.brokers.items() if name}
    for (reader, index), own in sorted(went.items()):
        own.leaves_out(offsets.get(index, ()))
        for offset, (row, surely) in sorted(own.passed.items()):
            yield seen.event(
                "deliveries",
                "passed",
                row,
                index=index,
                offset=offset,
                reader=reader,
                read=offset in own.read,
                surely=(surely or own.was_led_past(offset)) and all_seen and not own.unread,
                in_doubt=seen.mapping.deleted,
                within=offset,
            )


def _go(
    seen: SeenTopic,
    went: dict[tuple[str, int], _Went],
    row: Pulled,
    offsets: Mapping[int, Sequence[int]],
) -> None:
    """Take one answer. What a broker asks another one for a group, the answer to the group tells."""
    is_logical = seen.is_logical(row)
    if row.code not in _LEADING_ON or row.asked is None or row.next_begin is None:
        return
    if not is_logical and seen.mapping.form != LOGICAL:
        return
    where = seen.where(row) or (Where(row.queue_id or 0, 0) if is_logical and not row.pulled else None)
    own = went[row.consumer_group or "", row.queue_id or 0 if where is None else where.index]
    if where is None or row.pulled is None:
        own.unread = True
        return
    shift = 0 if is_logical else where.delta
    own.takes(row, row.asked + shift, [each["queue_offset"] + where.delta for each in row.pulled])
    acknowledged = offsets.get(where.index, ())
    next_begin = _redirected_to(seen, row) if row.redirected else row.next_begin + shift
    first, behind = (bisect_left(acknowledged, each) for each in (row.asked + shift, next_begin))
    surely = row.filtered is False and (bool(row.pulled) or (is_logical and _is_border(seen, row)))
    for offset in acknowledged[first:behind]:
        _, before = own.passed.get(offset, (row, False))
        own.passed[offset] = row, before or surely
        if row.redirected and row.filtered is False:
            own.redirected.add(offset)


def _redirected_to(seen: SeenTopic, row: Pulled) -> int:
    """Where a group goes on that is sent to another segment: at the end of this one, if its messages are
    there and its end is known; else nobody can tell."""
    held = seen.held(row, row.asked)
    if held is None or held.segment.logical_end is None or seen.mapping.is_expired(held):
        return -1
    return held.segment.logical_end


def _is_border(seen: SeenTopic, row: Pulled) -> bool:
    """Whether an answer leads on to the start of the next segment."""
    segment = seen.mapping.holding(row.queue_id or 0, row.asked or 0)
    return segment is not None and seen.mapping.border(row.queue_id or 0, segment) == row.next_begin
