"""Connections of whoever asks: one request of each is served at a time, and answered before the next.

Source: apache/kafka 2.8.2, SocketServer: a channel is muted while its request is served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.kafka.stores import design_version
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.world import Accepted, Level, Outbox, Received, Writable
from replispec.wire.kafka.commands import DESIGN_RESPONSE_FRAME
from replispec.wire.kafka.options import KafkaBrokerOptions
from replispec.wire.kafka.requests import (
    ApacheRequestFrame,
    ApacheResponseFrame,
    DesignRequestFrame,
    DesignResponseFrame,
)
from replispec.wire.kafka.streams import APACHE_REQUESTS

_FRAME_HEAD: Final = APACHE_REQUESTS.form(ApacheRequestFrame.__name__).fixed
"""The bytes of a frame that its size does not count."""


AskedFrame = ApacheRequestFrame | DesignRequestFrame


@dataclass(slots=True, eq=False)
class Asker:
    """One connection. `asked` is the request that is served; `waiting` are those behind it."""

    number: int
    address: str
    buffer: FrameBuffer
    asked: AskedFrame | None = None
    waiting: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0
    held_bytes: int = 0
    is_paused: bool = False
    is_leaving: bool = False


class Askers:
    """All connections. `serve` is given each request at its turn, `left` each connection that ended."""

    def __init__(
        self,
        outbox: Outbox,
        options: KafkaBrokerOptions,
        serve: Callable[[Asker, AskedFrame, int], None],
    ) -> None:
        self._outbox = outbox
        self._connections_max = options.max_connections
        self._frame_bytes_max = options.socket_request_max_bytes + _FRAME_HEAD
        self._held_bytes_max = options.request_bytes_max
        self._is_design = design_version(options.replication_profile) is not None
        self._serve = serve
        self._by_number: dict[int, Asker] = {}
        self._ready: dict[int, Asker] = {}
        self.held_bytes = 0
        self.served = self.dropped = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def accepted(self, event: Accepted) -> None:
        """Take a connection, or close it when there are too many."""
        if len(self._by_number) >= self._connections_max:
            self._outbox.note(Level.WARNING, "too many connections", peer=event.peer)
            self._outbox.close(event.connection)
            return
        buffer = FrameBuffer(APACHE_REQUESTS, limit_bytes=self._frame_bytes_max)
        self._by_number[event.connection] = Asker(event.connection, event.peer, buffer)

    def received(self, event: Received) -> None:
        """Serve what these bytes complete. Who breaks the protocol is hung up on."""
        asker = self._by_number.get(event.connection)
        if asker is None:
            return
        try:
            frames = asker.buffer.receive(event.data)
        except RemoteProtocolError as error:
            self.drop(asker, str(error))
            return
        asker.waiting.extend(frames)
        asker.waiting_bytes += sum(map(len, frames))
        self._ready[asker.number] = asker

    def go_on(self, now_ms: int) -> None:
        """Serve everybody whose turn it is, one request each after the other."""
        while self._ready:
            _, asker = self._ready.popitem()
            while asker.waiting and asker.asked is None and not asker.is_leaving:
                self._take(asker, asker.waiting.popleft(), now_ms)
            self._hold(asker)

    def _take(self, asker: Asker, frame: bytes, now_ms: int) -> None:
        asker.waiting_bytes -= len(frame)
        self.served += 1
        try:
            asker.asked = self._read(frame)
            self._serve(asker, asker.asked, now_ms)
        except RemoteProtocolError as error:
            self.drop(asker, str(error))

    def _read(self, frame: bytes) -> AskedFrame:
        """A request of the design, where its type and version are one of those, or of Kafka's."""
        code, version = (int.from_bytes(frame[at : at + 2], signed=True) for at in (4, 6))
        if self._is_design and DESIGN_RESPONSE_FRAME.form_of(code, version) is not None:
            return DesignRequestFrame.decode(frame)
        return ApacheRequestFrame.decode(frame)

    def _hold(self, asker: Asker) -> None:
        """Take bytes of a connection only while none of its requests wait; bound what all of them hold."""
        if asker.is_leaving:
            return
        if bool(asker.waiting) != asker.is_paused:
            asker.is_paused = bool(asker.waiting)
            (self._outbox.pause if asker.is_paused else self._outbox.resume)(asker.number)
        held = asker.buffer.waiting_bytes + asker.waiting_bytes
        self.held_bytes += held - asker.held_bytes
        asker.held_bytes = held
        while self.held_bytes > self._held_bytes_max:
            greediest = max(self._by_number.values(), key=lambda each: each.held_bytes)
            self.drop(greediest, "too many bytes of requests wait")

    def reply(self, asker: Asker, body: bytes | None) -> None:
        """Say the answer to the request that is served, or nothing where it wants none; the next one has its
        turn once the answer has left."""
        frame, asker.asked = asker.asked, None
        if asker.is_leaving or frame is None:
            return
        if body is None:
            self._ready[asker.number] = asker
            return
        # What was asked stays until the answer has left: who does not read is not served.
        asker.asked = frame
        answer: ApacheResponseFrame | DesignResponseFrame
        if isinstance(frame, DesignRequestFrame):
            answer = DesignResponseFrame(frame.version_id, body)
        else:
            answer = ApacheResponseFrame(frame.correlation_id, body)
        self._outbox.send(asker.number, answer.encode(), tell=True)

    def writable(self, event: Writable) -> None:
        """An answer has left."""
        asker = self._by_number.get(event.connection)
        if asker is not None:
            asker.asked = None
            self._ready[asker.number] = asker

    def drop(self, asker: Asker, reason: str) -> None:
        """End the connection of somebody at fault."""
        if self._by_number.get(asker.number) is asker:
            self.dropped += 1
            self._outbox.note(Level.WARNING, "client dropped", peer=asker.address, reason=reason)
            self._outbox.close(asker.number)
            self.closed(asker.number)

    def closed(self, connection: int) -> None:
        """A connection is gone; its answers are discarded."""
        asker = self._by_number.pop(connection, None)
        if asker is not None:
            self._ready.pop(connection, None)
            self.held_bytes -= asker.held_bytes
            asker.is_leaving = True
            asker.waiting.clear()
