"""What administrators ask of queues and groups, and how they move a group, on the machine
`broker_statistics`.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor, ConsumerOffsetManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from replispec.broker.rocketmq.core.clients import Clients, GroupClient
from replispec.broker.rocketmq.core.mappings import Mapped
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.rocketmq.remoting import host_of
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    ClientConnection,
    ConsumerConnection,
    ConsumeStats,
    OffsetWrapper,
    ProducerConnection,
    ProducerInfo,
    ProducerInfos,
    ProducerTable,
    ResetOffsetBody,
    TopicOffset,
    TopicStatsTable,
)
from replispec.wire.rocketmq.machines import broker_statistics as machine
from replispec.wire.rocketmq.machines import broker_statistics_wire as wire
from replispec.wire.rocketmq.message_queue import MessageQueue

QUEUES_TOLD_MAX: Final = 10_000
"""Queues of one answer; a group that reads more is told of the first ones, by topic and number."""
NAMES_TOLD_MAX: Final = 10_000
"""Groups or topics of one answer; likewise."""
READ_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of messages that are read for the times of one answer; those of further queues are 0."""


class QueuesShown(Protocol):
    """What is asked of the queues."""

    def oldest(self, topic: str, queue_id: int, /) -> int:
        """The position of the oldest message of a queue."""
        ...

    def next(self, topic: str, queue_id: int, /) -> int:
        """Where the next message of a queue that is shown goes."""
        ...

    def stored_since(self, topic: str, queue_id: int, timestamp: int, /) -> int:
        """Where the first message is that was stored at a time or later."""
        ...

    def stored_at(self, topic: str, queue_id: int, position: int, /) -> tuple[int, int]:
        """When a message was stored, 0 where it is not there; and how many bytes were read for that."""
        ...


class MappedItems(Protocol):
    """What is asked of the mappings of static topics."""

    def newest(self, topic: str, /) -> Mapped | None:
        """The mapping that was recorded last."""
        ...


class StatisticsOwner(Protocol):
    """What a broker tells of itself."""

    @property
    def serves(self) -> bool:
        """Whether this broker is master."""
        ...


