"""The mappings of static topics, as the commit log has them: the newest record of a topic is its mapping.

Nothing else decides it, so that what is cut of the log never was, and whoever has the log has the mappings.
The file has the form of Apache RocketMQ's and is written after them, for brokers of Apache's; of it only such
topics count of which the log has no record, as those that a master of Apache's told.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.broker.rocketmq.core.table_file import counted, later
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import queues_of_items
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig, TopicQueueMappingTable
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)


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

    @cached_property
    def own_items(self) -> Mapping[int, tuple[LogicalQueue, Segment]]:
        """Its items at this broker, with their logical queues, by physical queue: each serves once."""
        return {
            each.queue.queue_id: (queue, each)
            for queue in self.queues.values()
            for each in queue.segments
            if each.queue.broker_name == self.detail.bname
        }

    @cached_property
    def without_queues(self) -> Mapped:
        """The same for who may not know yet whom its queues belong to."""
        return replace(self, detail=replace(self.detail, hosted_queues={}))

    @property
    def base(self) -> int:
        """Its record has all of it."""
        return self.offset

    @property
    def is_recorded(self) -> bool:
        """Whether the log has it."""
        return self.config is not None


class Mappings(RecordedMappings[Mapped]):
    """What the log says of static topics. Raises StorageFailed when the file is there and cannot be read."""

    def __init__(
        self, outbox: Outbox, writes: Writes, files: FilesReader, store: MessageStore, broker_name: str
    ) -> None:
        self._broker_name = broker_name
        # What was told of each mapping.
        self._told: dict[str, tuple[TopicQueueMappingDetail, TopicQueueMappingInfo]] = {}
        super().__init__(outbox, writes, files, store, constants.MAPPING_QUEUE, constants.MAPPING_FILE)

    # What there is

    def details(self) -> dict[str, TopicQueueMappingDetail]:
        """All that are kept, by topic."""
        found = ((topic, self.kept(topic)) for topic in self.topics)
        return {topic: each.detail for topic, each in found if each is not None}

    def infos(self) -> dict[str, TopicQueueMappingInfo]:
        """What name servers are told of those that are kept: which logical queues are led here."""
        before, self._told = self._told, {}
        for topic, detail in self.details().items():
            known = before.get(topic)
            is_known = known is not None and known[0] is detail
            self._told[topic] = known if is_known and known else (detail, self._info(topic, detail))
        return {topic: info for topic, (_, info) in self._told.items()}

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

    def _mapped(self, body: bytes, offset: int, end: int) -> tuple[str, Mapped]:
        said = TopicConfigAndQueueMapping.decode(body)
        if said.mapping_detail is None and said.topic_name:
            detail = TopicQueueMappingDetail(topic=said.topic_name)
            return said.topic_name, Mapped(offset, end, detail, is_gone=True)
        config = _config_of(said)
        detail = said.mapping_detail or TopicQueueMappingDetail()
        mapped = Mapped(offset, end, detail, config)
        if detail.bname != self._broker_name or not mapped.queues.keys() <= set(range(_total(detail))):
            raise RemoteProtocolError("it is none of this broker set")
        return detail.topic or "", mapped

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
        found, _ = self._file.read(counted(TopicQueueMappingTable.decode), "it is made again of the log")
        table = TopicQueueMappingTable() if found is None else found
        self.version = self._on_disk = (table.data_version or DataVersion()).counter or 0
        for topic, detail in (table.topic_queue_mapping_info_map or {}).items():
            if table.unrecorded is None or topic in table.unrecorded:
                self._put_unrecorded(topic, detail, (table.unrecorded or {}).get(topic, constants.UNDECIDED))

    def _file_bytes(self) -> bytes:
        unrecorded = {topic: each.offset for topic, each in sorted(self._unrecorded.items())}
        return TopicQueueMappingTable(self.data_version, self.details(), unrecorded).encode()


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
