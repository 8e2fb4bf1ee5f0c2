"""What brokers registered of logical queues and static topics, by topic and broker.

A broker speaks for itself alone. What it said stays when it is heard no more, until it says otherwise, an
administrator has the topic forgotten, or room is needed: silence says nothing of what a broker holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from replispec.runtime.rocketmq.queues import Holding, merged
from replispec.runtime.rocketmq.queues.profiles import LOGICAL_QUEUES
from replispec.runtime.rocketmq.queues.telling import (
    Enabled,
    HeardQueues,
    Interval,
    Statement,
    without_gone,
)
from replispec.runtime.rocketmq.remoting import Shares
from replispec.wire.rocketmq.constants import UNDECIDED
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo

NO_ROOM: Final = "no room for what is registered of it"
Version = tuple[int, int]
"""The stateVersion and the counter of what a broker registers."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a registration says of mappings, and of which topics it says anything at all.

    `faults`: what of it could not be read, by topic; `unread`: those of them that it says are enabled.
    `foreign`: topics with segments of other brokers, which are left out.
    """

    version: Version = (0, 0)
    topics: Collection[str] = ()
    logical: Mapping[str, Holding] = field(default_factory=dict)
    stated: Mapping[str, Statement] = field(default_factory=dict)
    static: Mapping[str, TopicQueueMappingInfo] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    unread: Collection[str] = ()
    foreign: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    """What one broker said of one topic. `version`: as of which it said so; None once it was lost.
    `led_as_of`: the same of what it leads."""

    cluster: str
    version: Version | None = None
    led_as_of: Version | None = None
    logical: Holding | None = None
    enabled: Enabled | None = None
    gone: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)
    static: TopicQueueMappingInfo | None = None

    def weight(self) -> int:
        """How much room it takes."""
        segments = sum(map(len, self.logical.segments.values())) if self.logical else 0
        led = len(self.static.curr_id_map or ()) if self.static else 0
        return 1 + segments + sum(map(len, self.gone.values())) + led

    @property
    def is_lost(self) -> bool:
        """Whether it is not heard any more."""
        return self.version is None

    @property
    def counts(self) -> bool:
        """Whether a topic is enabled because it says so: who is heard, and who holds some of it. Of a
        stranger that left nothing stays."""
        return not self.is_lost or (self.logical is not None and bool(self.logical.segments))

    @property
    def told(self) -> tuple[object, ...]:
        """What of it clients may be told, or not be told because of it."""
        return self.logical, self.enabled, self.gone, self.static, self.is_lost

    def is_newer(self, version: Version) -> bool:
        """Whether who says something of this version knew less."""
        return self.version is not None and self.version > version

    def with_logical(self, said: Said, topic: str) -> _Kept:
        """After the master said which segments it has. That it is enabled is not taken back."""
        stated = said.stated.get(topic)
        known = [] if self.enabled is None else [self.enabled]
        if stated is not None:
            known.append(stated.enabled)
        if self.is_newer(said.version):
            return replace(self, enabled=max(known, default=None))
        gone = stated.gone if stated is not None else {}
        return replace(
            self,
            version=said.version,
            logical=said.logical.get(topic),
            enabled=max(known, default=None),
            gone=gone,
        )

    def with_enabled(self, stated: Statement) -> _Kept:
        """After a replica said that the topic is enabled. It is not taken back."""
        known = [stated.enabled] if self.enabled is None else [self.enabled, stated.enabled]
        return replace(self, enabled=max(known))

    def with_static(self, said: TopicQueueMappingInfo, version: Version) -> _Kept:
        """After it said which queues it leads: the greatest epoch counts, then the newest version."""
        known = UNDECIDED - 1 if self.static is None else _epoch(self.static)
        is_newer = self.led_as_of is not None and self.led_as_of > version
        if _epoch(said) < known or (_epoch(said) == known and is_newer):
            return self
        return replace(self, static=said, led_as_of=version)


class ToldMappings:
    """The table. `room` bounds the segments in it."""

    def __init__(self, room: int) -> None:
        self._topics: dict[str, dict[str, _Kept]] = {}
        self._brokers: dict[str, set[str]] = {}
        # As of which version the master of each set that is heard said anything of a topic, segments or none.
        self._said_as_of: dict[str, dict[str, Version]] = {}
        # Topics that a broker which is heard says are enabled, of which that could not be taken, or kept.
        self._untaken: dict[str, set[str]] = {}
        self.changed: Collection[str] = ()
        """Of which topics the last registration changed what is told."""
        self.displaced: Mapping[str, Collection[str]] = {}
        """The topics that it had forgotten for want of room, by their brokers."""
        # Brokers that said something, by the host that registered the first of it.
        self._shares = Shares[str](room)

    def take(
        self,
        who: tuple[str, str],
        host: str,
        said: Said,
        held: Collection[str],
        *,
        is_master: bool,
    ) -> Mapping[str, str]:
        """Take what a broker of a cluster said of topics that its set holds; told is what was not, and why.

        Segments are those of the master alone: a replica that stands in may not know yet what is sealed.
        """
        broker = who[1]
        faults = {**dict.fromkeys(said.foreign, "segments of other brokers"), **said.faults}
        self.changed = changed = set[str]()
        self.displaced = {}
        as_of = self._said_as_of.get(broker, {})
        for topic in sorted(self._concerned(broker, said, held)):
            if topic in said.faults:
                continue
            before = self._topics.get(topic, {}).get(broker)
            after = before or _Kept(who[0])
            if after.is_lost:
                after = replace(after, version=as_of.get(topic))
            if is_master and topic in said.topics:
                after = after.with_logical(said, topic)
            elif topic in said.stated:
                # Which segments there are it may know late; that there are any keeps the plain route away.
                after = after.with_enabled(said.stated[topic])
            if topic in said.static:
                after = after.with_static(said.static[topic], said.version)
            if before is None or after.told != before.told:
                changed.add(topic)
            if after != before and not self._put(who, host, topic, before, after):
                faults[topic] = NO_ROOM
        changed |= self._note_untaken(broker, said, held, faults)
        if is_master:
            self._note_version(broker, said, held)
        return faults

    def _note_untaken(
        self, broker: str, said: Said, held: Collection[str], faults: Mapping[str, str]
    ) -> set[str]:
        """Which topics are enabled, though nothing of them was taken; of which that is another now."""
        before = self._untaken.get(broker, set())
        unkept = (each for each in said.stated if faults.get(each) == NO_ROOM)
        untaken = {each for each in (*said.unread, *unkept) if each in held}
        after = {each for each in before if each not in said.topics} | untaken
        if after:
            self._untaken[broker] = after
        else:
            self._untaken.pop(broker, None)
        return before ^ after

    def _note_version(self, broker: str, said: Said, held: Collection[str]) -> None:
        """What it says of the same topics as of an older version is late, also where it has no segments."""
        topics = {each: said.version for each in said.topics if each in held and each not in said.faults}
        known = self._said_as_of.setdefault(broker, {})
        known |= {each: max(version, known.get(each, version)) for each, version in topics.items()}

    def _concerned(self, broker: str, said: Said, held: Collection[str]) -> set[str]:
        """The topics of which something may change: one that comes without segments has none."""
        new = said.logical.keys() | said.stated.keys() | said.static.keys()
        few, many = sorted((said.topics, self.of(broker)), key=len)
        return {each for each in new if each in held}.union(each for each in few if each in many)

    def of(self, broker: str) -> Collection[str]:
        """The topics of which a broker said anything."""
        return self._brokers.get(broker, frozenset())

    def saying(self, topic: str) -> Collection[str]:
        """The brokers that said anything of a topic."""
        return self._topics.get(topic, {}).keys()

    def lost(self, broker: str) -> None:
        """The master of a set is not heard any more: whoever is it next is believed."""
        self._said_as_of.pop(broker, None)
        self._untaken.pop(broker, None)
        for topic in self._brokers.get(broker, ()):
            kept = self._topics[topic]
            kept[broker] = replace(kept[broker], version=None, led_as_of=None)

    def forget(self, topic: str, clusters: Collection[str] | None = None) -> None:
        """Forget what brokers, or those of some clusters, said of a topic."""
        for broker, kept in list(self._topics.get(topic, {}).items()):
            if clusters is None or kept.cluster in clusters:
                self._drop(topic, broker)
        for untaken in self._untaken.values():
            untaken.discard(topic)

    def static(self, topic: str) -> dict[str, TopicQueueMappingInfo] | None:
        """What each broker leads of a static topic; None of another."""
        found = {
            broker: kept.static
            for broker, kept in sorted(self._topics.get(topic, {}).items())
            if kept.static is not None
        }
        return found or None

    def stating(self, topic: str) -> Collection[str]:
        """The brokers that say that a topic is one of logical queues."""
        return {broker for broker, each in self._topics.get(topic, {}).items() if each.enabled is not None}

    def is_led(self, topic: str) -> bool:
        """Whether any broker leads a queue of a static topic."""
        return any(each.static and each.static.curr_id_map for each in self._topics.get(topic, {}).values())

    def heard(self, topic: str) -> HeardQueues:
        """The logical queues of a topic, merged. What a broker that is lost said of messages that are gone by
        the word of another one is not repeated."""
        every = self._topics.get(topic, {}).values()
        logical = [each for each in every if each.logical is not None]
        holdings = {each.logical.broker_name: each.logical for each in logical if each.logical is not None}
        lost = {each.logical.broker_name for each in logical if each.logical and each.version is None}
        gone = _together(each.gone for each in every)
        stated = [each.enabled for each in every if each.enabled is not None]
        counting = [each.enabled for each in every if each.enabled is not None and each.counts]
        return HeardQueues(
            {
                index: without_gone(queue, lost, gone.get(index, ()))
                for index, queue in merged(holdings, LOGICAL_QUEUES).items()
            },
            # Where nobody else says it, a topic of logical queues stays one.
            max(counting or stated, default=None),
            gone,
            sorted(broker for broker, topics in self._untaken.items() if topic in topics),
            lost,
        )

    def size(self) -> int:
        """How much room is taken."""
        return self._shares.held

    def _put(self, who: tuple[str, str], host: str, topic: str, before: _Kept | None, after: _Kept) -> bool:
        """Keep it, if there is room, and make room where another host has most."""
        broker = who[1]
        if _is_nothing(after):
            if before is not None:
                self._drop(topic, broker)
            return True
        more = after.weight() - (before.weight() if before is not None else 0)
        while more > 0 and self._shares.held + more > self._shares.room:
            going = self._shares.giving_way(host)
            if going is None or going == broker:
                return False
            gone = list(self._brokers[going])
            self.displaced = {**self.displaced, going: gone}
            if going in self._said_as_of:
                enabled = {each for each in gone if self._topics[each][going].enabled is not None}
                self._untaken.setdefault(going, set()).update(enabled)
            for each in gone:
                self._drop(each, going)
        if broker in self._shares:
            self._shares.grow(broker, more)
        else:
            self._shares.take(host, broker, weight=more)
        self._topics.setdefault(topic, {})[broker] = after
        self._brokers.setdefault(broker, set()).add(topic)
        return True

    def _drop(self, topic: str, broker: str) -> None:
        kept = self._topics[topic]
        weight = kept.pop(broker).weight()
        if not kept:
            del self._topics[topic]
        topics = self._brokers[broker]
        topics.discard(topic)
        if topics:
            self._shares.grow(broker, -weight)
        else:
            del self._brokers[broker]
            self._shares.drop(broker)


def _is_nothing(kept: _Kept) -> bool:
    return kept.logical is None and kept.static is None and kept.enabled is None and not kept.gone


def _epoch(said: TopicQueueMappingInfo) -> int:
    return UNDECIDED if said.epoch is None else said.epoch


def _together(every: Iterable[Mapping[int, tuple[Interval, ...]]]) -> dict[int, list[Interval]]:
    found: dict[int, list[Interval]] = {}
    for gone in every:
        for index, intervals in gone.items():
            found.setdefault(index, []).extend(intervals)
    return found
