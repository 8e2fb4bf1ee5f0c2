"""The two JSON forms of logical queues, read into the model and written from it.

What a peer says may be anything: it is counted before it is looked at, and refused whole when a part of it
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues.checks import fault_of_topic
from replispec.runtime.rocketmq.queues.holdings import Holding
from replispec.runtime.rocketmq.queues.model import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.profiles import LOGICAL_QUEUES, STATIC_TOPICS, Profile
from replispec.wire.rocketmq.codes import LOGICAL_QUEUE_STATE_NAMES
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import (
    LOGICAL_QUEUES_MAX,
    MAPPING_SCOPE,
    MAPPING_SEGMENTS_MAX,
    UNDECIDED,
)
from replispec.wire.rocketmq.logical_queue import LogicalQueues, LogicalQueueSegment, LogicalQueueSegments
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)

STATE_NAMES: Mapping[State, str] = {State(each.number): each.name for each in LOGICAL_QUEUE_STATE_NAMES}
_STATES: Mapping[str, State] = {name: state for state, name in STATE_NAMES.items()}


# ---- RIP-21 --------------------------------------------------------------------------------------


def segment_of(said: LogicalQueueSegment, topic: str, index: int) -> Segment:
    """A segment of this logical queue. Raises RemoteProtocolError for one of another, or of no such state."""
    queue, state = said.message_queue or MessageQueue(), _STATES.get(said.state or "")
    if state is None:
        raise RemoteProtocolError(f"no state of a segment is {(said.state or '')[:40]!r}")
    if queue.topic != topic or said.logical_queue_index != index:
        raise RemoteProtocolError(f"a segment of another queue than {index} of {topic[:40]}")
    return Segment(
        PhysicalQueue(queue.broker_name or "", _number(queue.queue_id, UNDECIDED)),
        state,
        _number(said.logical_queue_delta, UNDECIDED),
        _number(said.offset_delta, 0),
        _number(said.offset_max, UNDECIDED),
        _number(said.first_msg_time_millis, UNDECIDED),
        _number(said.last_msg_time_millis, UNDECIDED),
        said.broker_addr,
    )


def segments_of(said: LogicalQueueSegments, topic: str, index: int) -> Sequence[Segment]:
    """Some segments of a logical queue, as a broker names them who redirects. One that takes messages and of
    which the start is known is Normal, whether it was told so yet or not. Raises RemoteProtocolError."""
    listed = said.segments or ()
    _bounded({index: listed})
    found = (segment_of(each, topic, index) for each in listed)
    return [each.decided() for each in found]


def queues_of(said: Mapping[int, LogicalQueueSegments], topic: str) -> Mapping[int, LogicalQueue]:
    """The logical queues of a topic, by index. Raises RemoteProtocolError for what cannot be."""
    listed = {index: each.segments or () for index, each in said.items()}
    _bounded(listed)
    found = {
        index: LogicalQueue.of(index, [segment_of(each, topic, index) for each in segments])
        for index, segments in listed.items()
    }
    return _checked(found, LOGICAL_QUEUES)


def queues_heard(said: Mapping[int, LogicalQueueSegments], topic: str) -> Mapping[int, LogicalQueue]:
    """The same as several brokers told it to whoever says it, some of them before they sealed what they tell.
    Raises RemoteProtocolError for what cannot be."""
    listed = {index: each.segments or () for index, each in said.items()}
    _bounded(listed)
    found = {
        index: LogicalQueue.heard(index, [segment_of(each, topic, index) for each in segments])
        for index, segments in listed.items()
    }
    return _checked(found, LOGICAL_QUEUES)


def message_of(segment: Segment, topic: str, index: int) -> LogicalQueueSegment:
    """A segment as PREVIEW's client reads it."""
    return LogicalQueueSegment(
        segment.address,
        segment.first_ms,
        segment.last_ms,
        segment.logical_start,
        index,
        MessageQueue(segment.queue.broker_name, segment.queue.queue_id, topic),
        segment.physical_start,
        segment.physical_end,
        STATE_NAMES[segment.state],
    )


def message_of_queues(queues: Iterable[LogicalQueue], topic: str) -> LogicalQueues:
    """The logical queues of a topic as a broker, or a name server, says them."""
    return LogicalQueues(
        {
            queue.index: LogicalQueueSegments(
                [message_of(each, topic, queue.index) for each in queue.segments]
            )
            for queue in queues
        }
    )


