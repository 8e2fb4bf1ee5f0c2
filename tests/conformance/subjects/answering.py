"""What every subject that answers remoting requests shares: reading frames, finding a handler, answering."""

from __future__ import annotations

import math
from collections.abc import Callable

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.conformance.subjects.records import Answer, Channel, Effect, Refused, Reply


class Reader:
    """Commands out of the bytes of one connection."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(REMOTING)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._frames.waiting_bytes

    def receive(self, data: bytes) -> list[Command]:
        """The commands that these bytes complete. Raises RemoteProtocolError: then the connection ends."""
        return [command for frame in self._frames.receive(data) for command in self.decode(frame)]

    def decode(self, frame: bytes) -> list[Command]:
        """The command that one whole frame is."""
        return [decode_command(frame)]


class Answering:
    """A core with a handler per request code; commands in, effects out."""

    answers_after_s = 0.0

    def __init__(self) -> None:
        self.channel: Channel = 0
        """The connection that the request in hand came on."""
        self.pending: list[Effect] = []
        self.handlers: dict[int, Callable[[Command], Answer]] = {}

    def receive(self, request: Command, channel: Channel) -> list[Effect]:
        """Take one command; returns what is to be done, in order."""
        if request.is_answer:
            return []
        self.channel = channel
        answer = self.answer_to(request)
        replies = self.replies(request, answer) if request.wants_answer else []
        pending, self.pending = self.pending, []
        return [*replies, *pending]

    def reader(self) -> Reader:
        """What makes commands of the bytes of one connection."""
        return Reader()

    def answer_to(self, request: Command) -> Answer:
        """The answer to one request, whatever it is."""
        handler = self.handlers.get(request.header.code)
        if handler is None:
            return self.unknown_code(request)
        try:
            return handler(request)
        except Refused as refusal:
            return refusal.answer
        except RemoteProtocolError as fault:
            return Answer(ResponseCode.SYSTEM_ERROR, remark=str(fault))

    def unknown_code(self, request: Command) -> Answer:
        """The answer to a request that nobody here knows."""
        remark = f" request type {request.header.code} not supported"
        return Answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        """How an answer goes out: as one frame."""
        return [Reply(self.answer_command(request, answer).encode())]

    def answer_command(self, request: Command, answer: Answer) -> Command:
        """The answer as a command."""
        header = RemotingHeader(
            code=answer.code,
            opaque=request.header.opaque,
            flag=RemotingFlag.RESPONSE,
            remark=answer.remark,
            ext_fields=None if answer.header is None else answer.header.to_ext_fields(),
        )
        return Command(header, answer.body)

    def connection_ended(self, waiting_bytes: int, channel: Channel) -> list[Effect]:  # noqa: ARG002
        """A connection has closed; this many bytes of a frame had come on it."""
        return []

    def deadline_s(self) -> float:
        """When `tick` is to be called at the latest."""
        return math.inf

    def tick(self) -> list[Effect]:
        """Time has passed."""
        return []
