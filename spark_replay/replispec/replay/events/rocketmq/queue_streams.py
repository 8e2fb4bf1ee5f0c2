"""The streams of events that the rules of logical queues and static topics speak about, topic by topic.

Which attributes an event has is declared in spec/invariants/rocketmq/queue_streams.yaml; what was not seen is
UNKNOWN. Every event carries its observation as `row`, which is its evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from replispec.replay.events.observation import Observation, ends_of
from replispec.replay.events.queue_observations import Mapped
from replispec.replay.events.rocketmq.mappings import LOGICAL, SaidBy
from replispec.replay.events.rocketmq.queue_answers import answer_events
from replispec.replay.events.rocketmq.queue_deliveries import delivery_events
from replispec.replay.events.rocketmq.queue_ends import end_events
from replispec.replay.events.rocketmq.queue_places import place_events
from replispec.replay.events.rocketmq.queue_positions import position_events
from replispec.replay.events.rocketmq.queue_reads import read_events
from replispec.replay.events.rocketmq.queue_routes import route_events
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.queue_segments import Said, segments_in
from replispec.replay.events.rocketmq.queue_topics import seen_topics
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.wire.rocketmq.codes import LogicalQueueState

_NORMAL = STATE_NAMES[LogicalQueueState.NORMAL]


def queue_events(rows: Iterable[Observation]) -> Iterator[StreamEvent]:
    """The events of all streams; `rows`: what is told of topics and brokers, in the order of the capture."""
    for seen in seen_topics(list(rows)):
        for make in _MAKERS:
            yield from make(seen)


# ---- mappings ------------------------------------------------------------------------------------


def _mappings(seen: SeenTopic) -> Iterator[StreamEvent]:
    said: dict[tuple[str, int, str], list[tuple[int, int]]] = defaultdict(list)
    registered: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in seen.mapping.rows:
        if row.mapping_epoch is None or row.name is None:
            continue
        side = row.connection, row.direction, row.name
        speaker = ends_of(row.connection)[row.direction], row.name
        asked = row.order if row.request_order is None else row.request_order
        is_set, is_route = row.said_by == SaidBy.SET, row.said_by == SaidBy.ROUTE
        yield seen.event(
            "mappings",
            "told",
            row,
            broker=row.name,
            said_by=row.said_by,
            epoch=row.mapping_epoch,
            before=_greatest(said[side], asked),
            forced=bool(row.forced),
            language=row.language or "",
            set_at=seen.brokers.get(row.address or "", UNKNOWN) if is_set else None,
            registered_before=_greatest(registered[speaker], asked) if is_route else None,
            in_doubt=seen.in_doubt,
        )
        said[side].append((row.order, row.mapping_epoch))
        if row.said_by == SaidBy.REGISTERED:
            registered[speaker].append((row.order, row.mapping_epoch))


def _greatest(said: Iterable[tuple[int, int]], asked: int) -> int | None:
    """The greatest epoch that was said before something was asked."""
    return max((epoch for order, epoch in said if order < asked), default=None)


def _segments(seen: SeenTopic) -> Iterator[StreamEvent]:
    for row in seen.mapping.rows:
        for each in segments_in(row):
            place = None
            if each.segment is not None:
                place = f"{each.at} from {each.segment.physical_start}, at {each.segment.start}"
            yield seen.event(
                "segments",
                "segment",
                row,
                index=each.index,
                segment=each.name,
                place=place,
                end=each.end,
                said_by=row.said_by,
                language=row.language or "",
                in_doubt=seen.in_doubt,
            )


def _by_index(row: Mapped) -> Mapping[int, list[Said]]:
    """The segments in a row by logical queues, in their order."""
    found: dict[int, list[Said]] = defaultdict(list)
    for each in segments_in(row):
        found[each.index].append(each)
    for own in found.values():
        own.sort(key=lambda each: each.order)
    return found


def _chains(seen: SeenTopic) -> Iterator[StreamEvent]:
    """A mapping that one broker of logical queues tells has its own segments alone, and says no order."""
    for row in seen.mapping.rows:
        is_logical = row.form == LOGICAL
        if is_logical and row.said_by not in (SaidBy.ROUTE, SaidBy.SET):
            continue
        for index, own in _by_index(row).items():
            decided = [each.segment for each in own if each.segment is not None]
            for one, two in pairwise(decided):
                yield seen.event(
                    "chains",
                    "followed",
                    row,
                    index=index,
                    static=not is_logical,
                    contiguous=is_logical and row.said_by == SaidBy.SET and not row.forced,
                    before=one.start,
                    end=one.logical_end,
                    start=two.start,
                    said_by=row.said_by,
                    language=row.language or "",
                )


def _leads(seen: SeenTopic) -> Iterator[StreamEvent]:
    sent = _Sent(seen)
    for row in seen.mapping.rows:
        for index, leader in _led_by(row):
            under = f"epoch {row.mapping_epoch}"
            if row.form == LOGICAL:
                under = f"{row.connection} {row.order}"
            in_doubt = seen.in_doubt or not sent.says(row, index)
            yield seen.event("leads", "led", row, index=index, under=under, leader=leader, in_doubt=in_doubt)


class _Sent:
    """What administrators sent of static topics. Two may know nothing of each other and choose one epoch; and
    a broker keeps what it is not sent of other logical queues, under the new epoch."""

    def __init__(self, seen: SeenTopic) -> None:
        self._indexes: set[tuple[str | None, int | None, int]] = set()
        hosts: dict[int | None, set[str]] = defaultdict(set)
        links: dict[tuple[int | None, str], set[str]] = defaultdict(set)
        for row in seen.told:
            if row.said_by != SaidBy.SENT:
                continue
            epoch = row.mapping_epoch
            admin, broker = (ends_of(row.connection)[side] for side in (row.direction, 1 - row.direction))
            hosts[epoch].add(admin.rpartition(":")[0])
            links[epoch, broker].add(row.connection)
            self._indexes |= {(row.name, epoch, each.index) for each in segments_in(row)}
        self._raced = {epoch for epoch, own in hosts.items() if len(own) > 1}
        self._raced |= {epoch for (epoch, _), own in links.items() if len(own) > 1}

    def says(self, row: Mapped, index: int) -> bool:
        """Whether one administrator told the broker of a row of this logical queue, under its epoch."""
        if row.form == LOGICAL:
            return True
        epoch = row.mapping_epoch
        return epoch not in self._raced and (row.name, epoch, index) in self._indexes


def _led_by(row: Mapped) -> Iterator[tuple[int, str]]:
    """Who leads which logical queue. What a broker tells, or is told, of others may be old: it counts what is
    its own."""
    for each in row.leads or ():
        yield each["index"], f"{row.name}/{each['queue_id']}"
    if row.form == LOGICAL:
        if row.said_by in (SaidBy.REGISTERED, SaidBy.TOLD):
            yield from ((each.index, each.at) for each in segments_in(row) if each.state == _NORMAL)
        return
    for index, own in _by_index(row).items():
        if own[-1].at.rpartition("/")[0] == row.name:
            yield index, own[-1].at


def _infos(seen: SeenTopic) -> Iterator[StreamEvent]:
    for row in seen.mapping.rows:
        if row.leads is None or row.name is None or row.mapping_epoch is None:
            continue
        leads = ", ".join(f"{each['index']} by {each['queue_id']}" for each in row.leads)
        yield seen.event(
            "infos",
            "info",
            row,
            broker=row.name,
            epoch=row.mapping_epoch,
            says=f"{row.total} logical queues and leads {leads or 'none'}",
            said_by=row.said_by,
            in_doubt=seen.in_doubt,
        )


_MAKERS = (
    *(_mappings, _segments, _chains, _leads, _infos, route_events),
    *(place_events, read_events, delivery_events, position_events, answer_events, end_events),
)
