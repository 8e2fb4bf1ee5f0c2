"""A process between replicas and their master that lets frames of replication through when it is told to.

It passes on whole frames, and those of one connection in their order. A connection is made to the master when
it is let through; until then the replica has nobody to talk to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.replication.frames import Frames
from replispec.runtime.world import Accepted, Closed, Connected, Effect, Event, Outbox, Received
from replispec.wire.rocketmq.ha import HaTransferHeaderFixed
from replispec.wire.rocketmq.streams import HA_MASTER, HA_REPLICA
from tests.sim.gate import LOOKS_EACH_MS

HEADER = "HaTransferHeader"
HEARTBEAT = "a transfer header without bytes"


@dataclass(slots=True)
class _Line:
    """One direction of a connection: what waits in it, and how many of these may pass."""

    frames: Frames
    held: deque[tuple[str, bytes]] = field(default_factory=deque)
    may_pass: int = 0


@dataclass(slots=True)
class _Pair:
    """A connection of a replica and the one to its master that belongs to it; 0 before it is made."""

    host: str
    replica: int
    master: int = 0
    is_open: bool = False
    to_master: _Line = field(default_factory=lambda: _Line(Frames(HA_REPLICA)))
    to_replica: _Line = field(default_factory=lambda: _Line(Frames(HA_MASTER)))


@dataclass
class FrameGate:
    """Listens where replicas think that a master replicates, which does so at `master`."""

    listens: str
    master: str
    is_wide_open: bool = False
    _pairs: list[_Pair] = field(default_factory=list)
    _allowed: set[str] = field(default_factory=set)
    _outbox: Outbox = field(default_factory=Outbox)
    _next_ms: int = 0

    @property
    def listeners(self) -> Mapping[str, str]:
        """One."""
        return {"gate": self.listens}

    def deadline_ms(self) -> int | None:
        """It looks again and again whether something was released."""
        return self._next_ms

    def has_dialled(self, host: str) -> bool:
        """Whether a connection of this replica is here."""
        return self._of(host) is not None

    def is_connected(self, host: str) -> bool:
        """Whether the newest connection of this replica has its master at the other end."""
        pair = self._of(host)
        return pair is not None and pair.is_open

    def connect(self, host: str) -> None:
        """Let the connections of this replica through from now on."""
        self._allowed.add(host)

    def hold_back(self, host: str) -> None:
        """Hold the next connection of this replica."""
        self._allowed.discard(host)

    def has(self, host: str, name: str, *, to_master: bool) -> bool:
        """Whether a frame of this name waits in the newest connection of this replica."""
        pair = self._of(host)
        return pair is not None and self._place(pair, name, to_master=to_master) is not None

    def release(self, host: str, name: str, *, to_master: bool) -> None:
        """Let the first frame of this name through, and those that are before it on the connection."""
        pair = self._of(host)
        place = None if pair is None else self._place(pair, name, to_master=to_master)
        assert pair is not None, "it was found"
        assert place is not None, "it was found"
        line = pair.to_master if to_master else pair.to_replica
        line.may_pass = place + 1

    def open_wide(self) -> None:
        """Let everything through from now on."""
        self.is_wide_open = True

    def _of(self, host: str) -> _Pair | None:
        return next((each for each in reversed(self._pairs) if each.host == host), None)

    def _place(self, pair: _Pair, name: str, *, to_master: bool) -> int | None:
        held = (pair.to_master if to_master else pair.to_replica).held
        return next((place for place, (each, _) in enumerate(held) if each == name), None)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self._next_ms = event.now_ms + LOOKS_EACH_MS
        match event:
            case Accepted(connection, _, peer):
                self._pairs.append(_Pair(peer.rpartition(":")[0], connection))
            case Connected(connection):
                self._pair(connection).is_open = True
            case Received(connection, data):
                pair = self._pair(connection)
                line = pair.to_master if connection == pair.replica else pair.to_replica
                line.held += [
                    (_named(name, frame), bytes(frame)) for name, frame in line.frames.receive(data)
                ]
            case Closed(connection):
                self._closed(connection)
        for pair in self._pairs:
            self._pass(pair)
        return self._outbox.take()

    def _pair(self, connection: int) -> _Pair:
        return next(each for each in self._pairs if connection in (each.replica, each.master))

    def _pass(self, pair: _Pair) -> None:
        if pair.master == 0 and (self.is_wide_open or pair.host in self._allowed):
            pair.master = self._outbox.dial(self.master)
        if not pair.is_open:
            return
        for line, connection in ((pair.to_master, pair.master), (pair.to_replica, pair.replica)):
            while line.held and (line.may_pass or self.is_wide_open):
                line.may_pass = max(line.may_pass - 1, 0)
                self._outbox.send(connection, line.held.popleft()[1])

    def _closed(self, connection: int) -> None:
        """An end goes on at once: what was said before it and is still held is lost."""
        pair = next((each for each in self._pairs if connection in (each.replica, each.master)), None)
        if pair is None:
            return
        self._pairs.remove(pair)
        other = pair.master if connection == pair.replica else pair.replica
        if other:
            self._outbox.close(other)


def _named(name: str, frame: memoryview) -> str:
    """The name of a frame; heartbeats have one of their own."""
    is_heartbeat = name == HEADER and HaTransferHeaderFixed.decode(frame).body_size == 0
    return HEARTBEAT if is_heartbeat else name