class Statistics:
    """Answers administrators about queues and groups. It is what only this broker knows; see `local` of the
    machine."""

    def __init__(
        self,
        broker_name: str,
        topics: Topics,
        offsets: ConsumerOffsets,
        queues: QueuesShown,
        clients: Clients,
        mappings: MappedItems,
        owner: StatisticsOwner,
    ) -> None:
        self._broker_name = broker_name
        self._topics = topics
        self._offsets = offsets
        self._queues = queues
        self._clients = clients
        self._mappings = mappings
        self._owner = owner
        self.table: Final = Answering(
            wire.bound(self, rules),
            {"move_group": self._move_group, "clone_group": self._clone_group},
            version=BROKER_RELEASE,
        ).table

    # What the machine asks

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._owner.serves

    def has_topic(self, topic: str, /) -> bool:
        """Whether the broker has this topic."""
        return self._topics.get(topic) is not None

    def has_group(self, group: str, /) -> bool:
        """Whether a group of this name was ever heard of: it has a topic of its retries, or has read."""
        name = constants.RETRY_TOPIC_PREFIX + group
        return bool(group) and (self.has_topic(name) or bool(self._offsets.topics_of(group)))

    def topic_stats(self, topic: str, /) -> TopicStatsTable:
        """Where the queues of a topic begin and end."""
        config = self._topics.get(topic)
        times = _Times(self._queues)
        found = {}
        for number in range(min((config and config.write_queue_nums) or 0, QUEUES_TOLD_MAX)):
            end = self._queues.next(topic, number)
            found[self._key(topic, number)] = TopicOffset(
                last_update_timestamp=times.of(topic, number, end - 1),
                max_offset=end,
                min_offset=self._queues.oldest(topic, number),
            )
        return TopicStatsTable(found)

    def group_stats(self, group: str, topic: str, /) -> ConsumeStats:
        """How far a group has read the queues of a topic, or of all its topics."""
        times = _Times(self._queues)
        found = {}
        for name, number in self._queues_of(group, topic):
            read = max(0, self._offsets.get(group, name, number) or 0)
            found[self._key(name, number)] = OffsetWrapper(
                broker_offset=self._queues.next(name, number),
                consumer_offset=read,
                last_timestamp=times.of(name, number, read - 1),
                pull_offset=read,
            )
        return ConsumeStats(offset_table=found)

    def clients(self, group: str, /) -> ConsumerConnection | None:
        """The clients of a group; None while it has none."""
        found = self._clients.described(group)
        if not found:
            return None
        last = found[-1].consumer
        return ConsumerConnection(
            connection_set=[_connection(each) for each in found],
            consume_from_where=last.consume_from_where,
            consume_type=last.consume_type,
            message_model=last.message_model,
        )

    def producers(self, group: str, /) -> ProducerConnection | None:
        """The clients of a group of producers; None while it has none."""
        found = self._clients.producers.described(group)
        return ProducerConnection([_connection(each) for each in found]) if found else None

    @property
    def all_producers(self) -> ProducerTable:
        """All producers, by group; of very many the first ones."""
        found: dict[str, ProducerInfos] = {}
        left = NAMES_TOLD_MAX
        for group in self._clients.producers.groups():
            every = self._clients.producers.described(group)[:left]
            found |= {group: ProducerInfos(list(map(_producer, every)))} if every else {}
            left -= len(every)
        return ProducerTable(found)

    def readers(self, topic: str, /) -> Sequence[str]:
        """The groups that have read a topic, ascending."""
        return self._offsets.groups_of(topic)[:NAMES_TOLD_MAX]

    def read_topics(self, group: str, /) -> Sequence[str]:
        """The topics that a group has read, ascending."""
        return self._offsets.topics_of(group)[:NAMES_TOLD_MAX]

    def is_group(self, name: str, /) -> bool:
        """Whether a text may name a group."""
        return self._topics.is_name(name)

    def in_queue(self, topic: str, queue_id: int, position: int, /) -> bool:
        """Whether a position, negative for none, is one of this queue's messages, or its end."""
        config = self._topics.get(topic)
        if config is None or queue_id >= (config.read_queue_nums or 0):
            return False
        oldest, end = self._queues.oldest(topic, queue_id), self._queues.next(topic, queue_id)
        return position < 0 or oldest <= position <= end

    def targets(
        self, group: str, topic: str, queue_id: int, position: int, timestamp: int, forward: bool, /
    ) -> ResetOffsetBody:
        """Where a group is to read on, by queue; see the machine."""
        config = self._topics.get(topic)
        count = min((config and config.read_queue_nums) or 0, QUEUES_TOLD_MAX)
        numbers = range(count) if queue_id < 0 else range(queue_id, queue_id + 1)
        is_place = queue_id >= 0 and position >= 0
        mapped = self._mappings.newest(topic)
        items = {} if mapped is None or is_place else mapped.own_items
        found: dict[str, int] = {}
        for number in numbers:
            target = position if is_place else self._at_time(topic, number, timestamp)
            now = self._offsets.place(group, topic, number)
            if number in items:
                within = _in_item(*items[number], target, now, forward=forward)
                found |= {} if within is None else {self._key(topic, number): within}
            else:
                found[self._key(topic, number)] = target if forward else min(target, now or 0)
        return ResetOffsetBody(found)

    # Effects of the machine

    def _move_group(self, request: Request, event: machine.Moved) -> None:
        host = host_of(request.peer)
        for key, position in (event.positions.offset_table or {}).items():
            number = MessageQueue.decode(key.encode()).queue_id or 0
            self._offsets.move((event.group, event.topic, number), position, host, request.now_ms)

    def _clone_group(self, request: Request, event: machine.Cloned) -> None:
        host = host_of(request.peer)
        for name, number in self._queues_of(event.group, event.topic):
            position = self._offsets.get(event.group, name, number)
            if position is not None:
                self._offsets.move((event.clone, name, number), position, host, request.now_ms)

    def _queues_of(self, group: str, topic: str) -> Iterator[tuple[str, int]]:
        left = QUEUES_TOLD_MAX
        for name in [topic] if topic else self._offsets.topics_of(group):
            config = self._topics.get(name)
            for number in range(min((config and config.read_queue_nums) or 0, left)):
                left -= 1
                yield name, number

    def _at_time(self, topic: str, number: int, timestamp: int) -> int:
        if timestamp < 0:
            return self._queues.next(topic, number)
        return self._queues.stored_since(topic, number, timestamp)

    def _key(self, topic: str, number: int) -> str:
        return MessageQueue(self._broker_name, number, topic).encode().decode()


def _in_item(
    queue: LogicalQueue, item: Segment, target: int, now: int | None, *, forward: bool
) -> int | None:
    """Where a group is to read on of an item of a static topic, given the physical position of a time and the
    one that it has; None where nothing is said. Positions are looked for from the newest item back: one with
    no message of before that time says UNDECIDED, so that an older one counts."""
    if not forward:
        # Another broker may hold older items, and this one does not know what it keeps.
        return None if now is None else min(max(target, item.physical_start), now)
    border = queue.border_of(item)
    end = constants.OFFSET_MAX if border == constants.UNDECIDED else item.physical_of(border)
    is_oldest = item.key == queue.segments[0].key
    is_read_on = item.is_decided and target > item.physical_start
    return min(max(target, item.physical_start), end) if is_oldest or is_read_on else constants.UNDECIDED


def _connection(member: GroupClient) -> ClientConnection:
    said = member.heard
    return ClientConnection(said.address, said.client, said.language, said.version)


def _producer(member: GroupClient) -> ProducerInfo:
    said = member.heard
    return ProducerInfo(said.client, said.language, member.heard_ms, said.address, said.version)


class _Times:
    """When messages were stored, as far as one answer may cost reading."""

    def __init__(self, queues: QueuesShown) -> None:
        self._queues = queues
        self._left = READ_BYTES_MAX

    def of(self, topic: str, number: int, position: int) -> int:
        """When this message was stored; 0 where it is not there, or where too much was read already."""
        if position < 0 or self._left <= 0:
            return 0
        stored_ms, size = self._queues.stored_at(topic, number, position)
        self._left -= size
        return stored_ms
