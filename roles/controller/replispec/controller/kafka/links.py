"""A connection to each broker that lives: commands out one at a time, each until it is answered.

A broker that is silent is dialled again and told the same again, while its session in the store lives; nobody
else waits for it. Source: apache/kafka 2.8.2, ControllerChannelManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.binary import BinaryMessage
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import Exchange, Message, OpenRequests
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.streams import Stream
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsrRequest,
    ApacheStopReplicaRequest,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME, DESIGN_RESPONSE_FRAME
from replispec.wire.kafka.constants import COMMANDS_OPEN_MAX, CORRELATION_ID_MAX
from replispec.wire.kafka.design import DesignLeaderAndIsrRequest, DesignStopReplicaRequest
from replispec.wire.kafka.requests import (
    ApacheRequestFrame,
    ApacheResponseFrame,
    DesignRequestFrame,
    DesignResponseFrame,
)
from replispec.wire.kafka.streams import APACHE_RESPONSES, DESIGN_RESPONSES

CommandMessage = (
    ApacheLeaderAndIsrRequest
    | ApacheStopReplicaRequest
    | ApacheUpdateMetadataRequest
    | DesignLeaderAndIsrRequest
    | DesignStopReplicaRequest
)
Answered = Callable[[Message], None]


@immutable
class BrokerCommand:
    """A request in one version, and who is told its answer."""

    message: CommandMessage
    version: int
    then: Answered


@immutable
class CommandFrames:
    """How commands and answers are framed. `request` makes the frame of a key, a version, a number, the id of
    who asks and a body; `read` reads an answer."""

    answers: Stream
    exchange: Exchange
    request: Callable[[int, int, int, str, bytes], BinaryMessage]
    read: Callable[[bytes], BinaryMessage]


APACHE_FRAMES: Final = CommandFrames(
    APACHE_RESPONSES, APACHE_RESPONSE_FRAME, ApacheRequestFrame, ApacheResponseFrame.decode
)
DESIGN_FRAMES: Final = CommandFrames(
    DESIGN_RESPONSES,
    DESIGN_RESPONSE_FRAME,
    # Answers come in the order of requests: there are no numbers.
    lambda key, version, _number, _client_id, body: DesignRequestFrame(key, version, body),
    DesignResponseFrame.decode,
)


@dataclass(slots=True, eq=False)
class _Link:
    broker_id: int
    address: str
    buffer: FrameBuffer
    pairing: OpenRequests
    connection: int | None = None
    is_connected: bool = False
    waiting: deque[BrokerCommand] = field(default_factory=deque)
    is_asking: bool = False
    dial_at_ms: int | None = None
    late_at_ms: int | None = None


class BrokerLinks:
    """All of them. `client_id` is what brokers are told of who asks."""

    def __init__(
        self, outbox: Outbox, frames: CommandFrames, client_id: str, timeout_ms: int, pause_ms: int
    ) -> None:
        self._frames = frames
        self._outbox = outbox
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._pause_ms = pause_ms
        self._by_id: dict[int, _Link] = {}
        self._by_connection: dict[int, _Link] = {}
        self._number = 0
        self.answered = 0

    def open(self, broker_id: int, address: str, now_ms: int) -> None:
        """Go by where a broker listens now; what was to be told to an earlier one is forgotten."""
        self.drop(broker_id)
        link = self._by_id[broker_id] = _Link(broker_id, address, self._buffer(), self._pairing())
        self._dial(link, now_ms)

    def drop(self, broker_id: int) -> None:
        """A broker is gone, and with it what it was to be told."""
        link = self._by_id.pop(broker_id, None)
        if link is not None:
            self._hang_up(link)

    def drop_all(self) -> None:
        """Command nobody any more."""
        for broker_id in tuple(self._by_id):
            self.drop(broker_id)

    def is_idle(self, broker_id: int) -> bool:
        """Whether a broker is there and waits for commands."""
        link = self._by_id.get(broker_id)
        return link is not None and not link.waiting

    def send(self, broker_id: int, commands: Sequence[BrokerCommand], now_ms: int) -> None:
        """Have a broker told these in order."""
        link = self._by_id[broker_id]
        link.waiting.extend(commands)
        self._go_on(link, now_ms)

    # Events

    def connected(self, event: Connected) -> bool:
        """False when the connection is none of these."""
        link = self._by_connection.get(event.connection)
        if link is None:
            return False
        link.is_connected, link.late_at_ms = True, None
        self._go_on(link, event.now_ms)
        return True

    def received(self, event: Received) -> bool:
        """False when the connection is none of these."""
        link = self._by_connection.get(event.connection)
        if link is None:
            return False
        try:
            for frame in link.buffer.receive(event.data):
                if link.connection == event.connection:
                    self._take(link, frame, event.now_ms)
        except RemoteProtocolError as error:
            self._outbox.note(
                Level.WARNING, "broker breaks the protocol", broker=link.broker_id, reason=str(error)
            )
            self._hang_up(link)
            link.dial_at_ms = event.now_ms + self._pause_ms
        return True

    def closed(self, event: Closed) -> bool:
        """False when the connection is none of these."""
        link = self._by_connection.pop(event.connection, None)
        if link is None:
            return False
        if link.connection == event.connection:
            self._forget(link)
            link.dial_at_ms = event.now_ms + self._pause_ms
        return True

    def ticked(self, now_ms: int) -> None:
        """Dial again, and give up connections on which nothing comes."""
        for link in tuple(self._by_id.values()):
            if link.dial_at_ms is not None and now_ms >= link.dial_at_ms:
                self._dial(link, now_ms)
            elif link.late_at_ms is not None and now_ms >= link.late_at_ms:
                self._outbox.note(Level.WARNING, "broker does not answer", broker=link.broker_id)
                self._hang_up(link)
                self._dial(link, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = ((each.dial_at_ms, each.late_at_ms) for each in self._by_id.values())
        return min((at_ms for pair in times for at_ms in pair if at_ms is not None), default=None)

    # One link

    def _buffer(self) -> FrameBuffer:
        return FrameBuffer(self._frames.answers)

    def _pairing(self) -> OpenRequests:
        return OpenRequests(self._frames.exchange, most=COMMANDS_OPEN_MAX)

    def _dial(self, link: _Link, now_ms: int) -> None:
        link.dial_at_ms, link.late_at_ms = None, now_ms + self._timeout_ms
        link.buffer, link.pairing = self._buffer(), self._pairing()
        link.connection = self._outbox.dial(link.address)
        self._by_connection[link.connection] = link

    def _hang_up(self, link: _Link) -> None:
        if link.connection is not None:
            self._by_connection.pop(link.connection, None)
            self._outbox.close(link.connection)
        self._forget(link)

    def _forget(self, link: _Link) -> None:
        link.connection = link.late_at_ms = None
        link.is_connected = link.is_asking = False

    def _go_on(self, link: _Link, now_ms: int) -> None:
        if link.is_connected and link.waiting and not link.is_asking and link.connection is not None:
            command = link.waiting[0]
            (key,) = type(command.message).CODES
            self._number = self._number % CORRELATION_ID_MAX + 1
            body = command.message.encode(version=command.version)
            frame = self._frames.request(key, command.version, self._number, self._client_id, body)
            link.pairing.ask(frame)
            link.is_asking, link.late_at_ms = True, now_ms + self._timeout_ms
            self._outbox.send(link.connection, frame.encode())

    def _take(self, link: _Link, frame: bytes, now_ms: int) -> None:
        answer = link.pairing.answered(self._frames.read(frame)).message
        command = link.waiting.popleft()
        link.is_asking, link.late_at_ms = False, None
        self.answered += 1
        if answer is not None:
            command.then(answer)
        self._go_on(link, now_ms)
