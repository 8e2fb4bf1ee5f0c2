"""A connection to a broker: it is asked one question at a time, and dialled again while it is not reached.

Source: apache/kafka 2.8.2, ReplicaFetcherBlockingSend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import Message, OpenRequests
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.kafka.clients import (
    ApacheFetchRequest,
    ApacheListOffsetsRequest,
    ApacheMetadataRequest,
    ApacheOffsetForLeaderEpochRequest,
)
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.constants import CORRELATION_ID_MAX
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_RESPONSES

Question = (
    ApacheFetchRequest | ApacheListOffsetsRequest | ApacheMetadataRequest | ApacheOffsetForLeaderEpochRequest
)
QUESTIONS_OPEN_MAX: Final = 1


class AskingHolder(Protocol):
    """Who has the connection: hears when a question may be asked, and that one has no answer."""

    def may_ask(self, now_ms: int) -> None:
        """The broker waits for a question."""
        ...

    def not_answered(self, now_ms: int) -> None:
        """Nothing answers what was asked last: the connection is gone, or it took too long."""
        ...


class AskedBroker:
    """One broker at HOST:PORT. `client_id` is what it is told of who asks."""

    def __init__(
        self,
        outbox: Outbox,
        address: str,
        client_id: str,
        holder: AskingHolder,
        *,
        timeout_ms: int,
        pause_ms: int,
    ) -> None:
        self.address: Final = address
        self._outbox = outbox
        self._client_id = client_id
        self._holder = holder
        self._timeout_ms = timeout_ms
        self._pause_ms = pause_ms
        self._connection: int | None = None
        self._is_connected = False
        self._buffer = FrameBuffer(APACHE_RESPONSES)
        self._pairing = OpenRequests(APACHE_RESPONSE_FRAME, most=QUESTIONS_OPEN_MAX)
        self._then: Callable[[Message, int], None] | None = None
        self._number = 0
        self._dial_at_ms: int | None = None
        self._late_at_ms: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether a question may be asked."""
        return self._is_connected and self._then is None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._is_connected

    def owns(self, connection: int) -> bool:
        """Whether a connection is this one."""
        return connection == self._connection

    def dial(self, now_ms: int) -> None:
        """Open the connection."""
        self._dial_at_ms, self._late_at_ms = None, now_ms + self._timeout_ms
        self._buffer = FrameBuffer(APACHE_RESPONSES)
        self._pairing = OpenRequests(APACHE_RESPONSE_FRAME, most=QUESTIONS_OPEN_MAX)
        self._connection = self._outbox.dial(self.address)

    def end(self) -> None:
        """Ask no more; nobody is told of what was asked."""
        if self._connection is not None:
            self._outbox.close(self._connection)
        self._forget()
        self._dial_at_ms = None

    def ask(
        self, question: Question, version: int, then: Callable[[Message, int], None], now_ms: int
    ) -> None:
        """Ask while `is_free`; `then` is told the answer, and the time."""
        assert self.is_free, "one question at a time"
        assert self._connection is not None, "who is free has a connection"
        (key,) = type(question).CODES
        self._number = self._number % CORRELATION_ID_MAX + 1
        frame = ApacheRequestFrame(
            key, version, self._number, self._client_id, question.encode(version=version)
        )
        self._pairing.ask(frame)
        self._then, self._late_at_ms = then, now_ms + self._timeout_ms
        self._outbox.send(self._connection, frame.encode())

    # Events

    def connected(self, event: Connected) -> None:
        """It took the connection."""
        self._is_connected, self._late_at_ms = True, None
        self._holder.may_ask(event.now_ms)

    def received(self, event: Received) -> None:
        """It answered, or a part of it."""
        try:
            for frame in self._buffer.receive(event.data):
                if self.owns(event.connection):
                    self._take(frame, event.now_ms)
        except RemoteProtocolError as error:
            self._outbox.note(
                Level.WARNING, "broker breaks the protocol", broker=self.address, reason=str(error)
            )
            self._fail(event.now_ms, hang_up=True)

    def closed(self, event: Closed) -> None:
        """The connection ended, or did not open."""
        self._fail(event.now_ms, hang_up=False)

    def ticked(self, now_ms: int) -> None:
        """Dial again, and give up a connection on which nothing comes."""
        if self._dial_at_ms is not None and now_ms >= self._dial_at_ms:
            self.dial(now_ms)
        elif self._late_at_ms is not None and now_ms >= self._late_at_ms:
            self._outbox.note(Level.WARNING, "broker does not answer", broker=self.address)
            self._fail(now_ms, hang_up=True)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return min((each for each in (self._dial_at_ms, self._late_at_ms) if each is not None), default=None)

    def _take(self, frame: bytes, now_ms: int) -> None:
        answer = self._pairing.answered(ApacheResponseFrame.decode(frame)).message
        then, self._then, self._late_at_ms = self._then, None, None
        if answer is None or then is None:
            raise RemoteProtocolError("an answer to nothing that was asked")
        then(answer, now_ms)
        if self.is_free:
            self._holder.may_ask(now_ms)

    def _fail(self, now_ms: int, *, hang_up: bool) -> None:
        if hang_up and self._connection is not None:
            self._outbox.close(self._connection)
        self._forget()
        self._dial_at_ms = now_ms + self._pause_ms
        self._holder.not_answered(now_ms)

    def _forget(self) -> None:
        self._connection = self._then = self._late_at_ms = None
        self._is_connected = False
