"""Connections of clients: frames in, answers out in the order of requests, no more of either than may be."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.world import Accepted, Level, Outbox, Received
from replispec.wire.zookeeper.connection import RequestFrame
from replispec.wire.zookeeper.constants import NO_SESSION
from replispec.wire.zookeeper.options import MetastoreLimits
from replispec.wire.zookeeper.streams import REQUESTS

REQUESTS_AT_ONCE: Final = 128
"""Requests of one client that are served before others are heard."""
UNREAD_TIMES_MAX: Final = 4
"""How many times unsentBytesMax may wait for a client that is told of its watches before it is hung up on."""
_FRAME_HEAD: Final = REQUESTS.form(RequestFrame.__name__).fixed
"""The bytes of a frame that its length does not count."""

Answer = Callable[[], bytes]
"""Makes an answer once all requests before it are answered."""


@dataclass(slots=True, eq=False)
class AnswerTurn:
    """One request whose answer has its turn after those before it: `answer` when it may be made."""

    answer: Answer | None = None


@dataclass(slots=True, eq=False)
class Peer:
    """One connection. `waiting` are requests that are not served yet, `turns` those that are and are not
    answered. `is_greeted`: its first frame was answered, and its requests are served. `is_ending`: it ends
    once it was sent what it was answered."""

    number: int
    address: str
    buffer: FrameBuffer
    session: int = NO_SESSION
    has_asked: bool = False
    is_greeted: bool = False
    is_closing: bool = False
    is_ending: bool = False
    waiting: deque[bytes] = field(default_factory=deque)
    turns: deque[AnswerTurn] = field(default_factory=deque)
    out: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0
    held_bytes: int = 0
    unsent_bytes: int = 0
    paused: bool = False
    awaits_writable: bool = False

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.address.rpartition(":")[0]


class ClientPeers:
    """All connections; a frame has `frame_bytes_max` bytes after its length at most. `handle` is called with
    each frame in order, `dropped` with each connection that ends on this side's account. While it `is_busy`
    nobody's requests are served."""

    def __init__(
        self,
        outbox: Outbox,
        limits: MetastoreLimits,
        frame_bytes_max: int,
        handle: Callable[[Peer, bytes, int], None],
        dropped: Callable[[Peer], None],
        *,
        is_busy: Callable[[], bool],
    ) -> None:
        self._outbox = outbox
        self._limits = limits
        self._frame_bytes_max = frame_bytes_max
        self._handle = handle
        self._dropped = dropped
        self._is_busy = is_busy
        # Who waits since nobody was served, and who has said nothing, each with the time by which it is to.
        self._stalled: dict[int, Peer] = {}
        self._silent: deque[tuple[int, Peer]] = deque()
        self._peers: dict[int, Peer] = {}
        self._hosts: Counter[str] = Counter()
        self._touched: dict[int, Peer] = {}
        self._told_full = False
        self.held_bytes = 0
        self.received = self.sent = self.refused = 0
        """Requests, answers with what else was told, and connections that this side ended."""

    def __len__(self) -> int:
        return len(self._peers)

    def get(self, connection: int) -> Peer | None:
        """A connection that is open."""
        return self._peers.get(connection)

    @property
    def unanswered(self) -> int:
        """Requests of all that are not answered."""
        return sum(len(each.turns) + len(each.waiting) for each in self._peers.values())

    def accepted(self, event: Accepted) -> None:
        """Take a connection, or close it when there are too many."""
        peer = Peer(
            event.connection,
            event.peer,
            FrameBuffer(REQUESTS, limit_bytes=self._frame_bytes_max + _FRAME_HEAD),
        )
        each_max = self._limits.max_client_cnxns
        is_full = len(self._peers) >= self._limits.max_cnxns
        if is_full or (each_max and self._hosts[peer.host] >= each_max):
            self.refused += 1
            self._outbox.close(event.connection)
            if not self._told_full:
                self._told_full = True
                self._outbox.note(Level.WARNING, "too many connections", peer=peer.host)
            return
        self._told_full = False
        self._hosts[peer.host] += 1
        self._peers[event.connection] = peer
        self._silent.append((event.now_ms + self._limits.sessionless_cnxn_timeout_ms, peer))

    def deadline_ms(self) -> int | None:
        """When a connection may have been silent for too long."""
        silent = self._silent
        while silent and (silent[0][1].has_asked or silent[0][1].number not in self._peers):
            silent.popleft()
        return silent[0][0] if silent else None

    def ticked(self, now_ms: int) -> None:
        """End connections that have asked for nothing."""
        while (deadline_ms := self.deadline_ms()) is not None and deadline_ms <= now_ms:
            self.drop(self._silent[0][1], "it has asked for nothing")

    def take(self, event: Received) -> None:
        """Serve the requests that these bytes complete. Who breaks the protocol is dropped."""
        peer = self._peers.get(event.connection)
        if peer is None or peer.is_closing:
            return
        try:
            frames = peer.buffer.receive(event.data)
        except RemoteProtocolError as error:
            self.drop(peer, str(error))
            return
        peer.waiting.extend(frames)
        peer.waiting_bytes += sum(map(len, frames))
        self.serve(peer, event.now_ms)

    def writable(self, connection: int, now_ms: int) -> None:
        """Room is there again."""
        peer = self._peers.get(connection)
        if peer is not None:
            peer.unsent_bytes = 0
            peer.awaits_writable = False
            self._answer(peer)
            self.serve(peer, now_ms)

    def serve(self, peer: Peer, now_ms: int) -> None:
        """Serve what waits of a connection, as far as may be at once."""
        waiting, limits = peer.waiting, self._limits
        for _ in range(REQUESTS_AT_ONCE):
            if not waiting or peer.is_closing or self._is_held(peer):
                break
            if peer.has_asked and not peer.is_greeted:
                break
            frame = waiting.popleft()
            peer.waiting_bytes -= len(frame)
            peer.has_asked = True
            self.received += 1
            try:
                self._handle(peer, frame, now_ms)
            except RemoteProtocolError as error:
                self.drop(peer, str(error))
                return
        if waiting and not peer.is_closing and self._is_busy():
            self._stalled[peer.number] = peer
        if peer.is_closing:
            waiting.clear()
            peer.waiting_bytes = 0
        elif waiting and not self._is_held(peer) and peer.is_greeted:
            # Others are heard before the rest.
            self._touched[peer.number] = peer
        self._hold(peer)
        while self.held_bytes > limits.waiting_bytes_max:
            greediest = max(self._peers.values(), key=lambda each: each.held_bytes)
            self.drop(greediest, f"{greediest.held_bytes} bytes of requests wait, too many in all")

    def _is_held(self, peer: Peer) -> bool:
        limits = self._limits
        return (
            len(peer.turns) >= limits.unanswered_max
            or peer.unsent_bytes > limits.unsent_bytes_max
            or self._is_busy()
        )

    def _hold(self, peer: Peer) -> None:
        """Take bytes of this client only while none of its requests wait."""
        if peer.number not in self._peers:
            return
        if bool(peer.waiting) != peer.paused:
            peer.paused = bool(peer.waiting)
            (self._outbox.pause if peer.paused else self._outbox.resume)(peer.number)
        held = peer.buffer.waiting_bytes + peer.waiting_bytes
        self.held_bytes += held - peer.held_bytes
        peer.held_bytes = held

    # Answers

    def turn(self, peer: Peer, answer: Answer | None = None) -> AnswerTurn:
        """The next request of a connection has its turn; one with an answer is answered once all before it
        are."""
        turn = AnswerTurn(answer)
        if peer.turns or answer is None:
            peer.turns.append(turn)
        else:
            self.send(peer, answer())
        return turn

    def ready(self, peer: Peer, turn: AnswerTurn, answer: Answer) -> None:
        """A request may be answered, and with it all behind it that wait for nothing else."""
        turn.answer = answer
        self._answer(peer)
        if peer.waiting:
            self._touched[peer.number] = peer

    def _answer(self, peer: Peer) -> None:
        """Make the answers that have their turn, no more of them than may wait to be read."""
        turns, most = peer.turns, self._limits.unsent_bytes_max
        while turns and peer.unsent_bytes <= most and (make := turns[0].answer) is not None:
            turns.popleft()
            self.send(peer, make())
        if peer.is_ending:
            self.close(peer)

    def settled(self) -> None:
        """A write has ended: who waited for that is served once it can be written to."""
        if self._stalled and not self._is_busy():
            self._touched.update(self._stalled)
            self._stalled.clear()

    def send(self, peer: Peer, data: bytes) -> None:
        """Send bytes with all else that one event makes leave."""
        if peer.number not in self._peers:
            return
        self.sent += 1
        peer.out.append(data)
        peer.unsent_bytes += len(data)
        self._touched[peer.number] = peer

    def tell(self, connection: int, data: bytes) -> None:
        """Send what a client did not ask for. Who reads nothing is hung up on: it hears of all it missed when
        it comes back, and must not miss a part."""
        peer = self._peers.get(connection)
        if peer is None:
            return
        if peer.unsent_bytes > UNREAD_TIMES_MAX * self._limits.unsent_bytes_max:
            self.drop(peer, f"{peer.unsent_bytes} bytes wait for it")
            return
        self.send(peer, data)

    def flush(self) -> None:
        """Have everything leave that the event has made. To be called once at its end."""
        touched, self._touched = self._touched, {}
        for peer in touched.values():
            if peer.number not in self._peers:
                continue
            if peer.waiting and self._is_busy():
                self._stalled[peer.number] = peer
            tell = not peer.awaits_writable and (
                peer.unsent_bytes > self._limits.unsent_bytes_max
                or (bool(peer.waiting) and not self._is_held(peer))
            )
            peer.awaits_writable = peer.awaits_writable or tell
            if peer.out or tell:
                self._outbox.send(peer.number, b"".join(peer.out), tell=tell)
                peer.out.clear()

    # Ends

    def close(self, peer: Peer) -> None:
        """End a connection on our own account, after what it was sent."""
        if self._peers.get(peer.number) is not peer:
            return
        if peer.turns and peer.turns[0].answer is not None:
            # It reads slowly, and is answered before.
            peer.is_closing = peer.is_ending = True
            return
        if peer.out:
            self._outbox.send(peer.number, b"".join(peer.out))
        self._outbox.close(peer.number)
        self.forget(peer.number)
        self._dropped(peer)

    def drop(self, peer: Peer, reason: str) -> None:
        """End the connection of a client at fault."""
        if self._peers.get(peer.number) is peer:
            self.refused += 1
            self._outbox.note(Level.WARNING, "client dropped", peer=peer.address, reason=reason)
            peer.turns.clear()
            self.close(peer)

    def forget(self, connection: int) -> Peer | None:
        """A connection is gone; answers that are still to come are discarded."""
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._touched.pop(connection, None)
            self._stalled.pop(connection, None)
            self.held_bytes -= peer.held_bytes
            peer.is_closing = True
            peer.waiting.clear()
            self._hosts[peer.host] -= 1
            if not self._hosts[peer.host]:
                del self._hosts[peer.host]
        return peer
