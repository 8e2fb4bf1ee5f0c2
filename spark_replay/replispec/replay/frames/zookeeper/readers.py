"""Frames between clients and servers: the first one of a connection, requests, and answers.

A connection is known by its first frame, of a client that asks for a session or says a word. What an answer
says is told by its request, and requests lie in the other direction: here an answer is its frame alone.
"""

from __future__ import annotations

from typing import Any

from replispec.replay.frames.readers import NO_FRAME, NOT_WHOLE, OneByOne, Outcome
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.zookeeper import connection, streams

REQUESTS, ANSWERS = "zookeeper_requests", "zookeeper_answers"
MESSAGES: dict[str, Any] = {
    each.__name__: each
    for each in (
        connection.AdminWordFrame,
        connection.ConnectRequest,
        connection.ConnectResponse,
        connection.RequestFrame,
        connection.ReplyFrame,
    )
}


class ConnectionReader(OneByOne):
    """Frames of one direction, told from the start of a connection only."""

    evidence = 3
    searched = False
    begins_marked = True

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stream = streams.REQUESTS if kind == REQUESTS else streams.ANSWERS

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        stream = self.stream if position else self.stream.opening
        at = space.window(position, stream.head_size)
        try:
            form, size = stream.form_and_size(space.buffer, at, len(space.buffer))
            if form is None:
                return NOT_WHOLE
            at = space.window(position, size)
            if len(space.buffer) - at < size:
                return Outcome(size)
            message = MESSAGES[form.message].decode(space.buffer, at, at + size)
        except RemoteProtocolError:
            return NO_FRAME
        return Outcome(size, message, len(getattr(message, "body", b"")))

    def plausible(self, message: Any) -> bool:
        """A first frame of version 0, and no time below 0."""
        if isinstance(message, connection.ConnectRequest | connection.ConnectResponse):
            return message.protocol_version == 0 and message.timeout >= 0
        return True

    def follows(self, previous: Any, message: Any) -> bool:  # noqa: ARG002 (what comes after does not matter)
        """Nothing follows a word."""
        return not isinstance(previous, connection.AdminWordFrame)
