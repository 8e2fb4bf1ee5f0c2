"""What a client's steps are: generators that yield where to ask, and are sent what came of it.

Like a plan of an administrator, but with routes that grow old, and with other places to ask: a broker that
does not lead a queue says so, and the name server is asked again; one whose segment of a logical queue is
not the right one says which is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.routes import BrokerPlace, ClientQueue, Route, SegmentOf
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import Segment
from replispec.runtime.rocketmq.queues.forms import segments_of
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.wire.rocketmq.broker import PullMessageResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import REDIRECT_PAUSE_MS, REDIRECTS_MAX
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegments

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
class Learn:
    """A broker said of these segments that the logical queue has them; the route is wanted as it is then."""

    topic: str
    index: int
    segments: Sequence[Segment]


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


Wanted = LookUp | Learn | Ask | Pausing
Told = Route | Outcome | int
"""A route, an answer or why there is none, the time after a pause."""
Steps = Generator[Wanted, Told, T]
"""Raises Failed, as `LookUp` does where no route is known."""


class Target(NamedTuple):
    """A queue, where it is asked for, and, of a logical queue of RIP-21, the segment that is asked."""

    queue: ClientQueue
    place: BrokerPlace
    segment: Segment | None = None

    @property
    def number(self) -> int:
        """The queue id that its broker is asked for."""
        return self.queue.number if self.segment is None else self.segment.queue.queue_id

    def offset_there(self, offset: int) -> int:
        """An offset that programs see, as the broker has it."""
        return offset if self.segment is None else self.segment.physical_of(offset)

    def offset_shown(self, offset: int) -> int:
        """An offset of the broker, as programs see it."""
        return offset if self.segment is None else self.segment.logical_of(offset)


Question = Callable[[Target], Ask]


@dataclass(frozen=True, slots=True)
class Errand:
    """What is asked of whoever answers for a queue. `chosen`: the queue, of the route, at each attempt; one
    of which a broker said where it is now is asked for there, and that is no other attempt. `segment_of`:
    which segment, of a logical queue. `again`: it does no harm to ask a second time what may have been done.
    `failure`: where nobody was there to ask."""

    wanted: Callable[[Route | None], LookUp]
    chosen: Callable[[Route, int], ClientQueue | None]
    segment_of: SegmentOf
    question: Question
    failure: Failed
    master: bool = True
    again: bool = True


def asked(errand: Errand) -> Steps[tuple[Target, Command]]:
    """Ask whoever answers for a queue; where that was somebody else, ask there. Raises Failed."""
    wrong: Route | None = None
    failure, pause_ms, attempt = errand.failure, 0, 0
    for turn in range(REDIRECTS_MAX + 1):
        if pause_ms:
            yield Pausing(pause_ms)
        pause_ms = REDIRECT_PAUSE_MS << turn
        route = yield errand.wanted(wrong)
        assert isinstance(route, Route)
        wrong = route
        queue = errand.chosen(route, attempt)
        attempt += 1
        target = None if queue is None else _target(route, queue, errand)
        if target is None:
            continue
        question = errand.question(target)
        outcome = yield question
        if isinstance(outcome, Failure):
            failure = Failed(f"{target.place.address}: {outcome.reason}", sent=outcome.sent)
            if outcome.sent and not errand.again:
                raise failure
            continue
        assert isinstance(outcome, Command)
        redirects = _redirects(question, outcome, route.topic, target)
        if redirects is None and not rules.asks_elsewhere(outcome.header.code):
            return target, outcome
        failure = refused(target.place.address, outcome)
        if redirects:
            learnt = yield Learn(route.topic, target.queue.number, redirects)
            if learnt is not route:
                wrong, pause_ms, attempt = None, 0, attempt - 1
    raise failure


def _target(route: Route, queue: ClientQueue, errand: Errand) -> Target | None:
    """Where to ask for a queue; None while nobody is there."""
    if not route.is_logical:
        place = route.place(queue, master=errand.master)
        return None if place is None else Target(queue, place)
    # The numbers of both forms say nothing of one another.
    logical = route.logical.get(queue.number) if route.has_form_of(queue) else None
    segment = None if logical is None else errand.segment_of(logical)
    place = None if segment is None else route.place_of(segment, master=errand.master)
    return None if place is None else Target(queue, place, segment)


def _redirects(question: Ask, answer: Command, topic: str, target: Target) -> Sequence[Segment] | None:
    """The segments that a broker names instead of what it was asked for; none of them: the name server
    knows. None: it did what it was asked for."""
    if target.segment is None or header_in(PullMessageResponse, answer).redirect is None:
        return None
    try:
        said = LogicalQueueSegments.decode(answer.body) if answer.body else LogicalQueueSegments()
        named = segments_of(said, topic, target.queue.number)
    except RemoteProtocolError:
        named = ()
    if answer.header.code == ResponseCode.SUCCESS:
        # What is stored or read is done; an end is right unless another segment can be read behind it.
        goes_on = any(each.is_readable and each.key != target.segment.key for each in named)
        return named if question.code == RequestCode.GET_MAX_OFFSET and goes_on else None
    return named


def asked_of(
    topic: str, queue: ClientQueue, segment_of: SegmentOf, question: Question, *, master: bool = True
) -> Steps[tuple[Target, Command]]:
    """Ask whoever answers for this queue, as often as it takes. Raises Failed."""
    absent = Failed(f"nobody answers for queue {queue.number} of {topic}")
    errand = Errand(
        lambda wrong: LookUp(topic, wrong),
        lambda _route, _turn: queue,
        segment_of,
        question,
        absent,
        master,
    )
    return (yield from asked(errand))


def looked_up(topic: str) -> Steps[Route]:
    """The route of a topic. Raises Failed."""
    route = yield LookUp(topic)
    assert isinstance(route, Route)
    return route


# ---- answers -------------------------------------------------------------------------------------


def refused(address: str, answer: Command) -> Failed:
    """Why nothing came of a question that was answered."""
    remark = " ".join((answer.header.remark or "").split())
    return Failed(f"{address} refuses: code {answer.header.code}: {remark}"[:400], code=answer.header.code)


def header_in(message: type[HeaderT], answer: Command) -> HeaderT:
    """The typed header of an answer. Raises Failed."""
    try:
        return message.from_ext_fields(answer.header.ext_fields or {})
    except RemoteProtocolError as error:
        raise Failed(f"an answer cannot be read: {error}", sent=True) from error


def granted(queue: ClientQueue, answer: Command) -> Command:
    """An answer that is no refusal. Raises Failed."""
    if answer.header.code == ResponseCode.SUCCESS:
        return answer
    raise refused(f"the broker of queue {queue.number}", answer)
