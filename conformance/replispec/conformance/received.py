"""What a connection brought: answers, requests of the subject, HA messages, an end, a breach."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.conformance import names
from replispec.conformance.encoding import Question
from replispec.runtime.primitives import jsons
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import Stream
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq import ha
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.commands import RESPONSE_BODIES, RESPONSE_HEADERS
from replispec.wire.rocketmq.streams import REMOTING


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question of this connection."""

    opaque: int
    code: int
    header: Mapping[str, object]
    body: object
    data: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the subject sent."""

    code: int
    header: Mapping[str, object]
    body: object


@dataclass(frozen=True, slots=True)
class Message:
    """A message of an HA stream; `value` is the decoded object."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Ended:
    """The subject ended the connection."""

    how: str


@dataclass(frozen=True, slots=True)
class Breach:
    """What came breaks the protocol, whatever the case expects."""

    reason: str


Received = Answer | Request | Message | Ended | Breach


class RemotingReader:
    """Remoting frames of one connection; knows the questions, so that stray answers are seen."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(REMOTING)
        self._open: Counter[int] = Counter()
        self._codes: dict[int, int] = {}
        self._answerable: set[int] = set()

    def asked(self, question: Question) -> None:
        """A question went out."""
        self._codes[question.opaque] = question.code
        if not question.oneway:
            self._open[question.opaque] += 1
            self._answerable.add(question.opaque)

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            frames = self._frames.receive(data)
        except RemoteProtocolError as fault:
            return [Breach(f"no frame: {fault}")]
        return [self._frame(frame) for frame in frames]

    def _frame(self, frame: bytes) -> Received:
        try:
            command = decode_command(frame)
            if not command.is_answer and command.header.opaque in self._open:
                return Breach("an answer without the flag of answers")
            return self._answer(command, frame) if command.is_answer else self._request(command)
        except RemoteProtocolError as fault:
            return Breach(f"undecodable: {fault}")

    def _request(self, command: Command) -> Request:
        return Request(command.header.code, command.header.ext_fields or {}, _body(command.body))

    def _answer(self, command: Command, frame: bytes) -> Received:
        opaque = command.header.opaque
        if opaque not in self._codes:
            return Breach("an answer to no request")
        if self._open[opaque] <= 0:
            second = opaque in self._answerable
            return Breach("a second answer" if second else "an answer to a one-way request")
        self._open[opaque] -= 1
        code = self._codes[opaque]
        ext_fields = command.header.ext_fields or {}
        if code in RESPONSE_HEADERS:
            RESPONSE_HEADERS[code].from_ext_fields(ext_fields)
        body: object = None
        if command.header.code == ResponseCode.SUCCESS and code in RESPONSE_BODIES and command.body:
            typed = RESPONSE_BODIES[code].decode(command.body)
            body = _parsed(command.body) if hasattr(typed, "to_json") else fields_of(typed)
        else:
            body = _body(command.body)
        return Answer(opaque, command.header.code, ext_fields, body, frame)


def fields_of(typed: object) -> object:
    """A body of text as its fields."""
    return dataclasses.asdict(typed) if dataclasses.is_dataclass(typed) else None  # type: ignore[arg-type]  # an object


def _body(data: bytes) -> object:
    try:
        return _parsed(data) if data else None
    except RemoteProtocolError:
        return data.decode("utf-8", "replace")


def _parsed(data: bytes) -> object:
    parsed: object = jsons.loads(data)
    return parsed


class HaReader:
    """HA messages that a master writes, or with `stream` another side of the conversation."""

    def __init__(self, release: names.Release, stream: Stream | None = None) -> None:
        self._stream = stream or names.master_stream(release)
        self._frames = FrameBuffer(self._stream)

    def asked(self, question: Question) -> None:
        """HA streams have no questions."""

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            frames = self._frames.receive(data)
            return [self._message(frame) for frame in frames]
        except RemoteProtocolError as fault:
            return [Breach(f"no message: {fault}")]

    def _message(self, frame: bytes) -> Message:
        form = self._stream.form_at(frame, 0, len(frame))
        name = "" if isinstance(form, int) else form.message
        return Message(name, getattr(ha, name).decode(frame))


Reader = RemotingReader | HaReader


def described(received: Received, release: names.Release) -> str:
    """One line for the trace."""
    match received:
        case Answer():
            name = names.response_name(received.code, release)
            return f"{name} {_short(received.header)}{_short(received.body)}".rstrip()
        case Request():
            name = names.request_name(received.code, release)
            return f"{name} {_short(received.header)}{_short(received.body)}".rstrip()
        case Message():
            values = dict(names.ha_values(received.value))
            body = values.pop("body", b"")
            return f"{received.name} {values}" + (f" + {len(body)} bytes" if isinstance(body, bytes) else "")
        case Ended():
            return f"the subject ended the connection ({received.how})"
        case Breach():
            return received.reason


def _short(value: object) -> str:
    return "" if not value else f"{value} "
