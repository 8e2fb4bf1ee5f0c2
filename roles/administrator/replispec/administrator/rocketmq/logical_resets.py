"""A group of consumers made to read logical queues (RIP-21) on from the messages of a time.

Positions are physical, kept by the broker of the segment that holds the offset, and looked for from the
newest segment back: what is kept in newer segments than the one to read on in is taken back, the newest at
last, so that a command that is cut off leaves the group where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replispec.administrator.rocketmq.logical_places import Positions, positions_kept
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    NotGrantedError,
    Plan,
    body_of,
    granted,
    header_of,
)
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.wire.rocketmq.client import (
    ConsumerConnection,
    GetConsumerConnectionsRequest,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import UNDECIDED


@dataclass(frozen=True, slots=True)
class MovedPlace:
    """A logical queue of which a group was moved: where it ends, where the group was (UNDECIDED: nowhere),
    where the messages of the time begin, and where the group reads on."""

    index: int
    ends: int
    before: int
    then: int
    now: int


def moved_to(
    name_servers: Sequence[str], topic: str, group: str, at_ms: int, *, force: bool
) -> Plan[Sequence[MovedPlace]]:
    """A group reads every logical queue on from a time, below 0: from its end; without `force` back alone.
    Raises NotAsWantedError: also where some of it cannot be asked, or consumers of the group are there, who
    would say again where they were."""
    found = yield from known(name_servers, topic)
    found.checked()
    yield from is_away([each.address for each in found.holders], group)
    places: list[tuple[LogicalQueue, MovedPlace, Mapping[str, Positions]]] = []
    # Looked for everywhere before anything is moved.
    for index, queue in found.queues.items():
        if queue.is_waiting or not queue.segments:
            continue
        for name in sorted({each.queue.broker_name for each in queue.segments if each.is_decided}):
            found.part(name)
        ends = yield from _end_of(found, queue)
        then = ends if at_ms < 0 else (yield from _since(found, queue, at_ms))
        kept = yield from positions_kept(found, queue)
        before = _place_of(group, queue, kept)
        now = then if force or then <= before else before
        places.append((queue, MovedPlace(index, ends, before, then, now), kept))
    for queue, place, kept in places:
        if place.now != place.before:
            yield from _moved(found, queue, group, place.now, kept)
    return [place for _, place, _ in places]


def is_away(brokers: Sequence[str], group: str) -> Plan[None]:
    """Nobody of a group is connected to any of these brokers. Raises NotAsWantedError."""
    header = GetConsumerConnectionsRequest(consumer_group=group)
    code = RequestCode.GET_CONSUMER_CONNECTION_LIST
    for reply in (yield [Asking(each, code, header) for each in brokers]):
        try:
            clients = body_of(reply, ConsumerConnection).connection_set
        except NotGrantedError:
            # Nobody of it is there.
            continue
        if clients:
            raise NotAsWantedError(
                f"consumers of {group} are connected, and would say again where they are: stop them first"
            )


def _end_of(found: LogicalTopic, queue: LogicalQueue) -> Plan[int]:
    last = _decided(queue)[-1]
    return last.logical_end if last.is_sealed else (yield from _end_in(found, last))


def _decided(queue: LogicalQueue) -> Sequence[Segment]:
    return [each for each in queue.segments if each.is_decided]


def _end_in(found: LogicalTopic, segment: Segment) -> Plan[int]:
    header = GetMaxOffsetRequest(topic=found.name, queue_id=segment.queue.queue_id)
    (reply,) = yield [Asking(_address(found, segment), RequestCode.GET_MAX_OFFSET, header)]
    end = header_of(reply, GetMaxOffsetResponse).offset or 0
    return segment.logical_of(max(end, segment.physical_start))


def _since(found: LogicalTopic, queue: LogicalQueue, at_ms: int) -> Plan[int]:
    """The first message that was stored at a time or later, of the oldest segment that has one; the end of
    the queue where none has."""
    for each in queue.segments:
        if not each.is_readable:
            continue
        header = SearchOffsetRequest(topic=found.name, queue_id=each.queue.queue_id, timestamp=at_ms)
        (reply,) = yield [Asking(_address(found, each), RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)]
        # Whoever has none tells its end.
        within = max(header_of(reply, SearchOffsetResponse).offset or 0, each.physical_start)
        if not each.is_sealed or within < each.physical_end:
            return each.logical_of(within)
    return (yield from _end_of(found, queue))


def _place_of(group: str, queue: LogicalQueue, kept: Mapping[str, Positions]) -> int:
    """What a group reads next, as its consumers find it; UNDECIDED where it never said so."""
    for each in reversed(_decided(queue)):
        position = _kept_in(each, group, kept)
        if position is not None and position >= 0 and queue.is_said_of(each, position):
            return each.logical_of(min(position, each.physical_end) if each.is_sealed else position)
    return UNDECIDED


def _kept_in(segment: Segment, group: str, kept: Mapping[str, Positions]) -> int | None:
    return kept.get(segment.queue.broker_name, {}).get(group, {}).get(segment.queue.queue_id)


def _moved(
    found: LogicalTopic, queue: LogicalQueue, group: str, offset: int, kept: Mapping[str, Positions]
) -> Plan[None]:
    """Said where the offset lies, then that nothing is known in newer segments, in their order."""
    decided = _decided(queue)
    keeper = queue.keeper_of(offset) or decided[0]
    newer = [each for each in decided if each.logical_start > keeper.logical_start and each != keeper]
    position = keeper.physical_of(max(offset, keeper.logical_start))
    if keeper.is_sealed:
        position = min(position, keeper.physical_end)
    said = [(keeper, position)]
    for each in newer:
        # What is kept of the keeper's own message queue was just said.
        is_kept = (_kept_in(each, group, kept) or 0) >= each.physical_start
        if each.queue != keeper.queue and _kept_in(each, group, kept) is not None and is_kept:
            said.append((each, UNDECIDED))
    for segment, at in said:
        header = UpdateConsumerOffsetRequest(
            consumer_group=group,
            topic=found.name,
            queue_id=segment.queue.queue_id,
            commit_offset=at,
            bname=segment.queue.broker_name,
        )
        (reply,) = yield [Asking(_address(found, segment), RequestCode.UPDATE_CONSUMER_OFFSET, header)]
        granted(reply)


def _address(found: LogicalTopic, segment: Segment) -> str:
    return found.part(segment.queue.broker_name).address
