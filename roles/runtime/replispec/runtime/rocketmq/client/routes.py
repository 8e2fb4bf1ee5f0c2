"""Where a client finds the queues of a topic, which are plain, or logical ones of either form.

Source: apache/rocketmq rocketmq-all-5.4.0, MQClientInstance.topicRouteData2TopicPublishInfo, ClientMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    STATIC_TOPICS,
    Holding,
    LogicalQueue,
    Segment,
    fault_of,
    merged,
    with_holding,
)
from replispec.runtime.rocketmq.queues.forms import holding_of, queues_heard
from replispec.runtime.rocketmq.rules import has_bit
from replispec.wire.rocketmq.broker import QueueData, TopicRouteData
from replispec.wire.rocketmq.codes import Permission
from replispec.wire.rocketmq.constants import (
    CLIENT_TOPIC_QUEUES,
    LOGICAL_QUEUE_BROKER,
    MAPPING_SEGMENTS_MAX,
    MASTER_ID,
    MOCK_BROKER_GLOBAL,
    MOCK_BROKER_NONE,
    QUEUES_MAX,
)

SegmentOf = Callable[[LogicalQueue], Segment | None]
"""Which segment of a logical queue is meant."""


class ClientQueue(NamedTuple):
    """A queue as programs see it: a logical one is that of a broker which does not exist."""

    broker: str
    number: int


class BrokerPlace(NamedTuple):
    """Where a queue is asked for: a broker set, and the address of one of its members."""

    broker: str
    address: str


@dataclass(frozen=True, slots=True)
class Route:
    """The queues of a topic, and where they are. `holdings`: what brokers lead of a static topic; `logical`:
    the logical queues of RIP-21, by index, and `gone_before` the offsets before which a name server tells
    none: such ones are gone, where those that are missing after a redirect may not be known."""

    topic: str
    members: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    published: Sequence[ClientQueue] = ()
    subscribed: Sequence[ClientQueue] = ()
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    leaders: Mapping[int, str] = field(default_factory=dict)
    logical: Mapping[int, LogicalQueue] = field(default_factory=dict)
    gone_before: Mapping[int, Collection[int]] = field(default_factory=dict)

    def of_new_topic(self) -> Route:
        """The same for a topic that brokers make when somebody sends to it, with so many queues each."""
        published = [each for each in self.published if each.number < CLIENT_TOPIC_QUEUES]
        return replace(self, published=published, subscribed=())

    @property
    def is_static(self) -> bool:
        """Whether its queues are those of a static topic."""
        return bool(self.holdings)

    @property
    def is_logical(self) -> bool:
        """Whether they are logical queues of RIP-21."""
        return bool(self.logical)

    def broker_of(self, queue: ClientQueue) -> str | None:
        """The broker set that answers for a queue; None while nobody does."""
        if self.is_logical:
            logical = self.logical.get(queue.number)
            return logical.segments[-1].queue.broker_name if logical and logical.segments else None
        return self.leaders.get(queue.number) if self.is_static else queue.broker

    def place(self, queue: ClientQueue, *, master: bool) -> BrokerPlace | None:
        """Where to ask for a queue; `master`: nobody else will do."""
        broker = self.broker_of(queue)
        members = self.members.get(broker or "", {})
        if broker is None or not members or (master and MASTER_ID not in members):
            return None
        return BrokerPlace(broker, members[min(members)])

    def place_of(self, segment: Segment, *, master: bool) -> BrokerPlace | None:
        """Where to ask for a segment: at its broker, if that is known, else where it was said to be."""
        name = segment.queue.broker_name
        members = self.members.get(name, {})
        if members and (not master or MASTER_ID in members):
            return BrokerPlace(name, members[min(members)])
        return None if segment.address is None else BrokerPlace(name, segment.address)

    def has_form_of(self, queue: ClientQueue) -> bool:
        """Whether a queue is one of this topic: none of a plain one is, whose queues are logical now."""
        return not self.is_logical or queue.broker == LOGICAL_QUEUE_BROKER

    def begin_behind(self, queue: ClientQueue, plain: Mapping[ClientQueue, int]) -> int | None:
        """Where a logical queue is read on behind what was read of its message queues when they were those
        of a plain topic, up to these offsets; None where none of them was."""
        begin = None
        for each in self.logical[queue.number].segments if plain else ():
            offset = plain.get(ClientQueue(*each.queue))
            if offset is not None and each.is_decided:
                begin = each.logical_of(max(offset, each.physical_start))
                if not each.is_sealed or offset < each.physical_end:
                    break
                begin = each.logical_end
        return begin

    def learnt(self, index: int, segments: Sequence[Segment]) -> Route:
        """With what a broker says of some segments of a logical queue, unless that cannot be."""
        known = self.logical.get(index, LogicalQueue(index))
        told = known.told(segments)
        if fault_of(told, LOGICAL_QUEUES) is not None:
            # What is known of the others is old.
            told = LogicalQueue.heard(index, segments)
        if not segments or fault_of(told, LOGICAL_QUEUES) is not None:
            return self
        return _of_logical(self, {**self.logical, index: told})


def route_of(topic: str, said: TopicRouteData, before: Route | None = None) -> Route:
    """The route that a name server tells. What a broker led as of a greater epoch, by the route before,
    counts more; one of logical queues, or of a static topic, stays one. Raises RemoteProtocolError for what
    cannot be."""
    members = {
        data.broker_name: {number: at for number, at in (data.broker_addrs or {}).items() if number >= 0}
        for data in said.broker_datas or ()
        if data.broker_name
    }
    if said.logical_queues_info:
        queues = queues_heard(said.logical_queues_info, topic)
        gone = {index: frozenset(_behind_holes(each)) for index, each in queues.items()}
        return _of_logical(Route(topic, members, gone_before=gone), queues)
    if before is not None and before.is_logical:
        raise RemoteProtocolError(f"{topic[:40]} is told without its logical queues")
    mappings = said.topic_queue_mapping_by_broker
    if mappings:
        return _static(topic, members, said, before)
    if before is not None and before.is_static:
        raise RemoteProtocolError(f"{topic[:40]} is told without its mapping")
    datas = [each for each in said.queue_datas or () if each.broker_name in members]
    published = _queues(datas, Permission.WRITE)
    return Route(topic, members, published, _queues(datas, Permission.READ))


def _behind_holes(queue: LogicalQueue) -> Iterator[int]:
    """Where segments begin that do not begin where the one before ends."""
    decided = [each for each in queue.segments if each.is_decided]
    for one, two in pairwise(decided):
        if one.logical_end < two.logical_start:
            yield two.logical_start


def _of_logical(route: Route, queues: Mapping[int, LogicalQueue]) -> Route:
    """Published are the logical queues that are written, subscribed to those that are read."""
    shown = {index: ClientQueue(LOGICAL_QUEUE_BROKER, index) for index in sorted(queues)}
    published = [each for index, each in shown.items() if queues[index].writable]
    subscribed = [each for index, each in shown.items() if queues[index].last_readable]
    return replace(route, published=published, subscribed=subscribed, logical=queues)


def _queues(datas: Sequence[QueueData], bit: Permission) -> Sequence[ClientQueue]:
    found: list[ClientQueue] = []
    for data in sorted(datas, key=lambda each: each.broker_name or ""):
        count = (data.write_queue_nums if bit is Permission.WRITE else data.read_queue_nums) or 0
        if not 0 <= count <= QUEUES_MAX or len(found) + count > MAPPING_SEGMENTS_MAX:
            raise RemoteProtocolError(f"{count} queues of {data.broker_name}")
        if has_bit(data.perm or 0, bit):
            found += [ClientQueue(data.broker_name or "", number) for number in range(count)]
    return found


def _static(
    topic: str, members: Mapping[str, Mapping[int, str]], said: TopicRouteData, before: Route | None
) -> Route:
    holdings: Mapping[str, Holding] = before.holdings if before is not None else {}
    for broker, info in (said.topic_queue_mapping_by_broker or {}).items():
        holding = holding_of(info, topic)
        if holding.broker_name != broker:
            raise RemoteProtocolError(f"{broker[:40]} says what {holding.broker_name[:40]} leads")
        holdings = with_holding(holdings, holding)
    leaders = {
        index: queue.segments[-1].queue.broker_name
        for index, queue in merged(holdings, STATIC_TOPICS).items()
    }
    total = max((each.total for each in holdings.values()), default=0)
    listed = list(_logical(total, leaders))
    return Route(
        topic, members, [each for each in listed if each.number in leaders], listed, holdings, leaders
    )


def _logical(total: int, leaders: Mapping[int, str]) -> Iterator[ClientQueue]:
    for index in range(total):
        yield ClientQueue(MOCK_BROKER_GLOBAL if index in leaders else MOCK_BROKER_NONE, index)
