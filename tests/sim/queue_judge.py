"""What must be true of a topic of logical queues in the end: where messages lie, what mappings say, what was
told. What is true of static topics alone comes last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.administrator.rocketmq.mappings import Topic
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.administrator.rocketmq.remapping import checked, is_unfinished
from replispec.broker.rocketmq.node import BrokerNode
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.world import Note
from replispec.wire.rocketmq.constants import UNDECIDED
from tests.sim.queue_clients import QueueHistory
from tests.sim.queue_world import MEMBERS, SETS, TOPIC, Place, Servers

SHOWN_MAX: Final = 5
Logical = dict[tuple[int, int], int]
"""Messages by logical queue and offset."""


@dataclass
class Watch(ABC):
    """Looks at the masters of a world while it runs."""

    servers: Servers
    wrong: list[str] = field(default_factory=list, init=False)
    _terms: dict[str, int] = field(default_factory=dict, init=False)

    def hear(self, name: str, note: Note) -> None:
        """Read a line of the log of a process."""
        if note.what == "master now":
            self._terms[name[:-1]] = max(self._terms.get(name[:-1], 0), int(str(note.values["epoch"])))

    def look(self) -> None:
        """Look now."""
        for name in self.servers.sets:
            for member in self.servers.masters(name):
                node = self.servers.node(member)
                # Who was master before may not have heard yet that it is not any more.
                if node is not None and node._role.master_epoch == self._terms.get(name):
                    self._look_at(name, member, node)

    @abstractmethod
    def _look_at(self, name: str, member: str, node: BrokerNode) -> None:
        """Look at the master of a set."""


class Judgement(ABC):
    """Given what brokers say of the topic, and what the logs hold."""

    def __init__(self, servers: Servers, history: QueueHistory) -> None:
        self._servers = servers
        self._history = history
        self.wrong: list[str] = []
        self._log: dict[Place, int] = dict(servers.deleted)
        for name in servers.sets:
            self._log |= servers.messages(servers.master(name))
        # What was kept for as long as was promised is read by nobody.
        self._deleted = {*servers.deleted.values()}

    def all(self, audited: Sequence[tuple[int, int]]) -> list[str]:
        """Everything that is wrong; `audited`: what was read from the beginning to the end."""
        self.wrong += self._history.faults
        try:
            queues = self._queues()
        except NotAsWantedError as error:
            return [*self.wrong, f"the mappings cannot be: {error}"]
        logical = self._logical(queues)
        self._acknowledged(logical)
        self._read(logical)
        self._audited(logical, audited)
        self._positions(queues, logical)
        self._copies()
        return self.wrong

    @abstractmethod
    def _queues(self) -> Mapping[int, LogicalQueue]:
        """The logical queues. Raises NotAsWantedError for those that cannot be."""

    @abstractmethod
    def _logical(self, queues: Mapping[int, LogicalQueue]) -> Logical:
        """Messages by logical queue and offset: each in one segment, without a gap."""

    @abstractmethod
    def _may_be_told(self, kept: int, told: int | None, queue: LogicalQueue, logical: Logical, /) -> bool:
        """Whether a group may go on there though it said this, because what lies between is deleted."""

    def _acknowledged(self, logical: Logical) -> None:
        """Nothing that was acknowledged is lost, is there twice, or lies elsewhere than was told."""
        places: dict[int, list[tuple[int, int]]] = {}
        for place, number in logical.items():
            places.setdefault(number, []).append(place)
        lost = [number for number in self._history.of_before if number not in {*places} | self._deleted]
        self.wrong += [
            f"message {number} of an old sender is there {len(places[number])} times: {places[number]}"
            for number in sorted(self._history.of_before)
            if len(places.get(number, ())) > 1
        ]
        told: dict[tuple[int, int], int] = {}
        for number, (index, offset) in sorted(self._history.acknowledged.items()):
            found = places.get(number, [])
            if not found and number in self._deleted:
                continue
            if not found:
                lost.append(number)
            elif len(found) > 1:
                self.wrong.append(f"message {number} is there {len(found)} times: {found}")
            elif offset != UNDECIDED and found != [(index, offset)]:
                self.wrong.append(
                    f"message {number} was acknowledged at {index, offset} and lies at {found[0]}"
                )
            elif found[0][0] != index:
                self.wrong.append(f"message {number} was sent to queue {index} and lies at {found[0]}")
            if offset != UNDECIDED and told.setdefault((index, offset), number) != number:
                self.wrong.append(f"{told[index, offset]} and {number} were acknowledged at {index, offset}")
        if lost:
            self.wrong.append(f"{len(lost)} acknowledged messages are lost: {lost[:SHOWN_MAX]}")

    def _read(self, logical: Logical) -> None:
        other = {at: number for at, number in self._history.read.items() if logical.get(at) != number}
        other = {at: number for at, number in other.items() if at in logical or number not in self._deleted}
        if other:
            shown = [(at, number, logical.get(at)) for at, number in sorted(other.items())][:SHOWN_MAX]
            self.wrong.append(f"{len(other)} messages were read that are not there: {shown}")

    def _audited(self, logical: Logical, audited: Sequence[tuple[int, int]]) -> None:
        """Everything is read once."""
        missing = [(place, logical[place]) for place in sorted({*logical} - {*audited})]
        missing = [(place, number) for place, number in missing if number not in self._deleted]
        if missing:
            self.wrong.append(f"{len(missing)} messages are not read: {missing[:SHOWN_MAX]}")
        if len(audited) > len({*audited}):
            self.wrong.append(f"{len(audited) - len({*audited})} messages are read twice")

    def _positions(self, queues: Mapping[int, LogicalQueue], logical: Logical) -> None:
        """How far the group has read is kept over moves and fail-overs, once it had time to be copied."""
        for index, kept in sorted(self._history.kept.items()):
            # What was said last may have been taken, though nobody answered.
            said = {each for each in self._history.committed[index] if each >= kept}
            told = self._history.goes_on.get(index)
            if index not in queues:
                continue
            if told not in said and not self._may_be_told(kept, told, queues[index], logical):
                self.wrong.append(f"the group has read queue {index} up to {kept}, and is told {told}")

    def _copies(self) -> None:
        for name in self._servers.sets:
            start = max(map(self._servers.first, MEMBERS[name]))
            first, second = (self._servers.log(each, start).rstrip(b"\0") for each in MEMBERS[name])
            if first != second:
                self.wrong.append(f"the logs of {name} are not the same")


@dataclass
class StaticWatch(Watch):
    """No mapping that was acknowledged is undone, whoever is master."""

    granted: Mapping[str, int] = field(default_factory=dict)

    def _look_at(self, name: str, member: str, node: BrokerNode) -> None:
        mapped = node._mappings.static.newest(TOPIC)
        epoch = 0 if mapped is None else mapped.detail.epoch or 0
        if self.granted.get(name, 0) > epoch:
            granted = self.granted[name]
            self.wrong.append(f"{member} has the mapping of epoch {epoch}, and {granted} was acknowledged")


class StaticJudgement(Judgement):
    """Of a static topic, of which brokers say this."""

    def __init__(self, servers: Servers, history: QueueHistory, topic: Topic) -> None:
        super().__init__(servers, history)
        self._topic = topic

    def _queues(self) -> Mapping[int, LogicalQueue]:
        chains = checked(self._topic)
        if is_unfinished(self._topic, SETS):
            self.wrong.append("a run is unfinished, and every administrator is done")
        return {index: chain.queue for index, chain in chains.items()}

    def _logical(self, queues: Mapping[int, LogicalQueue]) -> Logical:
        """Messages by logical queue and offset: each in one segment, without a gap, none behind a border."""
        places: dict[tuple[str, int], dict[int, int]] = {}
        for (name, queue_id, offset), number in self._log.items():
            places.setdefault((name, queue_id), {})[offset] = number
        found: Logical = {}
        for index, queue in sorted(queues.items()):
            for segment in queue.segments:
                held = places.pop(segment.queue, {})
                self._contiguous(segment, held)
                border = queue.border_of(segment)
                for offset, number in held.items():
                    at = segment.logical_of(offset)
                    if border != UNDECIDED and at >= border:
                        self.wrong.append(f"message {number} lies at {at} of queue {index}, behind {border}")
                    elif found.setdefault((index, at), number) != number:
                        self.wrong.append(f"{found[index, at]} and {number} lie at {at} of queue {index}")
        for place, held in sorted(places.items()):
            if {*held.values()} <= self._deleted:
                # Its item was dropped when it was empty.
                continue
            self.wrong.append(f"{len(held)} messages in queue {place}, which serves no logical queue")
        return found

    def _contiguous(self, segment: Segment, held: Iterable[int]) -> None:
        offsets = sorted(held)
        if offsets and offsets != list(range(offsets[0], offsets[0] + len(offsets))):
            self.wrong.append(f"the offsets of {segment.queue} have a gap")

    def _may_be_told(self, kept: int, told: int | None, queue: LogicalQueue, _logical: Logical) -> bool:
        return told is None and kept < queue.segments[0].logical_start
