"""What the brokers of a cluster hold of one static topic: as they say it, put together, and as files say it.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingUtils, TopicRemappingDetailWrapper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues import STATIC_TOPICS, LogicalQueue, Segment, fault_of_topic
from replispec.runtime.rocketmq.queues.forms import items_of, queues_of_items
from replispec.wire.rocketmq.codes import Permission
from replispec.wire.rocketmq.constants import (
    LOGICAL_QUEUES_MAX,
    MAPPING_SCOPE,
    RUN_UPDATED,
    SINGLE_TAG,
    UNDECIDED,
)
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    TopicRemappingDetailWrapper,
)

PERM = int(Permission.READ | Permission.WRITE)


@dataclass(frozen=True, slots=True)
class Chain:
    """A logical queue, and the generation of its first segment."""

    queue: LogicalQueue
    generation: int = 0

    @property
    def leader(self) -> str:
        """The broker of its last segment."""
        return self.tail.queue.broker_name

    @property
    def tail(self) -> Segment:
        """The segment that takes messages."""
        return self.queue.segments[-1]

    @property
    def before(self) -> Segment | None:
        """The segment before that one."""
        return self.queue.segments[-2] if len(self.queue.segments) > 1 else None

    @property
    def items(self) -> LogicQueueItems:
        """As brokers are told."""
        return items_of(self.queue, self.generation)

    def by_generation(self) -> Mapping[int, Segment]:
        """Its segments."""
        return dict(enumerate(self.queue.segments, self.generation))


@dataclass(frozen=True, slots=True)
class BrokerPart:
    """What one broker holds of a topic; `mapped`: it has a mapping of it, be it an empty one."""

    broker: str
    reads: int = 0
    writes: int = 0
    perm: int = PERM
    epoch: int = UNDECIDED
    total: int = 0
    chains: Mapping[int, Chain] = field(default_factory=dict)
    mapped: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """What all brokers hold of a static topic, by broker."""

    name: str
    parts: Mapping[str, BrokerPart] = field(default_factory=dict)

    @property
    def mapped(self) -> Mapping[str, BrokerPart]:
        """The brokers that have a mapping."""
        return {name: each for name, each in self.parts.items() if each.mapped}

    @property
    def epoch(self) -> int:
        """The greatest epoch."""
        return max((each.epoch for each in self.parts.values()), default=UNDECIDED)

    @property
    def total(self) -> int:
        """How many logical queues some broker knows of."""
        return max((each.total for each in self.parts.values()), default=0)


def older_at(topic: Topic, broker: str) -> int:
    """How many older items of its logical queues are at a broker, by the word of those that lead them: an
    item goes once it has no message any more."""
    led: dict[int, Chain] = {}
    for part in sorted(topic.parts.values(), key=lambda each: each.epoch):
        led |= {index: chain for index, chain in part.chains.items() if chain.leader == part.broker}
    items = (each for chain in led.values() for each in chain.queue.segments[:-1])
    return sum(each.queue.broker_name == broker for each in items)


# ---- read ----------------------------------------------------------------------------------------


def part_of(broker: str, topic: str, said: TopicConfigAndQueueMapping) -> BrokerPart:
    """What a broker says that it holds. Raises NotAsWantedError for what cannot be."""
    found = BrokerPart(
        broker,
        said.read_queue_nums or 0,
        said.write_queue_nums or 0,
        PERM if said.perm is None else said.perm,
        mapped=False,
    )
    detail = said.mapping_detail
    if said.topic_name != topic:
        raise NotAsWantedError("The topic name is not match for broker  " + broker)
    if detail is None:
        return found
    if detail.bname != broker:
        raise NotAsWantedError(f"The broker name is not equal {broker} != {detail.bname}")
    if detail.dirty:
        raise NotAsWantedError("The mapping info is dirty in broker  " + broker)
    try:
        queues = queues_of_items(detail, topic)
    except RemoteProtocolError as error:
        raise NotAsWantedError(f"what {broker} holds of {topic} cannot be: {error}") from error
    total = detail.total_queues or 0
    if any(index >= total for index in queues):
        raise NotAsWantedError(f"what {broker} holds of {topic} cannot be: more than {total} logical queues")
    hosted = detail.hosted_queues or {}
    chains = {index: Chain(queue, _generation(hosted[index])) for index, queue in queues.items()}
    return replace(found, epoch=detail.epoch or 0, total=total, chains=chains, mapped=True)


def _generation(items: LogicQueueItems) -> int:
    return (items.items or [])[0].gen or 0


def merged(parts: Iterable[BrokerPart], *, force: bool = False) -> Mapping[int, Chain]:
    """The logical queues of which anybody knows, each from its oldest segment that is known to its newest.

    Brokers may know different parts of a queue, as after a run that was interrupted. Two administrators may
    each have had a broker lead, undecided: the one counts that the broker before them was told of; see
    `overtaken`. Where they contradict one another otherwise, the greatest epoch counts with `force`. Raises
    NotAsWantedError.
    """
    said: dict[int, list[_Said]] = {}
    for part in sorted(parts, key=lambda each: (each.epoch, each.broker)):
        for index, chain in part.chains.items():
            said.setdefault(index, []).append(_Said(part.broker, chain.by_generation()))
    joined = _newest if force else _agreed
    return {index: _chain(index, joined(index, said[index])) for index in sorted(said)}


def overtaken(topic: Topic) -> Mapping[int, Sequence[Segment]]:
    """By logical queue: items that their brokers were to lead, and another broker leads instead. They may
    have messages, and come behind the newest item. Raises NotAsWantedError."""
    found: dict[int, list[Segment]] = {}
    for index, chain in merged(topic.parts.values()).items():
        known = {each.key for each in chain.queue.segments}
        for name, part in sorted(topic.parts.items()):
            tail = part.chains[index].tail if index in part.chains else None
            if tail is not None and not tail.is_decided and tail.queue.broker_name == name:
                found.setdefault(index, []).extend([tail] if tail.key not in known else ())
    return {index: each for index, each in found.items() if each}


class _Said(NamedTuple):
    """What a broker says of a logical queue."""

    broker: str
    segments: Mapping[int, Segment]


def _newest(_index: int, said: Sequence[_Said]) -> Mapping[int, Segment]:
    """What the greatest epoch says, and what else is known."""
    known: dict[int, Segment] = {}
    for each in said:
        known = _joined(known, each.segments)
    return known


def _agreed(index: int, said: Sequence[_Said]) -> Mapping[int, Segment]:
    """What all say that were not overtaken. Raises NotAsWantedError."""
    known: dict[int, Segment] = {}
    for generation in sorted({number for each in said for number in each.segments}):
        here = [each for each in said if generation in each.segments]
        if not here:
            continue
        chosen = _chosen(index, generation, here, known.get(generation - 1))
        said = [each for each in said if each.segments.get(generation, chosen).key == chosen.key]
        known[generation] = chosen
    return known


def _chosen(index: int, generation: int, said: Sequence[_Said], before: Segment | None) -> Segment:
    """The item of a generation. Raises NotAsWantedError."""
    decided = [each for each in said if each.segments[generation].is_decided]
    leader = "" if before is None else before.queue.broker_name
    of_leader = [each for each in said if each.broker == leader]
    chosen = (decided or of_leader or said)[-1].segments[generation]
    for each in said:
        other = each.segments[generation]
        is_overtaken = not other.is_decided and generation == max(each.segments)
        is_other = other.key != chosen.key
        if (other.is_decided and other.logical_start != chosen.logical_start) or is_other > is_overtaken:
            raise NotAsWantedError(
                f"logical queue {index}: {each.broker} says another broker or queue than others do;"
                " -fr true takes the mapping of the greatest epoch"
            )
    return chosen


def _joined(known: Mapping[int, Segment], said: Mapping[int, Segment]) -> dict[int, Segment]:
    joined = {**known, **said}
    for each in known.keys() & said.keys():
        if known[each].key == said[each].key and known[each].is_decided and not said[each].is_decided:
            joined[each] = known[each]
    return joined


def _chain(index: int, segments: Mapping[int, Segment]) -> Chain:
    """From the newest back, as far as no generation is missing."""
    newest = max(segments)
    first = newest
    while first - 1 in segments:
        first -= 1
    listed = [segments[each] for each in range(first, newest + 1)]
    queue = LogicalQueue(index, (listed[0],))
    for each in listed[1:]:
        queue = queue.handed_on(each)
    return Chain(queue, first)


def fault_of_chains(chains: Iterable[Chain]) -> str | None:
    """What is wrong with the logical queues of a topic."""
    return fault_of_topic([each.queue for each in chains], STATIC_TOPICS)


# ---- written -------------------------------------------------------------------------------------


def config_of(topic: str, part: BrokerPart) -> TopicConfigAndQueueMapping:
    """A broker's part as its file, and the file of a run, have it."""
    detail = TopicQueueMappingDetail(
        bname=part.broker,
        curr_id_map={},
        dirty=False,
        epoch=part.epoch,
        hosted_queues={index: each.items for index, each in sorted(part.chains.items())},
        scope=MAPPING_SCOPE,
        topic=topic,
        total_queues=part.total,
    )
    return TopicConfigAndQueueMapping(
        attributes={},
        mapping_detail=detail if part.mapped else None,
        order=False,
        perm=part.perm,
        read_queue_nums=part.reads,
        topic_filter_type=SINGLE_TAG,
        topic_name=topic,
        topic_sys_flag=0,
        write_queue_nums=part.writes,
    )


