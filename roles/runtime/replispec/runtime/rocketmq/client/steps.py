"""What a client asks, step by step: generators that yield where to ask, and are sent what came of it.

Like a plan of an administrator, but with routes that grow old, and with other places to ask: a broker that
does not lead a queue says so, and the name server is asked again.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultMQProducerImpl, PullAPIWrapper, RemoteBrokerOffsetStore.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.messages import MessageToSend, ReadMessage, messages_in
from replispec.runtime.rocketmq.client.routes import BrokerPlace, ClientQueue, Route
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
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
from replispec.wire.rocketmq.codes import PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import (
    ALL_TAGS,
    CLIENT_TOPIC_QUEUES,
    REDIRECT_PAUSE_MS,
    REDIRECTS_MAX,
    TAG_EXPRESSION,
    TEMPLATE_TOPIC,
    UNDECIDED,
)

T = TypeVar("T")
HeaderT = TypeVar("HeaderT", bound=Header)


class Failed(Exception):
    """Nothing came of it; says why in one line. `sent`: a broker may have done it all the same."""

    def __init__(self, reason: str, *, sent: bool = False, code: int | None = None) -> None:
        super().__init__(reason)
        self.sent = sent
        self.code = code


@dataclass(frozen=True, slots=True)
class LookUp:
    """The route of a topic is wanted; another one than `wrong`, if there is a newer one. `makes`: of one that
    there is not, where brokers would make it."""

    topic: str
    wrong: Route | None = None
    makes: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to an address; `more_ms`: how long it may be held there."""

    address: str
    code: RequestCode
    header: Header
    body: bytes = b""
    more_ms: int = 0


@dataclass(frozen=True, slots=True)
class Pausing:
    """Nothing for so long."""

    for_ms: int


Wanted = LookUp | Ask | Pausing
Told = Route | Outcome | int
"""A route, an answer or why there is none, the time after a pause."""
Steps = Generator[Wanted, Told, T]
"""Raises Failed, as `LookUp` does where no route is known."""


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


# ---- where to ask --------------------------------------------------------------------------------


def _asked(
    wanted: Callable[[Route | None], LookUp],
    chosen: Callable[[Route, int], ClientQueue | None],
    question: Callable[[ClientQueue, BrokerPlace], Ask],
    failure: Failed,
    *,
    master: bool,
    again: bool,
) -> Steps[tuple[ClientQueue, BrokerPlace, Command]]:
    """Ask whoever answers for a queue, `chosen` of the route at each turn; where that was somebody else, ask
    there. `again`: it does no harm to ask a second time what may have been done. Raises Failed, `failure`
    where nobody was there to ask."""
    wrong: Route | None = None
    for turn in range(REDIRECTS_MAX + 1):
        if turn:
            yield Pausing(REDIRECT_PAUSE_MS << (turn - 1))
        route = yield wanted(wrong)
        assert isinstance(route, Route)
        wrong = route
        queue = chosen(route, turn)
        place = None if queue is None else route.place(queue, master=master)
        if queue is None or place is None:
            continue
        outcome = yield question(queue, place)
        if isinstance(outcome, Failure):
            failure = Failed(f"{place.address}: {outcome.reason}", sent=outcome.sent)
            if outcome.sent and not again:
                raise failure
            continue
        assert isinstance(outcome, Command)
        if not rules.asks_elsewhere(outcome.header.code):
            return queue, place, outcome
        failure = _refused(place.address, outcome)
    raise failure


def _asked_of(
    topic: str, queue: ClientQueue, ask: Callable[[BrokerPlace], Ask], *, master: bool
) -> Steps[Command]:
    """Ask whoever answers for this queue, as often as it takes. Raises Failed."""
    *_, answer = yield from _asked(
        lambda wrong: LookUp(topic, wrong),
        lambda _route, _turn: queue,
        lambda _queue, place: ask(place),
        Failed(f"nobody answers for queue {queue.number} of {topic}"),
        master=master,
        again=True,
    )
    return answer


def _refused(address: str, answer: Command) -> Failed:
    remark = " ".join((answer.header.remark or "").split())
    return Failed(f"{address} refuses: code {answer.header.code}: {remark}"[:400], code=answer.header.code)


def _header(message: type[HeaderT], answer: Command) -> HeaderT:
    try:
        return message.from_ext_fields(answer.header.ext_fields or {})
    except RemoteProtocolError as error:
        raise Failed(f"an answer cannot be read: {error}", sent=True) from error


def _granted(queue: ClientQueue, answer: Command) -> Command:
    if answer.header.code == ResponseCode.SUCCESS:
        return answer
    raise _refused(f"the broker of queue {queue.number}", answer)


# ---- what is asked -------------------------------------------------------------------------------


def send(message: MessageToSend, group: str, turn: int, now_ms: int) -> Steps[Stored]:
    """Store a message: in its queue, else in the one whose turn it is. Raises Failed."""

    def question(queue: ClientQueue, place: BrokerPlace) -> Ask:
        header = _sending(message, queue, place, group, now_ms)
        return Ask(place.address, RequestCode.SEND_MESSAGE_V2, header, message.body)

    queue, place, answer = yield from _asked(
        lambda wrong: LookUp(message.topic, wrong, makes=True),
        lambda route, attempt: message.queue or _whose_turn(route, turn + attempt),
        question,
        Failed(f"no queue of {message.topic} is written"),
        master=True,
        again=False,
    )
    status = rules.send_status(answer.header.code)
    if status is None:
        raise _refused(place.address, answer)
    return _sent(queue, answer, status)


