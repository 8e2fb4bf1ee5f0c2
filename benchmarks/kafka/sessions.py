"""A session in a store over one bare connection: what is asked, one at a time or many deep."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

from lab.errors import LabError
from lab.ports import LOOPBACK
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.zookeeper.client.client import create_of
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode, OpCode
from replispec.wire.zookeeper.connection import ConnectRequest, ConnectResponse, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.constants import PASSWORD_BYTES
from replispec.wire.zookeeper.streams import ANSWERS

SESSION_MS: Final = 60_000
ASKED_S: Final = 120.0
DEEP: Final = 500
READ_BYTES: Final = 1 << 18
Asked = tuple[int, bytes]
"""An operation and its request."""


class StoreSession:
    """Its session ends with `close`, or when nothing is asked for as long as the store lets it live."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port), timeout=ASKED_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = FrameBuffer(ANSWERS)
        self._xid = 0
        self._frames: list[bytes] = []
        self._socket.sendall(ConnectRequest(0, 0, SESSION_MS, 0, bytes(PASSWORD_BYTES), False).encode())
        ConnectResponse.decode(self._next())

    def ask(self, code: int, body: bytes) -> ReplyFrame:
        """The answer to one request."""
        (answer,) = self.ask_all([(code, body)])
        return answer

    def ask_all(self, asked: Sequence[Asked], deep: int = DEEP) -> list[ReplyFrame]:
        """The answers, in order; so many requests are on their way at once."""
        answers: list[ReplyFrame] = []
        sent = 0
        while len(answers) < len(asked):
            frames = []
            while sent < len(asked) and sent - len(answers) < deep:
                self._xid += 1
                frames.append(RequestFrame(self._xid, *asked[sent]).encode())
                sent += 1
            if frames:
                self._socket.sendall(b"".join(frames))
            answers.append(ReplyFrame.decode(self._next()))
        return answers

    def make(self, path: str, data: bytes | None = None, flags: int = CreateFlags.PERSISTENT) -> None:
        """Make a node, unless it is there. Raises LabError."""
        error = self.ask(OpCode.CREATE, create_of(path, data, flags).encode()).error
        if error not in (ErrorCode.OK, ErrorCode.NODE_EXISTS):
            raise LabError(f"{path}: the store answers {error}")

    def keep(self) -> None:
        """Keep the session."""
        self.ask(OpCode.PING, b"")

    def close(self) -> None:
        """End the session at once."""
        self._xid += 1
        self._socket.sendall(RequestFrame(self._xid, OpCode.CLOSE_SESSION, b"").encode())
        self._socket.close()

    def _next(self) -> bytes:
        while not self._frames:
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise LabError("the store hung up")
            self._frames += self._buffer.receive(data)
        return self._frames.pop(0)
