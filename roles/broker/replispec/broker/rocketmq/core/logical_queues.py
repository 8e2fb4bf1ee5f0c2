"""Logical queues as administrators set them: every segment is an instance of the machine
`logical_queue_segment`, every topic one of `logical_queue_topic`. What they take is one record of the commit
log, answered when the SyncStateSet has it; what is answered without a record waits for those it rests on.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, AdminBrokerProcessor, of which the defects are not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from replispec.broker.rocketmq.core.hints import Hints
from replispec.broker.rocketmq.core.left_queues import LeftQueues
from replispec.broker.rocketmq.core.logical_asked import AskedOfQueues, asked_of, segments_max
from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import Handler, MappingLog, Recorder
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment, Instance, TopicMapping, instance_of
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.queues import Enabled, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of, message_of_queues, segment_of
from replispec.runtime.rocketmq.queues.telling import with_gone
from replispec.runtime.rocketmq.remoting.answering import give
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import LogicalQueueState, RequestCode
from replispec.wire.rocketmq.logical_queue import LogicalQueues, LogicalQueueSegment
from replispec.wire.rocketmq.machines import logical_queue_segment as machine
from replispec.wire.rocketmq.machines import logical_queue_segment_wire as wire
from replispec.wire.rocketmq.machines import logical_queue_topic as topic_machine
from replispec.wire.rocketmq.machines import logical_queue_topic_wire as topic_wire
from replispec.wire.rocketmq.options import BrokerOptions

_KEPT: Final[dict[int, type[Any]]] = {
    RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING: machine.MappingKept,
    RequestCode.SEAL_TOPIC_LOGICAL_QUEUE: machine.SegmentKept,
    RequestCode.REUSE_TOPIC_LOGICAL_QUEUE: machine.SegmentKept,
    RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE: machine.SegmentKept,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE: machine.SuccessorKept,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT: machine.StartKept,
}
"""The event that the record of a request is kept."""


@dataclass(slots=True)
class _Turn:
    """What is being asked, of which topic, and the segment that it is about: before it, and after it."""

    asked: AskedOfQueues
    mapping: TopicMapping | None
    held: HeldSegment | None
    instance: Instance
    after: HeldSegment | None = None


class LogicalQueueAdmin:
    """Serves them. It is what only this broker knows; see `local` of both machines."""

    def __init__(
        self,
        store: MessageStore,
        topics: Topics,
        mappings: LogicalMappings,
        recorder: Recorder,
        pulls: Pulls,
        peers: Peers,
        options: BrokerOptions,
        master: MappingLog,
    ) -> None:
        self._store = store
        self._topics = topics
        self._mappings = mappings
        self._recorder = recorder
        self._pulls = pulls
        self._broker_name = options.broker_name
        self._file_bytes = options.mapped_file_size_commit_log
        self.reuses_read_only: Final = options.reuse_read_only
        """Whether a message queue that is read may serve again."""
        self._master = master
        self.address = ""
        self.is_static: Callable[[str], bool] = lambda _topic: False
        """Whether a topic is a static one."""
        self._bound = wire.bound(self, rules)
        self._topic_bound = topic_wire.bound(self)
        self._turn: _Turn | None = None
        self._redirection = b""
        self.hints: Final = Hints(peers)
        """Where logical queues went, as somebody told."""
        self._left: Final = LeftQueues()
        self.table: Final = dict.fromkeys(wire.REQUESTS.keys() | topic_wire.REQUESTS.keys(), self._asked)

    # What the machines ask

    @property
    def serves(self) -> bool:
        """Whether the broker is master."""
        return self._master.serves

    @property
    def _now(self) -> _Turn:
        assert self._turn is not None, "a request is being served"
        return self._turn

    @property
    def message_end(self) -> int:
        """Where the message queue ends."""
        asked = self._now.asked
        return self._store.index.bounds(asked.topic, asked.queue_id).end

    @property
    def first_kept(self) -> int:
        """Its oldest message that is not deleted."""
        asked = self._now.asked
        return self._store.index.bounds(asked.topic, asked.queue_id).first

    @property
    def next_start(self) -> int:
        """Where a segment begins that follows all of its logical queue: that is known of one that nobody
        follows, and of a logical queue that never was; else UNDECIDED."""
        asked, mapping = self._now.asked, self._now.mapping
        last = None if mapping is None else [*mapping.of_index(asked.index)][-1:]
        if last:
            is_followed = last[0].successor is not None or self.hints.is_followed(asked.topic, last[0])
            return constants.UNDECIDED if is_followed else last[0].segment.logical_end
        return constants.UNDECIDED if self._is_committed(mapping, asked.index) else 0

    @property
    def is_resting(self) -> bool:
        """Whether another logical queue left the message queue a moment ago."""
        asked, held = self._now.asked, self._now.held
        held_by = None if held is None else held.index
        return self._left.rests(asked.topic, asked.queue_id, asked.index, held_by, asked.now_ms)

    def start_of(self, segment: LogicalQueueSegment | None, /) -> int:
        """The logical start that a message gives a segment."""
        return rules.segment_start(segment)

    @property
    def segment(self) -> LogicalQueueSegment:
        """The segment as it is now."""
        held = self._now.after
        assert held is not None, "the machine says what it holds"
        return message_of(replace(held.segment, address=self.address), self._now.asked.topic, held.index)

    @property
    def source(self) -> LogicalQueueSegment:
        """The segment of which a migration was asked."""
        return self._now.asked.source or LogicalQueueSegment()

    @property
    def redirection(self) -> bytes:
        """Where to ask instead; administrators are not redirected."""
        return self._redirection

    @property
    def fault(self) -> str | None:
        """What cannot be of the request, in a few words."""
        asked, mapping = self._now.asked, self._now.mapping
        if asked.fault is not None:
            return asked.fault
        if self.is_static(asked.topic):
            return "the topic is a static one"
        room = segments_max(self._file_bytes, asked.topic, self._broker_name)
        if self._adds_segment and self.segments >= room:
            return f"files of the log of {self._file_bytes} bytes have room for {room} segments of a topic"
        if asked.makes_queue:
            return self._fault_of_making(mapping)
        config = self._topics.get(asked.topic)
        if config is None:
            return "topic not exist"
        if asked.enabled is not None:
            return self._fault_of_enabling(asked)
        if asked.code == RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING:
            return None
        if asked.queue_id >= (config.write_queue_nums or 0):
            return "found no queue"
        return self._fault_of_segment(mapping)

    @property
    def _adds_segment(self) -> bool:
        asked, held = self._now.asked, self._now.held
        is_new = held is None or held.segment.state == LogicalQueueState.READ_ONLY
        return is_new and (asked.maps or asked.takes_queue)

    def _fault_of_making(self, mapping: TopicMapping | None) -> str | None:
        config = self._topics.get(self._now.asked.topic)
        if mapping is None and config is not None and (config.write_queue_nums or 0) > 0:
            return "topic not enable logical queue"
        if not self._topics.is_name(self._now.asked.topic):
            return "no such topic can be"
        return "there are too many queues" if self._now.asked.queue_id >= constants.QUEUES_MAX else None

    def _fault_of_enabling(self, asked: AskedOfQueues) -> str | None:
        is_credible = rules.is_epoch_credible(self.said_epoch, asked.now_ms)
        return None if is_credible else f"the epoch {self.said_epoch} is far ahead of the clock"

    def _fault_of_segment(self, mapping: TopicMapping | None) -> str | None:
        """What a request says of a segment that is none such here."""
        asked, held = self._now.asked, self._now.held
        is_other = held is not None and held.index != asked.index
        if asked.maps and held is not None and is_other:
            return f"the queue belongs to logical queue {held.index}"
        if asked.maps and held is None:
            is_taken = mapping is not None and any(mapping.of_index(asked.index))
            is_committed = self._is_committed(mapping, asked.index)
            return "duplicate logicalQueueOffset found" if is_taken or is_committed else None
        if asked.names_segment and is_other:
            return "queue route data not found"
        is_commit = asked.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
        if is_commit and mapping is not None and held is not None and not held.segment.is_decided:
            start = rules.segment_start(asked.target)
            ends = (each.segment.logical_end for each in mapping.of_index(asked.index))
            end = max(asked.source_end, *ends)
            return f"the logical queue ends at {end}" if 0 <= start < end else None
        return None

    def _is_committed(self, mapping: TopicMapping | None, index: int) -> bool:
        """Whether a logical queue is there, wherever it is."""
        enabled = None if mapping is None else mapping.enabled
        is_told = self.hints.is_told(self._now.asked.topic, index)
        return is_told or (enabled is not None and index < enabled.total)

    @property
    def said_epoch(self) -> int:
        """The epoch that a request commits."""
        enabled = self._now.asked.enabled
        return constants.UNDECIDED if enabled is None else enabled.enabled.epoch

    @property
    def said_queues(self) -> int:
        """How many logical queues it says are written."""
        enabled = self._now.asked.enabled
        return constants.UNDECIDED if enabled is None else enabled.enabled.queues

    @property
    def said_total(self) -> int:
        """How many it says there are."""
        enabled = self._now.asked.enabled
        return constants.UNDECIDED if enabled is None else enabled.enabled.total

    @property
    def segments(self) -> int:
        """How many segments the broker holds."""
        mapping = self._now.mapping
        return 0 if mapping is None else mapping.count

    @property
    def is_unsure(self) -> bool:
        """Whether no mapping of the topic is known to be kept."""
        return self._mappings.is_unsure(self._now.asked.topic)

    @property
    def held(self) -> LogicalQueues:
        """All of them."""
        mapped = self._mappings.kept(self._now.asked.topic)
        if mapped is None or not mapped.said.count:
            return LogicalQueues(None)
        return message_of_queues(mapped.said.logical_queues(self.address), mapped.said.topic)

    # Requests

    def _asked(self, request: Request) -> None:
        """Check and record what an administrator wants. Raises Refused, RemoteProtocolError."""
        asked = asked_of(request, self._broker_name)
        mapped = self._mappings.newest(asked.topic)
        mapping = None if mapped is None else mapped.said
        held = None
        if mapping is not None:
            written = mapping.writable_of(asked.index) if asked.takes_queue else None
            if written is not None:
                asked = replace(asked, queue_id=written.segment.queue.queue_id)
            elif asked.makes_queue:
                asked = replace(asked, queue_id=mapping.config.write_queue_nums or 0)
            held = mapping.newest_of(asked.queue_id)
            if asked.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY:
                held = next(iter([*mapping.of_index(asked.index)][-1:]), None)
        self._turn = _Turn(asked, mapping, held, instance_of(held), held)
        try:
            self._serve(request)
        finally:
            self._turn = None

    def _serve(self, request: Request) -> None:
        command = request.command
        said = command.header.ext_fields or {}, command.body, command.release
        event = self._bound.event_of(request.code, *said)
        if event is not None:
            self._take(request, event)
            return
        of_topic = self._topic_bound.event_of(request.code, *said)
        if of_topic is None:
            raise RemoteProtocolError("it asks for nothing")
        self._take_of_topic(request, of_topic)

    def _take(self, request: Request, event: Any) -> None:
        """Do what the edge of the segment says."""
        turn = self._now
        taken = step(machine.MACHINE, *turn.instance, event, rules)
        for effect in taken.effects:
            if effect == "record_segment":
                turn.after = self._segment_after(taken.state, taken.variables)
                self._note_left(turn, request.now_ms)
                kept = partial(
                    self._segment_told, request, replace(turn, instance=(taken.state, taken.variables))
                )
                self._record(request, self._mapping_after(turn), kept)
            elif effect == "note_hint":
                self._note_hint(turn)
            else:
                answer = self._bound.answer_of(effect, taken.variables, event, request.command.release)
                self._answer(request, partial(give, request, answer))

    def _segment_told(self, request: Request, turn: _Turn, reason: str, now_ms: int) -> None:
        """The record of a segment is kept, or not known to be."""
        self._turn = turn
        self._note_left(turn, now_ms)
        event = machine.Unkept(reason) if reason else _KEPT[request.code]()
        state, known = turn.instance
        try:
            for effect in step(machine.MACHINE, state, known, event, rules).effects:
                if effect == "register":
                    self._master.announce_topics(now_ms)
                else:
                    give(request, self._bound.answer_of(effect, known, event, request.command.release))
        finally:
            self._turn = None

    def _answer(self, request: Request, gives: Callable[[], None]) -> None:
        """Answer what rests on what was recorded, once that is kept."""
        mapped = self._mappings.newest(self._now.asked.topic)
        if mapped is None or mapped is self._mappings.kept(self._now.asked.topic):
            gives()
            return
        instance = self._now.instance

        def kept(reason: str, _now_ms: int) -> None:
            if reason:
                self._refuse_unkept(request, instance, reason)
            else:
                gives()

        self._recorder.wait(mapped.end, kept, request.now_ms)

    def when_kept(self, request: Request, held: HeldSegment, end: int, then: Handler) -> None:
        """Have a request about a segment served once the log is kept up to `end`, where what it rests on was
        recorded; refuse it where that cannot be, or too many wait."""

        def kept(reason: str, _now_ms: int) -> None:
            if reason:
                self._refuse_unkept(request, instance_of(held), reason)
            else:
                then(request)

        if self._recorder.is_full:
            kept("too many wait for it", request.now_ms)
        else:
            self._recorder.wait(end, kept, request.now_ms)

    def _refuse_unkept(self, request: Request, instance: Instance, reason: str) -> None:
        event = machine.Unkept(reason)
        for effect in step(machine.MACHINE, *instance, event, rules).effects:
            give(request, self._bound.answer_of(effect, instance[1], event, request.command.release))

    def _record(self, request: Request, mapping: TopicMapping, kept: Callable[[str, int], None]) -> None:
        body = self._mappings.record_of(mapping)
        again = self._recorder.asks_again(request, self._asked, kept)
        self._recorder.record(self._mappings, body, request.now_ms, kept, again)

    def tell(self, request: Request, effect: str, instance: Instance, event: Any, redirection: bytes) -> None:
        """Answer somebody who asks for messages of a segment."""
        self._redirection = redirection
        try:
            give(request, self._bound.answer_of(effect, instance[1], event, request.command.release))
        finally:
            self._redirection = b""

    # What comes of a segment

    def _segment_after(self, state: machine.State, known: machine.Variables) -> HeldSegment | None:
        if state is machine.State.ABSENT:
            return None
        turn = self._now
        queue = PhysicalQueue(self._broker_name, turn.asked.queue_id)
        segment = Segment(
            queue,
            LogicalQueueState[state.name],
            known.logical_start,
            known.physical_start,
            known.physical_end,
        )
        before = turn.held
        if before is not None and before.place == (queue.queue_id, known.physical_start):
            segment = replace(segment, first_ms=before.segment.first_ms, last_ms=before.segment.last_ms)
        is_sealed_now = segment.is_sealed and (before is None or not before.segment.is_sealed)
        if is_sealed_now and segment.state != LogicalQueueState.EXPIRED:
            first = max(known.physical_start, self.first_kept)
            segment = replace(
                segment, first_ms=self._stored_ms(first), last_ms=self._stored_ms(known.physical_end - 1)
            )
        index = turn.asked.index if before is None or turn.asked.takes_queue else before.index
        return HeldSegment(index, segment, known.successor)

    def _stored_ms(self, position: int) -> int:
        asked = self._now.asked
        return self._pulls.stored_at(asked.topic, asked.queue_id, position)[0] or constants.UNDECIDED

    def _mapping_after(self, turn: _Turn) -> TopicMapping:
        asked, mapping = turn.asked, turn.mapping
        if mapping is None:
            config = self._topics.get(asked.topic) or self._topics.without_queues(asked.topic, asked.perm)
            mapping = TopicMapping(self._broker_name, asked.topic, config)
        if asked.makes_queue and turn.held is None:
            config, count = mapping.config, asked.queue_id + 1
            mapping = replace(mapping, config=replace(config, read_queue_nums=count, write_queue_nums=count))
        mapping = mapping.with_segment(turn.held, turn.after)
        if asked.passed_over is not None:
            mapping = replace(mapping, gone=with_gone(mapping.gone, {asked.index: (asked.passed_over,)}))
        return mapping

    def _note_hint(self, turn: _Turn) -> None:
        """Where a logical queue went. It is no hint unless it lies behind what is held here, at another."""
        asked, hint = turn.asked, turn.asked.target_segment
        held = turn.held
        if hint is None or held is None or not hint.is_decided or hint.queue.broker_name == self._broker_name:
            return
        if held.successor is not None:
            known = segment_of(held.successor, asked.topic, asked.index)
            if (known.key, known.logical_start) == (hint.key, hint.logical_start):
                return
        self.hints.note(asked.topic, asked.index, hint, asked.now_ms)

    def _note_left(self, turn: _Turn, now_ms: int) -> None:
        """A logical queue may have left its message queue: when that was recorded, and when it was kept."""
        before, after = turn.held, turn.after
        is_left = after is None or not after.segment.is_writable
        if before is not None and before.segment.is_writable and is_left:
            self._left.left(turn.asked.topic, before.segment.queue.queue_id, before.index, now_ms)

    # Of a topic

    def _take_of_topic(self, request: Request, event: Any) -> None:
        turn = self._now
        enabled = None if turn.mapping is None else turn.mapping.enabled
        state, known = topic_machine.MACHINE.initial, topic_machine.MACHINE.variables
        if enabled is not None:
            state = topic_machine.State.ENABLED
            epoch, queues, total = enabled.epoch, enabled.queues, enabled.total
            known = topic_machine.Variables(epoch=epoch, queues=queues, total=total)
        taken = step(topic_machine.MACHINE, state, known, event, rules)
        for effect in taken.effects:
            if effect == "record_topic":
                kept = partial(self._topic_told, request, (taken.state, taken.variables))
                self._record(request, self._enabled(turn, taken.variables), kept)
            else:
                answer = self._topic_bound.answer_of(effect, taken.variables, event, request.command.release)
                if isinstance(event, topic_machine.Asked):
                    # What is told is kept.
                    give(request, answer)
                else:
                    self._answer(request, partial(give, request, answer))

    def _enabled(self, turn: _Turn, known: topic_machine.Variables) -> TopicMapping:
        mapping = self._mapping_after(turn)
        said = turn.asked.enabled
        gone = mapping.gone if said is None else with_gone(mapping.gone, said.gone)
        return replace(mapping, enabled=Enabled(known.epoch, known.queues, known.total), gone=gone)

    def _topic_told(
        self,
        request: Request,
        instance: tuple[topic_machine.State, topic_machine.Variables],
        reason: str,
        now_ms: int,
    ) -> None:
        event = topic_machine.Unkept(reason) if reason else topic_machine.Kept()
        for effect in step(topic_machine.MACHINE, *instance, event, rules).effects:
            if effect == "register":
                self._master.announce_topics(now_ms)
            else:
                answer = self._topic_bound.answer_of(effect, instance[1], event, request.command.release)
                give(request, answer)

    def step_down(self) -> None:
        """Another broker is master, and may know better."""
        self.hints.clear()
        self._left.step_down()

    def settle(self, now_ms: int) -> None:
        """As a master, know since when."""
        if self.serves:
            self._left.serves(now_ms)
