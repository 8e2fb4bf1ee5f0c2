"""What a broker asks others of a static topic: those that have older items, and the one that leads.

What they answer is looked at before anybody is told of it: offsets outside of the item, and records of
another queue, are no answer. Source: apache/rocketmq rocketmq-all-5.4.0, PullMessageProcessor,
ConsumerManageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.asking import header_in
from replispec.runtime.rocketmq.client.routes import BrokerPlace, Route
from replispec.runtime.rocketmq.client.steps import Ask, Failed, LookUp, Steps, looked_up
from replispec.runtime.rocketmq.framing import Command, FrameBuffer
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.wire.rocketmq.broker import PullMessageRequest, PullMessageResponse, SendMessageResponse
from replispec.wire.rocketmq.client import (
    ConsumerOffsetTable,
    GetAllConsumerOffsetRequest,
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
from replispec.wire.rocketmq.commands import RESPONSE_HEADERS
from replispec.wire.rocketmq.constants import OFFSET_MAX, TOPIC_GROUP_SEPARATOR, UNDECIDED
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG

HeaderT = TypeVar("HeaderT", bound=Header)
_REMARK_MAX = 400
_WAITS_AND_COMMITS = PullFlag.SUSPEND | PullFlag.COMMIT_OFFSET


@dataclass(frozen=True, slots=True)
class HeldItem:
    """A physical queue of a topic at a broker, up to an offset; `end`: OFFSET_MAX where that is open."""

    topic: str
    broker: str
    queue_id: int
    end: int = OFFSET_MAX


@dataclass(frozen=True, slots=True)
class PulledItem:
    """What lies in a physical queue from an offset on, and where that queue begins and ends."""

    next_offset: int
    min_offset: int
    max_offset: int
    records: bytes | None = None


# ---- of an item ----------------------------------------------------------------------------------


def pull_item(item: HeldItem, asked: PullMessageRequest, offset: int) -> Steps[PulledItem]:
    """What lies there from a physical offset on, at once; nobody's position is told. Raises Failed."""
    header = replace(
        asked,
        queue_offset=offset,
        max_msg_nums=max(1, min(asked.max_msg_nums or 0, item.end - offset)),
        sys_flag=(asked.sys_flag or 0) & ~_WAITS_AND_COMMITS,
        **_meaning(item),
    )
    answer = yield from _at_holder(item, RequestCode.PULL_MESSAGE, header)
    code = answer.header.code
    said = header_in(PullMessageResponse, answer)
    following, low, top = said.next_begin_offset, said.min_offset, said.max_offset
    if not rules.was_read(code) or following is None or low is None or top is None:
        raise _refused(item, answer)
    if not 0 <= low <= top <= OFFSET_MAX or not 0 <= following <= OFFSET_MAX:
        raise Failed(f"{item.broker[:40]} tells of offsets {low} to {top}, and goes on at {following}")
    if code != ResponseCode.SUCCESS:
        return PulledItem(following, low, top)
    behind = _behind_records(item, answer.body, offset)
    if not behind <= following <= max(behind, top):
        raise Failed(f"{item.broker[:40]} goes on at {following} behind {behind}")
    return PulledItem(min(following, max(behind, item.end)), low, top, answer.body)


def pull_to_border(item: HeldItem, asked: PullMessageRequest, offset: int) -> Steps[PulledItem]:
    """The same, where what lies behind the item is read next: that it has no more messages is only believed
    of who is its master by a route of now, and knows what is confirmed. Raises Failed."""
    found = yield from pull_item(item, asked, offset)
    if found.records is not None or offset < found.max_offset or item.end == OFFSET_MAX:
        return found
    yield from _fresh_route(item)
    end = yield from max_of_item(item)
    return replace(found, max_offset=max(end, found.min_offset))


def min_of_item(item: HeldItem, asked: GetMinOffsetRequest) -> Steps[int]:
    """Where it begins. Raises Failed."""
    answer = yield from _at_holder(item, RequestCode.GET_MIN_OFFSET, replace(asked, **_meaning(item)))
    return _offset(item, answer, header_in(GetMinOffsetResponse, answer).offset)


