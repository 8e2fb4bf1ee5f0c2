"""What must be true of logical queues of RIP-21, while a world runs and in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from replispec.administrator.rocketmq.logical_queues import lack
from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment, TopicMapping
from replispec.broker.rocketmq.node import BrokerNode
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import segment_of
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import UNDECIDED
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment
from tests.sim.queue_clients import QueueHistory
from tests.sim.queue_judge import Judgement, Logical, Watch
from tests.sim.queue_world import NAME_SERVER, SECOND, TOPIC, Place, Servers

Key = tuple[str, int, int]
"""A set, a message queue of it, and where a segment begins there."""


def held_by(servers: Servers, name: str, member: str = "") -> Sequence[HeldSegment]:
    """What a set holds, by the word of its master, or of this member."""
    node = servers.node(member or servers.master(name))
    mapped = None if node is None else node._mappings.logical.kept(TOPIC)
    return () if mapped is None else tuple(mapped.said.held)


def told_by(servers: Servers, name_server: str, name: str) -> set[tuple[int, Segment]]:
    """What a name server has of a set, by index."""
    (node,) = servers.world.processes[name_server].nodes
    assert isinstance(node, NameServerNode)
    return {
        (index, replace(each, address=None))
        for index, queue in node._routes._mappings.heard(TOPIC).queues.items()
        for each in queue.segments
        if each.queue.broker_name == name
    }


@dataclass
class LogicalWatch(Watch):
    """What a broker has acknowledged of a segment, its start or its end, stays, whoever is master; and of
    each logical queue at most one segment gives offsets to messages that come."""

    _granted: dict[Key, Segment] = field(default_factory=dict, init=False)
    _mappings: dict[str, TopicMapping] = field(default_factory=dict, init=False)

    def grant(self, said: LogicalQueueSegment) -> None:
        """A broker has answered this of a segment."""
        index = UNDECIDED if said.logical_queue_index is None else said.logical_queue_index
        segment = segment_of(said, TOPIC, index)
        key = (*segment.queue, segment.physical_start)
        before = self._granted.get(key, segment)
        self._same(key, before, segment, "was answered, then")
        if segment.is_sealed or not before.is_sealed:
            self._granted[key] = segment

    def look(self) -> None:
        """Look now. What a set without a master held before says nothing of what it holds."""
        self._mappings.clear()
        super().look()
        normal: dict[int, list[Segment]] = {}
        for name, mapping in self._mappings.items():
            for held in mapping.held if name not in self.servers.overtaken else ():
                if held.segment.state == State.NORMAL:
                    normal.setdefault(held.index, []).append(held.segment)
        for index, segments in normal.items():
            if len(segments) > 1:
                brokers = ", ".join(f"{each.queue}" for each in segments)
                self._says(f"logical queue {index} is Normal at {brokers}")

    def _look_at(self, name: str, member: str, node: BrokerNode) -> None:
        mapped = node._mappings.logical.newest(TOPIC)
        if mapped is None:
            return
        self._mappings[name] = mapped.said
        for key, granted in self._granted.items():
            if key[0] != name:
                continue
            held = mapped.said.newest_of(key[1])
            if held is None or held.place < key[1:]:
                self._says(f"{member} has forgotten segment {key}, which was acknowledged")
            elif held.place == key[1:]:
                self._same(key, granted, held.segment, f"was acknowledged, and {member} says")

    def _same(self, key: Key, before: Segment, after: Segment, how: str) -> None:
        ends = before.physical_end, after.physical_end
        starts = before.logical_start, after.logical_start
        if before.is_sealed and ends[0] != ends[1]:
            self._says(f"segment {key}: the end {ends[0]} {how} {ends[1]}")
        if before.is_decided and starts[0] != starts[1]:
            self._says(f"segment {key}: the start {starts[0]} {how} {starts[1]}")

    def _says(self, fault: str) -> None:
        if fault not in self.wrong:
            self.wrong.append(fault)


class LogicalJudgement(Judgement):
    """Of logical queues, of which brokers say this. `read_as_before`: what was read of message queues by who
    knows nothing else."""

    def __init__(
        self,
        servers: Servers,
        history: QueueHistory,
        found: LogicalTopic,
        read_as_before: Mapping[Place, int],
    ) -> None:
        super().__init__(servers, history)
        self._found = found
        self._read_as_before = read_as_before

    def _queues(self) -> Mapping[int, LogicalQueue]:
        found = self._found
        queues = found.checked()
        missing = lack(found)
        if missing is not None:
            self.wrong.append(f"logical queues cannot be told: {missing}")
        for index, queue in queues.items():
            self._finished(index, queue)
        self._registered()
        self._physically_read()
        return queues

    def _finished(self, index: int, queue: LogicalQueue) -> None:
        """One segment is written, the last one, and everything is decided."""
        stated = self._found.stated
        written = [each for each in queue.segments if each.is_writable]
        wanted = int(stated is not None and index < stated.enabled.queues)
        if len(written) != wanted or (written and written[0] is not queue.segments[-1]):
            self.wrong.append(f"{len(written)} segments of queue {index} are written: {queue.segments}")
        if not all(each.is_decided for each in queue.segments):
            self.wrong.append(f"a migration of queue {index} is unfinished: {queue.segments}")

    def _registered(self) -> None:
        """Name servers have of each broker what it holds."""
        for name_server in (NAME_SERVER, SECOND):
            if name_server not in self._servers.names:
                continue
            for name in self._servers.sets:
                told = told_by(self._servers, name_server, name)
                held = {(each.index, each.segment) for each in held_by(self._servers, name)}
                if told != held:
                    self.wrong.append(f"{name_server} tells of {name} {told}, which holds {held}")

    def _physically_read(self) -> None:
        """Who knows no logical queues reads what lies in message queues."""
        for place, number in sorted(self._read_as_before.items()):
            if self._log.get(place, number if number in self._deleted else None) != number:
                self.wrong.append(f"{place} was read as {number}, and holds {self._log.get(place)}")

    def _logical(self, queues: Mapping[int, LogicalQueue]) -> Logical:
        """Messages by logical queue and offset: each in one segment, without a gap from the first that was
        not deleted up to its end."""
        places: dict[tuple[str, int], dict[int, int]] = {}
        for (name, queue_id, offset), number in self._log.items():
            places.setdefault((name, queue_id), {})[offset] = number
        found: Logical = {}
        for index, queue in sorted(queues.items()):
            for segment in queue.segments:
                for offset, number in self._held(index, segment, places.get(segment.queue, {})).items():
                    at = segment.logical_of(offset)
                    if found.setdefault((index, at), number) != number:
                        self.wrong.append(f"{found[index, at]} and {number} lie at {at} of queue {index}")
        known = {*found.values()}
        for place, held in sorted(places.items()):
            other = {*held.values()} - known - self._deleted
            if other:
                self.wrong.append(
                    f"{len(other)} messages in {place} are of no logical queue: {sorted(other)[:5]}"
                )
        return found

    def _held(self, index: int, segment: Segment, held: Mapping[int, int]) -> dict[int, int]:
        """The messages of one segment."""
        end = segment.physical_end
        found = {
            offset: number
            for offset, number in sorted(held.items())
            if segment.physical_start <= offset and (not segment.is_sealed or offset < end)
        }
        offsets = [*found]
        behind = offsets[-1] + 1 if offsets else segment.physical_start
        last = end if segment.is_sealed else behind
        if segment.queue.broker_name in self._servers.passed:
            # It ends where those went on that passed it over.
            last = min(last, behind)
        if offsets != list(range(segment.physical_start, last)):
            self.wrong.append(
                f"queue {index}, {segment}: {len(offsets)} messages lie there, up to {offsets[-1:]}"
            )
        return found

    def _may_be_told(self, kept: int, told: int | None, queue: LogicalQueue, logical: Logical) -> bool:
        """A position is kept where the message queue is; before that goes it is carried over what is gone.
        Without one a group may begin at the end: it skips everything."""
        if told is None:
            return not any(
                index == queue.index and number not in self._deleted for (index, _), number in logical.items()
            )
        between = range(min(told, kept), max(told, kept))
        live = (logical.get((queue.index, at)) for at in between)
        return all(number is None or number in self._deleted for number in live)