def file_of(
    topic: Topic, epoch: int, kind: str, gains: Sequence[str] = (), loses: Sequence[str] = ()
) -> bytes:
    """The file of a run: the mappings of all brokers, and who gains and who loses by it."""
    return TopicRemappingDetailWrapper(
        broker_config_map={name: config_of(topic.name, topic.parts[name]) for name in sorted(topic.parts)},
        broker_to_map_in=list(gains),
        broker_to_map_out=list(loses),
        epoch=epoch,
        topic=topic.name,
        type=kind,
    ).encode()


def read_file(data: bytes, topic: str) -> tuple[str, Topic, Sequence[str], Sequence[str]]:
    """What kind of run a file tells, what it sets, who gains and who loses. Raises NotAsWantedError."""
    try:
        said = TopicRemappingDetailWrapper.decode(data)
    except RemoteProtocolError as error:
        raise NotAsWantedError(f"no mapping data: {error}") from error
    told = said.broker_config_map or {}
    if not told or len(told) > LOGICAL_QUEUES_MAX:
        raise NotAsWantedError("no mapping data: it names no broker, or too many")
    parts = {name: part_of(name, topic, each) for name, each in told.items()}
    unmapped = sorted(name for name, each in parts.items() if not each.mapped)
    if unmapped:
        raise NotAsWantedError(f"Mapping info should not be null in broker {unmapped[0]}")
    gains, loses = said.broker_to_map_in or (), said.broker_to_map_out or ()
    strangers = sorted({*gains, *loses} - parts.keys())
    if strangers:
        raise NotAsWantedError(f"no mapping data: {strangers[0]} gains or loses, and nothing is set there")
    return said.type or RUN_UPDATED, Topic(topic, parts), list(gains), list(loses)
