"""A group of consumers made to read a static topic on from the messages of a time, over the borders of items.

Positions are physical, kept by the broker of an item, and looked for from the newest item back, by Java's
brokers as by ours. So brokers are asked for physical queues (`lo=false`), and what items keep that are newer
than the one to read on in is taken back, the newest at last: who is cut off leaves the group where it was.

Source: apache/rocketmq rocketmq-all-5.4.0, ConsumerManageProcessor.rewriteRequestForStaticTopic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replispec.administrator.rocketmq import static_topics
from replispec.administrator.rocketmq.logical_places import Positions, positions_at
from replispec.administrator.rocketmq.logical_resets import MovedPlace, is_away
from replispec.administrator.rocketmq.plans import Asking, NotAsWantedError, Plan, granted, header_of
from replispec.administrator.rocketmq.remapping import checked, is_unfinished
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import OFFSET_MAX, UNDECIDED


def moved_over_items(
    name_servers: Sequence[str], topic: str, group: str, at_ms: int, *, force: bool
) -> Plan[Sequence[MovedPlace]]:
    """A group reads every logical queue on from a time, below 0: from its end; without `force` back alone.
    Raises NotAsWantedError: also where some of it cannot be asked, or consumers of the group are there, who
    would say again where they were."""
    known = yield from static_topics.known(name_servers, topic)
    if is_unfinished(known.topic, known.every(())):
        raise NotAsWantedError(f"an interrupted run of {topic} is finished first: updateStaticTopic does it")
    chains = checked(known.topic)
    masters = {name: static_topics.master_of(known.brokers, name) for name in sorted(known.topic.parts)}
    yield from is_away([*masters.values()], group)
    kept = yield from positions_at(masters, topic)
    queues = [_Items(topic, chain.queue, masters, group, kept) for chain in chains.values()]
    places: list[MovedPlace] = []
    # Looked for everywhere before anything is moved.
    for each in queues:
        ends = yield from each.end()
        then = ends if at_ms < 0 else (yield from each.since(at_ms))
        before = each.place()
        now = then if force or then <= before else before
        places.append(MovedPlace(each.queue.index, ends, before, then, now))
    for each, place in zip(queues, places, strict=True):
        if place.now != place.before:
            yield from each.moved(place.now)
    return places


@dataclass(frozen=True, slots=True)
class _Items:
    """One logical queue, where its brokers are, and what they keep of the topic's groups."""

    topic: str
    queue: LogicalQueue
    masters: Mapping[str, str]
    group: str
    kept: Mapping[str, Positions]

    @property
    def items(self) -> Sequence[Segment]:
        """Those that are read, oldest first."""
        return [each for each in self.queue.segments if each.is_decided]

    def end(self) -> Plan[int]:
        """Where the last item ends."""
        last = self.items[-1]
        return last.logical_of((yield from self._end_of(last)))

    def since(self, at_ms: int) -> Plan[int]:
        """The first message that was stored at a time or later, of the oldest item that has one; the end of
        the queue where none has."""
        for each in self.items:
            header = SearchOffsetRequest(
                topic=self.topic,
                queue_id=each.queue.queue_id,
                timestamp=at_ms,
                lo=False,
                bname=each.queue.broker_name,
            )
            code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
            (reply,) = yield [Asking(self._address(each), code, header)]
            found = max(header_of(reply, SearchOffsetResponse).offset or 0, each.physical_start)
            # Whoever has none tells its end.
            if found < min((yield from self._end_of(each)), self._border(each)):
                return each.logical_of(found)
        return (yield from self.end())

    def place(self) -> int:
        """What the group reads next, as its consumers are told; UNDECIDED where it never said so."""
        for each in reversed(self.items):
            position = self._position(each)
            if position >= 0:
                return each.logical_of(min(position, self._border(each)))
        return UNDECIDED

    def moved(self, offset: int) -> Plan[None]:
        """Said where the offset lies, then that nothing is known in newer items, in their order."""
        keeper = self.queue.locate(offset) or self.items[0]
        newer = [each for each in self.items if each.logical_start > keeper.logical_start]
        taken_back = [(each, UNDECIDED) for each in newer if self._position(each) >= 0]
        for item, position in [(keeper, max(0, keeper.physical_of(offset))), *taken_back]:
            header = UpdateConsumerOffsetRequest(
                consumer_group=self.group,
                topic=self.topic,
                queue_id=item.queue.queue_id,
                commit_offset=position,
                lo=False,
                bname=item.queue.broker_name,
            )
            (reply,) = yield [Asking(self._address(item), RequestCode.UPDATE_CONSUMER_OFFSET, header)]
            granted(reply)

    def _end_of(self, item: Segment) -> Plan[int]:
        """Where its physical queue ends."""
        header = GetMaxOffsetRequest(
            topic=self.topic, queue_id=item.queue.queue_id, lo=False, bname=item.queue.broker_name
        )
        (reply,) = yield [Asking(self._address(item), RequestCode.GET_MAX_OFFSET, header)]
        return max(header_of(reply, GetMaxOffsetResponse).offset or 0, item.physical_start)

    def _border(self, item: Segment) -> int:
        """The physical offset from which on another item holds the messages."""
        border = self.queue.border_of(item)
        return OFFSET_MAX if border == UNDECIDED else item.physical_of(border)

    def _position(self, item: Segment) -> int:
        found = self.kept.get(item.queue.broker_name, {}).get(self.group, {}).get(item.queue.queue_id)
        return UNDECIDED if found is None else found

    def _address(self, item: Segment) -> str:
        return self.masters[item.queue.broker_name]
