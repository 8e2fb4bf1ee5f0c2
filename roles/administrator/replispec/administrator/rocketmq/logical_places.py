"""What groups have read of segments that go, said where the logical queue goes on.

A position is kept at the broker of a segment. Where that broker leaves, or its message queue serves another
logical queue, a group that had read nothing else would have none: its consumer begins where its settings say,
at the end by default, and skips all that lies between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.administrator.rocketmq.plans import Asking, Plan, body_of, granted
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.wire.rocketmq.client import (
    ConsumerOffsetTable,
    GetAllConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import TOPIC_GROUP_SEPARATOR

Positions = Mapping[str, Mapping[int, int]]
"""What each group of a topic reads next of a broker's message queues."""


def carried_over(found: LogicalTopic, index: int, going: Sequence[Segment]) -> Plan[None]:
    """Groups that have a place in segments of a logical queue that go, and in none that stays, are said to
    read on where the first one begins that stays behind those. Raises NotAsWantedError."""
    queue = found.queue(index)
    keys = {each.key for each in going}
    staying = LogicalQueue(index, tuple(each for each in queue.segments if each.key not in keys))
    following = next(
        (each for each in staying.segments if each.logical_start >= max(map(_start, going))), None
    )
    keeper = None if following is None else staying.keeper_of(following.logical_start)
    if following is None or keeper is None or keeper.queue.broker_name not in found.parts:
        return
    known = yield from positions_kept(found, queue)
    groups = sorted({group for each in going for group in _groups_in(each, known)})
    position = keeper.physical_of(following.logical_start)
    if keeper.is_sealed:
        # An older one, which is still read: what lies between its end and there is gone.
        position = min(position, keeper.physical_end)
    asked = [
        Asking(
            found.part(keeper.queue.broker_name).address,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetRequest(
                consumer_group=group,
                topic=found.name,
                queue_id=keeper.queue.queue_id,
                commit_offset=position,
                bname=keeper.queue.broker_name,
            ),
        )
        for group in groups
        if not _has_place(group, staying, known)
    ]
    if asked:
        for reply in (yield asked):
            granted(reply)


def before_taken(found: LogicalTopic, taken: PhysicalQueue) -> Plan[None]:
    """The same before a message queue that is expired serves again. Raises NotAsWantedError."""
    for index, queue in found.queues.items():
        going = [each for each in queue.segments if each.queue == taken and each.state == State.EXPIRED]
        if going:
            yield from carried_over(found, index, going)


def _start(segment: Segment) -> int:
    return segment.logical_start


def positions_kept(found: LogicalTopic, queue: LogicalQueue) -> Plan[Mapping[str, Positions]]:
    """What groups read next, by broker, at those of a logical queue that answer."""
    names = sorted({each.queue.broker_name for each in queue.segments} & found.parts.keys())
    return (yield from positions_at({each: found.parts[each].address for each in names}, found.name))


def positions_at(addresses: Mapping[str, str], topic: str) -> Plan[Mapping[str, Positions]]:
    """What groups read next of a topic, by broker, at these. Raises NotAsWantedError."""
    code, header = RequestCode.GET_ALL_CONSUMER_OFFSET, GetAllConsumerOffsetRequest()
    replies = yield [Asking(each, code, header) for each in addresses.values()]
    return {
        name: _of_topic(body_of(reply, ConsumerOffsetTable), topic)
        for name, reply in zip(addresses, replies, strict=True)
    }


def _of_topic(table: ConsumerOffsetTable, topic: str) -> Positions:
    before = f"{topic}{TOPIC_GROUP_SEPARATOR}"
    return {
        key.removeprefix(before): queues.offsets or {}
        for key, queues in (table.offset_table or {}).items()
        if key.startswith(before)
    }


def _groups_in(segment: Segment, known: Mapping[str, Positions]) -> Sequence[str]:
    """The groups that have a place in a segment."""
    said = known.get(segment.queue.broker_name, {})
    return [
        group
        for group, offsets in said.items()
        if offsets.get(segment.queue.queue_id, -1) >= segment.physical_start
    ]


def _has_place(group: str, queue: LogicalQueue, known: Mapping[str, Positions]) -> bool:
    """Whether a group has one in a segment that stays."""
    for each in queue.segments:
        position = known.get(each.queue.broker_name, {}).get(group, {}).get(each.queue.queue_id)
        if position is not None and each.is_decided and queue.is_said_of(each, position):
            return True
    return False
