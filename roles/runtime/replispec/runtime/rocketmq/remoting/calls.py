"""The asking side of remoting: requests to addresses, one connection each, answers paired by opaque.

Source: NettyRemotingClient (apache/rocketmq rocketmq-all-5.4.0).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting.server import BYTES_AT_ONCE, LANGUAGE, REQUESTS_AT_ONCE
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

REQUESTS_MAX: Final = 4_096
"""Requests that wait for one address, where nobody says otherwise."""
# Deadlines of what was answered long ago are thrown away once they are most of the heap.
_STALE_MIN: Final = 256


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: why, for people. `sent` is false when the request surely never left."""

    reason: str
    sent: bool


Outcome = Command | Failure
Then = Callable[[Outcome, int], None]
Sign = Callable[[Mapping[str, str | None] | None, bytes], dict[str, str | None]]
"""Header fields and body of a request to the fields with which it is sent."""


@dataclass(slots=True)
class _Waiting:
    asked_ms: int
    deadline_ms: int
    then: Then


@dataclass(slots=True)
class _Channel:
    """The connection to one address; requests wait in `unsent`, by their opaque, until it is open. Something
    was heard of it last at `heard_ms`; `frames` came and wait for their turn."""

    address: str
    connection: int
    is_open: bool = False
    buffer: FrameBuffer = field(default_factory=lambda: FrameBuffer(REMOTING))
    frames: deque[bytes] = field(default_factory=deque)
    unsent: dict[int, bytes] = field(default_factory=dict)
    waiting: dict[int, _Waiting] = field(default_factory=dict)
    heard_ms: int = -1
    is_lost: bool = False


@dataclass(slots=True)
class _Alarm:
    """A moment at which a request (by its opaque) or a dial (None) has waited for too long."""

    at_ms: int
    serial: int
    channel: _Channel
    opaque: int | None

    def __lt__(self, other: _Alarm) -> bool:
        return (self.at_ms, self.serial) < (other.at_ms, other.serial)

    @property
    def is_on(self) -> bool:
        """Whether it still matters."""
        if self.opaque is None:
            return not self.channel.is_open and not self.channel.is_lost
        waiting = self.channel.waiting.get(self.opaque)
        return waiting is not None and waiting.deadline_ms == self.at_ms


