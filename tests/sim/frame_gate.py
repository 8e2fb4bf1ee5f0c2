"""A process between replicas and their master that lets frames of replication through when it is told to.

It passes on whole frames, and those of one connection in their order. A connection is made to the master when
it is let through; until then the replica has nobody to talk to. The end of a connection waits for its turn as
frames do, behind what was said before it.
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
END = "the end of the connection"


@dataclass(slots=True)
class _Line:
    """One direction of a connection: what waits in it, and how many of these may pass."""

    frames: Frames
    held: deque[tuple[str, bytes]] = field(default_factory=deque)
    may_pass: int = 0


@dataclass(slots=True)
class _Pair:
    """A connection of a replica and the one to its master that belongs to it; 0 before it is made, and when
    it has ended. Of one that is broken nothing arrives any more but its end; on one that `flows` nothing
    waits."""

    host: str
    replica: int
    master: int = 0
    is_open: bool = False
    is_broken: bool = False
    flows: bool = False
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

    def is_served(self, host: str) -> bool:
        """Whether the master has not ended each connection of this replica."""
        return any(each.host == host and each.master for each in self._pairs)

    def connect(self, host: str) -> None:
        """Let the connections of this replica through from now on, and the end of older ones."""
        self._allowed.add(host)
        for pair in self._pairs:
            if pair.host == host and not pair.replica:
                pair.to_master.may_pass = len(pair.to_master.held)

    def hold_back(self, host: str) -> None:
        """Hold the next connection of this replica."""
        self._allowed.discard(host)

    def let_flow(self, host: str) -> None:
        """Let everything on the connection of this replica through from now on."""
        pair = self._of(host)
        assert pair is not None, "it is connected"
        pair.flows = True

    def break_off(self, host: str) -> None:
        """The connection of this replica breaks: nothing is on its way any more but either end."""
        pair = self._of(host)
        assert pair is not None, "it is connected"
        pair.is_broken = True
        for line in (pair.to_master, pair.to_replica):
            line.held = deque([(END, b"")])
            line.may_pass = 0

    def has(self, host: str, name: str, *, to_master: bool) -> bool:
        """Whether a frame of this name waits in a connection of this replica."""
        return self._line(host, name, to_master=to_master) is not None

    def release(self, host: str, name: str, *, to_master: bool) -> None:
        """Let the first frame of this name through, and those that are before it on the connection."""
        line = self._line(host, name, to_master=to_master)
        assert line is not None, "it was found"
        line.may_pass = [each for each, _ in line.held].index(name) + 1

    def open_wide(self) -> None:
        """Let everything through from now on."""
        self.is_wide_open = True

    def _of(self, host: str) -> _Pair | None:
        """The newest connection that a replica has not ended."""
        return next((each for each in reversed(self._pairs) if each.host == host and each.replica), None)

    def _line(self, host: str, name: str, *, to_master: bool) -> _Line | None:
        """Where a frame waits: in the oldest connection that has one."""
        pairs = [each for each in self._pairs if each.host == host]
        lines = [each.to_master if to_master else each.to_replica for each in pairs]
        return next((each for each in lines if any(found == name for found, _ in each.held)), None)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self._next_ms = event.now_ms + LOOKS_EACH_MS
        match event:
            case Accepted(connection, _, peer):
                self._pairs.append(_Pair(peer.rpartition(":")[0], connection))
            case Connected(connection) if (pair := self._found(connection)) is not None:
                pair.is_open = True
            case Received(connection, data) if (pair := self._found(connection)) is not None:
                self._hold(pair, connection, data)
            case Closed(connection):
                self._closed(connection)
        for pair in tuple(self._pairs):
            self._pass(pair)
        return self._outbox.take()

    def _found(self, connection: int) -> _Pair | None:
        return next((each for each in self._pairs if connection in (each.replica, each.master)), None)

    def _hold(self, pair: _Pair, connection: int, data: bytes) -> None:
        line = pair.to_master if connection == pair.replica else pair.to_replica
        frames = [(_named(name, frame), bytes(frame)) for name, frame in line.frames.receive(data)]
        if not pair.is_broken:
            line.held += frames

    def _pass(self, pair: _Pair) -> None:
        if pair.master == 0 and not pair.is_open and (self.is_wide_open or pair.host in self._allowed):
            pair.master = self._outbox.dial(self.master)
        if not pair.is_open:
            return
        for line, connection in ((pair.to_master, pair.master), (pair.to_replica, pair.replica)):
            while connection and line.held and (line.may_pass or pair.flows or self.is_wide_open):
                line.may_pass = max(line.may_pass - 1, 0)
                name, frame = line.held.popleft()
                if name == END:
                    self._outbox.close(connection)
                    self._closed(connection)
                    break
                self._outbox.send(connection, frame)

    def _closed(self, connection: int) -> None:
        """An end is gone: what was on its way to it is lost, the other end learns it in its turn."""
        pair = self._found(connection)
        if pair is None:
            return
        is_replica = connection == pair.replica
        if is_replica:
            pair.replica = 0
        else:
            pair.master = 0
        if not pair.is_open or not (pair.replica or pair.master):
            self._pairs.remove(pair)
            self._close_both(pair)
            return
        line = pair.to_master if is_replica else pair.to_replica
        if not pair.is_broken:
            line.held.append((END, b""))

    def _close_both(self, pair: _Pair) -> None:
        for each in (pair.replica, pair.master):
            if each:
                self._outbox.close(each)


def _named(name: str, frame: memoryview) -> str:
    """The name of a frame; heartbeats have one of their own."""
    is_heartbeat = name == HEADER and HaTransferHeaderFixed.decode(frame).body_size == 0
    return HEARTBEAT if is_heartbeat else name
