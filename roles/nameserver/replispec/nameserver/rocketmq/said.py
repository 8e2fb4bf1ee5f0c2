"""What a registration says of logical queues and static topics, read into the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from replispec.nameserver.rocketmq.mappings import Said
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues import Holding
from replispec.runtime.rocketmq.queues.forms import holding_of, queues_of
from replispec.runtime.rocketmq.queues.model import Segment
from replispec.runtime.rocketmq.queues.telling import Statement, statement_of
from replispec.wire.rocketmq.broker import TopicConfigTable
from replispec.wire.rocketmq.logical_queue import LogicalQueues, LogicalQueuesEnabled
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo

SaidT = TypeVar("SaidT")
ReadT = TypeVar("ReadT")


def said_of(table: TopicConfigTable, broker: str, address: str, now_ms: int) -> Said:
    """What a broker at an address says of its own queues. Of a topic that cannot be read nothing is taken."""
    faults: dict[str, str] = {}
    foreign: set[str] = set()

    def read(every: Mapping[str, SaidT] | None, reads: Callable[[SaidT, str], ReadT]) -> dict[str, ReadT]:
        found = {}
        for topic, said in (every or {}).items():
            try:
                found[topic] = reads(said, topic)
            except RemoteProtocolError as error:
                faults[topic] = str(error)
        return found

    def logical(said: LogicalQueues, topic: str) -> Holding:
        queues = queues_of(said.queues or {}, topic).values()
        own = {queue.index: tuple(_own(queue.segments, broker, address)) for queue in queues}
        if sum(map(len, own.values())) < sum(len(each.segments) for each in queues):
            foreign.add(topic)
        return Holding(broker, {index: segments for index, segments in own.items() if segments})

    def stated(said: LogicalQueuesEnabled, _topic: str) -> Statement:
        statement = statement_of(said)
        _credible(statement.enabled.epoch, now_ms)
        return statement

    def static(said: TopicQueueMappingInfo, topic: str) -> TopicQueueMappingInfo:
        holding = holding_of(said, topic)
        if holding.broker_name != broker:
            raise RemoteProtocolError(f"a mapping of {holding.broker_name[:40]}")
        _credible(holding.epoch, now_ms)
        return said

    version = table.mapping_data_version or table.data_version
    return Said(
        (version.state_version or 0, version.counter or 0) if version is not None else (0, 0),
        (table.topic_config_table or {}).keys(),
        read(table.logical_queues_info_map, logical),
        read(table.logical_queues_enabled_map, stated),
        read(table.topic_queue_mapping_info_map, static),
        faults,
        [each for each in table.logical_queues_enabled_map or () if each in faults],
        foreign,
    )


def _own(segments: Iterable[Segment], broker: str, address: str) -> Iterable[Segment]:
    """Those of the broker itself, with its address where it did not say one."""
    for each in segments:
        if len(each.address or "") > TEXT_MAX:
            raise RemoteProtocolError("an address that is none")
        if each.queue.broker_name == broker:
            yield each if each.address else replace(each, address=address)


def _credible(epoch: int, now_ms: int) -> None:
    if not rules.is_epoch_credible(epoch, now_ms):
        raise RemoteProtocolError(f"the epoch {epoch} is far ahead of the clock")
