"""What a broker holds of one topic's logical queues: its own segments, who follows those that ended, that the
topic is enabled, and which offsets are gone. It is a value: a change makes another one, and what did not
change is the very same in both.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, LogicalQueuesInfoInBroker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    Enabled,
    LogicalQueue,
    Segment,
    Statement,
    fault_of,
    fault_of_count,
    fault_of_message_queues,
)
from replispec.runtime.rocketmq.queues.telling import (
    Interval,
    fault_of_gone,
    message_of_statement,
    with_gone,
)
from replispec.wire.rocketmq.broker import TopicConfig
from replispec.wire.rocketmq.codes import LogicalQueueState
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, LogicalQueuesEnabled
from replispec.wire.rocketmq.machines import logical_queue_segment as machine

Instance = tuple[machine.State, machine.Variables]
"""A segment as its machine has it."""
Place = tuple[int, int]
"""A message queue, and where a segment begins there: what tells it from others of its broker."""
_TAKING: Final = frozenset(
    state
    for state in machine.State
    for edge in machine.MACHINE.transitions.get((state, machine.Sent), ())[:1]
    if edge.guard is None and edge.do == ("store",)
)
"""States in which a segment takes whatever is sent."""
_ABSENT: Final[Instance] = machine.MACHINE.initial, machine.MACHINE.variables


@dataclass(frozen=True)
class HeldSegment:
    """A segment of this broker, the index of its logical queue, and who follows it."""

    index: int
    segment: Segment
    successor: LogicalQueueSegment | None = None

    @property
    def place(self) -> Place:
        """What tells it from others of this broker."""
        return self.segment.queue.queue_id, self.segment.physical_start

    @cached_property
    def instance(self) -> Instance:
        """As its machine has it: what the log has of it is all that is durable."""
        segment = self.segment
        known = machine.Variables(
            logical_start=segment.logical_start,
            physical_start=segment.physical_start,
            physical_end=segment.physical_end,
            successor=self.successor,
        )
        return machine.State[segment.state.name], known


def instance_of(held: HeldSegment | None) -> Instance:
    """The segment as its machine has it."""
    return _ABSENT if held is None else held.instance


Segments = tuple[HeldSegment, ...]


@dataclass(frozen=True)
class TopicMapping:
    """What this broker holds of one topic. Nothing that it has is ever changed.

    `by_queue` are its segments by message queue, each in the order in which they begin, `by_index` the same
    by logical queue, oldest first.
    """

    broker_name: str
    topic: str
    config: TopicConfig
    enabled: Enabled | None = None
    gone: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)
    by_queue: Mapping[int, Segments] = field(default_factory=dict)
    by_index: Mapping[int, Segments] = field(default_factory=dict)

    @property
    def held(self) -> Iterator[HeldSegment]:
        """All of its segments, by their places."""
        return (each for queue_id in sorted(self.by_queue) for each in self.by_queue[queue_id])

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.by_queue.values()))

    @cached_property
    def taking(self) -> frozenset[str]:
        """The message queues that take whatever is sent, by their numbers as texts."""
        newest = ((queue_id, held[-1].instance[0]) for queue_id, held in self.by_queue.items())
        return frozenset(str(queue_id) for queue_id, state in newest if state in _TAKING)

    def newest_of(self, queue_id: int) -> HeldSegment | None:
        """What a message queue is now."""
        found = self.by_queue.get(queue_id)
        return found[-1] if found else None

    def at(self, queue_id: int, position: int) -> HeldSegment | None:
        """The segment that a message of a message queue belongs to; the first one for those before all."""
        found = self.by_queue.get(queue_id, ())
        if found and found[-1].segment.physical_start <= position:
            return found[-1]
        begun = (each for each in reversed(found) if each.segment.physical_start <= position)
        return next(begun, found[0] if found else None)

    def of_index(self, index: int) -> Iterator[HeldSegment]:
        """Its segments of a logical queue, oldest first."""
        return iter(self.by_index.get(index, ()))

    def writable_of(self, index: int) -> HeldSegment | None:
        """The segment of a logical queue that is written here."""
        return next((each for each in self.of_index(index) if each.segment.is_writable), None)

    def with_segment(self, before: HeldSegment | None, after: HeldSegment | None) -> TopicMapping:
        """With one segment in the place of another one, and of all that are expired of a message queue that
        is taken again; one that is read stays. What nobody lists then is gone."""
        is_same = before is not None and after is not None and after.place == before.place
        over: Segments = () if before is None else (before,)
        if before is not None and after is not None and not is_same:
            of_queue = self.by_queue.get(before.segment.queue.queue_id, ())
            over = tuple(each for each in of_queue if each.segment.state == LogicalQueueState.EXPIRED)
        gone = self.gone
        for each in () if is_same else over:
            segment = each.segment
            if segment.is_decided and segment.is_sealed:
                gone = with_gone(gone, {each.index: ((segment.logical_start, segment.logical_end),)})
        changed = self.changed(() if after is None else (after,), (each.place for each in over))
        return replace(changed, gone=gone)

    def changed(self, now: Iterable[HeldSegment], over: Iterable[Place] = ()) -> TopicMapping:
        """With segments as they are now, each at its place, and without those of other places. What that
        costs grows with the queues that change."""
        put = {each.place: each for each in now}
        places = put.keys() | set(over)
        before = [found for each in places if (found := self._at_place(each)) is not None]
        queues, indexes = dict(self.by_queue), dict(self.by_index)
        for queue_id in {each for each, _ in places}:
            kept = (each for each in queues.get(queue_id, ()) if each.place not in places)
            of_queue = (each for place, each in put.items() if place[0] == queue_id)
            _set(queues, queue_id, sorted((*kept, *of_queue), key=_place))
        for index in {each.index for each in (*before, *put.values())}:
            kept = (each for each in indexes.get(index, ()) if each.place not in places)
            of_index = (each for each in put.values() if each.index == index)
            _set(indexes, index, _in_order(index, (*kept, *of_index)))
        return replace(self, by_queue=queues, by_index=indexes)

    def _at_place(self, place: Place) -> HeldSegment | None:
        of_queue = self.by_queue.get(place[0], ())
        return next((each for each in of_queue if each.segment.physical_start == place[1]), None)

    def logical_queues(self, address: str | None = None) -> Iterator[LogicalQueue]:
        """What it tells, with its address."""
        for index in sorted(self.by_index):
            yield self.logical_queue(index, address)

    def logical_queue(self, index: int, address: str | None = None) -> LogicalQueue:
        """Likewise of one."""
        own = (replace(each.segment, address=address) for each in self.by_index.get(index, ()))
        return LogicalQueue(index, tuple(own))

    @cached_property
    def statement(self) -> LogicalQueuesEnabled | None:
        """That it is enabled, as it is registered; None before."""
        if self.enabled is None:
            return None
        gone = {index: each for index, each in self.gone.items() if index < self.enabled.total}
        return message_of_statement(Statement(self.enabled, gone))

    def fault_since(self, before: TopicMapping | None) -> str | None:
        """What cannot be of it, of all that is another one than before."""
        known = before or TopicMapping(self.broker_name, self.topic, self.config)
        faults = (
            f"queue {index}: {fault}"
            for index in self.by_index
            if self.by_index[index] is not known.by_index.get(index)
            and (fault := fault_of(self.logical_queue(index), LOGICAL_QUEUES))
        )
        of_queues = (
            fault_of_message_queues((each.segment for each in held), LOGICAL_QUEUES)
            for queue_id, held in self.by_queue.items()
            if held is not known.by_queue.get(queue_id)
        )
        fault = next(faults, None) or next(filter(None, of_queues), None)
        return fault or fault_of_count(self.count) or fault_of_gone(self.gone)


def _set(found: dict[int, Segments], key: int, held: Iterable[HeldSegment]) -> None:
    now = tuple(held)
    if now:
        found[key] = now
    else:
        found.pop(key, None)


def _place(each: HeldSegment) -> Place:
    return each.place


def _in_order(index: int, held: Iterable[HeldSegment]) -> Iterator[HeldSegment]:
    by_place = {each.place: each for each in held}
    found = LogicalQueue.of(index, (each.segment for each in by_place.values()))
    return (by_place[each.queue.queue_id, each.physical_start] for each in found.segments)