class Calls:
    """Asks other processes. Each `then` is called exactly once, with the answer or a Failure, and the
    time; never from inside `ask`. `requests_max` bounds what waits per address: further ones fail.
    `version` is what requests carry as the release of their sender. Requests that come the other way on
    these connections are ignored. Of one connection only so many answers are taken because of one event;
    while more wait it is not read. `sign`: gives the fields with which a request is sent."""

    def __init__(
        self,
        outbox: Outbox,
        *,
        version: int = 0,
        connect_timeout_ms: int = constants.CONNECT_TIMEOUT_MS,
        requests_max: int = REQUESTS_MAX,
        frame_bytes: int = 16 * 1024 * 1024,
        sign: Sign | None = None,
    ) -> None:
        self._sign = sign
        self._outbox = outbox
        self._version = version
        self._connect_timeout_ms = connect_timeout_ms
        self._requests_max = requests_max
        self._frame_bytes = frame_bytes
        self._by_address: dict[str, _Channel] = {}
        self._by_connection: dict[int, _Channel] = {}
        self._opaque = 0
        self._waiting = 0
        self._alarms: list[_Alarm] = []
        self._serial = 0
        self._failed: deque[tuple[Then, Failure]] = deque()
        # Channels of which frames wait, and those of which the event that is under way took some already.
        self._behind: dict[int, _Channel] = {}
        self._served: set[int] = set()

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
        channel.waiting[opaque] = _Waiting(now_ms, now_ms + timeout_ms, then)
        self._waiting += 1
        self._set_alarm(now_ms + timeout_ms, channel, opaque)
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

    def close(self, address: str) -> None:
        """Close the connection to an address; requests that wait for its answers end with a Failure."""
        channel = self._by_address.get(address)
        if channel is not None:
            self._lose(channel, "closed by this side")
            self._outbox.close(channel.connection)

    def connected(self, event: Connected) -> None:
        """The connection is open: send what waits."""
        channel = self._by_connection.get(event.connection)
        if channel is None:
            return
        channel.is_open = True
        channel.heard_ms = event.now_ms
        if channel.unsent:
            self._outbox.send(channel.connection, b"".join(channel.unsent.values()))
            channel.unsent.clear()

    def received(self, event: Received) -> None:
        """Hand answers to those who wait; a peer that breaks the protocol is hung up on."""
        channel = self._by_connection.get(event.connection)
        if channel is None:
            return
        channel.heard_ms = event.now_ms
        try:
            channel.frames.extend(channel.buffer.receive(event.data))
        except RemoteProtocolError as error:
            self._drop(channel, str(error))
            return
        self._served.add(channel.connection)
        self._take_answers(channel, event.now_ms)

    def _take_answers(self, channel: _Channel, now_ms: int) -> None:
        frames, left_bytes = channel.frames, BYTES_AT_ONCE
        for _ in range(REQUESTS_AT_ONCE):
            if not frames or left_bytes <= 0:
                break
            frame = frames.popleft()
            left_bytes -= len(frame)
            try:
                command = decode_command(frame)
            except RemoteProtocolError as error:
                self._drop(channel, str(error))
                return
            waiting = channel.waiting.pop(command.header.opaque, None) if command.is_answer else None
            if waiting is not None:
                self._waiting -= 1
                waiting.then(command, now_ms)
        if not channel.is_lost and bool(frames) != (channel.connection in self._behind):
            self._read_or_wait(channel)

    def _read_or_wait(self, channel: _Channel) -> None:
        if channel.frames:
            self._behind[channel.connection] = channel
            self._outbox.pause(channel.connection)
        else:
            del self._behind[channel.connection]
            self._outbox.resume(channel.connection)

    def _drop(self, channel: _Channel, reason: str) -> None:
        """Hang up on a peer that broke the protocol."""
        self._outbox.note(Level.WARNING, "peer dropped", peer=channel.address, reason=reason)
        self._lose(channel, reason)
        self._outbox.close(channel.connection)

    def closed(self, event: Closed) -> None:
        """The connection is gone: so are the answers. `ticked` tells those who wait."""
        channel = self._by_connection.get(event.connection)
        if channel is not None:
            self._lose(channel, event.reason)

    def ticked(self, now_ms: int) -> None:
        """Tell those whose answer did not come in time, and those whose connection was lost, and go on with
        answers that were left.

        To be called after every event that the node received.
        """
        for connection, channel in tuple(self._behind.items()):
            if connection not in self._served:
                self._take_answers(channel, now_ms)
        self._served.clear()
        while self._alarms and self._alarms[0].at_ms <= now_ms:
            alarm = heapq.heappop(self._alarms)
            if alarm.is_on:
                self._ring(alarm)
        # Who hears of a failure may ask again and fail again: that is for the next time.
        for _ in range(len(self._failed)):
            then, failure = self._failed.popleft()
            then(failure, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        if self._failed or self._behind:
            return 0
        alarms = self._alarms
        while alarms and not alarms[0].is_on:
            heapq.heappop(alarms)
        return alarms[0].at_ms if alarms else None

    def _ring(self, alarm: _Alarm) -> None:
        channel = alarm.channel
        if alarm.opaque is None:
            self._lose(channel, "no connection in time")
            self._outbox.close(channel.connection)
            return
        one = channel.waiting.pop(alarm.opaque)
        self._waiting -= 1
        sent = channel.unsent.pop(alarm.opaque, None) is None
        reason = f"no answer from {channel.address} in time"
        self._failed.append((one.then, Failure(reason, sent)))
        if sent and channel.heard_ms < one.asked_ms:
            # Nothing at all came since: the peer may not know this connection any more, and never say so.
            self._lose(channel, reason)
            self._outbox.close(channel.connection)

    def _set_alarm(self, at_ms: int, channel: _Channel, opaque: int | None) -> None:
        if len(self._alarms) > _STALE_MIN + 2 * (self._waiting + len(self._by_connection)):
            self._alarms = [each for each in self._alarms if each.is_on]
            heapq.heapify(self._alarms)
        self._serial += 1
        heapq.heappush(self._alarms, _Alarm(at_ms, self._serial, channel, opaque))

    def _next_opaque(self) -> int:
        self._opaque = 0 if self._opaque >= constants.OPAQUE_MAX else self._opaque + 1
        return self._opaque

    def _channel(self, address: str, now_ms: int) -> _Channel:
        channel = self._by_address.get(address)
        if channel is None:
            connection = self._outbox.dial(address)
            channel = _Channel(address, connection)
            channel.buffer = FrameBuffer(REMOTING, limit_bytes=self._frame_bytes)
            self._by_address[address] = channel
            self._by_connection[connection] = channel
            self._set_alarm(now_ms + self._connect_timeout_ms, channel, None)
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
        if self._sign is not None:
            ext_fields = self._sign(ext_fields, body)
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
            channel.unsent[opaque] = data

    def _lose(self, channel: _Channel, reason: str) -> None:
        self._by_address.pop(channel.address, None)
        self._by_connection.pop(channel.connection, None)
        channel.is_lost = True
        channel.frames.clear()
        self._behind.pop(channel.connection, None)
        self._waiting -= len(channel.waiting)
        for one in channel.waiting.values():
            self._failed.append((one.then, Failure(reason, channel.is_open)))
        channel.waiting.clear()
        channel.unsent.clear()
