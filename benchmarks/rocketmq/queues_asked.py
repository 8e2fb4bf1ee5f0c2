"""A bare connection that sends messages and reads them back, and what its answers have to be.

What is sent is encoded before the clock starts, and what came is looked at when it has stopped.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.family import WrongResultError
from lab.ports import LOOPBACK
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.client import ClientQueue
from replispec.runtime.rocketmq.client.messages import messages_in
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.runtime.rocketmq.remoting import BROKER_RELEASE
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.codes import MessageFlag, PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import (
    ALL_TAGS,
    MOCK_BROKER_GLOBAL,
    TAG_EXPRESSION,
    TEMPLATE_TOPIC,
)
from replispec.wire.rocketmq.remoting import RemotingHeader

BODY_BYTES: Final = 100
DEPTH: Final = 64
PULLED_MAX: Final = 32
CHUNK_BYTES: Final = 1 << 20
LENGTH_BYTES: Final = 4
PATIENCE_S: Final = 60.0
GROUP: Final = "bench-queues"


@dataclass(slots=True)
class MeasuredTopic:
    """A topic as its clients ask for it: which broker a send names, which a pull, and whether requests say
    that they know logical queues of RIP-21. `stored` is what was acknowledged: the number of each message, by
    queue and offset."""

    name: str
    broker: str
    queues: int
    is_logical: bool = False
    is_static: bool = False
    stored: list[dict[int, int]] = field(init=False)
    sent: int = 0

    def __post_init__(self) -> None:
        self.stored = [{} for _ in range(self.queues)]

    def ends(self) -> Sequence[int]:
        """Where the next message of each queue goes."""
        return list(map(len, self.stored))

    def send(self, queue: int) -> Header:
        """The header of a message to one of its queues."""
        flags = MessageFlag.LOGICAL_QUEUE if self.is_logical else MessageFlag.NONE
        return SendMessageV2Request(
            producer_group=GROUP,
            topic=self.name,
            default_topic=TEMPLATE_TOPIC,
            default_topic_queue_nums=self.queues,
            queue_id=queue,
            sys_flag=int(flags),
            born_timestamp=1,
            flag=0,
            properties="",
            reconsume_times=0,
            unit_mode=False,
            batch=False,
            broker_name=self.broker,
        )

    def pull(self, queue: int, offset: int) -> Header:
        """The header of a pull."""
        flags = PullFlag.SUBSCRIPTION | (PullFlag.LOGICAL_QUEUE if self.is_logical else PullFlag.NONE)
        return PullMessageRequest(
            consumer_group=GROUP,
            topic=self.name,
            queue_id=queue,
            queue_offset=offset,
            max_msg_nums=PULLED_MAX,
            sys_flag=int(flags),
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=ALL_TAGS,
            sub_version=0,
            expression_type=TAG_EXPRESSION,
            bname=MOCK_BROKER_GLOBAL if self.is_static else self.broker,
        )


def frame(code: RequestCode, header: Header, opaque: int, body: bytes = b"") -> bytes:
    """A request as it travels."""
    fields = RemotingHeader(
        code=code, version=BROKER_RELEASE, opaque=opaque, ext_fields=header.to_ext_fields()
    )
    return Command(fields, body).encode()


def body_of(number: int) -> bytes:
    """A message that is told from all others."""
    return b"%d " % number + b"x" * (BODY_BYTES - len(b"%d " % number))


class Connection:
    """Requests on one connection, and the frames that answer them. Raises OSError."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = bytearray()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """One request and its answer."""
        self._socket.sendall(request)
        return self._came()[0]

    def one_at_a_time(self, requests: Sequence[bytes]) -> tuple[list[bytes], list[float]]:
        """Each sent when the one before is answered; answers, and milliseconds of each."""
        answers, times = [], []
        for request in requests:
            began_s = time.perf_counter()
            answers.append(self.ask(request))
            times.append((time.perf_counter() - began_s) * 1e3)
        return answers, times

    def pipelined(self, requests: Sequence[bytes]) -> list[bytes]:
        """DEPTH of them under way all the time."""
        self._socket.sendall(b"".join(requests[:DEPTH]))
        answers, sent = list[bytes](), DEPTH
        while len(answers) < len(requests):
            came = self._came()
            answers += came
            more = requests[sent : sent + len(came)]
            sent += len(more)
            if more:
                self._socket.sendall(b"".join(more))
        return answers

    def _came(self) -> list[bytes]:
        """The answers that are whole, at least one."""
        data = self._data
        while True:
            at, found = 0, list[bytes]()
            while len(data) - at >= LENGTH_BYTES:
                end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
                if end > len(data):
                    break
                found.append(bytes(data[at:end]))
                at = end
            if found:
                del data[:at]
                return found
            piece = self._socket.recv(CHUNK_BYTES)
            if not piece:
                raise WrongResultError("the broker hung up")
            data += piece


# ---- what is measured ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages in a second, and the median and 99th percentile of one answer in milliseconds."""

    per_second: float
    p50_ms: float = 0.0
    p99_ms: float = 0.0


