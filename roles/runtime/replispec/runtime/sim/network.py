"""A simulated network: connections that are slow, cut, stalled or half-open, at random and by plan.

Bytes of one direction of one connection arrive in order and whole; everything else may happen. Between
two processes a direction can be blocked: what is under way then waits, as TCP repeats it until it arrives. Or
it is forgotten: then what is sent on connections that are open never arrives.
"""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from replispec.runtime.primitives.rng import Rng
from replispec.runtime.world import Accepted, Closed, Connected, Event, Received, Writable

if TYPE_CHECKING:
    from collections.abc import Callable

    from replispec.runtime.world.effects import Buffer

REFUSED = "connection refused"
RESET = "connection reset by peer"


@dataclass(frozen=True, slots=True)
class NetworkConditions:
    """How the network behaves. Times in microseconds; `_per_mille` of messages, connections or reads."""

    latency_us: int = 200
    jitter_us: int = 300
    spike_per_mille: int = 2
    spike_us: int = 200_000
    kernel_bytes: int = 65_536
    read_bytes_max: int = 65_536
    cut_per_mille: int = 30
    slow_per_mille: int = 10
    slow_read_us: int = 2_000
    slow_read_bytes: int = 700
    dial_timeout_us: int = 10_000_000
    stall_us: int = 15_000_000


class Host(Protocol):
    """One end's owner: a node within a process."""

    @property
    def process(self) -> str:
        """The name of its process."""
        ...

    def adopt(self, end: SimulatedEnd) -> None:
        """Take one side of a connection: the node may send on it from now on."""
        ...

    def tell(self, make: Callable[[int], Event]) -> None:
        """Hand the node an event, made with the time on its clock; later, while its process is paused."""
        ...

    def when_running(self, action: Callable[[], None]) -> None:
        """Do something at once, or when the process goes on after a pause."""
        ...


class Directory(Protocol):
    """Who is where."""

    def process_at(self, address: str) -> str | None:
        """The process of a host address, running or not."""
        ...

    def accept(self, address: str) -> tuple[Host, str, int] | None:
        """Who listens at an ADDRESS:PORT: the node, its listener's name, a fresh number; None: nobody."""
        ...


class NetworkTap(Protocol):
    """Sees what a capture of the whole network would see. Addresses are ADDRESS:PORT."""

    def opened(self, dialer: str, listener: str, now_us: int) -> None:
        """A connection is open."""
        ...

    def carried(self, source: str, target: str, data: bytes, now_us: int) -> None:
        """Bytes have arrived."""
        ...

    def ended(self, source: str, target: str, now_us: int, *, is_reset: bool) -> None:
        """One side says that it sends nothing more, or that nothing is left of the connection."""
        ...


