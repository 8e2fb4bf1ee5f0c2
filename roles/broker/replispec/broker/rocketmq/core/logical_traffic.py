"""Sends, pulls, positions and questions about message queues that are segments of logical queues, on the
machine `logical_queue_segment`. Everything is physical here; who knows logical queues is told where to ask
instead, and what an older client sends to a segment that ended is handed to the one that is written.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, AbstractSendMessageProcessor, PullMessageProcessor,
AdminBrokerProcessor.getMaxOffset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.logical_queues import LogicalQueueAdmin
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import Handler
from replispec.broker.rocketmq.core.sends import SENDING
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment, TopicMapping, instance_of
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client import Failed
from replispec.runtime.rocketmq.client.segments import SentOn, sent_on
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES, message_of
from replispec.runtime.rocketmq.remoting.answering import hand_back
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageRequest
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, UpdateConsumerOffsetRequest
from replispec.wire.rocketmq.codes import LogicalQueueState, MessageFlag, RequestCode
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, LogicalQueueSegments
from replispec.wire.rocketmq.machines import logical_queue_segment as machine
from replispec.wire.rocketmq.message_queue import MessageQueue

_PULLING: Final = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
_ROUTED: Final = SENDING | _PULLING | {RequestCode.GET_MAX_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET}
"""Requests that may be about segments."""
_KINDS: Final[Mapping[int, type[Any]]] = {
    **dict.fromkeys(SENDING, machine.Sent),
    **dict.fromkeys(_PULLING, machine.Pulled),
    RequestCode.GET_MAX_OFFSET: machine.EndAsked,
    RequestCode.UPDATE_CONSUMER_OFFSET: machine.PositionSaid,
}
"""What they are to a segment."""


@dataclass(slots=True)
class _Asking:
    """A request about a message queue, and what that is; to its segment it is the event that its kind says,
    of which nothing is looked at before the edge asks for it."""

    request: Request
    handler: Handler
    header: Any
    mapping: TopicMapping
    held: HeldSegment | None
    traffic: LogicalQueueTraffic

    @property
    def following(self) -> LogicalQueueSegment | None:
        """What follows the segment."""
        return self.traffic.following(self)

    @property
    def is_followed(self) -> bool:
        """Whether anything does."""
        return self.following is not None

    @property
    def is_aware(self) -> bool:
        """Whether who asks knows logical queues."""
        return self.traffic.is_aware(self)

    @property
    def position(self) -> int:
        """What a pull asks for, or how far a group has read."""
        header = self.header
        said = (
            header.commit_offset if isinstance(header, UpdateConsumerOffsetRequest) else header.queue_offset
        )
        return said or 0

    @property
    def first_kept(self) -> int:
        """Where the message queue begins."""
        return self.traffic.first_kept(self)


class LogicalQueueTraffic:
    """Serves it, or has it served."""

    def __init__(
        self,
        store: MessageStore,
        admin: LogicalQueueAdmin,
        mappings: LogicalMappings,
        pulls: Pulls,
        peers: Peers,
        broker_name: str,
    ) -> None:
        self._store = store
        self._admin = admin
        self._mappings = mappings
        self._pulls = pulls
        self._peers = peers
        self._broker_name = broker_name

    def through(self, table: Mapping[int, Handler]) -> dict[int, Handler]:
        """Has requests about segments handled as what they mean here."""
        return {code: self._way(code, each) if code in _ROUTED else each for code, each in table.items()}

    def _way(self, code: int, handler: Handler) -> Handler:
        if code not in SENDING:
            return partial(self._routed, handler)
        said = REQUEST_HEADERS[code]
        return partial(self._sent, said.key_of("topic"), said.key_of("queue_id"), handler)

    def _sent(self, topic_key: str, queue_key: str, handler: Handler, request: Request) -> None:
        """Most messages go to a segment that takes them whatever they say: they are not read for that."""
        fields = request.command.header.ext_fields or {}
        mapped = self._mappings.newest(fields.get(topic_key) or "")
        if mapped is not None and fields.get(queue_key) in mapped.said.taking:
            handler(request)
        else:
            self._routed(handler, request)

    def _routed(self, handler: Handler, request: Request) -> None:
        asking = self._asking(handler, request)
        if asking is None:
            handler(request)
            return
        if request.code in SENDING and self._waits_for_seal(asking):
            return
        for effect in self._effects(asking):
            self._do(effect, asking)

    def _waits_for_seal(self, asking: _Asking) -> bool:
        """Whether a send is served later, because its segment ended by what a fail-over may undo: whoever is
        sent on is given offsets that this segment would give then."""
        topic, held = asking.mapping.topic, asking.held
        mapped = self._mappings.newest(topic)
        if held is None or not held.segment.is_sealed or mapped is None:
            return False
        if mapped is self._mappings.kept(topic):
            return False
        self._admin.when_kept(asking.request, held, mapped.end, partial(self._routed, asking.handler))
        return True

    def _asking(self, handler: Handler, request: Request) -> _Asking | None:
        header: Any = request.header
        is_send = request.code in SENDING
        mapped = self._mappings.newest(header.topic) if is_send else self._mappings.kept(header.topic)
        if mapped is None:
            return None
        if header.__class__ is PullMessageRequest:
            held = mapped.said.at(header.queue_id or 0, header.queue_offset or 0)
        else:
            held = mapped.said.newest_of(max(header.queue_id or 0, 0))
        return _Asking(request, handler, header, mapped.said, held, self)

    def is_aware(self, asking: _Asking) -> bool:
        """Whether who asks knows logical queues."""
        header = asking.header
        if header.__class__ is PullMessageRequest:
            version = asking.request.command.header.version or 0
            return rules.knows_logical_queues(
                header.sys_flag or 0, lo=header.lo, version=version, broker_name=header.bname
            )
        if isinstance(header, GetMaxOffsetRequest):
            return bool(header.logical_queue)
        return rules.has_bit(header.sys_flag or 0, MessageFlag.LOGICAL_QUEUE)

    def first_kept(self, asking: _Asking) -> int:
        """Where a message queue begins."""
        return self._store.index.bounds(asking.header.topic or "", asking.header.queue_id or 0).first

    def following(self, asking: _Asking) -> LogicalQueueSegment | None:
        """What follows the segment that a request is about."""
        is_send, held = asking.request.code in SENDING, asking.held
        return None if held is None else self._following(asking.mapping, held, is_send=is_send)

    def _effects(self, asking: _Asking) -> Collection[str]:
        instance, kind = instance_of(asking.held), _KINDS[asking.request.code]
        return edge_of(machine.MACHINE, *instance, asking, rules, kind).do

    def _do(self, effect: str, asking: _Asking) -> None:
        """Carry out what the edge of the segment says."""
        if effect in machine.ANSWERS:
            redirection = self._redirection(asking)
            self._admin.tell(asking.request, effect, instance_of(asking.held), asking, redirection)
        elif effect == "hand_on":
            self._hand_on(asking)
        elif effect == "read_up_to_end":
            self._read_up_to_end(asking)
        else:
            asking.handler(asking.request)

    # Where to ask instead

    def _following(
        self, mapping: TopicMapping, held: HeldSegment, *, is_send: bool
    ) -> LogicalQueueSegment | None:
        """What follows a segment: who reads goes on at the next one, who sends at what is written here, or
        else at the last that is known."""
        topic = mapping.topic
        written = mapping.writable_of(held.index) if is_send else None
        if written is not None and written.place != held.place:
            return message_of(replace(written.segment, address=self._admin.address), topic, held.index)
        hint = self._admin.hints.behind(topic, held)
        successor = held.successor
        if hint is None or not held.segment.is_sealed:
            return successor
        told = message_of(hint, topic, held.index)
        is_same = successor is not None and _place(successor) == _place(told)
        return told if successor is None or is_same or is_send else successor

    def _redirection(self, asking: _Asking) -> bytes:
        """The segment and what follows it, as a client reads them: from where on that one is read was decided
        when this one ended, also if its own broker is told so later."""
        held, following = asking.held, asking.following
        if held is None or following is None:
            return b""
        if rules.segment_start(following) >= 0 and not rules.has_begun(following):
            following = replace(following, state=STATE_NAMES[LogicalQueueState.NORMAL])
        own = replace(held.segment, address=self._admin.address)
        return LogicalQueueSegments([message_of(own, asking.mapping.topic, held.index), following]).encode()

    # A segment that ended

    def _read_up_to_end(self, asking: _Asking) -> None:
        """What was stored behind its end belongs to another segment."""
        held, header = asking.held, asking.header
        assert held is not None, "what has an end is held"
        left = held.segment.physical_end - (header.queue_offset or 0)
        if left > 0:
            header.max_msg_nums = min(header.max_msg_nums or 0, left)
        asking.handler(asking.request)

    def changed(self, topics: Collection[str]) -> None:
        """Other mappings of these are kept: who waits for a segment that ended is told where to go on."""
        for topic in topics:
            mapped = self._mappings.kept(topic)
            for queue_id, held in () if mapped is None else mapped.said.by_queue.items():
                if any(each.segment.is_sealed for each in held):
                    self._pulls.ended(topic, queue_id, self._tells_ended)

    def _tells_ended(self, request: Request) -> bool:
        """Whether a pull that waits is answered now."""
        asking = self._asking(lambda _request: None, request)
        if asking is None:
            return False
        (effect,) = self._effects(asking)
        if effect in machine.ANSWERS:
            self._do(effect, asking)
        return effect in machine.ANSWERS

    def _hand_on(self, asking: _Asking) -> None:
        """Have what an older client sends stored where the logical queue is written now."""
        following, own = asking.following, self._broker_name
        for _ in range(asking.mapping.count):
            queue = _queue(following)
            if queue.broker_name != own:
                break
            held = asking.mapping.newest_of(queue.queue_id or 0)
            if held is None or held.segment.is_writable:
                self._store_beside(asking, queue.queue_id or 0)
                return
            following = self._following(asking.mapping, held, is_send=True)
        if following is None:
            self._refuse(asking)
            return
        request, header, queue = asking.request, asking.header, _queue(following)
        topic, body = header.topic or "", request.command.body
        steps = sent_on(topic, following, RequestCode(request.code), header, body)
        request.is_held = True
        then = partial(self._sent_on, asking)
        self._peers.ask(queue.broker_name or "", steps, then, request.now_ms, size=len(body))

    def _store_beside(self, asking: _Asking, queue_id: int) -> None:
        """Store it in another message queue of this broker, and answer as if it were that one."""
        held, header = asking.held, asking.header
        assert held is not None, "what has an end is held"
        segment = replace(held.segment, logical_start=held.segment.physical_start)
        view = LogicalView(
            asking.mapping.topic,
            header.queue_id or 0,
            segment,
            segment,
            segment,
            constants.UNDECIDED,
            self._broker_name,
            is_handed_on=True,
        )
        asking.request.view = view
        header.queue_id = queue_id
        asking.handler(asking.request)

    def _sent_on(self, asking: _Asking, result: SentOn | Failed, _now_ms: int) -> None:
        if isinstance(result, Failed):
            self._refuse(asking)
        else:
            hand_back(asking.request, result.under(asking.header.queue_id or 0))

    def _refuse(self, asking: _Asking) -> None:
        """Nobody is known, or reached, who takes it."""
        event = machine.Sent(is_aware=False, is_followed=False)
        instance = instance_of(asking.held)
        for effect in edge_of(machine.MACHINE, *instance, event, rules).do:
            self._admin.tell(asking.request, effect, instance, event, b"")


def _queue(segment: LogicalQueueSegment | None) -> MessageQueue:
    found = None if segment is None else segment.message_queue
    return found or MessageQueue()


def _place(segment: LogicalQueueSegment) -> tuple[str | None, int | None, int | None]:
    queue = _queue(segment)
    return queue.broker_name, queue.queue_id, segment.offset_delta