def _whose_turn(route: Route, turn: int) -> ClientQueue | None:
    return route.published[turn % len(route.published)] if route.published else None


def _sending(
    message: MessageToSend, queue: ClientQueue, place: BrokerPlace, group: str, now_ms: int
) -> SendMessageV2Request:
    return SendMessageV2Request(
        producer_group=group,
        topic=message.topic,
        default_topic=TEMPLATE_TOPIC,
        default_topic_queue_nums=CLIENT_TOPIC_QUEUES,
        queue_id=queue.number,
        sys_flag=0,
        born_timestamp=now_ms,
        flag=0,
        properties=message.properties,
        reconsume_times=0,
        unit_mode=False,
        batch=False,
        broker_name=place.broker,
    )


def _sent(queue: ClientQueue, answer: Command, status: str) -> Stored:
    said = _header(SendMessageResponse, answer)
    offset = UNDECIDED if said.queue_offset is None else said.queue_offset
    return Stored(queue, offset, status, said.msg_id or "")


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
    flags = PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if wanted.hold_ms else PullFlag.NONE)
    header = PullMessageRequest(
        consumer_group=wanted.group,
        topic=wanted.topic,
        queue_id=wanted.queue.number,
        queue_offset=wanted.offset,
        max_msg_nums=wanted.count,
        sys_flag=int(flags),
        commit_offset=0,
        suspend_timeout_millis=wanted.hold_ms,
        subscription=ALL_TAGS,
        sub_version=0,
        expression_type=TAG_EXPRESSION,
        bname=wanted.queue.broker,
    )

    def question(place: BrokerPlace) -> Ask:
        return Ask(place.address, RequestCode.PULL_MESSAGE, header, more_ms=wanted.hold_ms)

    answer = yield from _asked_of(wanted.topic, wanted.queue, question, master=False)
    if not rules.was_read(answer.header.code):
        raise _refused(f"the broker of queue {wanted.queue.number}", answer)
    said = _header(PullMessageResponse, answer)
    messages: Sequence[ReadMessage] = ()
    if answer.header.code == ResponseCode.SUCCESS:
        try:
            messages = messages_in(answer.body, wanted.queue, said.offset_delta or 0)
        except RemoteProtocolError as error:
            raise Failed(f"messages of queue {wanted.queue.number} cannot be read: {error}") from error
    following = said.next_begin_offset
    return Pulled(
        [each for each in messages if each.offset >= wanted.offset],
        wanted.offset if following is None or following < 0 else following,
        said.min_offset or 0,
        said.max_offset or 0,
    )


def min_offset(topic: str, queue: ClientQueue) -> Steps[int]:
    """Where a queue begins. Raises Failed."""
    header = GetMinOffsetRequest(topic=topic, queue_id=queue.number, bname=queue.broker)
    answer = yield from _question(topic, queue, RequestCode.GET_MIN_OFFSET, header)
    return _header(GetMinOffsetResponse, answer).offset or 0


def max_offset(topic: str, queue: ClientQueue) -> Steps[int]:
    """Where a queue ends: the offset of the next message. Raises Failed."""
    header = GetMaxOffsetRequest(topic=topic, queue_id=queue.number, bname=queue.broker)
    answer = yield from _question(topic, queue, RequestCode.GET_MAX_OFFSET, header)
    return _header(GetMaxOffsetResponse, answer).offset or 0


def offset_at(topic: str, queue: ClientQueue, at_ms: int) -> Steps[int]:
    """The offset of the first message that was stored at this time or later. Raises Failed."""
    header = SearchOffsetRequest(topic=topic, queue_id=queue.number, timestamp=at_ms, bname=queue.broker)
    answer = yield from _question(topic, queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return _header(SearchOffsetResponse, answer).offset or 0


def position(topic: str, queue: ClientQueue, group: str) -> Steps[int | None]:
    """What a group reads next of a queue; None where it never said so. Raises Failed."""
    header = QueryConsumerOffsetRequest(
        consumer_group=group,
        topic=topic,
        queue_id=queue.number,
        set_zero_if_not_found=False,
        bname=queue.broker,
    )

    def question(place: BrokerPlace) -> Ask:
        return Ask(place.address, RequestCode.QUERY_CONSUMER_OFFSET, header)

    answer = yield from _asked_of(topic, queue, question, master=True)
    if answer.header.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    offset = _header(QueryConsumerOffsetResponse, _granted(queue, answer)).offset
    return None if offset is None or offset < 0 else offset


def commit(topic: str, queue: ClientQueue, group: str, offset: int) -> Steps[int]:
    """A group says what it reads next of a queue. Raises Failed."""
    header = UpdateConsumerOffsetRequest(
        bname=queue.broker, consumer_group=group, topic=topic, queue_id=queue.number, commit_offset=offset
    )
    yield from _question(topic, queue, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    return offset


def _question(topic: str, queue: ClientQueue, code: RequestCode, header: Header) -> Steps[Command]:
    def question(place: BrokerPlace) -> Ask:
        return Ask(place.address, code, header)

    answer = yield from _asked_of(topic, queue, question, master=True)
    return _granted(queue, answer)


def looked_up(topic: str) -> Steps[Route]:
    """The route of a topic. Raises Failed."""
    route = yield LookUp(topic)
    assert isinstance(route, Route)
    return route
