"""What becomes of segments that nobody asks about: one whose messages are gone expires, and records are made
again before the log loses them.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, LogicalQueueCleanHook.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from replispec.broker.rocketmq.core.logical_mappings import (
    HeldSegment,
    LogicalMappings,
    TopicMapping,
    instance_of,
)
from replispec.broker.rocketmq.core.recorder import RECORDED_AT_ONCE, MappingLog, Recorder
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
            wanted = ((topic, found.said.encoded().encode()) for topic, found in unsafe)
            self._recorder.record_again(self._mappings, wanted, now_ms)
        if self._store.log.first != self._aged_at and self._age_all(now_ms):
            self._aged_at = self._store.log.first

    def _age_all(self, now_ms: int) -> bool:
        """Whether all segments were looked at."""
        for topic in self._mappings.topics:
            mapped = self._mappings.newest(topic)
            for held in () if mapped is None else mapped.said.held:
                newest = self._mappings.newest(topic)
                if newest is not None and not self._age(newest.said, held, now_ms):
                    return False
        return True

    def _age(self, mapping: TopicMapping, held: HeldSegment, now_ms: int) -> bool:
        queue_id = held.segment.queue.queue_id
        event = machine.Aged(self._store.index.bounds(mapping.topic, queue_id).first)
        state, known = instance_of(held)
        taken = step(machine.MACHINE, state, known, event, rules)
        if "record_segment" not in taken.effects:
            return True
        after = replace(held, segment=replace(held.segment, state=LogicalQueueState[taken.state.name]))
        body = mapping.with_segment(held, after).encoded().encode()

        def kept(reason: str, at_ms: int) -> None:
            if (
                not reason
                and "register"
                in step(machine.MACHINE, taken.state, taken.variables, machine.ExpiryKept(), rules).effects
            ):
                self._master.announce_topics(at_ms)

        return self._recorder.record_alone(self._mappings, body, now_ms, kept)
