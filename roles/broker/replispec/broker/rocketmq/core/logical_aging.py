"""What becomes of segments that nobody asks about: one whose messages are gone expires, and records are made
again before the log loses them.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, LogicalQueueCleanHook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.recorder import RECORDED_AT_ONCE, MappingLog, Recorder
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment, TopicMapping
from replispec.runtime.primitives.machines import step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import LogicalQueueState
from replispec.wire.rocketmq.machines import logical_queue_segment as machine


class LogicalQueueAging:
    """Of a master; who is none waits until it is."""

    def __init__(
        self, store: MessageStore, mappings: LogicalMappings, recorder: Recorder, master: MappingLog
    ) -> None:
        self._store = store
        self._mappings = mappings
        self._recorder = recorder
        self._master = master
        # The beginning of the log when segments were looked at last.
        self._aged_at = constants.UNDECIDED

    def step_down(self) -> None:
        """Another broker is master: what was recorded here may be cut of its log."""
        self._aged_at = constants.UNDECIDED

    def settle(self, now_ms: int) -> None:
        """As a master, note which segments have no message any more, and record again what the log is about
        to lose."""
        if self._mappings.is_empty or not self._master.serves:
            return
        if not self._mappings.is_safe:
            unsafe = islice(self._mappings.unsafe(), RECORDED_AT_ONCE)
            wanted = ((topic, self._mappings.whole_record_of(found.said)) for topic, found in unsafe)
            self._recorder.record_again(self._mappings, wanted, now_ms)
        if self._store.log.first != self._aged_at and self._age_all(now_ms):
            self._aged_at = self._store.log.first

    def _age_all(self, now_ms: int) -> bool:
        """Whether all segments were looked at, and those that expire recorded: of each topic at once."""
        for topic in self._mappings.topics:
            mapped = self._mappings.newest(topic)
            aged = () if mapped is None else tuple(self._aged(mapped.said))
            if mapped is None or not aged:
                continue
            body = self._mappings.record_of(mapped.said.changed(aged))
            if not self._recorder.record_alone(self._mappings, body, now_ms, partial(self._kept, aged)):
                return False
        return True

    def _aged(self, mapping: TopicMapping) -> Iterator[HeldSegment]:
        """Its segments that have no message any more, as they are from now on."""
        for queue_id, held in sorted(mapping.by_queue.items()):
            event = machine.Aged(self._store.index.bounds(mapping.topic, queue_id).first)
            for each in held:
                taken = step(machine.MACHINE, *each.instance, event, rules)
                if "record_segment" in taken.effects:
                    state = LogicalQueueState[taken.state.name]
                    yield replace(each, segment=replace(each.segment, state=state))

    def _kept(self, aged: Sequence[HeldSegment], reason: str, now_ms: int) -> None:
        """Name servers hear that they are expired, once."""
        kept = (step(machine.MACHINE, *each.instance, machine.ExpiryKept(), rules).effects for each in aged)
        if not reason and any("register" in effects for effects in kept):
            self._master.announce_topics(now_ms)
