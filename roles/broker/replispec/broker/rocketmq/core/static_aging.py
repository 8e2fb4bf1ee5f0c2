"""Oldest items of static topics that have no message any more: dropped, and no group loses its place.

A group whose place is in such an item alone reads on where the next one begins, and is said to do so there.
Only when no group is left of which that has to be said, at two looks one after the other, does the item go:
what was said at the first is on the disk by the second.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingCleanService, which drops it at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from replispec.broker.rocketmq.core.mappings import Mapped, Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import MappingLog, Recorder
from replispec.broker.rocketmq.core.static_topics import StaticTopics, recorded_mapping
from replispec.runtime.primitives.machines import step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client import Failed, holders
from replispec.runtime.rocketmq.client.holders import HeldItem
from replispec.runtime.rocketmq.client.steps import Steps
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.rocketmq.queues.model import SegmentKey
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from replispec.wire.rocketmq.machines import static_topic_queue as machine
from replispec.wire.rocketmq.static_topic import LogicQueueItems

ITEMS_AT_ONCE: Final = 64
"""Items that are looked at because of one look; the others with the next ones."""
Key = tuple[str, int]
"""The topic and the index of a logical queue."""


class StaticTopicAging:
    """Of a master; who is none waits until it is."""

    def __init__(
        self,
        outbox: Outbox,
        static: StaticTopics,
        mappings: Mappings,
        offsets: ConsumerOffsets,
        pulls: Pulls,
        peers: Peers,
        recorder: Recorder,
        master: MappingLog,
    ) -> None:
        self._outbox = outbox
        self._static = static
        self._mappings = mappings
        self._offsets = offsets
        self._pulls = pulls
        self._peers = peers
        self._recorder = recorder
        self._master = master
        self._look_ms: int | None = None
        self._now_ms = 0
        self._last: Key = ("", 0)
        # Oldest items that had no message when they were looked at last: no place is kept in them any more.
        self._over: dict[Key, SegmentKey] = {}

    def step_down(self) -> None:
        """Another broker is master."""
        self._look_ms = None
        self._over.clear()

    def settle(self, now_ms: int) -> None:
        """As a master with static topics, look once in a while."""
        if self._look_ms is None and self._master.serves and not self._mappings.is_empty:
            self._look_ms = now_ms + constants.EMPTY_ITEMS_MS

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._look_ms

    def ticked(self, now_ms: int) -> None:
        """Look, when it is time."""
        if self._look_ms is None or now_ms < self._look_ms:
            return
        self._look_ms, self._now_ms = now_ms + constants.EMPTY_ITEMS_MS, now_ms
        found = sorted(self._droppable(), key=lambda each: (each[0] <= self._last, each[0]))
        there = {key for key, _, _ in found}
        self._over = {key: each for key, each in self._over.items() if key in there}
        for key, mapped, queue in found[:ITEMS_AT_ONCE]:
            self._last = key
            then = partial(self._looked, key, mapped, queue.segments[0])
            self._peers.ask(queue.segments[0].queue.broker_name, self._look(key[0], queue), then, now_ms)

    def place_of(self, topic: str, queue: LogicalQueue, offset: int) -> Segment:
        """The segment in which it is kept that a group reads on at an offset."""
        found = queue.locate(offset) or queue.segments[0]
        is_over = self._over.get((topic, queue.index)) == found.key
        return queue.segments[1] if is_over and found is queue.segments[0] else found

    def _droppable(self) -> Iterator[tuple[Key, Mapped, LogicalQueue]]:
        """Logical queues whose oldest item may be dropped, once it is empty."""
        for topic in self._mappings.topics:
            mapped = self._mappings.kept(topic)
            if mapped is None or mapped is not self._mappings.newest(topic):
                continue
            for index, queue in sorted(mapped.queues.items()):
                instance = self._static.instance(mapped, index)
                if "record_dropped" in step(machine.MACHINE, *instance, machine.Emptied(), rules).effects:
                    yield (topic, index), mapped, queue

    # One look at one item

    def _look(self, topic: str, queue: LogicalQueue) -> Steps[bool | None]:
        """Whether nothing keeps the oldest item any more; None where it has messages. Raises Failed."""
        oldest, *newer = (each for each in queue.segments if each.is_decided)
        if not (yield from self._is_empty(_item(topic, oldest))):
            return None
        is_free = True
        for group in (yield from self._groups_in(_item(topic, oldest))):
            if not (yield from self._is_further(group, topic, newer)):
                is_free = False
                yield from self._carry(group, _item(topic, newer[0]), newer[0].physical_start)
        return is_free

    def _is_empty(self, item: HeldItem) -> Steps[bool]:
        if self._is_here(item):
            first, end = self._pulls.bounds_of(item.topic, item.queue_id)
            return first >= end
        return (yield from holders.is_item_empty(item))

    def _groups_in(self, item: HeldItem) -> Steps[Sequence[str]]:
        """The groups that said how far they have read an item."""
        if self._is_here(item):
            return holders.groups_of(self._offsets.table(), item)
        return (yield from holders.groups_in_item(item))

    def _is_further(self, group: str, topic: str, newer: Sequence[Segment]) -> Steps[bool]:
        for each in reversed(newer):
            item = _item(topic, each)
            if self._is_here(item):
                found = self._offsets.place(group, topic, item.queue_id)
            else:
                asked = QueryConsumerOffsetRequest(consumer_group=group, topic=topic)
                found = yield from holders.position_in_item(item, asked)
            if found is not None:
                return True
        return False

    def _carry(self, group: str, item: HeldItem, position: int) -> Steps[None]:
        """The group reads on where an item begins."""
        if self._is_here(item):
            of = group, item.topic, item.queue_id
            self._offsets.put(of, position, "", self._now_ms)
            return
        asked = UpdateConsumerOffsetRequest(consumer_group=group, topic=item.topic)
        yield from holders.commit_in_item(item, asked, position)

    def _is_here(self, item: HeldItem) -> bool:
        return item.broker == self._static.broker_name

    # What it came to

    def _looked(self, key: Key, mapped: Mapped, oldest: Segment, result: Any, now_ms: int) -> None:
        if isinstance(result, Failed) or result is None or not self._master.serves:
            self._over.pop(key, None)
            return
        was_over = self._over.get(key) == oldest.key
        self._over[key] = oldest.key
        if was_over and result and mapped is self._mappings.newest(key[0]):
            self._drop(key, mapped, oldest, now_ms)

    def _drop(self, key: Key, mapped: Mapped, oldest: Segment, now_ms: int) -> None:
        topic, index = key
        config = mapped.config
        instance = self._static.instance(mapped, index)
        taken = step(machine.MACHINE, *instance, machine.Emptied(), rules)
        if config is None or "record_dropped" not in taken.effects:
            return
        hosted = {**(mapped.detail.hosted_queues or {}), index: LogicQueueItems(list(taken.variables.items))}
        body = recorded_mapping(config, replace(mapped.detail, hosted_queues=hosted))

        def kept(reason: str, _now_ms: int) -> None:
            if not reason:
                self._outbox.note(
                    Level.INFO,
                    "an item without messages was dropped",
                    topic=topic[:40],
                    logical_queue=index,
                    broker=oldest.queue.broker_name[:40],
                    queue=oldest.queue.queue_id,
                )

        self._recorder.record_alone(self._mappings, body, now_ms, kept)


def _item(topic: str, segment: Segment) -> HeldItem:
    return HeldItem(topic, *segment.queue)
