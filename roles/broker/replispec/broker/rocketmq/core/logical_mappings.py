"""What a broker holds of logical queues, as the commit log has it: a record of all that it holds of a topic,
and behind that one of each change, which has what changed alone.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, TopicConfigManager, LogicalQueuesInfoInBroker.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.broker.rocketmq.core.table_file import counted
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment, TopicMapping
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.queues import Statement
from replispec.runtime.rocketmq.queues.forms import message_of, message_of_queues, segment_of
from replispec.runtime.rocketmq.queues.telling import (
    gone_of,
    message_of_gone,
    message_of_statement,
    statement_of,
)
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Outbox, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    DataVersion,
    HeldLogicalQueueSegment,
    LogicalQueueChange,
    LogicalQueueMapping,
    LogicalQueueMappingTable,
    LogicalQueuePlace,
    TopicConfig,
)
from replispec.wire.rocketmq.logical_queue import LogicalQueues, LogicalQueueSegment, LogicalQueuesEnabled


@dataclass(frozen=True)
class LogicallyMapped:
    """A mapping of logical queues, where its record lies in the log, and where that of all of it does, of
    which the `number`-th change after it is this one. `checksum`: of the record's body."""

    offset: int
    end: int
    said: TopicMapping
    base: int
    checksum: int
    number: int = 0
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
        # The last record that was made here, which is read again as soon as it is in the log, and which one
        # it follows.
        self._made: tuple[bytes, TopicMapping, LogicallyMapped | None] | None = None
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
            elif mapping.count:
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

    # Records

    def record_of(self, mapping: TopicMapping) -> bytes:
        """A mapping that is to follow the newest one, as the log is to have it. Raises RemoteProtocolError
        for one that cannot be."""
        last = self._newest(mapping.topic)
        before = None if last is None or last.is_gone else last.said
        fault = mapping.fault_since(before)
        if fault is not None:
            raise RemoteProtocolError(fault)
        # Who copies no more of the log than its last file is to read what changed since that began.
        if last is None or before is None or last.base < self._store.log.last_file:
            return self.whole_record_of(mapping)
        body = _change(before, mapping, last).encode()
        self._made = body, mapping, last
        return body

    def whole_record_of(self, mapping: TopicMapping) -> bytes:
        """All of a mapping, as the log is to have it."""
        body = _whole(mapping).encode()
        self._made = body, mapping, None
        return body

    def _mapped(self, body: bytes, offset: int, end: int) -> tuple[str, LogicallyMapped] | None:
        checksum = zlib.crc32(body)
        if self._made is not None and self._made[0] == body:
            _, mapping, last = self._made
            if last is None:
                return mapping.topic, LogicallyMapped(offset, end, mapping, offset, checksum)
            if last is self._newest(mapping.topic):
                number = last.number + 1
                return mapping.topic, LogicallyMapped(offset, end, mapping, last.base, checksum, number)
        said = LogicalQueueMapping.decode(body)
        topic, change = said.topic or "", said.change
        if (said if change is None else change).broker_name != self._broker_name:
            raise RemoteProtocolError("it is none of this broker set")
        if change is not None:
            last = self._newest(topic)
            # The log of who copies it from the middle on may begin with changes; all of it comes behind them.
            if last is None:
                return None
            mapping = _changed(last, said, change)
            return topic, LogicallyMapped(offset, end, mapping, last.base, checksum, last.number + 1)
        if said.topic_config is None and topic:
            gone = TopicMapping(self._broker_name, topic, TopicConfig())
            return topic, LogicallyMapped(offset, end, gone, offset, checksum, is_gone=True)
        mapping = mapping_of(said)
        fault = mapping.fault_since(None)
        if fault is not None:
            raise RemoteProtocolError(fault)
        return topic, LogicallyMapped(offset, end, mapping, offset, checksum)

    def _read_file(self) -> None:
        found, _ = self._file.read(counted(LogicalQueueMappingTable.decode), "it is made again of the log")
        if found is not None:
            self.version = self._on_disk = (found.data_version or DataVersion()).counter or 0

    def _file_bytes(self) -> bytes:
        mappings = {topic: _whole(each) for topic, each in self._kept_all()}
        return LogicalQueueMappingTable(self.data_version, mappings).encode()


