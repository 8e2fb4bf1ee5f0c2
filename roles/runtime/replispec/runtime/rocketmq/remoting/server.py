"""The answering side of remoting: commands out of bytes, answers in any order, limits on every peer.

Source: NettyRemotingAbstract, NettyServerHandler (apache/rocketmq rocketmq-all-5.4.0): requests of one
connection are independent, answers are paired by opaque; a one-way request is never answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header, ReadFields
from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import OTHER, BoundedCounts
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting.prepared import Prepared
from replispec.runtime.rocketmq.remoting.shares import Shares
from replispec.runtime.world import Accepted, Closed, Level, Outbox, Received, Writable
from replispec.wire.rocketmq.codes import (
    LanguageCode,
    Release,
    RemotingFlag,
    RequestCode,
    ResponseCode,
    SerializeType,
)
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.options import RemotingLimits
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

LANGUAGE: Final = LanguageCode.PYTHON.name
BROKER_RELEASE: Final = Release.V5_4_0
"""The release whose broker ours is towards others."""
SHARED_BYTES_MIN: Final = 16 * 1024
"""A body of so many bytes is sent as it is, not copied into a frame: many answers may share it."""
REQUESTS_AT_ONCE: Final = 32
"""Requests of one peer that are handled because of one event; those that wait are, in the next turn of the
loop, after those of all others."""
BYTES_AT_ONCE: Final = 256 * 1024
"""Likewise: no further request is begun after so many bytes of requests."""
REFUSALS_MAX: Final = 64
"""Requests of one connection that are refused because of who sends them; then it ends."""
_ANSWER: Final = int(RemotingFlag.RESPONSE)
_JSON: Final = SerializeType.JSON
_KNOWN: Final = {int(code): code.name for code in RequestCode}
_CODES: Final = {int(code): code.name for code in ResponseCode}
SUCCESS: Final = ResponseCode.SUCCESS.name
"""What an answer is counted as that grants what was asked."""
SENT: Final = "success"
ONEWAY: Final = "oneway"
GONE: Final = "write_channel_failed"
"""What became of an answer, in the words of Apache RocketMQ's metrics: RemotingMetricsConstant."""
ANSWERS_COUNTED_MAX: Final = 4_096
"""Pairs of a request's name and the code of its answer that are counted apart."""
PROTOCOL: Final = "protocol"
WAITING: Final = "waiting"
CONNECTIONS: Final = "connections"


@dataclass(slots=True, eq=False)
class Request:
    """One request of a peer, to be answered once, now or later; a one-way request need not be.

    `now_ms`: when it was handed over. `wants_answer`: it is not one-way. `began_s`: when the event began that
    brought it, 0 where nobody says so. `is_held`: it waited for what it asks for, longer than other answers.
    `view`: how whoever asks counts, where that is not how whoever serves it does.
    """

    connection: int
    peer: str
    listener: str
    command: Command
    now_ms: int
    _server: RequestServer
    wants_answer: bool
    began_s: float = 0.0
    answered: bool = False
    is_held: bool = False
    view: Any = None

    @property
    def code(self) -> int:
        """The request code."""
        return self.command.header.code

    @property
    def header(self) -> Header:
        """Its typed header, which is read once: whoever reads its fields later is given this one, with what
        was changed in it. Raises RemoteProtocolError."""
        said = self.command.header
        fields = said.ext_fields or {}
        if fields.__class__ is ReadFields:
            return fields.header
        found = REQUEST_HEADERS[said.code].from_ext_fields(fields)
        said.ext_fields = read = ReadFields(fields)
        read.header = found
        return found

    def answer(
        self,
        code: int,
        *,
        ext_fields: dict[str, str | None] | None = None,
        body: bytes = b"",
        remark: str | None = None,
    ) -> None:
        """Answer with a ResponseCode. Of a one-way request, or once the peer is gone, nothing is sent.

        The second answer to a request is a fault of ours: AssertionError.
        """
        assert not self.answered, f"second answer to request {self.code}"
        self.answered = True
        self._server.answer(self, code, ext_fields, body, remark)

    def answer_prepared(self, answer: Prepared) -> None:
        """Answer with what was encoded before; else as `answer`."""
        assert not self.answered, f"second answer to request {self.code}"
        self.answered = True
        self._server.answer_prepared(self, answer)

    def refused(self) -> None:
        """It was answered that its sender may not ask it: one that goes on so is hung up on."""
        self._server.refused(self)

    def refuse_unknown(self) -> None:
        """Answer that the code is none that is served here.

        Source: NettyRemotingAbstract.processRequestCommand.
        """
        remark = f" request type {self.code} not supported"
        self.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


