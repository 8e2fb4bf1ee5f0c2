"""A process between brokers and their controller that lets messages through when it is told to.

It passes on whole frames. Requests of the codes that it holds, and answers to them, wait until they are
released or dropped; everything else passes at once. Where the controller says its address, the gate says its
own, so that nobody goes round it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Effect,
    Event,
    Outbox,
    Received,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.streams import REMOTING

LOOKS_EACH_MS = 5


@dataclass(frozen=True, slots=True)
class Held:
    """A message: of whose connection (the address of who dialled), the code of its request, and which way."""

    host: str
    code: int
    is_answer: bool
    to: int
    frame: bytes


@dataclass(slots=True)
class _Side:
    """One connection of a pair: the other one, and whose pair it is."""

    peer: int
    host: str
    buffer: FrameBuffer = field(default_factory=lambda: FrameBuffer(REMOTING))
    is_open: bool = False
    early: list[bytes] = field(default_factory=list)


@dataclass
class Gate:
    """Listens where brokers think that their controller is, which is at `controller`. With `outlives` the
    controller hears of no end of a broker's connections, so that what is held may pass after it. Of a host in
    `silenced` no heartbeats pass. A code in `only` is held of one host alone."""

    listens: str
    controller: str
    codes: AbstractSet[int]
    silenced: set[str] = field(default_factory=set)
    only: Mapping[int, str] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    passed: list[Held] = field(default_factory=list)
    is_wide_open: bool = False
    outlives: bool = False
    _released: deque[Held] = field(default_factory=deque)
    _sides: dict[int, _Side] = field(default_factory=dict)
    _asked: dict[tuple[int, int], int] = field(default_factory=dict)
    _outbox: Outbox = field(default_factory=Outbox)
    _next_ms: int = 0

    def __post_init__(self) -> None:
        assert len(self.listens) == len(self.controller), "a frame keeps its length"

    @property
    def listeners(self) -> Mapping[str, str]:
        """One."""
        return {"gate": self.listens}

    def deadline_ms(self) -> int | None:
        """It looks again and again whether something was released."""
        return self._next_ms

    def find(self, host: str, code: int, *, is_answer: bool) -> Held | None:
        """The oldest message like this that is held."""
        wanted = (host, code, is_answer)
        return next((each for each in self.held if (each.host, each.code, each.is_answer) == wanted), None)

    def release(self, held: Held) -> None:
        """Let a message through."""
        self.held.remove(held)
        self._released.append(held)

    def open_wide(self) -> None:
        """Let everything through from now on."""
        self.is_wide_open = True
        self._released += self.held
        self.held.clear()

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self._next_ms = event.now_ms + LOOKS_EACH_MS
        match event:
            case Accepted(connection, _, peer):
                host = peer.rpartition(":")[0]
                dialled = self._outbox.dial(self.controller)
                self._sides[connection] = _Side(dialled, host, is_open=True)
                self._sides[dialled] = _Side(connection, host)
            case Connected(connection):
                self._opened(connection)
            case Received(connection, data):
                for frame in self._sides[connection].buffer.receive(data):
                    self._take(connection, frame)
            case Closed(connection):
                self._closed(connection)
        while self._released:
            self._pass(self._released.popleft())
        return self._outbox.take()

    def _opened(self, connection: int) -> None:
        side = self._sides[connection]
        side.is_open = True
        for frame in side.early:
            self._outbox.send(connection, self._from_here(frame))

    def _closed(self, connection: int) -> None:
        side = self._sides.pop(connection, None)
        if side is None or (self.outlives and connection > 0):
            return
        self.held = [each for each in self.held if each.to not in (connection, side.peer)]
        if self._sides.pop(side.peer, None) is not None:
            self._outbox.close(side.peer)

    def _take(self, connection: int, frame: bytes) -> None:
        side, command = self._sides[connection], decode_command(frame)
        held = Held(side.host, self._code_of(connection, command), command.is_answer, side.peer, frame)
        is_held = held.code in self.codes and self.only.get(held.code, held.host) == held.host
        if is_held and not self.is_wide_open:
            self.held.append(held)
        elif held.code != RequestCode.BROKER_HEARTBEAT or held.host not in self.silenced:
            self._pass(held)

    def _code_of(self, connection: int, command: Command) -> int:
        """The code of the request that this is, or answers."""
        if command.is_answer:
            return self._asked.pop((connection, command.header.opaque), -1)
        self._asked[self._sides[connection].peer, command.header.opaque] = command.header.code
        return command.header.code

    def _from_here(self, frame: bytes) -> bytes:
        """The frame with the gate's address where the controller's stood; both are as long."""
        return frame.replace(self.controller.encode(), self.listens.encode())

    def _pass(self, held: Held) -> None:
        side = self._sides.get(held.to)
        if side is None:
            return
        self.passed.append(held)
        if side.is_open:
            self._outbox.send(held.to, self._from_here(held.frame))
        else:
            side.early.append(held.frame)