# ---- static topics -------------------------------------------------------------------------------


def queues_of_items(said: TopicQueueMappingDetail, topic: str) -> Mapping[int, LogicalQueue]:
    """The logical queues of which a mapping has the items. Raises RemoteProtocolError for what cannot be."""
    _fits(said, topic)
    listed = {index: each.items or () for index, each in (said.hosted_queues or {}).items()}
    _bounded(listed)
    found = {index: _queue_of(index, items) for index, items in listed.items() if items}
    return _checked(found, STATIC_TOPICS)


def items_of(queue: LogicalQueue, generation: int = 0) -> LogicQueueItems:
    """A logical queue as Java reads it; `generation` is that of the first item."""
    return LogicQueueItems(
        [
            LogicQueueMappingItem(
                each.queue.broker_name,
                each.physical_end,
                number,
                each.logical_start,
                each.queue.queue_id,
                each.physical_start,
                each.last_ms,
                each.first_ms,
            )
            for number, each in enumerate(queue.segments, generation)
        ]
    )


def holding_of(said: TopicQueueMappingInfo, topic: str) -> Holding:
    """What a broker leads of a topic, as it registered. Raises RemoteProtocolError for what cannot be."""
    _fits(said, topic)
    led = said.curr_id_map or {}
    broker, total = said.bname or "", _number(said.total_queues, 0)
    if len(led) > total or not all(0 <= index < total for index in led):
        raise RemoteProtocolError("more logical queues than there are")
    segments = {
        index: (Segment(PhysicalQueue(broker, queue), State.WRITE_ONLY),) for index, queue in led.items()
    }
    _checked({index: LogicalQueue(index, each) for index, each in segments.items()}, STATIC_TOPICS)
    return Holding(broker, segments, _number(said.epoch, UNDECIDED), total)


def _queue_of(index: int, items: Sequence[LogicQueueMappingItem]) -> LogicalQueue:
    """Items come oldest first: where their generations do not grow by one, somebody made them up."""
    first = _number(items[0].gen, 0)
    if first < 0 or any(_number(each.gen, 0) != number for number, each in enumerate(items, first)):
        raise RemoteProtocolError(f"queue {index}: generations out of order")
    segments = tuple(_segment_of(each, is_last=each is items[-1]) for each in items)
    return LogicalQueue(index, segments)


def _segment_of(item: LogicQueueMappingItem, *, is_last: bool) -> Segment:
    start, is_empty = _number(item.logic_offset, 0), item.end_offset == _number(item.start_offset, 0)
    tail = State.WRITE_ONLY if start == UNDECIDED else State.NORMAL
    state = tail if is_last else State.EXPIRED if is_empty else State.READ_ONLY
    return Segment(
        PhysicalQueue(item.bname or "", _number(item.queue_id, 0)),
        state,
        start,
        _number(item.start_offset, 0),
        _number(item.end_offset, UNDECIDED),
        _number(item.time_of_start, UNDECIDED),
        _number(item.time_of_end, UNDECIDED),
    )


def _fits(said: TopicQueueMappingDetail | TopicQueueMappingInfo, topic: str) -> None:
    if said.topic != topic or said.scope != MAPPING_SCOPE or not said.bname:
        raise RemoteProtocolError(f"no mapping of {topic[:40]}")
    if not 0 <= _number(said.total_queues, 0) <= LOGICAL_QUEUES_MAX:
        raise RemoteProtocolError(f"{said.total_queues} logical queues")
    if _number(said.epoch, UNDECIDED) < UNDECIDED:
        raise RemoteProtocolError(f"no epoch is {said.epoch}")


# ---- both ----------------------------------------------------------------------------------------


def _bounded(listed: Mapping[int, Sequence[object]]) -> None:
    if len(listed) > LOGICAL_QUEUES_MAX:
        raise RemoteProtocolError(f"{len(listed)} logical queues")
    count = sum(map(len, listed.values()))
    if count > MAPPING_SEGMENTS_MAX:
        raise RemoteProtocolError(f"{count} segments")


def _checked(found: Mapping[int, LogicalQueue], profile: Profile) -> Mapping[int, LogicalQueue]:
    fault = fault_of_topic(found.values(), profile)
    if fault is not None:
        raise RemoteProtocolError(fault)
    return found


def _number(value: int | None, absent: int) -> int:
    return absent if value is None else value
