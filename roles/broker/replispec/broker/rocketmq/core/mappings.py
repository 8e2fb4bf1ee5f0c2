"""The mappings of static topics, as the commit log has them: the newest record of a topic is its mapping.

Nothing else decides it, so that what is cut of the log never was, and whoever has the log has the mappings.
The file has the form of Apache RocketMQ's and is written after them, for brokers of Apache's; of it only such
topics count of which the log has no record, as those that a master of Apache's told.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from replispec.broker.rocketmq.core.table_file import TableFile, later
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore, Queue
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues.forms import queues_of_items
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig, TopicQueueMappingTable
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)
from replispec.wire.rocketmq.store import LogRecord


@dataclass(frozen=True)
class Mapped:
    """A mapping, and where its record lies in the log; one that no record holds came when the log ended at
    `offset`, and has no end."""

    offset: int
    end: int
    detail: TopicQueueMappingDetail
    config: TopicConfig | None = None
    is_gone: bool = False
    """The record says that the topic was deleted."""

    @cached_property
    def queues(self) -> Mapping[int, LogicalQueue]:
        """Its logical queues by index."""
        return queues_of_items(self.detail, self.detail.topic or "")

    @property
    def is_recorded(self) -> bool:
        """Whether the log has it."""
        return self.config is not None


class Mappings:
    """What the log says of static topics. Raises StorageFailed when the file is there and cannot be read.

    `newest` is what was recorded last, `kept` what cannot be undone any more.
    """

    def __init__(
        self, outbox: Outbox, writes: Writes, files: FilesReader, store: MessageStore, broker_name: str
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._store = store
        self._broker_name = broker_name
        # Of each topic the last record that is kept, and those after it.
        self._records: dict[str, list[Mapped]] = {}
        self._unrecorded: dict[str, Mapped] = {}
        self._position = 0
        self._cuts = store.index.cuts
        self._kept_to = 0
        # Where the first record ends that is not kept, and the last one that is there.
        self._open_end: int | None = None
        self._last_end = 0
        self.version = 0
        """Counts what changed of the mappings that are kept."""
        self._on_disk = self._asked = 0
        self._is_writing = False
        self._file = TableFile(files, constants.MAPPING_FILE)
        self._read_file()
        self._wanted_from = 0
        # Where the log ended when this process began.
        self._began_at = store.log.end

    # What there is

    def newest(self, topic: str) -> Mapped | None:
        """The mapping that was recorded last."""
        found = self._newest(topic)
        return None if found is None or found.is_gone else found

    def kept(self, topic: str) -> Mapped | None:
        """The mapping that cannot be undone any more."""
        found = self._kept(topic)
        return None if found is None or found.is_gone else found

    def forgotten(self, topics: Iterable[str]) -> list[str]:
        """Those of topics that were deleted since this process began."""
        found = ((topic, self._kept(topic)) for topic in sorted(topics))
        return [topic for topic, each in found if each and each.is_gone and each.offset >= self._began_at]

    def lives(self, topic: str, queue: Queue) -> bool:
        """Whether a queue has a message that is younger than the deletion of its topic."""
        found = self._newest(topic)
        last = queue.stored(queue.end - 1)
        return found is None or not found.is_gone or (last is not None and last.offset > found.offset)

    def _newest(self, topic: str) -> Mapped | None:
        records, other = self._records.get(topic), self._unrecorded.get(topic)
        last = records[-1] if records else None
        return other if last is None or (other is not None and other.offset > last.offset) else last

    def _kept(self, topic: str) -> Mapped | None:
        records, other = self._records.get(topic), self._unrecorded.get(topic)
        first = records[0] if records and records[0].end <= self._kept_to else None
        return other if first is None or (other is not None and other.offset > first.offset) else first

    @property
    def is_empty(self) -> bool:
        """Whether there is no static topic."""
        return not self._records and not self._unrecorded

    @property
    def topics(self) -> Iterator[str]:
        """The names of static topics, ascending."""
        return iter(sorted(self._records.keys() | self._unrecorded.keys()))

    def details(self) -> dict[str, TopicQueueMappingDetail]:
        """All that are kept, by topic."""
        found = ((topic, self.kept(topic)) for topic in self.topics)
        return {topic: each.detail for topic, each in found if each is not None}

    def infos(self) -> dict[str, TopicQueueMappingInfo]:
        """What name servers are told of those that are kept: which logical queues are led here."""
        return {topic: self._info(topic, each) for topic, each in self.details().items()}

    def configs(self) -> dict[str, TopicConfig]:
        """The topics of those that are kept and recorded."""
        found = ((topic, self.kept(topic)) for topic in self.topics)
        return {topic: each.config for topic, each in found if each is not None and each.config is not None}

    def config(self, topic: str) -> TopicConfig | None:
        """The topic of the mapping that was recorded last; None for one that no record holds."""
        found = self.newest(topic)
        return None if found is None else found.config

    @property
    def data_version(self) -> DataVersion:
        """The version of all that are kept."""
        return DataVersion(self.version, 0, 0)

    def _info(self, topic: str, detail: TopicQueueMappingDetail) -> TopicQueueMappingInfo:
        own, led = self._broker_name, dict[int, int]()
        for index in detail.hosted_queues or {}:
            items = rules.items_of_queue(detail, index)
            if rules.leader_of(items) == own:
                led[index] = rules.own_queue(items, own) or 0
        return TopicQueueMappingInfo(
            bname=own,
            curr_id_map=led,
            dirty=False,
            epoch=detail.epoch,
            scope=detail.scope,
            topic=topic,
            total_queues=detail.total_queues,
        )

    # What the log says

    def follow(self, kept_to: int) -> frozenset[str]:
        """Take what came to the log or was cut, and that it is kept up to an offset; returns the topics of
        which another mapping is kept."""
        if not self._has_changed(kept_to):
            return frozenset()
        before = {topic: self._kept(topic) for topic in self._touched()}
        self.catch_up()
        self._kept_to = kept_to
        for topic in self._touched():
            before.setdefault(topic, None)
            self._drop_older(topic)
        ends = [each.end for records in self._records.values() for each in records]
        self._open_end = min((end for end in ends if end > kept_to), default=None)
        self._last_end = max(ends, default=0)
        changed = frozenset(topic for topic, was in before.items() if self._kept(topic) != was)
        if changed:
            self.version = later(self.version)
            self._write()
        return changed

    def _has_changed(self, kept_to: int) -> bool:
        index = self._store.index
        queue = index.queues.get((constants.MAPPING_TOPIC, constants.MAPPING_QUEUE))
        grew = queue is not None and queue.end > self._position
        has_more = self._open_end is not None and self._open_end <= kept_to
        has_less = kept_to < self._kept_to and kept_to < self._last_end
        return grew or index.cuts != self._cuts or has_more or has_less

    def _touched(self) -> list[str]:
        return list(self._records.keys() | self._unrecorded.keys())

    def catch_up(self) -> None:
        """Take what came to the log."""
        index = self._store.index
        if index.cuts != self._cuts:
            self._cuts = index.cuts
            self._records.clear()
            self._position = 0
        queue = index.queues.get((constants.MAPPING_TOPIC, constants.MAPPING_QUEUE))
        if queue is None:
            return
        self._position = max(self._position, queue.first)
        while (entry := queue.stored(self._position)) is not None:
            self._position += 1
            data = self._store.log.read(entry.offset, entry.size)
            if data is not None:
                self._take(data, entry.offset, entry.offset + entry.size)

    def _take(self, data: bytes, offset: int, end: int) -> None:
        try:
            said = TopicConfigAndQueueMapping.decode(LogRecord.decode(data).body)
            if said.mapping_detail is None and said.topic_name:
                detail = TopicQueueMappingDetail(topic=said.topic_name)
                self._add(Mapped(offset, end, detail, is_gone=True))
                return
            config = _config_of(said)
            detail = said.mapping_detail or TopicQueueMappingDetail()
            mapped = Mapped(offset, end, detail, config)
            if detail.bname != self._broker_name or not mapped.queues.keys() <= set(range(_total(detail))):
                raise RemoteProtocolError("it is none of this broker set")
        except RemoteProtocolError as error:
            self._outbox.note(
                Level.WARNING, "a record of a mapping cannot be read", offset=offset, reason=str(error)
            )
            return
        self._add(mapped)

    def _add(self, mapped: Mapped) -> None:
        self._records.setdefault(mapped.detail.topic or "", []).append(mapped)
        self._last_end = max(self._last_end, mapped.end)
        if self._open_end is None and mapped.end > self._kept_to:
            self._open_end = mapped.end

    def _drop_older(self, topic: str) -> None:
        records = self._records.get(topic, [])
        kept = [number for number, each in enumerate(records) if each.end <= self._kept_to]
        if kept:
            del records[: kept[-1]]
            other = self._unrecorded.get(topic)
            if other is not None and other.offset <= records[0].offset:
                del self._unrecorded[topic]

    # So that the log has them as long as it goes on

    def hold(self, end: int) -> int:
        """The log is to begin at an offset: up to where it may be deleted before mappings are recorded again,
        which `unsafe` names then."""
        oldest = min((each[0].offset for each in self._records.values() if not each[0].is_gone), default=end)
        if oldest < end:
            self._wanted_from = max(self._wanted_from, end)
        return min(oldest, end)

    def unsafe(self) -> Iterator[tuple[str, Mapped]]:
        """Topics that a master has to record: no record holds them, or theirs is about to be deleted."""
        if not self._unrecorded and not self._wanted_from:
            return
        is_safe = True
        for topic in self.topics:
            found = self.newest(topic)
            if found is not None and (not found.is_recorded or found.offset < self._wanted_from):
                is_safe = False
                yield topic, found
        if is_safe:
            self._wanted_from = 0

    # What a master of Apache's says

    def adopt(self, details: Mapping[str, TopicQueueMappingDetail]) -> None:
        """Take over what a master tells of topics, as far as it is newer than what is known."""
        changed = False
        for topic, detail in details.items():
            known = self.newest(topic)
            is_newer = known is None or (detail.epoch or 0) > (known.detail.epoch or 0)
            if is_newer and self._put_unrecorded(topic, detail, self._store.log.end):
                changed = True
        if changed:
            self.version = later(self.version)
            self._write()

    def _put_unrecorded(self, topic: str, detail: TopicQueueMappingDetail, offset: int) -> bool:
        fault = _fault(topic, detail, self._broker_name)
        if fault is not None:
            self._outbox.note(Level.WARNING, "a mapping is passed over", topic=topic[:40], reason=fault)
            return False
        self._unrecorded[topic] = Mapped(offset, constants.OFFSET_MAX, detail)
        return True

    # The file

    def _read_file(self) -> None:
        found, _ = self._file.read(TopicQueueMappingTable.decode, "it is made again of the log")
        table = TopicQueueMappingTable() if found is None else found
        self.version = self._on_disk = (table.data_version or DataVersion()).counter or 0
        for topic, detail in (table.topic_queue_mapping_info_map or {}).items():
            if table.unrecorded is None or topic in table.unrecorded:
                self._put_unrecorded(topic, detail, (table.unrecorded or {}).get(topic, constants.UNDECIDED))

    def _write(self) -> None:
        if self._is_writing or self.version == self._on_disk:
            return
        self._is_writing = True
        self._asked = self.version
        unrecorded = {topic: each.offset for topic, each in sorted(self._unrecorded.items())}
        table = TopicQueueMappingTable(self.data_version, self.details(), unrecorded)
        self._writes.persist(*self._file.whole(table.encode()), then=self._written)

    def _written(self, event: Written) -> None:
        self._is_writing = False
        if isinstance(event, Persisted):
            self._file.is_written()
            self._on_disk = self._asked
            self._write()
        else:
            # The log has them: the next change is written with this one.
            self._outbox.note(Level.ERROR, "the file of mappings cannot be written", reason=event.reason)


def _total(detail: TopicQueueMappingDetail) -> int:
    return detail.total_queues or 0


def _config_of(said: TopicConfigAndQueueMapping) -> TopicConfig:
    return TopicConfig(
        attributes=said.attributes,
        order=said.order,
        perm=said.perm,
        read_queue_nums=said.read_queue_nums,
        topic_filter_type=said.topic_filter_type,
        topic_name=said.topic_name,
        topic_sys_flag=said.topic_sys_flag,
        write_queue_nums=said.write_queue_nums,
    )


def _fault(topic: str, detail: TopicQueueMappingDetail, broker_name: str) -> str | None:
    """Why a mapping is not one of this broker, of this topic."""
    if detail.bname != broker_name:
        return f"it is of the broker {(detail.bname or '')[:40]}"
    try:
        queues_of_items(detail, topic)
    except RemoteProtocolError as error:
        return str(error)
    return None
