"""The asking side of remoting: requests to addresses, one connection each, answers paired by opaque.

Source: NettyRemotingClient (apache/rocketmq rocketmq-all-5.4.0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.framing import Command, FrameBuffer, decode_command
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.remoting.server import LANGUAGE
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

OPAQUE_MAX: Final = 2**31 - 1
"""An opaque is a signed 32-bit integer; ours wraps to 0."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: why, for people. `sent` is false when the request surely never left."""

    reason: str
    sent: bool


Outcome = Command | Failure
Then = Callable[[Outcome, int], None]


@dataclass(slots=True)
class _Waiting:
    deadline_ms: int
    then: Then


@dataclass(slots=True)
class _Channel:
    """The connection to one address; requests wait in `unsent` until it is open."""

    address: str
    connection: int
    give_up_ms: int
    is_open: bool = False
    buffer: FrameBuffer = field(default_factory=lambda: FrameBuffer(REMOTING))
    unsent: list[bytes] = field(default_factory=list)
    waiting: dict[int, _Waiting] = field(default_factory=dict)


class Calls:
    """Asks other processes. Each `then` is called exactly once, with the answer or a Failure, and the
    time; never from inside `ask`. `requests_max` bounds what waits per address: further ones fail.
    `version` is what requests carry as the release of their sender. Requests that come the other way on
    these connections are ignored."""

    def __init__(
        self,
        outbox: Outbox,
        *,
        version: int = 0,
        connect_timeout_ms: int = 3_000,
        requests_max: int = 4_096,
        frame_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        self._outbox = outbox
        self._version = version
        self._connect_timeout_ms = connect_timeout_ms
        self._requests_max = requests_max
        self._frame_bytes = frame_bytes
        self._by_address: dict[str, _Channel] = {}
        self._by_connection: dict[int, _Channel] = {}
        self._opaque = 0
        self._failed: list[tuple[Then, Failure]] = []

    def ask(
        self,
        address: str,
        code: int,
        then: Then,
        *,
        now_ms: int,
        timeout_ms: int,
        ext_fields: dict[str, str | None] | None = None,
        body: bytes = b"",
    ) -> None:
        """Send a request and hear of its answer, or of its failure within `timeout_ms`."""
        channel = self._channel(address, now_ms)
        if len(channel.waiting) >= self._requests_max:
            self._failed.append((then, Failure(f"{len(channel.waiting)} requests wait for {address}", False)))
            return
        opaque = self._next_opaque()
        channel.waiting[opaque] = _Waiting(now_ms + timeout_ms, then)
        self._transmit(channel, code, RemotingFlag.REQUEST, opaque, ext_fields, body)

    def tell(
        self,
        address: str,
        code: int,
        *,
        now_ms: int,
        ext_fields: dict[str, str | None] | None = None,
        body: bytes = b"",
    ) -> None:
        """Send a one-way request; whether it arrives is never known."""
        channel = self._channel(address, now_ms)
        if len(channel.unsent) < self._requests_max:
            opaque = self._next_opaque()
            self._transmit(channel, code, RemotingFlag.ONEWAY, opaque, ext_fields, body)

    def owns(self, connection: int) -> bool:
        """Whether this connection is one of ours."""
        return connection in self._by_connection

    def hang_up(self, address: str) -> None:
        """Close the connection to an address; whoever waits for answers from it hears a Failure."""
        channel = self._by_address.get(address)
        if channel is not None:
            self._lose(channel, "closed by this side")
            self._outbox.close(channel.connection)

    def connected(self, event: Connected) -> None:
        """The connection is open: send what waits."""
        channel = self._by_connection[event.connection]
        channel.is_open = True
        for data in channel.unsent:
            self._outbox.send(channel.connection, data)
        channel.unsent.clear()

    def received(self, event: Received) -> None:
        """Hand answers to those who wait; a peer that breaks the protocol is hung up on."""
        channel = self._by_connection.get(event.connection)
        if channel is None:
            return
        try:
            commands = [decode_command(frame) for frame in channel.buffer.receive(event.data)]
        except RemoteProtocolError as error:
            self._outbox.note(Level.WARNING, "peer dropped", peer=channel.address, reason=str(error))
            self._lose(channel, str(error))
            self._outbox.close(channel.connection)
            return
        for command in commands:
            waiting = channel.waiting.pop(command.header.opaque, None) if command.is_answer else None
            if waiting is not None:
                waiting.then(command, event.now_ms)

    def closed(self, event: Closed) -> None:
        """The connection is gone: so are the answers. `ticked` tells those who wait."""
        channel = self._by_connection.get(event.connection)
        if channel is not None:
            self._lose(channel, event.reason)

    def ticked(self, now_ms: int) -> None:
        """Tell those whose answer did not come in time, and those whose connection was lost.

        To be called after every event that the node received.
        """
        for channel in tuple(self._by_connection.values()):
            if not channel.is_open and now_ms >= channel.give_up_ms:
                self._lose(channel, "no connection in time")
                self._outbox.close(channel.connection)
            else:
                self._expire(channel, now_ms)
        while self._failed:
            then, failure = self._failed.pop(0)
            then(failure, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        if self._failed:
            return 0
        times = [each.give_up_ms for each in self._by_connection.values() if not each.is_open]
        times += [one.deadline_ms for each in self._by_connection.values() for one in each.waiting.values()]
        return min(times, default=None)

    def _expire(self, channel: _Channel, now_ms: int) -> None:
        late = [opaque for opaque, one in channel.waiting.items() if one.deadline_ms <= now_ms]
        for opaque in late:
            one = channel.waiting.pop(opaque)
            self._failed.append((one.then, Failure(f"no answer from {channel.address} in time", True)))

    def _next_opaque(self) -> int:
        self._opaque = 0 if self._opaque >= OPAQUE_MAX else self._opaque + 1
        return self._opaque

    def _channel(self, address: str, now_ms: int) -> _Channel:
        channel = self._by_address.get(address)
        if channel is None:
            connection = self._outbox.dial(address)
            channel = _Channel(address, connection, now_ms + self._connect_timeout_ms)
            channel.buffer = FrameBuffer(REMOTING, limit_bytes=self._frame_bytes)
            self._by_address[address] = channel
            self._by_connection[connection] = channel
        return channel

    def _transmit(
        self,
        channel: _Channel,
        code: int,
        flag: RemotingFlag,
        opaque: int,
        ext_fields: dict[str, str | None] | None,
        body: bytes,
    ) -> None:
        header = RemotingHeader(
            code=int(code),
            language=LANGUAGE,
            version=self._version,
            opaque=opaque,
            flag=flag,
            ext_fields=ext_fields or None,
        )
        data = Command(header, body).encode()
        if channel.is_open:
            self._outbox.send(channel.connection, data)
        else:
            channel.unsent.append(data)

    def _lose(self, channel: _Channel, reason: str) -> None:
        self._by_address.pop(channel.address, None)
        self._by_connection.pop(channel.connection, None)
        for one in channel.waiting.values():
            self._failed.append((one.then, Failure(reason, channel.is_open)))
        channel.waiting.clear()