@dataclass(slots=True)
class _Peer:
    """One connection: its cut frames, what waits to be handled, and what waits to be answered or read.

    `answers` are those of the requests that are being handled, to leave together. `awaits_writable`: Writable
    was asked for. `waiting_bytes`: of requests that wait, `held_bytes`: of those that are cut, too.
    `was_full`: as many were being served as may; only when half of them are answered are there more.
    `has_asked`: a whole request came.
    """

    address: str
    listener: str
    buffer: FrameBuffer
    waiting: deque[bytes] = field(default_factory=deque)
    answers: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0
    held_bytes: int = 0
    was_full: bool = False
    has_asked: bool = False
    refusals: int = 0
    unanswered: int = 0
    unsent_bytes: int = 0
    awaits_writable: bool = False
    serving: bool = False
    paused: bool = False


class RequestServer:
    """Serves any number of connections with one handler.

    `handle` is called with each request, in the order of each connection, and never from inside `answer`;
    it answers at once or keeps the request. `version` is what answers carry as the release of their sender.
    `dropped` is told of each connection that ends on this side's account, as of a Closed that will not come;
    `told`, where it is set, of what a peer answers to what `tell` asked it, or to nothing.

    When as many connections are open as may be, the host that has most of them gives way to others: first
    those that have not asked for anything, the oldest first, then the newest.
    """

    def __init__(
        self,
        outbox: Outbox,
        handle: Callable[[Request], None],
        *,
        limits: RemotingLimits,
        version: int = 0,
        dropped: Callable[[int], None] = lambda _connection: None,
    ) -> None:
        self._outbox = outbox
        self._handle = handle
        self._limits = limits
        self._version = version
        self._dropped = dropped
        self.told: Callable[[int, Command], None] = lambda _connection, _answer: None
        self._peers: dict[int, _Peer] = {}
        self._shares = Shares[int](limits.connections_max)
        self._told_full = False
        self._held_bytes = 0
        self.answers: Final = BoundedCounts(ANSWERS_COUNTED_MAX)
        """How often each request was answered with each code, both by name; those apart that stand in
        `latencies`."""
        self.latencies: Latencies | None = None
        """How long requests took, if somebody shows that, by the names of request and answer, whether it was
        held, and what became of the answer."""
        self.refusals: Final = dict.fromkeys((PROTOCOL, WAITING, CONNECTIONS), 0)
        """Connections that were ended on this side's account, by the reason."""

    def serves(self, connection: int) -> bool:
        """Whether this connection is one of ours, and open."""
        return connection in self._peers

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._peers)

    @property
    def held_bytes(self) -> int:
        """Requests of all peers that are cut or wait, in bytes."""
        return self._held_bytes

    def accepted(self, event: Accepted) -> None:
        """Take a connection, if need be in the place of another one, or close it when there are too many."""
        host = host_of(event.peer)
        if self._shares.is_full and not self._make_room(host):
            self.refusals[CONNECTIONS] += 1
            self._outbox.close(event.connection)
            return
        self._shares.take(host, event.connection, is_loose=True)
        buffer = FrameBuffer(REMOTING, limit_bytes=self._limits.request_bytes_max)
        self._peers[event.connection] = _Peer(event.peer, event.listener, buffer)

    def _make_room(self, host: str) -> bool:
        """End a connection for one of this host; false when its own ones are too many. One line tells of it,
        until there is room again."""
        if not self._told_full:
            self._told_full = True
            most = self._limits.connections_max
            self._outbox.note(Level.WARNING, "too many connections", peer=host, connectionsMax=most)
        going = self._shares.giving_way(host)
        if going is None:
            return False
        self.refusals[CONNECTIONS] += 1
        self._end(going, self._peers[going])
        return True

    def received(self, event: Received) -> None:
        """Handle the requests that these bytes complete. A peer that breaks the protocol is dropped."""
        peer = self._peers.get(event.connection)
        if peer is None:
            return
        try:
            frames = peer.buffer.receive(event.data)
        except RemoteProtocolError as error:
            self._drop(event.connection, peer, str(error))
            return
        peer.waiting.extend(frames)
        peer.waiting_bytes += sum(map(len, frames))
        self._serve(event.connection, peer, event.now_ms)

    def writable(self, event: Writable) -> None:
        """Room is there again: go on with this peer's requests."""
        peer = self._peers.get(event.connection)
        if peer is not None:
            peer.unsent_bytes = 0
            peer.awaits_writable = False
            self._serve(event.connection, peer, event.now_ms)

    def closed(self, event: Closed) -> None:
        """Forget a connection; answers that are still to come are discarded."""
        self._forget(event.connection)

    def close(self, connection: int) -> None:
        """End a connection on our own account, after what was answered."""
        peer = self._forget(connection)
        if peer is not None:
            self._send_answers(connection, peer)
            self._outbox.close(connection)

    def answer(
        self,
        request: Request,
        code: int,
        ext_fields: dict[str, str | None] | None,
        body: bytes,
        remark: str | None,
    ) -> None:
        """Send the answer to a request; see `Request.answer`."""
        peer = self._peers.get(request.connection)
        self._count(request, int(code), is_there=peer is not None)
        if peer is None:
            return
        command = request.command
        if request.wants_answer:
            # By position: that costs less than by name.
            opaque = command.header.opaque
            header = RemotingHeader(
                int(code), LANGUAGE, self._version, opaque, _ANSWER, remark, ext_fields or None
            )
            said = Command(header, body, command.serialize_type)
            if len(body) < SHARED_BYTES_MIN:
                _put(peer, said.encode())
            else:
                _put(peer, said.encode_before_body(), body)
        if not peer.serving:
            self._send_answers(request.connection, peer)

    def answer_prepared(self, request: Request, answer: Prepared) -> None:
        """Likewise with what was encoded before; see `Request.answer_prepared`."""
        command = request.command
        opaque = command.header.opaque
        if opaque < 0 or command.serialize_type is not _JSON:
            self.answer(request, answer.code, answer.ext_fields, answer.body, None)
            return
        peer = self._peers.get(request.connection)
        self._count(request, int(answer.code), is_there=peer is not None)
        if peer is None:
            return
        if request.wants_answer:
            _put(peer, answer.frame(opaque))
        if not peer.serving:
            self._send_answers(request.connection, peer)

    def _count(self, request: Request, code: int, *, is_there: bool) -> None:
        asked, said = _KNOWN.get(request.command.header.code, OTHER), _CODES.get(code, OTHER)
        latencies = self.latencies
        if latencies is not None and request.began_s:
            result = (SENT if is_there else GONE) if request.wants_answer else ONEWAY
            latencies.answered((asked, said, request.is_held, result), request.began_s)
        else:
            self.answers.add((asked, said))

    def refused(self, request: Request) -> None:
        """Count a refusal; see `Request.refused`."""
        peer = self._peers.get(request.connection)
        if peer is not None:
            peer.refusals += 1
            if peer.refusals >= REFUSALS_MAX:
                self._drop(request.connection, peer, f"{peer.refusals} requests that it may not ask")

    def tell(self, connection: int, data: bytes) -> None:
        """Send what a peer did not ask for, unless too much waits for it: it hears of that by asking."""
        peer = self._peers.get(connection)
        if peer is None or peer.unsent_bytes > self._limits.unsent_bytes_max:
            return
        peer.unsent_bytes += len(data)
        peer.answers.append(data)
        if not peer.serving:
            self._send_answers(connection, peer)

    def _send_answers(self, connection: int, peer: _Peer) -> None:
        """Send what was answered; ask to be told when the peer's further requests should be looked at."""
        limits, answers = self._limits, peer.answers
        if not answers and not peer.waiting and peer.unsent_bytes <= limits.unsent_bytes_max:
            return
        *before, data = _runs(answers)
        answers.clear()
        fewer = limits.unanswered_max // 2 if peer.was_full else limits.unanswered_max - 1
        drained = bool(peer.waiting) and peer.unanswered <= fewer
        tell = not peer.awaits_writable and (drained or peer.unsent_bytes > limits.unsent_bytes_max)
        peer.awaits_writable = peer.awaits_writable or tell
        for part in before:
            self._outbox.send(connection, part)
        if data or tell:
            self._outbox.send(connection, data, tell=tell)

    def _serve(self, connection: int, peer: _Peer, now_ms: int) -> None:
        limits, waiting = self._limits, peer.waiting
        unanswered_max, unsent_bytes_max = limits.unanswered_max, limits.unsent_bytes_max
        if waiting and not peer.has_asked:
            peer.has_asked = True
            self._shares.keep(connection)
        peer.serving = True
        count, left_bytes = 0, BYTES_AT_ONCE
        began_s = 0.0 if self.latencies is None else self.latencies.began_s
        while waiting and peer.unanswered < unanswered_max and peer.unsent_bytes <= unsent_bytes_max:
            if count == REQUESTS_AT_ONCE or left_bytes <= 0:
                break
            frame = waiting.popleft()
            count += 1
            left_bytes -= len(frame)
            peer.waiting_bytes -= len(frame)
            try:
                command = decode_command(frame)
            except RemoteProtocolError as error:
                self._drop(connection, peer, str(error))
                return
            wants_answer = command.wants_answer
            if not wants_answer and command.is_answer:
                self.told(connection, command)
                continue
            peer.unanswered += wants_answer
            request = Request(
                connection, peer.address, peer.listener, command, now_ms, self, wants_answer, began_s
            )
            self._handle(request)
            if connection not in self._peers:
                return
        peer.serving = False
        peer.was_full = peer.unanswered >= unanswered_max
        self._send_answers(connection, peer)
        self._hold(connection, peer)

    def _hold(self, connection: int, peer: _Peer) -> None:
        """Take bytes of this peer only while none of its requests wait, and of all no more than may wait."""
        waiting = peer.waiting
        if bool(waiting) != peer.paused:
            peer.paused = bool(waiting)
            (self._outbox.pause if peer.paused else self._outbox.resume)(connection)
        held = peer.buffer.waiting_bytes + peer.waiting_bytes
        self._held_bytes += held - peer.held_bytes
        peer.held_bytes = held
        while self._held_bytes > self._limits.waiting_bytes_max:
            self._drop_greediest()

    def _drop_greediest(self) -> None:
        connection, peer = max(self._peers.items(), key=lambda item: item[1].held_bytes)
        self._drop(connection, peer, f"{peer.held_bytes} bytes of requests wait, too many in all", WAITING)

    def _drop(self, connection: int, peer: _Peer, reason: str, kind: str = PROTOCOL) -> None:
        """End the connection of a peer at fault, after what it was answered before."""
        self.refusals[kind] += 1
        self._outbox.note(Level.WARNING, "peer dropped", peer=peer.address, reason=reason)
        self._end(connection, peer)

    def _end(self, connection: int, peer: _Peer) -> None:
        self._forget(connection)
        self._send_answers(connection, peer)
        self._outbox.close(connection)
        self._dropped(connection)

    def _forget(self, connection: int) -> _Peer | None:
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._shares.drop(connection)
            if self._told_full and 8 * self._shares.held <= 7 * self._shares.room:
                self._told_full = False
            self._held_bytes -= peer.held_bytes
            peer.waiting.clear()
        return peer


def host_of(peer: str) -> str:
    """The host of an ADDRESS:PORT."""
    return peer.rpartition(":")[0]


def _put(peer: _Peer, data: bytes, body: bytes = b"") -> None:
    """Keep an answer until the answers of its piece leave together; a body apart is never copied."""
    peer.unanswered -= 1
    peer.unsent_bytes += len(data) + len(body)
    peer.answers.append(data)
    if body:
        peer.answers.append(body)


def _runs(parts: list[bytes]) -> Iterator[bytes]:
    """The same bytes in order, at least one piece; what is short is joined, what is long stays as it is."""
    run: list[bytes] = []
    for part in parts:
        if len(part) >= SHARED_BYTES_MIN:
            if run:
                yield b"".join(run)
                run = []
            yield part
        else:
            run.append(part)
    if run or not parts:
        yield run[0] if len(run) == 1 else b"".join(run)
