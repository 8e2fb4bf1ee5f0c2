"""What a client asks for: to store a message, messages, where a queue begins and ends, where a group is.

Each is a generator of steps; see `asking`. Of a logical queue of RIP-21 the segment is asked that holds the
offset or takes the message, by the queue id and the offsets that it has there.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultMQProducerImpl, PullAPIWrapper, RemoteBrokerOffsetStore;
5.0.0-PREVIEW, MQClientAPIExt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.asking import (
    Ask,
    Errand,
    Failed,
    LookUp,
    Pausing,
    Steps,
    Target,
    asked,
    asked_of,
    granted,
    header_in,
    looked_up,
    refused,
)
from replispec.runtime.rocketmq.client.messages import MessageToSend, ReadMessage, messages_in
from replispec.runtime.rocketmq.client.routes import ClientQueue, Route, SegmentOf
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import MessageFlag, PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import (
    ALL_TAGS,
    CLIENT_AGAIN_MS,
    CLIENT_TOPIC_QUEUES,
    TAG_EXPRESSION,
    TEMPLATE_TOPIC,
    UNDECIDED,
)

__all__ = [
    "Ask",
    "Failed",
    "LookUp",
    "Pausing",
    "Pull",
    "Pulled",
    "Steps",
    "Stored",
    "commit",
    "looked_up",
    "max_offset",
    "min_offset",
    "offset_at",
    "position",
    "pull",
    "send",
]


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a message lies; the offset is -1 where it is not decided yet."""

    queue: ClientQueue
    offset: int
    status: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Pulled:
    """Messages of a queue, where to go on, and where the queue begins and ends."""

    messages: Sequence[ReadMessage]
    next_offset: int
    min_offset: int
    max_offset: int


# ---- messages that are sent ----------------------------------------------------------------------


def send(message: MessageToSend, group: str, turn: int, now_ms: int) -> Steps[Stored]:
    """Store a message: in its queue, else in the one whose turn it is. Raises Failed."""

    def question(target: Target) -> Ask:
        header = _sending(message, target, group, now_ms)
        return Ask(target.place.address, RequestCode.SEND_MESSAGE_V2, header, message.body)

    target, answer = yield from asked(
        Errand(
            lambda wrong: LookUp(message.topic, wrong, makes=True),
            lambda route, attempt: message.queue or _whose_turn(route, turn + attempt),
            lambda logical: logical.writable,
            question,
            Failed(f"no queue of {message.topic} is written"),
            again=False,
        )
    )
    status = rules.send_status(answer.header.code)
    if status is None:
        raise refused(target.place.address, answer)
    said = header_in(SendMessageResponse, answer)
    offset = UNDECIDED if said.queue_offset is None else said.queue_offset
    shown = offset if offset == UNDECIDED else target.offset_shown(offset)
    return Stored(target.queue, shown, status, said.msg_id or "")


def _whose_turn(route: Route, turn: int) -> ClientQueue | None:
    return route.published[turn % len(route.published)] if route.published else None


def _sending(message: MessageToSend, target: Target, group: str, now_ms: int) -> SendMessageV2Request:
    flags = MessageFlag.NONE if target.segment is None else MessageFlag.LOGICAL_QUEUE
    return SendMessageV2Request(
        producer_group=group,
        topic=message.topic,
        default_topic=TEMPLATE_TOPIC,
        default_topic_queue_nums=CLIENT_TOPIC_QUEUES,
        queue_id=target.number,
        sys_flag=int(flags),
        born_timestamp=now_ms,
        flag=0,
        properties=message.properties,
        reconsume_times=0,
        unit_mode=False,
        batch=False,
        broker_name=target.place.broker,
    )


# ---- messages that are read ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pull:
    """What a consumer asks of a queue: from an offset on, so many, held for so long while there is none."""

    topic: str
    group: str
    queue: ClientQueue
    offset: int
    count: int
    hold_ms: int


