"""What a broker asks others of logical queues of RIP-21: to store what an older client sent to a segment that
ended. It asks as one that knows logical queues, so that nobody hands it on a second time.

Source: RIP-21; apache/rocketmq 5.0.0-PREVIEW, AbstractSendMessageProcessor.logicalQueueHookForward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.routes import Route
from replispec.runtime.rocketmq.client.steps import Ask, Failed, LookUp, Steps
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import Segment
from replispec.runtime.rocketmq.queues.forms import queues_of
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.wire.rocketmq.broker import SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.codes import MessageFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import REDIRECTS_MAX
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueueSegments,
    QueryLogicalQueueMappingRequest,
)
from replispec.wire.rocketmq.message_queue import MessageQueue

_QUERY: Final = RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING


@dataclass(frozen=True, slots=True)
class SentOn:
    """What a broker answered to a send, and the queue that it was sent to."""

    answer: Command
    queue_id: int

    def under(self, asked_id: int) -> Command:
        """The same, as if the message lay in the queue that was asked for; it says which one it is."""
        header = self.answer.header
        if rules.send_status(header.code) is None:
            return self.answer
        said = _read(self.answer)
        said = replace(said, queue_id=asked_id, forward_queue_id=str(self.queue_id))
        return Command(replace(header, ext_fields=said.to_ext_fields()), self.answer.body)


def sent_on(
    topic: str, following: LogicalQueueSegment, code: RequestCode, header: Any, body: bytes
) -> Steps[SentOn]:
    """Send to a segment, or to whichever its broker names instead, so many times at most. Raises Failed."""
    segment = following
    for _ in range(REDIRECTS_MAX):
        queue = segment.message_queue or MessageQueue()
        broker, queue_id = queue.broker_name or "", queue.queue_id or 0
        name = "broker_name" if isinstance(header, SendMessageV2Request) else "bname"
        flags = (header.sys_flag or 0) | MessageFlag.LOGICAL_QUEUE
        said = replace(header, queue_id=queue_id, sys_flag=flags, unknown={}, **{name: broker})
        address = yield from _address(topic, broker, segment.broker_addr)
        outcome = yield Ask(address, code, said, body)
        if isinstance(outcome, Failure):
            raise Failed(f"{broker[:40]}: {outcome.reason}", sent=outcome.sent)
        assert isinstance(outcome, Command)
        if _read(outcome).redirect is None:
            return SentOn(outcome, queue_id)
        segment = _next_of(outcome, broker)
    raise Failed(f"more than {REDIRECTS_MAX} brokers named another one")


def holds_segment(topic: str, index: int, segment: Segment) -> Steps[bool]:
    """Whether the broker of a segment says that it holds it: of this logical queue, in that place of its
    message queue, from that offset on. Raises Failed."""
    broker = segment.queue.broker_name
    address = yield from _address(topic, broker, None)
    outcome = yield Ask(address, _QUERY, QueryLogicalQueueMappingRequest(topic=topic))
    if isinstance(outcome, Failure):
        raise Failed(f"{broker[:40]}: {outcome.reason}")
    assert isinstance(outcome, Command)
    if outcome.header.code != ResponseCode.SUCCESS or outcome.body in {b"", b"null"}:
        return False
    try:
        held = queues_of(LogicalQueues.decode(outcome.body).queues or {}, topic).get(index)
    except RemoteProtocolError as error:
        raise Failed(f"{broker[:40]} holds what cannot be read: {error}") from error
    place = segment.key, segment.logical_start
    return held is not None and any((each.key, each.logical_start) == place for each in held.segments)


def _address(topic: str, broker: str, known: str | None) -> Steps[str]:
    """Where a broker is by the route, else where it was when its segment was told. Raises Failed."""
    try:
        route = yield LookUp(topic)
    except Failed:
        if not known:
            raise
        return known
    assert isinstance(route, Route)
    members = route.members.get(broker, {})
    address = members[min(members)] if members else known
    if not address:
        raise Failed(f"no route to {broker[:40]}")
    return address


def _next_of(answer: Command, broker: str) -> LogicalQueueSegment:
    if not answer.body:
        raise Failed(f"{broker[:40]} does not know who follows")
    try:
        told = LogicalQueueSegments.decode(answer.body).segments or ()
    except RemoteProtocolError as error:
        raise Failed(f"{broker[:40]} redirects to what cannot be read: {error}") from error
    if not told:
        raise Failed(f"{broker[:40]} does not know who follows")
    return told[-1]


def _read(answer: Command) -> SendMessageResponse:
    try:
        return SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})
    except RemoteProtocolError as error:
        raise Failed(f"an answer cannot be read: {error}", sent=True) from error
