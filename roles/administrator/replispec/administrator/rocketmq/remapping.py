"""Which mappings an administrator sets: more logical queues, queues moved to other brokers, and what an
interrupted run left undone. Nothing is asked here.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingUtils; no allocation is left to chance here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replispec.administrator.rocketmq.mappings import (
    BrokerPart,
    Chain,
    Topic,
    fault_of_chains,
    merged,
    overtaken,
)
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import LOGICAL_QUEUES_MAX, RUN_MOVED, RUN_UPDATED


@dataclass(frozen=True, slots=True)
class MappingRun:
    """What is set, by broker, and in which order: who gains, who loses, then all others."""

    kind: str
    topic: Topic
    gains: Sequence[str]
    loses: Sequence[str]

    @property
    def others(self) -> Sequence[str]:
        """Who neither gains nor loses."""
        return [name for name in sorted(self.topic.parts) if name not in {*self.gains, *self.loses}]

    @property
    def chains(self) -> Mapping[int, Chain]:
        """The logical queues as they are going to be."""
        return merged(self.topic.parts.values())


def is_unfinished(topic: Topic, every: Iterable[str] = ()) -> bool:
    """Whether a run that was interrupted left something undone. `every`: the brokers of the clusters."""
    parts = topic.parts.values()
    is_apart = len({(each.epoch, each.total, each.mapped) for each in parts}) > 1
    return bool(topic.mapped) and (is_apart or not {*every} <= topic.parts.keys() or _is_open(topic))


def _is_open(topic: Topic) -> bool:
    try:
        chains, behind = merged(topic.parts.values()), overtaken(topic)
    except NotAsWantedError:
        return True
    return bool(behind) or len(chains) < topic.total or any(map(_takes_from, chains.values()))


def checked(topic: Topic) -> Mapping[int, Chain]:
    """The logical queues of a topic of which nothing is undone. Raises NotAsWantedError."""
    for name, part in sorted(topic.parts.items()):
        if not part.mapped:
            raise NotAsWantedError(f"{topic.name} is no static topic: broker {name} has it without mapping")
        if part.reads < part.writes:
            raise NotAsWantedError(f"Read queues is smaller than write queues at {name}")
    chains = merged(topic.parts.values())
    missing = [index for index in range(topic.total) if index not in chains]
    if missing:
        raise NotAsWantedError(
            f"The total queue number in config does not match the real hosted queues {topic.total} !="
            f" {len(chains)}: nobody that answers knows who leads {missing[0]}"
        )
    fault = fault_of_chains(chains.values()) or _fault_of_places(topic, chains)
    if fault is not None:
        raise NotAsWantedError(f"the mappings of {topic.name} cannot be: {fault}")
    return chains


def _fault_of_places(topic: Topic, chains: Mapping[int, Chain]) -> str | None:
    for index, chain in chains.items():
        for each in chain.queue.segments:
            part = topic.parts.get(each.queue.broker_name)
            if part is None:
                return f"queue {index}: The broker of item does not exist: {each.queue.broker_name}"
            if each.queue.queue_id >= part.writes:
                return f"queue {index}: The physical queue id is overflow the write queues of {part.broker}"
    return None


# ---- more queues ---------------------------------------------------------------------------------


def grown(
    topic: Topic, total: int, targets: Collection[str], every: Iterable[str], now_ms: int
) -> MappingRun:
    """So many logical queues, new ones at the brokers that lead the fewest; a topic that nobody has is made.
    `every`: the brokers of the clusters, all of which are told. Raises NotAsWantedError."""
    chains = checked(topic) if topic.parts else {}
    if not 0 < total <= LOGICAL_QUEUES_MAX:
        raise NotAsWantedError(f"{total} logical queues: 1 to {LOGICAL_QUEUES_MAX} are possible")
    if total < len(chains):
        raise NotAsWantedError(f"Cannot decrease the queue num for static topic {total} < {len(chains)}")
    if total == len(chains):
        raise NotAsWantedError("The topic queue num is equal the existed queue num, do nothing")
    return _begun(topic, chains, total, {*targets, *topic.parts}, every, now_ms)


def _begun(
    topic: Topic,
    chains: Mapping[int, Chain],
    total: int,
    targets: Collection[str],
    every: Iterable[str],
    now_ms: int,
) -> MappingRun:
    """New queues for the indexes below `total` that have none, and starts for those that are undecided."""
    epoch = rules.next_mapping_epoch(topic.epoch, now_ms)
    made = _Making(topic, epoch, total, {*targets, *every})
    gains, loses = set[str](), set[str]()
    for chain in chains.values():
        source = _takes_from(chain)
        if source is not None:
            gains.add(chain.leader)
            loses.add(source)
        made.holds(chain)
    leads = Counter(dict.fromkeys(targets, 0))
    leads.update(each.leader for each in chains.values() if each.leader in leads)
    for index in range(total):
        if index in chains:
            continue
        broker = min(leads, key=lambda name: (leads[name], name))
        leads[broker] += 1
        gains.add(broker)
        segment = Segment(made.queue_at(broker), State.NORMAL, 0)
        made.holds(Chain(LogicalQueue(index, (segment,))))
    return _planned(RUN_UPDATED, made, gains, loses)


def _takes_from(chain: Chain) -> str | None:
    """The broker that led before the last one, if where that one begins is not decided."""
    before = chain.before
    return None if chain.tail.is_decided or before is None else before.queue.broker_name


class _Making:
    """The parts of a topic while a run is planned."""

    def __init__(self, topic: Topic, epoch: int, total: int, every: Collection[str]) -> None:
        self.name = topic.name
        brokers = sorted({*every, *topic.parts})
        known = {name: topic.parts.get(name, BrokerPart(name)) for name in brokers}
        self.parts = {
            name: replace(each, epoch=epoch, total=total, mapped=True) for name, each in known.items()
        }

    def queue_at(self, broker: str) -> PhysicalQueue:
        """One more physical queue of a broker."""
        part = self.parts[broker]
        number = part.writes
        self.parts[broker] = replace(part, reads=max(part.reads, number) + 1, writes=number + 1)
        return PhysicalQueue(broker, number)

    def holds(self, chain: Chain) -> None:
        """Have everybody hold this queue who leads it, led it before, or held it. Who holds older items alone
        of one that moves keeps those as they are, like mqadmin does it: where the move failed, he would be
        left with an item that never came to be. Who was told something else and would refuse this is not
        told: his item comes later."""
        index, items = chain.queue.index, chain.items.items or ()
        last = [each.queue.broker_name for each in chain.queue.segments[-2:]]
        for name, part in self.parts.items():
            known, others = part.chains.get(index), {**part.chains}
            others.pop(index, None)
            if known is not None and not rules.follows_items(known.items.items or (), items):
                self.parts[name] = replace(part, chains=others)
            elif name in last or (known is not None and chain.tail.is_decided):
                self.parts[name] = self._with_room(replace(part, chains={**others, index: chain}), chain)

    def _with_room(self, part: BrokerPart, chain: Chain) -> BrokerPart:
        """With as many physical queues as there are items: two administrators may each have added some."""
        of = [each.queue.queue_id for each in chain.queue.segments if each.queue.broker_name == part.broker]
        count = max([part.writes, *(number + 1 for number in of)])
        return replace(part, reads=max(part.reads, count), writes=count)


def _planned(kind: str, made: _Making, gains: Iterable[str], loses: Iterable[str]) -> MappingRun:
    topic = Topic(made.name, made.parts)
    checked(topic)
    return MappingRun(kind, topic, sorted(gains), sorted(loses))


# ---- queues moved --------------------------------------------------------------------------------


def remapped(topic: Topic, targets: Collection[str], every: Iterable[str], now_ms: int) -> MappingRun:
    """All logical queues led by these brokers, each by as many as the others, with the fewest moved.
    Raises NotAsWantedError."""
    if not topic.parts:
        raise NotAsWantedError("No topic route to do the remapping")
    chains = checked(topic)
    made = _Making(topic, rules.next_mapping_epoch(topic.epoch, now_ms), topic.total, {*targets, *every})
    gains, loses = set[str](), set[str]()
    moves = _moves(chains, targets)
    for index, chain in chains.items():
        broker = moves.get(index)
        if broker is None:
            continue
        gains.add(broker)
        loses.add(chain.leader)
        segment = Segment(made.queue_at(broker), State.WRITE_ONLY)
        made.holds(Chain(chain.queue.handed_on(segment), chain.generation))
    return _planned(RUN_MOVED, made, gains, loses)


def _moves(chains: Mapping[int, Chain], targets: Collection[str]) -> Mapping[int, str]:
    """Where each queue goes that moves. No broker both gains and loses."""
    leads = Counter(each.leader for each in chains.values())
    each_leads, more = divmod(len(chains), len(targets))
    by_load = sorted(targets, key=lambda name: (-leads[name], name))
    quotas = {name: each_leads + (1 if place < more else 0) for place, name in enumerate(by_load)}
    waiting: list[int] = []
    for index, chain in chains.items():
        if quotas.get(chain.leader, 0) > 0:
            quotas[chain.leader] -= 1
        else:
            waiting.append(index)
    places = [name for name in sorted(quotas) for _ in range(quotas[name])]
    return dict(zip(waiting, places, strict=True))


# ---- what was interrupted ------------------------------------------------------------------------


def finished(topic: Topic, every: Iterable[str], now_ms: int, *, force: bool = False) -> MappingRun:
    """The run that does what an interrupted one left undone: undecided starts, brokers that know an older
    mapping, brokers that were overtaken, logical queues that were announced and not yet begun; it may take
    several. Raises NotAsWantedError."""
    chains = merged(topic.parts.values(), force=force)
    if not force:
        chains = {**chains, **_taken_up(topic, chains)}
    missing = [index for index in range(topic.total) if index not in chains]
    lost = sorted(name for name, each in topic.parts.items() if not each.mapped)
    if missing and not force:
        _may_be_made(topic, missing, lost, every)
    return _begun(topic, chains, topic.total, sorted(topic.parts), every, now_ms)


def _taken_up(topic: Topic, chains: Mapping[int, Chain]) -> Mapping[int, Chain]:
    """Queues that move on to a broker that was overtaken: nothing that it took is lost. Of a queue that moves
    already this comes later."""
    return {
        index: replace(chains[index], queue=chains[index].queue.handed_on(behind[0]))
        for index, behind in overtaken(topic).items()
        if _takes_from(chains[index]) is None
    }


def _may_be_made(topic: Topic, missing: Sequence[int], lost: Sequence[str], every: Iterable[str]) -> None:
    """Raises NotAsWantedError where somebody may lead these queues who does not say so."""
    if lost:
        raise NotAsWantedError(
            f"logical queue {missing[0]} is led by nobody, and {lost[0]} has the topic without its mapping:"
            " -mf with the file of the last run sets it again"
        )
    begun = min(
        (topic.parts[name].total if name in topic.parts else 0 for name in {*topic.parts, *every}), default=0
    )
    if min(missing) < begun:
        raise NotAsWantedError(
            f"nobody that answers knows who leads logical queue {min(missing)}: a broker is away"
        )


def from_file(known: Topic, wanted: MappingRun, every: Iterable[str], *, force: bool) -> MappingRun:
    """A run that a file tells. Starts that were decided since stay. Raises NotAsWantedError."""
    newer = sorted(name for name, each in known.mapped.items() if each.epoch > wanted.topic.epoch)
    if newer and not force:
        raise NotAsWantedError(
            f"{newer[0]} has a mapping of epoch {known.parts[newer[0]].epoch}, the file an older one,"
            f" {wanted.topic.epoch}"
        )
    parts = [*known.mapped.values(), *wanted.topic.parts.values()]
    chains = merged(parts, force=force)
    made = _Making(_wider(wanted.topic, known), wanted.topic.epoch, wanted.topic.total, [*every])
    for chain in chains.values():
        made.holds(chain)
    return _planned(wanted.kind, made, wanted.gains, wanted.loses)


def _wider(wanted: Topic, known: Topic) -> Topic:
    """With as many physical queues as brokers have by now."""
    parts = dict(wanted.parts)
    for name, each in known.parts.items():
        told = parts.get(name, replace(each, chains={}))
        parts[name] = replace(told, reads=max(told.reads, each.reads), writes=max(told.writes, each.writes))
    return Topic(wanted.name, parts)