def pull(wanted: Pull, *, after_ms: int = 0) -> Steps[Pulled]:
    """Messages of a queue. Raises Failed."""
    if after_ms:
        yield Pausing(after_ms)
    route = yield from looked_up(wanted.topic)
    elsewhere = _passed_over(route, wanted)
    if elsewhere is not None:
        return Pulled((), elsewhere, elsewhere, elsewhere)

    def question(target: Target) -> Ask:
        header = _pulling(wanted, target)
        return Ask(target.place.address, RequestCode.PULL_MESSAGE, header, more_ms=wanted.hold_ms)

    target, answer = yield from asked_of(
        wanted.topic, wanted.queue, lambda logical: logical.locate(wanted.offset), question, master=False
    )
    if not rules.was_read(answer.header.code):
        raise refused(f"the broker of queue {wanted.queue.number}", answer)
    pulled = _pulled(wanted, target, answer)
    if target.segment is not None and target.segment.is_sealed and pulled.next_offset <= wanted.offset:
        # Nobody knows yet who follows, and nothing holds the answer back.
        yield Pausing(CLIENT_AGAIN_MS)
    return pulled


def _passed_over(route: Route, wanted: Pull) -> int | None:
    """Where a logical queue of RIP-21 goes on whose messages at an offset are deleted; None: the broker of
    the offset is asked, also at the end of a segment, for he knows who follows."""
    logical = route.logical.get(wanted.queue.number)
    if logical is None or not logical.segments:
        return None
    found = logical.locate(wanted.offset)
    if found is None:
        return logical.segments[0].logical_start if logical.segments[0].is_decided else None
    if not found.is_sealed or wanted.offset < found.logical_end:
        return None if found.is_readable else found.logical_end
    following = logical.next_of(found)
    start = UNDECIDED if following is None else following.logical_start
    return start if start in route.gone_before.get(wanted.queue.number, ()) else None


def _pulling(wanted: Pull, target: Target) -> PullMessageRequest:
    flags = PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if wanted.hold_ms else PullFlag.NONE)
    if target.segment is not None:
        flags |= PullFlag.LOGICAL_QUEUE
    return PullMessageRequest(
        consumer_group=wanted.group,
        topic=wanted.topic,
        queue_id=target.number,
        queue_offset=target.offset_there(wanted.offset),
        max_msg_nums=wanted.count,
        sys_flag=int(flags),
        commit_offset=0,
        suspend_timeout_millis=wanted.hold_ms,
        subscription=ALL_TAGS,
        sub_version=0,
        expression_type=TAG_EXPRESSION,
        bname=_named(target),
    )


def _named(target: Target) -> str:
    """The broker that a question names: that of programs, where the broker knows it."""
    return target.queue.broker if target.segment is None else target.place.broker


def _pulled(wanted: Pull, target: Target, answer: Command) -> Pulled:
    said, segment = header_in(PullMessageResponse, answer), target.segment
    messages: Sequence[ReadMessage] = ()
    if answer.header.code == ResponseCode.SUCCESS:
        delta = said.offset_delta or 0 if segment is None else segment.offset_delta
        try:
            messages = messages_in(answer.body, target.queue, delta)
        except RemoteProtocolError as error:
            raise Failed(f"messages of queue {wanted.queue.number} cannot be read: {error}") from error
    following = said.next_begin_offset
    nowhere = following is None or following < 0
    ends = said.min_offset or 0, said.max_offset or 0
    least, most = (each if segment is None else target.offset_shown(each) for each in ends)
    next_offset = wanted.offset if following is None or nowhere else target.offset_shown(following)
    if segment is not None and segment.is_sealed:
        messages = [each for each in messages if each.offset < segment.logical_end]
        next_offset = min(next_offset, max(segment.logical_end, wanted.offset))
    return Pulled([each for each in messages if each.offset >= wanted.offset], next_offset, least, most)


# ---- where a queue begins and ends ---------------------------------------------------------------


def min_offset(topic: str, queue: ClientQueue) -> Steps[int]:
    """Where a queue begins. Raises Failed."""

    def question(target: Target) -> Ask:
        header = GetMinOffsetRequest(topic=topic, queue_id=target.number, bname=_named(target))
        return Ask(target.place.address, RequestCode.GET_MIN_OFFSET, header)

    def offset_in(answer: Command) -> int:
        return header_in(GetMinOffsetResponse, answer).offset or 0

    return (yield from _first_in(topic, queue, question, offset_in))


def max_offset(topic: str, queue: ClientQueue) -> Steps[int]:
    """Where a queue ends: the offset of the next message. Raises Failed."""
    route = yield from looked_up(topic)
    logical = route.logical.get(queue.number)
    last = None if logical is None else logical.last_readable
    if last is not None and last.is_sealed:
        return last.logical_end

    def question(target: Target) -> Ask:
        is_logical = None if target.segment is None else True
        header = GetMaxOffsetRequest(
            topic=topic, queue_id=target.number, bname=_named(target), logical_queue=is_logical
        )
        return Ask(target.place.address, RequestCode.GET_MAX_OFFSET, header)

    target, answer = yield from asked_of(topic, queue, lambda logical: logical.last_readable, question)
    offset = header_in(GetMaxOffsetResponse, granted(queue, answer)).offset or 0
    return target.offset_shown(offset)


