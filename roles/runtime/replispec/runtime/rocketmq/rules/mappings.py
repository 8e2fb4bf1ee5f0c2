"""Rules about what is said of logical queues: segments and items as messages, and how they go on.

Offsets count messages, ends are exclusive, and an offset that is not decided is UNDECIDED. Source: RIP-21;
apache/rocketmq 5.0.0-PREVIEW, LogicalQueueRouteData; 5.4.0, TopicQueueMappingUtils; golden examples in
spec/vectors/rocketmq/mappings.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.runtime.primitives.unknown import with_fields
from replispec.runtime.rocketmq.rules.queues import physical_offset
from replispec.wire.rocketmq.codes import (
    LOGICAL_QUEUE_STATE_NAMES,
    LogicalQueueState,
    PullFlag,
    Release,
)
from replispec.wire.rocketmq.constants import MOCK_BROKER_PREFIX, UNDECIDED
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)

_WRITE_ONLY = next(
    each.name for each in LOGICAL_QUEUE_STATE_NAMES if each.number == LogicalQueueState.WRITE_ONLY
)


def segment_said(
    topic: str, broker_name: str, state: str, logical_start: int, physical_start: int, physical_end: int
) -> LogicalQueueSegment:
    """Queue 0 of a broker as the segment of logical queue 0."""
    return LogicalQueueSegment(
        "",
        UNDECIDED,
        UNDECIDED,
        logical_start,
        0,
        MessageQueue(broker_name, 0, topic),
        physical_start,
        physical_end,
        state,
    )


def segment_broker(segment: LogicalQueueSegment | None) -> str | None:
    """The broker that has a segment."""
    return None if segment is None or segment.message_queue is None else segment.message_queue.broker_name


def segment_start(segment: LogicalQueueSegment | None) -> int:
    """The first logical offset of a segment."""
    if segment is None or segment.logical_queue_delta is None:
        return UNDECIDED
    return segment.logical_queue_delta


def segment_place(segment: LogicalQueueSegment | None) -> int:
    """The first physical offset of a segment."""
    return UNDECIDED if segment is None or segment.offset_delta is None else segment.offset_delta


def begun_at(segment: LogicalQueueSegment | None, logical_start: int) -> LogicalQueueSegment | None:
    """A segment of which it is decided where it begins."""
    return None if segment is None else with_fields(segment, logical_queue_delta=logical_start)


def has_begun(segment: LogicalQueueSegment | None) -> bool:
    """True when a segment knows where it begins, and more than takes messages."""
    return segment is not None and segment_start(segment) >= 0 and segment.state != _WRITE_ONLY


def end_before(
    segment: LogicalQueueSegment | None, physical_start: int, logical_start: int, message_end: int
) -> int:
    """The physical end of a segment that ends now, before what one that has begun already holds."""
    if not has_begun(segment):
        return message_end
    begins = physical_offset(segment_start(segment), physical_start, logical_start)
    return min(message_end, max(physical_start, begins))


def following(segment: LogicalQueueSegment | None, logical_end: int) -> LogicalQueueSegment | None:
    """The segment that follows one which ends there: one that has begun stays where it is."""
    return segment if has_begun(segment) else begun_at(segment, logical_end)


def items_of_queue(mapping: TopicQueueMappingDetail, index: int) -> Sequence[LogicQueueMappingItem]:
    """What a mapping says of one logical queue."""
    hosted = (mapping.hosted_queues or {}).get(index)
    return () if hosted is None else tuple(hosted.items or ())


def hosting(items: Sequence[LogicQueueMappingItem], index: int) -> Mapping[int, LogicQueueItems]:
    """The logical queues of a mapping that names this one alone; none without items."""
    return {index: LogicQueueItems(list(items))} if items else {}


def remapped(
    items: Sequence[LogicQueueMappingItem], broker_name: str, queue_id: int
) -> Sequence[LogicQueueMappingItem]:
    """The items with one more, of this broker, of which it is not decided where it begins."""
    generation = (items[-1].gen or 0) + 1 if items else 0
    item = LogicQueueMappingItem(
        broker_name, UNDECIDED, generation, UNDECIDED, queue_id, 0, UNDECIDED, UNDECIDED
    )
    return (*items, item)


def decided_items(items: Sequence[LogicQueueMappingItem], start: int) -> Sequence[LogicQueueMappingItem]:
    """The items where it is decided at which logical offset the last one begins."""
    return (*items[:-1], with_fields(items[-1], logic_offset=start)) if items else ()


def own_queue(items: Sequence[LogicQueueMappingItem], broker_name: str) -> int | None:
    """The physical queue of the last item on a broker."""
    item = _last_on(items, broker_name)
    return None if item is None else item.queue_id or 0


def own_start(items: Sequence[LogicQueueMappingItem], broker_name: str) -> int:
    """Where the last item on a broker begins."""
    item = _last_on(items, broker_name)
    return UNDECIDED if item is None else item.logic_offset or 0


def queues_on(items: Sequence[LogicQueueMappingItem], broker_name: str) -> frozenset[int]:
    """The physical queues of all items on a broker."""
    return frozenset(each.queue_id or 0 for each in items if each.bname == broker_name)


def means_physical(*, lo: bool | None, version: int, broker_name: str | None) -> bool:
    """Whether a request about a queue means a physical one."""
    named = broker_name or ""
    if lo is not None or version >= Release.V5_0_0 or not named:
        return lo is False or (version < Release.V5_0_0 and not named)
    # Later releases of 4.x name the broker that they ask; who says no release at all may be anybody.
    return version > 0 and not named.startswith(MOCK_BROKER_PREFIX)


def knows_logical_queues(sys_flag: int, *, lo: bool | None, version: int, broker_name: str | None) -> bool:
    """Whether who pulls knows logical queues of RIP-21, so that he may be told to ask elsewhere."""
    is_preview = version == Release.V5_0_0 and lo is None and not broker_name
    return bool(sys_flag & PullFlag.LOGICAL_QUEUE) or is_preview


def is_handed_on(*, lo: bool | None) -> bool:
    """Whether a request about a logical queue comes from another broker, which hands it on."""
    return lo is True


def _last_on(items: Sequence[LogicQueueMappingItem], broker_name: str) -> LogicQueueMappingItem | None:
    return next((each for each in reversed(items) if each.bname == broker_name), None)
