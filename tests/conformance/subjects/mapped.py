"""What a name server in a few lines knows of logical queues and static topics; faults override it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from replispec.wire.rocketmq.broker import RegisterBrokerRequest, TopicConfig, TopicConfigTable
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueueSegments,
    LogicalQueuesEnabled,
)
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo

Segments = dict[int, list[LogicalQueueSegment]]
WRITABLE = ("Normal", "WriteOnly")
YEARS_MS = 10**14
WRITE = 2


@dataclass
class Held:
    """What one broker said of one topic."""

    cluster: str
    static: TopicQueueMappingInfo | None = None
    segments: Segments = field(default_factory=dict)
    enabled: LogicalQueuesEnabled | None = None


class Mapped:
    """What brokers registered of mappings, by topic and broker. It does it right."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Held]] = {}

    # What a fault overrides

    def is_taken(self, said: TopicQueueMappingInfo, known: TopicQueueMappingInfo | None, name: str) -> bool:
        """Whether a mapping of a static topic counts."""
        is_newer = known is None or (said.epoch or 0) >= (known.epoch or 0)
        return said.bname == name and is_newer and self.is_of_a_clock(said)

    def is_of_a_clock(self, said: TopicQueueMappingInfo) -> bool:
        """Whether a clock may have shown its epoch."""
        return (said.epoch or 0) < YEARS_MS

    def is_own(self, segment: LogicalQueueSegment, name: str) -> bool:
        """Whether a segment is one of the broker that says it."""
        return queue_of(segment).broker_name == name

    def left(self, _broker: str) -> None:
        """A broker left: what it said stays."""

    def deleted(self, topic: str, cluster: str | None) -> None:
        """A topic is deleted."""
        for broker in [
            each for each, held in self.held.get(topic, {}).items() if cluster in (None, held.cluster)
        ]:
            del self.held[topic][broker]

    def has_hole(self, segments: Sequence[LogicalQueueSegment], gone: Sequence[tuple[int, int]]) -> bool:
        """Whether an offset belongs to no segment, and nobody says that it is gone."""
        reach = 0
        for each in [each for each in segments if start_of(each) >= 0]:
            for begin, end in sorted(gone):
                reach = max(reach, end) if begin <= reach else reach
            if start_of(each) > reach:
                return True
            reach = end_of(each)
        return False

    def is_mapped(self, queues: int, mapped: set[int]) -> bool:
        """Whether all physical queues of a broker belong to logical ones."""
        return set(range(queues)) <= mapped

    def is_told(self, index: int, total: int) -> bool:
        """Whether an index is committed."""
        return index < total

    def merged(self, topic: str) -> Segments:
        """The segments of all brokers, in order."""
        found: Segments = {}
        for held in self.held.get(topic, {}).values():
            for index, segments in held.segments.items():
                found.setdefault(index, []).extend(self.shown(segments))
        return {index: sorted(each, key=self.place) for index, each in found.items()}

    def shown(self, segments: Iterable[LogicalQueueSegment]) -> Iterable[LogicalQueueSegment]:
        """Those that are told."""
        return segments

    def place(self, segment: LogicalQueueSegment) -> tuple[bool, int]:
        """Decided ones first, by where they begin."""
        return start_of(segment) < 0, start_of(segment)

    def kept_enabled(self, held: Held, said: LogicalQueuesEnabled | None) -> LogicalQueuesEnabled | None:
        """That a topic is enabled is not taken back."""
        known = held.enabled
        if said is None or known is None:
            return said or known
        return said if (said.epoch or 0) >= (known.epoch or 0) else known

    # What brokers say, and clients are told

    def take(self, said: RegisterBrokerRequest, table: TopicConfigTable) -> None:
        """The registration of a master, of its own mappings."""
        name, cluster = said.broker_name or "", said.cluster_name or ""
        for topic in table.topic_config_table or {}:
            held = self.held.setdefault(topic, {}).setdefault(name, Held(cluster))
            static = (table.topic_queue_mapping_info_map or {}).get(topic)
            if static is not None:
                self.take_static(held, static, name, topic)
            logical = (table.logical_queues_info_map or {}).get(topic, LogicalQueues({}))
            held.segments = {
                index: [each for each in listed.segments or () if self.is_own(each, name)]
                for index, listed in (logical.queues or {}).items()
            }
            held.enabled = self.kept_enabled(held, (table.logical_queues_enabled_map or {}).get(topic))

    def take_static(self, held: Held, said: TopicQueueMappingInfo, name: str, _topic: str) -> None:
        """A mapping of a static topic."""
        if self.is_taken(said, held.static, name):
            held.static = said

    def static(self, topic: str) -> Mapping[str, TopicQueueMappingInfo] | None:
        """Who leads what of a static topic."""
        every = self.held.get(topic, {})
        return {name: each.static for name, each in every.items() if each.static is not None} or None

    def enabled(self, topic: str) -> LogicalQueuesEnabled | None:
        """What the greatest epoch says."""
        said = [each.enabled for each in self.held.get(topic, {}).values() if each.enabled is not None]
        return max(said, key=lambda each: each.epoch or 0, default=None)

    def gone(self, topic: str, index: int) -> Sequence[tuple[int, int]]:
        """Offsets that somebody says are gone."""
        said = (each.enabled for each in self.held.get(topic, {}).values())
        lists = ((each.gone or {}).get(index) for each in said if each is not None)
        return [(one.begin or 0, one.end or 0) for each in lists if each for one in each.intervals or ()]

    def logical(
        self, topic: str, configs: Mapping[str, TopicConfig]
    ) -> Mapping[int, LogicalQueueSegments] | None:
        """All logical queues of a topic, when they are whole; `configs` by the brokers that are there."""
        merged, enabled = self.merged(topic), self.enabled(topic)
        total = len(merged) if enabled is None else enabled.total or 0
        told = {index: each for index, each in merged.items() if self.is_told(index, total)}
        written = 0 if enabled is None else enabled.queues or 0
        is_whole = (
            total > 0
            and self.has_all(told, total)
            and not any(self.has_hole(each, self.gone(topic, index)) for index, each in told.items())
        )
        is_written = all(any(each.state in WRITABLE for each in told.get(at, ())) for at in range(written))
        if not is_whole or not is_written or not self.all_mapped(merged, configs):
            return None
        return {index: LogicalQueueSegments(list(each)) for index, each in sorted(told.items())}

    def has_all(self, told: Segments, total: int) -> bool:
        """Whether indexes are 0 to N-1."""
        return set(told) == set(range(total))

    def all_mapped(self, merged: Segments, configs: Mapping[str, TopicConfig]) -> bool:
        """Whether every broker's queues that are written are mapped."""
        queues = [queue_of(each) for listed in merged.values() for each in listed]
        return all(
            self.is_mapped(
                (config.write_queue_nums or 0) if (config.perm or 0) & WRITE else 0,
                {each.queue_id or 0 for each in queues if each.broker_name == name},
            )
            for name, config in configs.items()
        )


def queue_of(segment: LogicalQueueSegment) -> MessageQueue:
    """The physical queue of a segment."""
    return segment.message_queue or MessageQueue()


def start_of(segment: LogicalQueueSegment) -> int:
    """Its first logical offset; below 0 where it is not decided."""
    return segment.logical_queue_delta if segment.logical_queue_delta is not None else -1


def end_of(segment: LogicalQueueSegment) -> int:
    """The logical offset behind it; beyond all while it is open."""
    end = -1 if segment.offset_max is None else segment.offset_max
    return 2**63 if end < 0 else end - (segment.offset_delta or 0) + start_of(segment)


def unsealed(segment: LogicalQueueSegment) -> LogicalQueueSegment:
    """A segment without its end."""
    return replace(segment, offset_max=-1)