def _whole(mapping: TopicMapping) -> LogicalQueueMapping:
    enabled = None if mapping.enabled is None else message_of_statement(Statement(mapping.enabled))
    return LogicalQueueMapping(
        mapping.broker_name,
        None,
        enabled,
        message_of_gone(mapping.gone),
        _messages_of(mapping.topic, mapping.held),
        mapping.topic,
        mapping.config,
    )


def _change(before: TopicMapping, after: TopicMapping, last: LogicallyMapped) -> LogicalQueueMapping:
    """What is another one than in the record before."""
    queues = [
        queue_id
        for queue_id in sorted(before.by_queue.keys() | after.by_queue.keys())
        if before.by_queue.get(queue_id) is not after.by_queue.get(queue_id)
    ]
    was = {each.place: each for queue_id in queues for each in before.by_queue.get(queue_id, ())}
    now = {each.place: each for queue_id in queues for each in after.by_queue.get(queue_id, ())}
    over = [LogicalQueuePlace(start, queue_id) for queue_id, start in was if (queue_id, start) not in now]
    segments = [each for place, each in now.items() if each != was.get(place)]
    enabled = after.enabled if after.enabled != before.enabled else None
    gone = {index: each for index, each in after.gone.items() if each != before.gone.get(index)}
    return LogicalQueueMapping(
        None,
        LogicalQueueChange(after.broker_name, last.checksum, last.number + 1, over or None),
        None if enabled is None else message_of_statement(Statement(enabled)),
        message_of_gone(gone),
        _messages_of(after.topic, segments),
        after.topic,
        after.config if after.config != before.config else None,
    )


def _changed(last: LogicallyMapped, said: LogicalQueueMapping, change: LogicalQueueChange) -> TopicMapping:
    """A mapping with what a record says of it. Raises RemoteProtocolError for one that was made of another
    mapping, and for what cannot be."""
    if last.is_gone or (change.follows, change.number) != (last.checksum, last.number + 1):
        raise RemoteProtocolError(f"it does not follow the record at {last.offset}")
    before = last.said
    over = [(each.queue_id or 0, each.offset_delta or 0) for each in change.over or ()]
    mapping = before.changed(_held_of(said.segments or (), before.topic, before.broker_name), over)
    mapping = replace(
        mapping,
        config=said.topic_config or before.config,
        enabled=before.enabled if said.enabled is None else statement_of(said.enabled).enabled,
        gone={**before.gone, **gone_of(said.gone)},
    )
    fault = mapping.fault_since(before)
    if fault is not None:
        raise RemoteProtocolError(fault)
    return mapping


def mapping_of(said: LogicalQueueMapping) -> TopicMapping:
    """All of a mapping. Raises RemoteProtocolError."""
    topic, broker_name = said.topic or "", said.broker_name or ""
    if said.topic_config is None:
        raise RemoteProtocolError("a mapping without its topic")
    enabled = None if said.enabled is None else statement_of(said.enabled).enabled
    held = [*_held_of(said.segments or (), topic, broker_name)]
    mapping = TopicMapping(broker_name, topic, said.topic_config, enabled, gone_of(said.gone)).changed(held)
    if mapping.count != len(held):
        raise RemoteProtocolError("two segments at one place")
    return mapping


def _messages_of(topic: str, held: Iterable[HeldSegment]) -> list[HeldLogicalQueueSegment]:
    return [
        HeldLogicalQueueSegment(message_of(each.segment, topic, each.index), each.successor) for each in held
    ]


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
