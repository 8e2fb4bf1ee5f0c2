"""A broker that was passed over (`-fd START`), and comes back: it still takes itself for the one that writes.

It is told who follows, and ends where that one begins. What it holds from there on was never given to anybody
by the logical queue as it went on: it is counted, and belongs to no logical offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.administrator.rocketmq.plans import Asking, Plan, body_of, header_of, unreadable
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues import PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of, segment_of
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, MigrateLogicalQueue


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A segment that was passed over, as it ends now, and where its message queue ends."""

    index: int
    segment: Segment
    message_end: int

    @property
    def beyond(self) -> int:
        """How many messages of it are of no logical offset."""
        return max(0, self.message_end - self.segment.physical_end)


def ended(found: LogicalTopic) -> Plan[Sequence[Overtaken]]:
    """Whoever was passed over and answers again ends its segments; which. Raises NotAsWantedError."""
    came: list[Overtaken] = []
    for index, one, two in _overtaken(found):
        address, topic = found.part(one.queue.broker_name).address, found.name
        said = MigrateLogicalQueue(message_of(one, topic, index), message_of(two, topic, index))
        code = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
        (reply,) = yield [Asking(address, code, body=said.encode())]
        answer = body_of(reply, MigrateLogicalQueue).from_queue_route_data
        try:
            segment = segment_of(answer or LogicalQueueSegment(), topic, index)
        except RemoteProtocolError as error:
            raise unreadable(reply, error) from error
        header = GetMaxOffsetRequest(topic=topic, queue_id=one.queue.queue_id)
        (reply,) = yield [Asking(address, RequestCode.GET_MAX_OFFSET, header)]
        came.append(Overtaken(index, segment, header_of(reply, GetMaxOffsetResponse).offset or 0))
    return came


def _followed(found: LogicalTopic, index: int, one: Segment, two: Segment) -> Segment:
    """Who follows a segment: the next one that is known, or who began before that one and is lost, too. Of
    that one it is known where it began: whoever passed it over says that all from there on is gone."""
    lost = [begin for begin, _ in found.gone.get(index, ()) if one.logical_start < begin < two.logical_start]
    if not lost:
        return two
    nobody = PhysicalQueue(constants.MOCK_BROKER_NONE, 0)
    return Segment(nobody, State.READ_ONLY, min(lost), physical_end=two.logical_start - min(lost))


def _overtaken(found: LogicalTopic) -> Iterator[tuple[int, Segment, Segment]]:
    """Segments that are open at a broker that answers, though another one begins behind them: the index, that
    segment, and who follows. Which of two that begin alike was passed over nobody can tell."""
    for index, queue in found.queues.items():
        for one, two in pairwise([each for each in queue.segments if each.is_decided]):
            is_behind = two.logical_start > one.logical_start
            if is_behind and not one.is_sealed and one.queue.broker_name in found.parts:
                yield index, one, _followed(found, index, one, two)
