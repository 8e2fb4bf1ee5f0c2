"""One session over any number of connections: requests out in order, answers back to who asked.

A request that was sent and not answered when its connection ends is given back with CONNECTION_LOSS: whether
it was done is unknown. One that was not sent waits for the next connection. Source: apache/zookeeper 3.5.9,
ClientCnxn.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import Message, OpenRequests, PairedAnswer
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ConnectRequest, ConnectResponse, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.constants import (
    CLIENT_PAUSE_MS,
    CLIENT_REQUESTS_MAX,
    CLIENT_WAITING_MAX,
    NO_SESSION,
    PASSWORD_BYTES,
    PING_PART,
)
from replispec.wire.zookeeper.operations import WatchNotification
from replispec.wire.zookeeper.streams import ANSWERS

_NUMBERS: Final = {code: number for number, code in REPLY_FRAME.numbers.items()}
_XID_MAX: Final = (1 << 31) - 2
"""Numbers of requests begin anew behind it."""


class SessionStanding(enum.Enum):
    """Where a session stands. LOST: the metastore does not know it any more, and all that went with it is
    gone."""

    CONNECTING = enum.auto()
    CONNECTED = enum.auto()
    LOST = enum.auto()
    CLOSED = enum.auto()


class MetastoreRequest(Protocol):
    """A request that has a code."""

    CODES: ClassVar[tuple[int, ...]]

    def encode(self) -> bytes:
        """Its body."""
        ...


@immutable
class MetastoreAnswer:
    """What came of a request: an error, OK if none, with what its answer says. With CONNECTION_LOSS it may be
    done or not, with SESSION_EXPIRED too if it `was_sent`. `zxid`: the newest change that the server knew."""

    error: int
    message: Message | None = None
    zxid: int = 0
    was_sent: bool = True


Then = Callable[[MetastoreAnswer], None]


@dataclass(slots=True, eq=False)
class _Asked:
    code: int
    body: bytes
    then: Then


class Session:
    """A session at one of some servers, HOST:PORT each. `told` gets notifications, `stands` each change of
    the standing, after everybody was given back what they had asked."""

    def __init__(
        self,
        outbox: Outbox,
        servers: Sequence[str],
        timeout_ms: int,
        *,
        told: Callable[[WatchNotification], None],
        stands: Callable[[SessionStanding], None],
    ) -> None:
        assert servers, "a session at no server"
        self._outbox = outbox
        self._servers = servers
        self._wish_ms = timeout_ms
        self._told = told
        self._stands = stands
        self.standing = SessionStanding.CLOSED
        self.number = NO_SESSION
        self.last_zxid = 0
        self._timeout_ms = timeout_ms
        self._password = bytes(PASSWORD_BYTES)
        self._next_server = 0
        self._failed = 0
        self._dial_at_ms: int | None = None
        self._connection: int | None = None
        self._buffer = FrameBuffer(ANSWERS)
        self._pairing = OpenRequests(REPLY_FRAME, most=CLIENT_REQUESTS_MAX + 1)
        self._sent: deque[_Asked] = deque()
        self._waiting: deque[_Asked] = deque()
        self._xid = 0
        self._is_pinging = False
        self._heard_ms = self._spoke_ms = 0

    @property
    def is_connected(self) -> bool:
        """Whether a server serves it now."""
        return self.standing is SessionStanding.CONNECTED

    def begin(self, now_ms: int) -> None:
        """Begin a new session; one that there was is lost."""
        assert self.standing in (SessionStanding.CLOSED, SessionStanding.LOST), "a session that lives begins"
        self.number, self._password = NO_SESSION, bytes(PASSWORD_BYTES)
        self._stand(SessionStanding.CONNECTING)
        self._dial(now_ms)

    def ask(self, request: MetastoreRequest, then: Then) -> None:
        """Send a request, now or with the next connection; `then` is called once."""
        (code,) = type(request).CODES
        asked = _Asked(code, request.encode(), then)
        if self.standing in (SessionStanding.LOST, SessionStanding.CLOSED):
            then(MetastoreAnswer(ErrorCode.SESSION_EXPIRED, was_sent=False))
        elif len(self._waiting) >= CLIENT_WAITING_MAX:
            then(MetastoreAnswer(ErrorCode.CONNECTION_LOSS, was_sent=False))
        elif self.is_connected and not self._waiting and len(self._sent) < CLIENT_REQUESTS_MAX:
            self._send(asked)
        else:
            self._waiting.append(asked)

    def leave(self) -> None:
        """This process ends, or wants no session any more: say so, and hang up."""
        if self._connection is not None:
            if self.is_connected:
                frame = RequestFrame(self._number(OpCode.CLOSE_SESSION), OpCode.CLOSE_SESSION, b"")
                self._outbox.send(self._connection, frame.encode())
            self._outbox.close(self._connection)
        self._connection = self._dial_at_ms = None
        self._give_back(ErrorCode.SESSION_EXPIRED, everything=True)
        self._stand(SessionStanding.CLOSED)

    # Events

    def connected(self, event: Connected) -> bool:
        """A connection is open; false when it is none of this session."""
        if event.connection != self._connection:
            return False
        self._heard_ms = self._spoke_ms = event.now_ms
        hello = ConnectRequest(
            last_zxid_seen=self.last_zxid,
            timeout=self._wish_ms,
            session_id=self.number,
            password=self._password,
            read_only=False,
        )
        self._outbox.send(event.connection, hello.encode())
        return True

    def received(self, event: Received) -> bool:
        """Bytes came; false when they are none of this session's."""
        if event.connection != self._connection:
            return False
        self._heard_ms = event.now_ms
        try:
            for frame in self._buffer.receive(event.data):
                if self._connection != event.connection:
                    break
                self._take(frame, event.now_ms)
        except RemoteProtocolError as error:
            self._outbox.note(Level.WARNING, "metastore breaks the protocol", reason=str(error))
            self._hang_up(event.now_ms)
        return True

    def closed(self, event: Closed) -> bool:
        """A connection is gone; false when it is none of this session's."""
        if event.connection != self._connection:
            return False
        self._lose(event.now_ms, event.reason)
        return True

    def ticked(self, now_ms: int) -> None:
        """Dial again, ping, or give up a server that is silent."""
        if self._dial_at_ms is not None and now_ms >= self._dial_at_ms:
            self._dial(now_ms)
        if self._connection is None:
            return
        part_ms = self._timeout_ms // PING_PART
        if now_ms - self._heard_ms >= 2 * part_ms:
            self._hang_up(now_ms)
        elif self.is_connected and not self._is_pinging and now_ms - self._spoke_ms >= part_ms:
            self._is_pinging = True
            self._spoke_ms = now_ms
            self._out(OpCode.PING, b"")

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        if self._dial_at_ms is not None:
            return self._dial_at_ms
        if self._connection is None:
            return None
        part_ms = self._timeout_ms // PING_PART
        dead_ms = self._heard_ms + 2 * part_ms
        is_to_ping = self.is_connected and not self._is_pinging
        return min(dead_ms, self._spoke_ms + part_ms) if is_to_ping else dead_ms

    # Connections

    def _dial(self, now_ms: int) -> None:
        server = self._servers[self._next_server % len(self._servers)]
        self._next_server += 1
        self._dial_at_ms = None
        self._buffer = FrameBuffer(ANSWERS)
        self._pairing = OpenRequests(REPLY_FRAME, most=CLIENT_REQUESTS_MAX + 1)
        self._is_pinging = False
        self._heard_ms = self._spoke_ms = now_ms
        self._connection = self._outbox.dial(server)

    def _hang_up(self, now_ms: int) -> None:
        assert self._connection is not None
        self._outbox.close(self._connection)
        self._lose(now_ms, "silent, or not understood")

    def _lose(self, now_ms: int, reason: str) -> None:
        """Without a connection: go on with the next server, after a pause when each was tried."""
        self._connection = None
        was_connected = self.is_connected
        self._failed = 0 if was_connected else self._failed + 1
        pauses = self._failed and self._failed % len(self._servers) == 0
        self._dial_at_ms = now_ms + (CLIENT_PAUSE_MS if pauses else 0)
        if was_connected:
            self._outbox.note(Level.INFO, "metastore lost", reason=reason)
            self._stand_quietly(SessionStanding.CONNECTING)
            self._give_back(ErrorCode.CONNECTION_LOSS, everything=False)
            self._stands(SessionStanding.CONNECTING)

    def _greeted(self, said: ConnectResponse, now_ms: int) -> None:
        if not said.timeout:
            assert self._connection is not None
            self._outbox.close(self._connection)
            self._connection = None
            self._stand_quietly(SessionStanding.LOST)
            self._give_back(ErrorCode.SESSION_EXPIRED, everything=True)
            self._stands(SessionStanding.LOST)
            return
        self.number, self._password = said.session_id, said.password or b""
        self._timeout_ms, self._failed = said.timeout, 0
        self._heard_ms = self._spoke_ms = now_ms
        self._stand(SessionStanding.CONNECTED)
        self._send_waiting()

    def _stand(self, standing: SessionStanding) -> None:
        self._stand_quietly(standing)
        self._stands(standing)

    def _stand_quietly(self, standing: SessionStanding) -> None:
        self.standing = standing

    # Frames

    def _take(self, frame: bytes, now_ms: int) -> None:
        if not self.is_connected:
            self._greeted(ConnectResponse.decode(frame), now_ms)
            return
        reply = ReplyFrame.decode(frame)
        answered: PairedAnswer = self._pairing.answered(reply)
        self.last_zxid = max(self.last_zxid, reply.zxid)
        if answered.asked is None:
            if isinstance(answered.message, WatchNotification):
                self._told(answered.message)
        elif answered.asked.code == OpCode.PING:
            self._is_pinging = False
        else:
            asked = self._sent.popleft()
            asked.then(MetastoreAnswer(reply.error, answered.message, reply.zxid))
            self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self.is_connected and len(self._sent) < CLIENT_REQUESTS_MAX:
            self._send(self._waiting.popleft())

    def _send(self, asked: _Asked) -> None:
        self._sent.append(asked)
        self._spoke_ms = max(self._spoke_ms, self._heard_ms)
        self._out(asked.code, asked.body)

    def _out(self, code: int, body: bytes) -> None:
        assert self._connection is not None
        frame = RequestFrame(self._number(code), code, body)
        self._pairing.ask(frame)
        self._outbox.send(self._connection, frame.encode())

    def _number(self, code: int) -> int:
        if code in _NUMBERS:
            return _NUMBERS[code]
        self._xid = self._xid % _XID_MAX + 1
        return self._xid

    def _give_back(self, error: int, *, everything: bool) -> None:
        """Tell those who wait for an answer that there is none."""
        sent, self._sent = self._sent, deque()
        for asked in sent:
            asked.then(MetastoreAnswer(error))
        if everything:
            waiting, self._waiting = self._waiting, deque()
            for asked in waiting:
                asked.then(MetastoreAnswer(error, was_sent=False))