def send(connection: Connection, topic: MeasuredTopic, count: int, *, is_deep: bool) -> Rate:
    """Messages to all queues in turn. Raises WrongResultError unless each is stored where it has to be."""
    placed = [(each % topic.queues, topic.sent + each) for each in range(count)]
    requests = [
        frame(RequestCode.SEND_MESSAGE_V2, topic.send(queue), opaque, body_of(number))
        for opaque, (queue, number) in enumerate(placed)
    ]
    times: list[float] = []
    began_s = time.perf_counter()
    if is_deep:
        answers = connection.pipelined(requests)
    else:
        answers, times = connection.one_at_a_time(requests)
    took_s = time.perf_counter() - began_s
    judge_sent(topic, placed, answers)
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    return Rate(count / took_s, cuts[49], cuts[98])


def judge_sent(topic: MeasuredTopic, sent: Sequence[tuple[int, int]], answers: Sequence[bytes]) -> None:
    """Take what is told of messages, each its queue and number. Raises WrongResultError unless each of them
    was stored in its queue, and those of a queue one after the other; those under way together may have been
    stored in any order."""
    answered: set[int] = set()
    before = topic.ends()
    for answer in map(_command, answers):
        queue, number = sent[answer.header.opaque]
        said = SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})
        answered.add(answer.header.opaque)
        if answer.header.code != ResponseCode.SUCCESS or said.queue_id != queue:
            told = f"{answer.header.code} {answer.header.remark or ''} {said.queue_id}"
            raise WrongResultError(f"{topic.name} queue {queue}: a message is not stored there: {told}")
        if said.queue_offset is None or said.queue_offset in topic.stored[queue]:
            raise WrongResultError(f"{topic.name} queue {queue}: offset {said.queue_offset} was given twice")
        topic.stored[queue][said.queue_offset] = number
    if len(answered) < len(sent) or len(answers) > len(sent):
        raise WrongResultError(f"{topic.name}: {len(answers)} answers to {len(sent)} messages")
    topic.sent += len(sent)
    for queue, (begin, end) in enumerate(zip(before, topic.ends(), strict=True)):
        if not all(offset in topic.stored[queue] for offset in range(begin, end)):
            raise WrongResultError(f"{topic.name} queue {queue}: offsets with a hole from {begin} on")


def read(connection: Connection, topic: MeasuredTopic, begins: Sequence[int]) -> Rate:
    """All queues one after the other, from these offsets to their ends, one pull at a time. Raises
    WrongResultError unless every message comes once, in its place."""
    pulls: list[tuple[int, int, bytes]] = []
    began_s = time.perf_counter()
    for queue in range(topic.queues):
        offset, end = begins[queue], topic.ends()[queue]
        while offset < end:
            answer = connection.ask(frame(RequestCode.PULL_MESSAGE, topic.pull(queue, offset), len(pulls)))
            pulls.append((queue, offset, answer))
            following = _next_of(answer)
            if following <= offset:
                raise WrongResultError(f"{topic.name} queue {queue}: a pull at {offset} leads to {following}")
            offset = following
    took_s = time.perf_counter() - began_s
    judge_read(topic, begins, pulls)
    return Rate((sum(topic.ends()) - sum(begins)) / took_s)


def _next_of(answer: bytes) -> int:
    command = _command(answer)
    said = PullMessageResponse.from_ext_fields(command.header.ext_fields or {})
    return -1 if said.next_begin_offset is None else said.next_begin_offset


def judge_read(topic: MeasuredTopic, begins: Sequence[int], pulls: Sequence[tuple[int, int, bytes]]) -> None:
    """Raises WrongResultError unless these pulls brought every message once, in its place."""
    wanted = list(begins)
    for queue, offset, answer in pulls:
        command = _command(answer)
        said = PullMessageResponse.from_ext_fields(command.header.ext_fields or {})
        for each in messages_in(command.body, ClientQueue(topic.broker, queue), said.offset_delta or 0):
            number = topic.stored[queue].get(wanted[queue], -1)
            if each.offset != wanted[queue] or each.body != body_of(number):
                found = f"{each.body[:12]!r} at {each.offset}"
                raise WrongResultError(
                    f"{topic.name} queue {queue}: {found}, not {number} at {wanted[queue]}"
                )
            wanted[queue] += 1
        if said.next_begin_offset != wanted[queue]:
            raise WrongResultError(f"{topic.name} queue {queue}: {offset} is followed by {said}")
    if wanted != topic.ends():
        raise WrongResultError(f"{topic.name}: read up to {wanted}, sent up to {topic.ends()}")


def _command(answer: bytes) -> Command:
    try:
        return decode_command(answer)
    except RemoteProtocolError as error:
        raise WrongResultError(f"an answer cannot be read: {error}") from error
