"""What a broker holds of logical queues, as the commit log has it: its own segments of each topic, who
follows those that ended, that the topic is enabled, and which offsets are gone.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, TopicConfigManager, LogicalQueuesInfoInBroker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.broker.rocketmq.core.table_file import counted
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    Enabled,
    LogicalQueue,
    Segment,
    Statement,
    fault_of_topic,
)
from replispec.runtime.rocketmq.queues.forms import message_of, message_of_queues, segment_of
from replispec.runtime.rocketmq.queues.telling import (
    Interval,
    fault_of_gone,
    gone_of,
    message_of_gone,
    message_of_statement,
    statement_of,
    with_gone,
)
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Outbox, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    DataVersion,
    HeldLogicalQueueSegment,
    LogicalQueueMapping,
    LogicalQueueMappingTable,
    TopicConfig,
)
from replispec.wire.rocketmq.codes import LogicalQueueState
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueuesEnabled,
)
from replispec.wire.rocketmq.machines import logical_queue_segment as machine

Instance = tuple[machine.State, machine.Variables]
"""A segment as its machine has it."""
_TAKING: Final = frozenset(
    state
    for state in machine.State
    for edge in machine.MACHINE.transitions.get((state, machine.Sent), ())[:1]
    if edge.guard is None and edge.do == ("store",)
)
"""States in which a segment takes whatever is sent."""
_ABSENT: Final[Instance] = machine.MACHINE.initial, machine.MACHINE.variables


@dataclass(frozen=True)
class HeldSegment:
    """A segment of this broker, the index of its logical queue, and who follows it."""

    index: int
    segment: Segment
    successor: LogicalQueueSegment | None = None

    @property
    def place(self) -> tuple[int, int]:
        """What tells it from others of this broker: its message queue, and where it begins there."""
        return self.segment.queue.queue_id, self.segment.physical_start

    @cached_property
    def instance(self) -> Instance:
        """As its machine has it: what the log has of it is all that is durable."""
        segment = self.segment
        known = machine.Variables(
            logical_start=segment.logical_start,
            physical_start=segment.physical_start,
            physical_end=segment.physical_end,
            successor=self.successor,
        )
        return machine.State[segment.state.name], known


@dataclass(frozen=True)
class TopicMapping:
    """What this broker holds of one topic."""

    broker_name: str
    topic: str
    config: TopicConfig
    held: tuple[HeldSegment, ...] = ()
    enabled: Enabled | None = None
    gone: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)

    @cached_property
    def _by_queue(self) -> Mapping[int, Sequence[HeldSegment]]:
        """Its segments by message queue, each in their order."""
        found: dict[int, list[HeldSegment]] = {}
        for each in sorted(self.held, key=_place):
            found.setdefault(each.segment.queue.queue_id, []).append(each)
        return found

    @cached_property
    def _by_index(self) -> Mapping[int, Sequence[HeldSegment]]:
        """Likewise by logical queue."""
        found: dict[int, list[HeldSegment]] = {}
        for each in self.held:
            found.setdefault(each.index, []).append(each)
        return {index: list(_in_order(index, each)) for index, each in found.items()}

    @cached_property
    def taking(self) -> frozenset[str]:
        """The message queues that take whatever is sent, by their numbers as texts."""
        newest = ((queue_id, held[-1].instance[0]) for queue_id, held in self._by_queue.items())
        return frozenset(str(queue_id) for queue_id, state in newest if state in _TAKING)

    def newest_of(self, queue_id: int) -> HeldSegment | None:
        """What a message queue is now."""
        found = self._by_queue.get(queue_id)
        return found[-1] if found else None

    def at(self, queue_id: int, position: int) -> HeldSegment | None:
        """The segment that a message of a message queue belongs to; the first one for those before all."""
        found = self._by_queue.get(queue_id, ())
        if found and found[-1].segment.physical_start <= position:
            return found[-1]
        begun = (each for each in reversed(found) if each.segment.physical_start <= position)
        return next(begun, found[0] if found else None)

    def of_index(self, index: int) -> Iterator[HeldSegment]:
        """Its segments of a logical queue, oldest first."""
        return iter(self._by_index.get(index, ()))

    def writable_of(self, index: int) -> HeldSegment | None:
        """The segment of a logical queue that is written here."""
        return next((each for each in self.of_index(index) if each.segment.is_writable), None)

    def with_segment(self, before: HeldSegment | None, after: HeldSegment | None) -> TopicMapping:
        """With one segment in the place of another one, and of all that are expired of a message queue that
        is taken again; one that is read stays. What nobody lists then is gone."""
        is_same = before is not None and after is not None and after.place == before.place
        over: tuple[HeldSegment, ...] = () if before is None else (before,)
        if before is not None and after is not None and not is_same:
            over = tuple(each for each in self.held if _is_expired_of(each, before))
        gone = self.gone
        for each in () if is_same else over:
            segment = each.segment
            if segment.is_decided and segment.is_sealed:
                gone = with_gone(gone, {each.index: ((segment.logical_start, segment.logical_end),)})
        held = tuple(each for each in self.held if each not in over)
        return replace(self, held=held if after is None else (*held, after), gone=gone)

    def logical_queues(self, address: str | None = None) -> Iterator[LogicalQueue]:
        """What it tells, with its address."""
        for index in sorted({each.index for each in self.held}):
            own = (replace(each.segment, address=address) for each in self.held if each.index == index)
            yield LogicalQueue.of(index, own)

    @cached_property
    def statement(self) -> LogicalQueuesEnabled | None:
        """That it is enabled, as it is registered; None before."""
        if self.enabled is None:
            return None
        gone = {index: each for index, each in self.gone.items() if index < self.enabled.total}
        return message_of_statement(Statement(self.enabled, gone))

    def fault(self) -> str | None:
        """What cannot be of it."""
        return fault_of_topic(list(self.logical_queues()), LOGICAL_QUEUES) or fault_of_gone(self.gone)

    def encoded(self) -> LogicalQueueMapping:
        """As the log has it."""
        segments = [
            HeldLogicalQueueSegment(message_of(each.segment, self.topic, each.index), each.successor)
            for each in sorted(self.held, key=_place)
        ]
        enabled = None if self.enabled is None else message_of_statement(Statement(self.enabled))
        gone = message_of_gone(self.gone)
        return LogicalQueueMapping(self.broker_name, enabled, gone, segments, self.topic, self.config)


def _is_expired_of(each: HeldSegment, other: HeldSegment) -> bool:
    """Whether it is an expired segment of the same message queue."""
    is_of_queue = each.segment.queue == other.segment.queue
    return is_of_queue and each.segment.state == LogicalQueueState.EXPIRED


def _place(each: HeldSegment) -> tuple[int, int]:
    return each.place


def _in_order(index: int, held: Sequence[HeldSegment]) -> Iterator[HeldSegment]:
    by_place = {each.place: each for each in held}
    found = LogicalQueue.of(index, (each.segment for each in held))
    return (by_place[each.queue.queue_id, each.physical_start] for each in found.segments)


@dataclass(frozen=True)
class LogicallyMapped:
    """A mapping of logical queues, and where its record lies in the log."""

    offset: int
    end: int
    said: TopicMapping
    is_gone: bool = False
    """The record says that the topic was deleted."""

    @property
    def config(self) -> TopicConfig | None:
        """The topic."""
        return None if self.is_gone else self.said.config

    @property
    def is_recorded(self) -> bool:
        """Whether the log has it: always."""
        return True


class LogicalMappings(RecordedMappings[LogicallyMapped]):
    """What the log says of logical queues. Raises StorageFailed when the file is there and cannot be read."""

    def __init__(
        self, outbox: Outbox, writes: Writes, files: FilesReader, store: MessageStore, broker_name: str
    ) -> None:
        self._broker_name = broker_name
        # The last record that was made here, which is read again as soon as it is in the log.
        self._made: tuple[bytes, TopicMapping] | None = None
        # What was told of each mapping, and at which address.
        self._told: dict[str, tuple[TopicMapping, str, LogicalQueues]] = {}
        queue, file = constants.LOGICAL_MAPPING_QUEUE, constants.LOGICAL_MAPPING_FILE
        super().__init__(outbox, writes, files, store, queue, file)

    def infos(self, address: str) -> dict[str, LogicalQueues]:
        """The segments that name servers are told of, by topic."""
        before, self._told = self._told, {}
        for topic, mapping in self._kept_all():
            known = before.get(topic)
            if known is not None and known[0] is mapping and known[1] == address:
                self._told[topic] = known
            elif mapping.held:
                queues = message_of_queues(mapping.logical_queues(address), topic)
                self._told[topic] = mapping, address, queues
        return {topic: queues for topic, (_, _, queues) in self._told.items()}

    def statements(self) -> dict[str, LogicalQueuesEnabled]:
        """The topics that are enabled, as name servers are told of them."""
        found = {topic: each.statement for topic, each in self._kept_all()}
        return {topic: each for topic, each in found.items() if each is not None}

    def _kept_all(self) -> Iterator[tuple[str, TopicMapping]]:
        for topic in self.topics:
            found = self.kept(topic)
            if found is not None:
                yield topic, found.said

    def record_of(self, mapping: TopicMapping) -> bytes:
        """A mapping as the log is to have it. Raises RemoteProtocolError for one that cannot be."""
        fault = mapping.fault()
        if fault is not None:
            raise RemoteProtocolError(fault)
        body = mapping.encoded().encode()
        gone = {index: each for index, each in mapping.gone.items() if each}
        self._made = body, replace(mapping, held=tuple(sorted(mapping.held, key=_place)), gone=gone)
        return body

    def _mapped(self, body: bytes, offset: int, end: int) -> tuple[str, LogicallyMapped]:
        if self._made is not None and self._made[0] == body:
            return self._made[1].topic, LogicallyMapped(offset, end, self._made[1])
        said = LogicalQueueMapping.decode(body)
        if said.broker_name != self._broker_name:
            raise RemoteProtocolError("it is none of this broker set")
        if said.topic_config is None and said.topic:
            gone = TopicMapping(self._broker_name, said.topic, TopicConfig())
            return said.topic, LogicallyMapped(offset, end, gone, is_gone=True)
        mapping = mapping_of(said)
        fault = mapping.fault()
        if fault is not None:
            raise RemoteProtocolError(fault)
        return mapping.topic, LogicallyMapped(offset, end, mapping)

    def _read_file(self) -> None:
        found, _ = self._file.read(counted(LogicalQueueMappingTable.decode), "it is made again of the log")
        if found is not None:
            self.version = self._on_disk = (found.data_version or DataVersion()).counter or 0

    def _file_bytes(self) -> bytes:
        mappings = {topic: each.encoded() for topic, each in self._kept_all()}
        return LogicalQueueMappingTable(self.data_version, mappings).encode()


def mapping_of(said: LogicalQueueMapping) -> TopicMapping:
    """A record. Raises RemoteProtocolError."""
    topic = said.topic or ""
    if said.topic_config is None:
        raise RemoteProtocolError("a mapping without its topic")
    enabled = None if said.enabled is None else statement_of(said.enabled).enabled
    held = tuple(_held_of(said.segments or (), topic, said.broker_name or ""))
    return TopicMapping(said.broker_name or "", topic, said.topic_config, held, enabled, gone_of(said.gone))


def _held_of(
    segments: Iterable[HeldLogicalQueueSegment], topic: str, broker_name: str
) -> Iterator[HeldSegment]:
    for each in segments:
        said = each.segment or LogicalQueueSegment()
        index = constants.UNDECIDED if said.logical_queue_index is None else said.logical_queue_index
        segment = segment_of(said, topic, index)
        if segment.queue.broker_name != broker_name:
            raise RemoteProtocolError("a segment of another broker")
        yield HeldSegment(index, segment, each.successor)


def instance_of(held: HeldSegment | None) -> Instance:
    """The segment as its machine has it."""
    return _ABSENT if held is None else held.instance