def max_of_item(item: HeldItem, asked: GetMaxOffsetRequest | None = None) -> Steps[int]:
    """Where it ends. Raises Failed."""
    header = replace(asked or GetMaxOffsetRequest(topic=item.topic), **_meaning(item))
    answer = yield from _at_holder(item, RequestCode.GET_MAX_OFFSET, header)
    return _offset(item, answer, header_in(GetMaxOffsetResponse, answer).offset)


def offset_in_item(item: HeldItem, asked: SearchOffsetRequest) -> Steps[int | None]:
    """The first message that was stored at a time or later; None where it has none. Raises Failed."""
    header = replace(asked, **_meaning(item))
    answer = yield from _at_holder(item, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    found = header_in(SearchOffsetResponse, answer).offset
    if answer.header.code == ResponseCode.SUCCESS and found is not None and found < 0:
        return None
    offset = _offset(item, answer, found)
    end = yield from max_of_item(item)
    # Whoever has none tells its end.
    return offset if offset < min(end, item.end) else None


def position_in_item(item: HeldItem, asked: QueryConsumerOffsetRequest) -> Steps[int | None]:
    """What a group reads next of it; None where it never read it. Raises Failed."""
    header = replace(asked, set_zero_if_not_found=False, **_meaning(item))
    answer = yield from _at_holder(item, RequestCode.QUERY_CONSUMER_OFFSET, header)
    if answer.header.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    found = header_in(QueryConsumerOffsetResponse, answer).offset
    if answer.header.code == ResponseCode.SUCCESS and found is not None and found < 0:
        # The group was moved to older items.
        return None
    return _offset(item, answer, found)


def commit_in_item(item: HeldItem, asked: UpdateConsumerOffsetRequest, offset: int) -> Steps[int]:
    """A group reads on there. Raises Failed."""
    header = replace(asked, commit_offset=offset, **_meaning(item))
    answer = yield from _at_holder(item, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    return _offset(item, answer, offset)


def is_item_empty(item: HeldItem) -> Steps[bool]:
    """Whether its queue has no message any more, or never had one; only who is its master by a route of now
    is believed. Raises Failed."""
    yield from _fresh_route(item)
    end = yield from max_of_item(item)
    low = yield from min_of_item(item, GetMinOffsetRequest(topic=item.topic))
    return low >= end


def groups_in_item(item: HeldItem) -> Steps[Sequence[str]]:
    """The groups that said how far they have read it. Raises Failed."""
    answer = yield from _at_holder(item, RequestCode.GET_ALL_CONSUMER_OFFSET, GetAllConsumerOffsetRequest())
    if answer.header.code != ResponseCode.SUCCESS:
        raise _refused(item, answer)
    try:
        return groups_of(ConsumerOffsetTable.decode(answer.body), item)
    except RemoteProtocolError as error:
        raise Failed(f"{item.broker[:40]} tells of groups what cannot be read: {error}") from error


def groups_of(table: ConsumerOffsetTable, item: HeldItem) -> Sequence[str]:
    """Those of a table of positions that have one in an item, ascending."""
    before = f"{item.topic}{TOPIC_GROUP_SEPARATOR}"
    return sorted(
        key.removeprefix(before)
        for key, queues in (table.offset_table or {}).items()
        if key.startswith(before) and (queues.offsets or {}).get(item.queue_id, UNDECIDED) >= 0
    )


def _fresh_route(item: HeldItem) -> Steps[None]:
    """Have the route of its topic told anew. Raises Failed."""
    route = yield from looked_up(item.topic)
    if (yield LookUp(item.topic, route)) is route:
        raise Failed(f"nobody says who is master of {item.broker[:40]} now")


def _meaning(item: HeldItem) -> dict[str, Any]:
    """What is the same in all that is asked of an item's broker; what somebody else signed is not."""
    return {"queue_id": item.queue_id, "lo": False, "bname": item.broker, "unknown": {}}


def _at_holder(item: HeldItem, code: RequestCode, header: Header) -> Steps[Command]:
    """Ask the broker of an item; once more where it was somewhere else. Raises Failed."""
    found = yield from _at_broker(
        item.topic, lambda _route: item.broker, lambda place: Ask(place.address, code, header)
    )
    if found is None:
        raise Failed(f"no route to {item.broker[:40]}")
    return found


def _offset(item: HeldItem, answer: Command, offset: int | None) -> int:
    if answer.header.code != ResponseCode.SUCCESS or offset is None:
        raise _refused(item, answer)
    if not 0 <= offset <= OFFSET_MAX:
        raise Failed(f"{item.broker[:40]} tells of offset {offset}")
    return offset


def _behind_records(item: HeldItem, body: bytes, offset: int) -> int:
    """Where to go on behind the records of an answer, one at least. Raises Failed."""
    try:
        frames = FrameBuffer(COMMIT_LOG).receive(body)
        records = [LogRecord.decode(frame) for frame in frames]
    except RemoteProtocolError as error:
        raise Failed(f"{item.broker[:40]} answers with what is no log: {error}") from error
    if not records or sum(map(len, frames)) != len(body):
        raise Failed(f"{item.broker[:40]} answers with what is no log")
    for each in records:
        is_of_queue = each.topic == item.topic and each.queue_id == item.queue_id
        if not is_of_queue or not offset <= each.queue_offset < item.end:
            raise Failed(f"{item.broker[:40]} answers with messages of another queue or offset")
        offset = each.queue_offset + 1
    return offset


def _refused(item: HeldItem, answer: Command) -> Failed:
    remark = " ".join((answer.header.remark or "").split())
    return Failed(f"{item.broker[:40]} answers {answer.header.code}: {remark}"[:200], code=answer.header.code)


# ---- of who leads --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandedOn:
    """A request about a logical queue, which the broker `own` hands on; as far as it knows, `known` leads.
    `named`: the queue of a sender of before, which the answer names again."""

    topic: str
    index: int
    known: str | None
    own: str
    code: int
    body: bytes
    named: int | None = None


def at_leader(asked: HandedOn, header: Callable[[str], Header]) -> Steps[Command | None]:
    """Ask who leads a logical queue: by the route, or by what is known where that names nobody, or only who
    asks; once more where that was somebody else. None where nobody is known. Raises Failed."""

    def chosen(route: Route) -> str | None:
        leader = route.leaders.get(asked.index)
        return asked.known if leader in (None, asked.own) else leader

    def question(place: BrokerPlace) -> Ask:
        return Ask(place.address, RequestCode(asked.code), header(place.broker), asked.body)

    answer = yield from _at_broker(asked.topic, chosen, question)
    if answer is None:
        return None
    said = header_in(RESPONSE_HEADERS[asked.code], answer)
    is_stored = rules.send_status(answer.header.code) is not None
    if asked.named is not None and is_stored and isinstance(said, SendMessageResponse):
        said = replace(said, queue_id=asked.named)
    remark = None if answer.header.remark is None else answer.header.remark[:_REMARK_MAX]
    header_said = replace(answer.header, ext_fields=said.to_ext_fields(), remark=remark)
    return Command(header_said, answer.body)


def _at_broker(
    topic: str, chosen: Callable[[Route], str | None], question: Callable[[BrokerPlace], Ask]
) -> Steps[Command | None]:
    """Ask a broker; where nobody is there, or that one answers for somebody else, look for it anew, and ask
    once more: nobody twice who has answered."""
    wrong: Route | None = None
    answers: dict[BrokerPlace, Command] = {}
    failure: Failed | None = None
    for _ in range(2):
        route = yield LookUp(topic, wrong)
        assert isinstance(route, Route)
        wrong = route
        broker = chosen(route)
        members = route.members.get(broker or "", {})
        if broker is None or not members:
            continue
        place = BrokerPlace(broker, members[min(members)])
        if place in answers:
            break
        outcome = yield question(place)
        if isinstance(outcome, Failure):
            failure = Failed(f"{broker[:40]}: {outcome.reason}", sent=outcome.sent)
            if outcome.sent:
                raise failure
            continue
        assert isinstance(outcome, Command)
        answers[place] = outcome
        if not rules.asks_elsewhere(outcome.header.code):
            return outcome
    if not answers and failure is not None:
        raise failure
    return next(reversed(answers.values()), None)
