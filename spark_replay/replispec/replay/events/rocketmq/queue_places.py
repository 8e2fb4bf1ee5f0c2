"""Which message is at which logical offset, as it was acknowledged and as it was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.queue_observations import Pulled
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN

NO_SEGMENT: Final = "no segment"


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
            if where is None or (seen.unseen and _is_behind(seen, row, each["queue_offset"])):
                continue
            place = where.index, each["queue_offset"] + where.delta
            lies = stored if stored is UNKNOWN else f"{stored}/{each['queue_id']}"
            belongs = _belongs(seen, place, lies, queue=True)
            if belongs is UNKNOWN and lies is not UNKNOWN:
                belongs = _elsewhere(seen, stored, each, place)
            yield _placed(seen, row, place, message, lies, belongs, "read", number)


def _is_behind(seen: SeenTopic, row: Pulled, offset: int) -> bool:
    """Whether a physical offset lies behind the end of a known segment. It may be of another one, where not
    all was seen that somebody told."""
    if seen.is_logical(row):
        return False
    held = seen.held(row, offset)
    return held is None or not held.has(offset)


def _elsewhere(seen: SeenTopic, broker: str, read: dict[str, Any], at: tuple[int, int]) -> Any:
    """Where a message should lie that was read at an offset of which nobody knows the segment: where it lies
    there is another one, which has it at another offset, or ends before it."""
    held = seen.mapping.held(broker, read["queue_id"], read["queue_offset"])
    if held is None or seen.unseen or seen.mapping.is_disputed(at[0]):
        return UNKNOWN
    if not held.has(read["queue_offset"]):
        return NO_SEGMENT
    own = held.index, read["queue_offset"] + held.segment.delta
    return UNKNOWN if own == at else f"the segment of {at[0]}:{at[1]}"


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
        in_doubt=seen.in_doubt,
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