class SimulatedClock(Protocol):
    """The one order in which everything happens."""

    @property
    def now_us(self) -> int:
        """Virtual time."""
        ...

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Do something later."""
        ...


@dataclass(slots=True)
class _Unsent:
    data: Buffer
    tell: bool
    checksum: int


@dataclass(slots=True, eq=False)
class SimulatedEnd:
    """One side of a connection: whose it is, under which number, and what it has to send."""

    index: int
    host: Host
    number: int
    address: str
    is_open: bool = True
    closing: bool = False
    peer: SimulatedEnd | None = None
    unsent: deque[_Unsent] = field(default_factory=deque)
    moving: deque[tuple[int, bytes | None]] = field(default_factory=deque)
    arrived: bytearray = field(default_factory=bytearray)
    ended: bool = False
    kernel_bytes: int = 0
    owed_bytes: int = 0
    last_arrival_us: int = 0
    progress: int = 0
    is_stalled: bool = False
    is_read: bool = False
    is_watched: bool = False
    is_slow: bool = False
    is_held: bool = False
    vanishes: bool = False


class Network:
    """All connections of a world."""

    def __init__(
        self, clock: SimulatedClock, rng: Rng, conditions: NetworkConditions, directory: Directory
    ) -> None:
        self.conditions = conditions
        self.tap: NetworkTap | None = None
        self._clock = clock
        self._rng = rng
        self._directory = directory
        self._blocked: dict[tuple[str, str], bool] = {}
        self._dark: dict[str, bool] = {}
        self._ends: dict[int, SimulatedEnd] = {}
        self._made = 0

    def blocks(self, source: str, target: str) -> bool:
        """Whether bytes from one process do not reach another."""
        return (source, target) in self._blocked or source in self._dark or target in self._dark

    def block(self, source: str, target: str) -> None:
        """From now on nothing that `source` sends reaches `target`."""
        self._blocked[source, target] = True

    def unblock(self, source: str, target: str) -> None:
        """What waits goes on, and what comes after."""
        if self._blocked.pop((source, target), False):
            self._go_on()

    def forget(self, source: str, target: str) -> None:
        """Connections that are open between two processes become half-open: what `source` sends on them
        vanishes for good, what it answers to bytes included, and neither side is told."""
        for end in self._ends.values():
            if end.peer is not None and (end.host.process, end.peer.host.process) == (source, target):
                end.vanishes = True

    def heal(self) -> None:
        """Unblock everything."""
        self._blocked.clear()
        self._go_on()

    def darken(self, process: str) -> None:
        """The machine of a process is off: nobody there even says that a connection is unknown."""
        self._dark[process] = True

    def light(self, process: str) -> None:
        """The machine of a process is on again."""
        if self._dark.pop(process, False):
            self._go_on()

    def dial(self, host: Host, number: int, local: str, address: str) -> None:
        """Open a connection from a node; it hears Connected or Closed."""
        end = self._make(host, number, local)
        give_up_us = self._clock.now_us + self.conditions.dial_timeout_us
        self._clock.after(self._latency(), partial(self._knock, end, address, give_up_us))

    def send(self, end: SimulatedEnd, data: Buffer, tell: bool) -> None:
        """Send bytes after those sent before; on a closed end nothing happens."""
        if end.is_open and not end.closing:
            end.unsent.append(_Unsent(data, tell, zlib.crc32(data)))
            self._push(end)

    def close(self, end: SimulatedEnd) -> None:
        """End a connection after what was sent; the node hears nothing more of it."""
        if end.is_open and not end.closing:
            end.closing = True
            self._push(end)
            self._clock.after(1_000_000, partial(self._abandon, end))

    def hold(self, end: SimulatedEnd) -> None:
        """Take nothing more of what the peer sends."""
        end.is_held = True

    def release(self, end: SimulatedEnd) -> None:
        """Take what the peer sends again."""
        end.is_held = False
        peer = end.peer
        if peer is not None and not peer.is_read and (peer.arrived or peer.ended):
            self._read_later(peer, end)

    def kill(self, process: str, *, silently: bool) -> None:
        """All connections of a process end. Its peers hear of it, or, `silently`, only when they send
        something to a machine that is on again."""
        for end in [end for end in self._ends.values() if end.host.process == process]:
            if not end.is_open:
                continue
            end.is_open = False
            end.unsent.clear()
            if not silently and end.peer is not None and self._rng.happens(500):
                self._move(end, None)
                continue
            if not silently:
                self._reset_peer(end)
            self._forget(end)

    def reset(self, source: str, target: str) -> None:
        """Break all connections between two processes, for both sides."""
        for end in tuple(self._ends.values()):
            if end.peer is not None and (end.host.process, end.peer.host.process) == (source, target):
                self._reset_peer(end)
                self._lost(end, RESET)

    def _make(self, host: Host, number: int, address: str) -> SimulatedEnd:
        self._made += 1
        end = self._ends[self._made] = SimulatedEnd(self._made, host, number, address)
        host.adopt(end)
        return end

    def _go_on(self) -> None:
        for end in tuple(self._ends.values()):
            if end.peer is None:
                continue
            ours, theirs = end.host.process, end.peer.host.process
            if end.is_stalled and not self.blocks(ours, theirs):
                end.is_stalled = False
                self._clock.after(self._latency(), partial(self._arrive, end))
            if end.owed_bytes and not self.blocks(theirs, ours):
                freed, end.owed_bytes = end.owed_bytes, 0
                self._free(end, freed)

    def _latency(self) -> int:
        conditions = self.conditions
        spike = self._rng.below(conditions.spike_us) if self._rng.happens(conditions.spike_per_mille) else 0
        return conditions.latency_us + self._rng.below(conditions.jitter_us + 1) + spike

    def _knock(self, end: SimulatedEnd, address: str, give_up_us: int) -> None:
        """The first packet of a connection comes to where it was sent."""
        if not end.is_open:
            return
        ours, theirs = end.host.process, self._directory.process_at(address)
        if theirs is None or self.blocks(ours, theirs) or self.blocks(theirs, ours):
            if self._clock.now_us < give_up_us:
                self._clock.after(1_000_000, partial(self._knock, end, address, give_up_us))
            else:
                self._lost(end, "no connection in time")
            return
        accepted = self._directory.accept(address)
        if accepted is None:
            self._clock.after(self._latency(), partial(self._lost, end, REFUSED))
            return
        host, listener, number = accepted
        peer = self._make(host, number, address)
        peer.peer, end.peer = end, peer
        if self.tap is not None:
            self.tap.opened(end.address, peer.address, self._clock.now_us)
        end.is_slow = self._rng.happens(self.conditions.slow_per_mille)
        peer.is_slow = self._rng.happens(self.conditions.slow_per_mille)
        host.tell(lambda now_ms: Accepted(number, listener, end.address, now_ms))
        self._clock.after(self._latency(), partial(self._connected, end))

    def _connected(self, end: SimulatedEnd) -> None:
        if end.is_open and not end.closing:
            listens = end.peer.address if end.peer is not None else ""
            end.host.tell(lambda now_ms: Connected(end.number, end.address, now_ms, listens))
        self._push(end)

    def _push(self, end: SimulatedEnd) -> None:
        """Move what the node sent into the kernel, as far as there is room."""
        if end.peer is None:
            return
        while end.unsent and end.kernel_bytes < self.conditions.kernel_bytes:
            first = end.unsent.popleft()
            assert zlib.crc32(first.data) == first.checksum, "bytes changed while they were being sent"
            piece = bytes(first.data[: self.conditions.kernel_bytes - end.kernel_bytes])
            if len(piece) < len(first.data):
                rest = memoryview(first.data)[len(piece) :]
                end.unsent.appendleft(_Unsent(rest, first.tell, zlib.crc32(rest)))
            elif first.tell:
                self._clock.after(1, partial(self._tell_writable, end))
            end.kernel_bytes += len(piece)
            end.progress += 1
            if piece:
                self._move(end, piece)
        if not end.unsent and end.closing:
            end.is_open = False
            self._move(end, None)
        elif end.unsent and not end.is_watched:
            end.is_watched = True
            self._clock.after(self.conditions.stall_us, partial(self._watch, end, end.progress))

    def _tell_writable(self, end: SimulatedEnd) -> None:
        if end.is_open and not end.closing:
            end.host.tell(lambda now_ms: Writable(end.number, now_ms))

    def _watch(self, end: SimulatedEnd, progress: int) -> None:
        end.is_watched = False
        if not end.is_open or not end.unsent:
            return
        if end.progress == progress:
            self._reset_peer(end)
            self._lost(end, "nothing was taken for too long")
        else:
            end.is_watched = True
            self._clock.after(self.conditions.stall_us, partial(self._watch, end, end.progress))

    def _move(self, end: SimulatedEnd, piece: bytes | None) -> None:
        arrival_us = max(end.last_arrival_us, self._clock.now_us + self._latency())
        end.last_arrival_us = arrival_us
        end.moving.append((arrival_us, piece))
        self._clock.after(arrival_us - self._clock.now_us, partial(self._arrive, end))

    def _arrive(self, end: SimulatedEnd) -> None:
        """What `end` sent comes to its peer, unless the way is blocked."""
        peer = end.peer
        if peer is None or not end.moving:
            return
        if end.vanishes:
            end.moving.clear()
            return
        if self.blocks(end.host.process, peer.host.process):
            end.is_stalled = True
            return
        while end.moving and end.moving[0][0] <= self._clock.now_us:
            _, piece = end.moving.popleft()
            if piece is None:
                end.ended = True
            else:
                end.arrived += piece
            self._show(end, peer, piece)
        if not peer.is_open:
            end.arrived.clear()
            self._reset_peer(peer)
        elif not end.is_read:
            self._read_later(end, peer)
        if end.ended and not end.is_open:
            self._forget(end)

    def _show(self, end: SimulatedEnd, peer: SimulatedEnd, piece: bytes | None) -> None:
        if self.tap is None:
            return
        if piece is None:
            self.tap.ended(end.address, peer.address, self._clock.now_us, is_reset=False)
        else:
            self.tap.carried(end.address, peer.address, piece, self._clock.now_us)

    def _read_later(self, end: SimulatedEnd, peer: SimulatedEnd) -> None:
        end.is_read = True
        delay_us = self.conditions.slow_read_us if peer.is_slow else 0
        self._clock.after(delay_us, partial(peer.host.when_running, partial(self._read, end, peer)))

    def _read(self, end: SimulatedEnd, peer: SimulatedEnd) -> None:
        """The peer's process takes what has arrived."""
        end.is_read = False
        if not peer.is_open or peer.is_held:
            return
        if end.arrived:
            most = self.conditions.slow_read_bytes if peer.is_slow else self.conditions.read_bytes_max
            count = min(len(end.arrived), most)
            if self._rng.happens(self.conditions.cut_per_mille):
                count = self._rng.between(1, count)
            data = bytes(end.arrived[:count])
            del end.arrived[:count]
            if not peer.closing:
                peer.host.tell(lambda now_ms: Received(peer.number, data, now_ms))
            if peer.vanishes:
                # Nothing says that they were taken: they stay in the sender's kernel.
                pass
            elif self.blocks(peer.host.process, end.host.process):
                end.owed_bytes += count
            else:
                self._free(end, count)
        if end.arrived:
            self._read_later(end, peer)
        elif end.ended:
            self._lost(peer, "closed by the peer")

    def _free(self, end: SimulatedEnd, count: int) -> None:
        end.kernel_bytes -= count
        if end.is_open:
            self._push(end)

    def _reset_peer(self, end: SimulatedEnd) -> None:
        """A reset is on its way to the other side."""
        peer = end.peer
        blocked = end.vanishes or peer is None or self.blocks(end.host.process, peer.host.process)
        if peer is not None and peer.is_open and not blocked:
            if self.tap is not None:
                self.tap.ended(end.address, peer.address, self._clock.now_us, is_reset=True)
            self._clock.after(self._latency(), partial(self._lost, peer, RESET))

    def _abandon(self, end: SimulatedEnd) -> None:
        if end.is_open:
            end.is_open = False
            end.unsent.clear()
            self._reset_peer(end)
            self._forget(end)

    def _lost(self, end: SimulatedEnd, reason: str) -> None:
        """An end is gone, and its node gets Closed."""
        if not end.is_open:
            return
        notifies = not end.closing
        end.is_open = False
        end.unsent.clear()
        self._forget(end)
        if notifies:
            end.host.tell(lambda now_ms: Closed(end.number, reason, now_ms))

    def _forget(self, end: SimulatedEnd) -> None:
        end.moving.clear()
        self._ends.pop(end.index, None)
