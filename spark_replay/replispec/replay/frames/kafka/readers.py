"""Requests and answers of brokers: a size, then a head that no mark tells.

A connection is known by its first request: a key that is specified, in a version that somebody may speak,
from a client with a printable name. An answer is its number and bytes, which only its request explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from replispec.replay.frames.kafka.kept import kept_answer, kept_request
from replispec.replay.frames.readers import NO_FRAME, NOT_WHOLE, OneByOne, Outcome
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import Stream
from replispec.wire.kafka import streams
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.constants import OPENING_KEY_MAX, OPENING_VERSION_MAX
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame

REQUESTS, ANSWERS = "kafka_requests", "kafka_answers"
_LEAST: Final = {
    key: min(form.first for form in APACHE_RESPONSE_FRAME.forms if form.code == key) for key in ApiKey
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without records; `kept` is None where its body was too long."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    kept: bytes | None


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer without records; `kept` is None where its body was too long."""

    correlation_id: int
    kept: bytes | None


class _Reader(OneByOne):
    """Frames of one direction, told from the start of a connection only."""

    evidence = 3
    searched = False
    stream: Stream

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        at = space.window(position, self.stream.head_size)
        try:
            size = self.stream.measure(space.buffer, at, len(space.buffer))
            if size < 0:
                return NOT_WHOLE
            at = space.window(position, size)
            if len(space.buffer) - at < size:
                return Outcome(size)
            message, body_size = self.message(space.buffer[at : at + size])
        except RemoteProtocolError:
            return NO_FRAME
        return Outcome(size, message, body_size)

    def message(self, frame: bytes) -> tuple[Any, int]:
        """The frame, and how many bytes its body has. Raises RemoteProtocolError."""
        raise NotImplementedError


class RequestReader(_Reader):
    """What a client sends, another broker, or the controller."""

    kind = REQUESTS
    stream = streams.APACHE_REQUESTS
    begins_marked = True

    def message(self, frame: bytes) -> tuple[Any, int]:
        """See _Reader."""
        told = ApacheRequestFrame.decode(frame)
        names = told.api_key, told.api_version, told.correlation_id, told.client_id
        return Asked(*names, kept_request(told)), len(told.body)

    def plausible(self, message: Asked) -> bool:
        """A key that is specified, in no older version than is; a name that can be printed."""
        least = _LEAST.get(message.api_key)  # type: ignore[call-overload]
        is_known = least is not None and least <= message.api_version
        return is_known and _may_be(message)

    def follows(self, previous: Asked, message: Asked) -> bool:  # noqa: ARG002 (numbers may be chosen freely)
        """Any request may follow."""
        return _may_be(message)


class AnswerReader(_Reader):
    """What a broker answers."""

    kind = ANSWERS
    stream = streams.APACHE_RESPONSES

    def message(self, frame: bytes) -> tuple[Any, int]:
        """See _Reader."""
        told = ApacheResponseFrame.decode(frame)
        return Answered(told.correlation_id, kept_answer(told.body)), len(told.body)

    def plausible(self, message: Answered) -> bool:  # noqa: ARG002 (its bytes say nothing)
        """Any number may be answered."""
        return True

    def follows(self, previous: Answered, message: Answered) -> bool:  # noqa: ARG002 (as above)
        """See plausible."""
        return True


def _may_be(message: Asked) -> bool:
    in_range = 0 <= message.api_key <= OPENING_KEY_MAX and 0 <= message.api_version <= OPENING_VERSION_MAX
    return in_range and (message.client_id is None or message.client_id.isprintable())