def offset_at(topic: str, queue: ClientQueue, at_ms: int) -> Steps[int]:
    """The offset of the first message that was stored at this time or later. Raises Failed."""

    def question(target: Target) -> Ask:
        header = SearchOffsetRequest(
            topic=topic, queue_id=target.number, timestamp=at_ms, bname=_named(target)
        )
        return Ask(target.place.address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    def offset_in(answer: Command) -> int:
        return header_in(SearchOffsetResponse, answer).offset or 0

    return (yield from _first_in(topic, queue, question, offset_in))


def _first_in(
    topic: str,
    queue: ClientQueue,
    question: Callable[[Target], Ask],
    offset_in: Callable[[Command], int],
) -> Steps[int]:
    """The first offset that a broker names, of a logical queue of RIP-21 the first within the segment that is
    asked: one after the other, from the oldest on. Raises Failed."""
    past = UNDECIDED
    while True:
        target, answer = yield from asked_of(topic, queue, partial(_readable_after, start=past), question)
        offset, segment = offset_in(granted(queue, answer)), target.segment
        if segment is None:
            return offset
        within = max(offset, segment.physical_start)
        if not segment.is_sealed or within < segment.physical_end:
            return segment.logical_of(within)
        route = yield from looked_up(topic)
        logical = route.logical.get(queue.number)
        if logical is None or _readable_after(logical, segment.logical_start) is None:
            return segment.logical_end
        past = segment.logical_start


def _readable_after(logical: LogicalQueue, start: int) -> Segment | None:
    return next((each for each in logical.segments if each.is_readable and each.logical_start > start), None)


# ---- where a group is ----------------------------------------------------------------------------


def position(topic: str, queue: ClientQueue, group: str) -> Steps[int | None]:
    """What a group reads next of a queue; None where it never said so. Raises Failed.

    Of a logical queue of RIP-21 the brokers of its segments are asked, the newest first: each keeps what was
    said of its own queue."""
    route = yield from looked_up(topic)
    logical = route.logical.get(queue.number)
    if logical is None:
        _, found = yield from _position_in(topic, queue, group, lambda _logical: None)
        return found
    for each in reversed([each for each in logical.segments if each.is_decided]):
        try:
            target, found = yield from _position_in(topic, queue, group, _same_as(each))
        except Failed:
            if each.state == State.EXPIRED:
                # What a group said there, it said of messages that are gone.
                continue
            raise
        if found is not None and logical.is_said_of(each, found):
            within = min(found, each.physical_end) if each.is_sealed else found
            return target.offset_shown(within)
    return None


def _same_as(segment: Segment) -> SegmentOf:
    return lambda logical: next((each for each in logical.segments if each.key == segment.key), None)


def _position_in(
    topic: str, queue: ClientQueue, group: str, segment_of: SegmentOf
) -> Steps[tuple[Target, int | None]]:
    def question(target: Target) -> Ask:
        header = QueryConsumerOffsetRequest(
            consumer_group=group,
            topic=topic,
            queue_id=target.number,
            set_zero_if_not_found=False,
            bname=_named(target),
        )
        return Ask(target.place.address, RequestCode.QUERY_CONSUMER_OFFSET, header)

    target, answer = yield from asked_of(topic, queue, segment_of, question)
    if answer.header.code == ResponseCode.QUERY_NOT_FOUND:
        return target, None
    offset = header_in(QueryConsumerOffsetResponse, granted(queue, answer)).offset
    return target, None if offset is None or offset < 0 else offset


def commit(topic: str, queue: ClientQueue, group: str, offset: int) -> Steps[int]:
    """A group says what it reads next of a queue. Raises Failed."""

    def question(target: Target) -> Ask:
        header = UpdateConsumerOffsetRequest(
            bname=_named(target),
            consumer_group=group,
            topic=topic,
            queue_id=target.number,
            commit_offset=target.offset_there(offset),
        )
        return Ask(target.place.address, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    _, answer = yield from asked_of(topic, queue, lambda logical: logical.keeper_of(offset), question)
    granted(queue, answer)
    return offset
