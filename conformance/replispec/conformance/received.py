"""What a connection brought: answers, requests of the subject, messages of a stream, an end, a breach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from replispec.conformance.encoding import Question
from replispec.conformance.vocabulary import Dialect, Vocabulary, message_values
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.streams import Stream


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer to a question of this connection."""

    opaque: int
    code: int
    header: Mapping[str, object]
    body: object
    data: bytes = field(repr=False, default=b"")
    flag: int = 0


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that the subject sent."""

    code: int
    header: Mapping[str, object]
    body: object
    opaque: int = 0
    flag: int = 0
    oneway: bool = False
    version: int = 0

    def question(self) -> Question:
        """What an answer must know of it."""
        return Question(self.opaque, self.code, self.oneway, self.version)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message of a stream; `value` is the decoded object."""

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


@dataclass(frozen=True, slots=True)
class ReceivedLog:
    """What a replica counted while it took a log."""

    counts: Mapping[str, object]


Received = ReceivedAnswer | ReceivedRequest | ReceivedMessage | Ended | Breach


class SubjectReader(Protocol):
    """Reads what a subject writes on one connection."""

    def asked(self, question: Question) -> None:
        """A question went out."""
        ...

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        ...

    def ended(self) -> list[Received]:
        """What the end of the connection, in order, completes."""
        ...


class StreamReader:
    """Messages that stand alone in a stream, whose questions are not answered one by one."""

    def __init__(self, stream: Stream, vocabulary: Vocabulary) -> None:
        self._stream = stream
        self._messages = vocabulary.messages
        self._frames = FrameBuffer(stream)

    def asked(self, question: Question) -> None:
        """Streams have no questions."""

    def receive(self, data: bytes) -> list[Received]:
        """What these bytes complete. After a breach nothing more is read."""
        try:
            frames = self._frames.receive(data)
            return [self._message(frame) for frame in frames]
        except RemoteProtocolError as fault:
            return [Breach(f"no message: {fault}")]

    def ended(self) -> list[Received]:
        """Each message tells its own end."""
        return []

    def _message(self, frame: bytes) -> ReceivedMessage:
        form = self._stream.form_at(frame, 0, len(frame))
        name = "" if isinstance(form, int) else form.message
        kind: Any = self._messages[name]
        return ReceivedMessage(name, kind.decode(frame))


def described(received: Received, dialect: Dialect) -> str:
    """One line for the trace."""
    match received:
        case ReceivedAnswer():
            name = dialect.response_name(received.code)
            return f"{name} {_short(received.header)}{_short(received.body)}".rstrip()
        case ReceivedRequest():
            name = dialect.request_name(received.code)
            return f"{name} {_short(received.header)}{_short(received.body)}".rstrip()
        case ReceivedMessage():
            values = dict(message_values(received.value))
            body = values.pop("body", b"")
            return f"{received.name} {values}" + (f" + {len(body)} bytes" if isinstance(body, bytes) else "")
        case Ended():
            return f"the subject ended the connection ({received.how})"
        case Breach():
            return received.reason


def _short(value: object) -> str:
    return "" if not value else f"{value} "
