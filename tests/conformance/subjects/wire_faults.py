"""Faults of a controller's frames and connections, and rough ones; entered in FAULTS and ROUGH."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingFrameFixed
from replispec.wire.rocketmq.streams import REMOTING
from tests.conformance.subjects.answering import Reader
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, Die, Effect, Flood, Hangup, Reply, Reset

ROUGH: dict[str, type[GoodController]] = {}
PREFIX_BYTES, TYPE_AT, BODY_AT = 4, 4, 8
FRAME_BYTES = REMOTING.forms[0].fixed + REMOTING.forms[0].maximum
LONG_FRAME = REMOTING.forms[0].maximum.to_bytes(PREFIX_BYTES, "big") + bytes(PREFIX_BYTES)
GARBAGE = bytes(range(255, 191, -1))
ROUGH_AT = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET


def frame_length(raw: bytes) -> int:
    """Bytes of the frame that starts like this, its length field included."""
    return PREFIX_BYTES + int.from_bytes(raw[:PREFIX_BYTES], "big")


@fault
class AnswersTwice(GoodController):
    """Every request has two answers."""

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        return super().replies(request, answer) * 2


@fault
class AnswersAnotherRequest(GoodController):
    """The number that pairs answer and request is one too great."""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        command.header.opaque += 1
        return command


@fault
class AnswersWithoutFlag(GoodController):
    """An answer looks like a request."""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        command.header.flag = RemotingFlag.REQUEST
        return command


@fault
class MislabelsEncoding(GoodController):
    """A header in JSON is said to be binary."""

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        command = self.answer_command(request, answer)
        frame = RemotingFrame(SerializeType.ROCKETMQ, command.header.encode_json(), command.body)
        return [Reply(frame.encode())]


@fault
class AnswersOneway(GoodController):
    """What wants no answer gets one."""

    def receive(self, request: Command, channel: int) -> list[Effect]:
        header = replace(request.header, flag=request.header.flag & ~RemotingFlag.ONEWAY)
        return super().receive(replace(request, header=header), channel)


@fault
class AnswersAnswers(GoodController):
    """A command with the flag of answers is taken for a request."""

    def receive(self, request: Command, channel: int) -> list[Effect]:
        header = replace(request.header, flag=request.header.flag & ~RemotingFlag.RESPONSE)
        return super().receive(replace(request, header=header), channel)


@fault
class ClosesOnUnknownCode(GoodController):
    """A request that nobody knows ends the connection."""

    def receive(self, request: Command, channel: int) -> list[Effect]:
        known = request.header.code in self.handlers
        return super().receive(request, channel) if known else [Hangup()]


@fault
class IsSilentOnUnknownCode(GoodController):
    """A request that nobody knows is not answered."""

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        unknown = answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        return [] if unknown else super().replies(request, answer)


@fault
class ClosesAfterAnswer(GoodController):
    """A connection serves one request."""

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        return [*super().replies(request, answer), Hangup()]


@fault
class ClosesOnMissingField(GoodController):
    """A request that lacks a field ends the connection."""

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        broken = answer.code == ResponseCode.SYSTEM_ERROR
        return [Hangup()] if broken else super().replies(request, answer)


@fault
class RefusesBinaryHeaders(GoodController):
    """A request with a binary header ends the connection."""

    def receive(self, request: Command, channel: int) -> list[Effect]:
        if request.serialize_type is SerializeType.ROCKETMQ:
            return [Hangup()]
        return super().receive(request, channel)


class _RawReader(Reader):
    """A reader that remembers the bytes of the frame in hand."""

    def __init__(self) -> None:
        super().__init__()
        self.raw = b""

    def receive(self, data: bytes) -> list[Command]:
        self.raw += data
        commands = super().receive(data)
        self.raw = self.raw[len(self.raw) - self.waiting_bytes :]
        return commands


@fault
class WaitsOnOversize(GoodController):
    """A frame that is announced too long is waited for."""

    class _Reader(_RawReader):
        def receive(self, data: bytes) -> list[Command]:
            if self.waits():
                return []
            try:
                return super().receive(data)
            except RemoteProtocolError:
                if self.waits():
                    return []
                raise

        def waits(self) -> bool:
            return len(self.raw) >= PREFIX_BYTES and frame_length(self.raw) > FRAME_BYTES

    def reader(self) -> Reader:
        return self._Reader()


@fault
class TakesUnknownEncoding(GoodController):
    """A header whose encoding has no name is read as JSON."""

    class _Reader(_RawReader):
        def receive(self, data: bytes) -> list[Command]:
            try:
                return super().receive(data)
            except RemoteProtocolError:
                length = len(self.raw) >= PREFIX_BYTES and frame_length(self.raw)
                if length != len(self.raw) or self.raw[TYPE_AT] in set(SerializeType):
                    raise
                frame = bytearray(self.raw)
                frame[TYPE_AT] = SerializeType.JSON
                self.__init__()  # type: ignore[misc]
                return [decode_command(bytes(frame))]

    def reader(self) -> Reader:
        return self._Reader()


@fault
class PassesOverBrokenHeaders(GoodController):
    """A whole frame whose header cannot be read is passed over."""

    class _Reader(Reader):
        def decode(self, frame: bytes) -> list[Command]:
            try:
                return super().decode(frame)
            except RemoteProtocolError:
                return []

    def reader(self) -> Reader:
        return self._Reader()


@fault
class AnswersHalfFrames(GoodController):
    """A request is answered when its header is there, before its body is."""

    class _Reader(_RawReader):
        early = False

        def receive(self, data: bytes) -> list[Command]:
            commands = super().receive(data)
            if not self.waiting_bytes:
                self.early = False
            elif len(self.raw) > BODY_AT and not self.early:
                head = RemotingFrameFixed.decode(self.raw)
                header_end = BODY_AT + head.header_length
                if len(self.raw) >= header_end:
                    self.early = True
                    header, body = self.raw[BODY_AT:header_end], self.raw[header_end:]
                    frame = RemotingFrame(head.serialize_type, header, body)
                    commands.append(decode_command(frame.encode()))
            return commands

    def reader(self) -> Reader:
        return self._Reader()


@fault
class NeedsWholeFrames(GoodController):
    """A frame that comes in two pieces ends the connection."""

    class _Reader(Reader):
        def receive(self, data: bytes) -> list[Command]:
            commands = super().receive(data)
            if self.waiting_bytes:
                raise RemoteProtocolError("half a frame")
            return commands

    def reader(self) -> Reader:
        return self._Reader()


@fault
class ServesOneFrameOfMany(GoodController):
    """Of several requests that come together the first is served."""

    class _Reader(Reader):
        def receive(self, data: bytes) -> list[Command]:
            return super().receive(data)[:1]

    def reader(self) -> Reader:
        return self._Reader()


@fault
class DiesOnCutFrame(GoodController):
    """A connection that ends inside a frame ends the whole controller."""

    def connection_ended(self, waiting_bytes: int, channel: int) -> list[Effect]:
        return [Die()] if waiting_bytes else super().connection_ended(waiting_bytes, channel)


# Rough ones: what they do to a case must not harm the next one.


def rough(name: str, effects: Callable[[Command], list[Effect]]) -> None:
    """Enter a subject that is good but for one kind of request, to which it does this."""

    class Rough(GoodController):
        def receive(self, request: Command, channel: int) -> list[Effect]:
            if request.header.code == ROUGH_AT:
                return effects(self.answer_command(request, Answer()))
            return super().receive(request, channel)

    ROUGH[name] = Rough


rough("hangs", lambda _answer: [])
rough("resets", lambda _answer: [Reset()])
rough("closes", lambda _answer: [Hangup()])
rough("answers-garbage", lambda _answer: [Reply(GARBAGE)])
rough("answers-half-and-hangs", lambda answer: [Reply(answer.encode()[:-2])])
rough("answers-half-and-closes", lambda answer: [Reply(answer.encode()[:-2]), Hangup()])
rough("announces-too-much", lambda _answer: [Reply(b"\x7f\xff\xff\xff" + GARBAGE)])
rough("floods-with-answers", lambda answer: [Flood(answer.encode() * 50)])
rough("floods-with-bytes", lambda _answer: [Flood(GARBAGE * 1000)])
rough("floods-with-one-frame", lambda _answer: [Reply(LONG_FRAME), Flood(bytes(65536))])
rough("dies", lambda _answer: [Die()])
