"""Questions to a remoting server, one at a time, on a connection of their own."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Self

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.rules.signatures import signature_of
from replispec.wire.rocketmq import streams
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import ACCESS_KEY, SIGNATURE_KEY
from replispec.wire.rocketmq.remoting import RemotingHeader

Fields = dict[str, str | None]
ANSWER_S = 3.0
CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests as one user."""

    access_key: str
    secret: str

    def __call__(self, fields: Fields | None, body: bytes) -> Fields:
        """The fields with access key and signature."""
        signed: Fields = {**(fields or {}), ACCESS_KEY: self.access_key}
        return {**signed, SIGNATURE_KEY: signature_of(self.secret, signed, body)}


class Peer:
    """A connection to a remoting server, whose requests may be signed. Raises OSError when it cannot be
    reached or goes away."""

    def __init__(self, host: str, port: int, sign: Signer | None = None) -> None:
        self._sign = sign
        self._socket = socket.create_connection((host, port), timeout=ANSWER_S)
        self._frames = FrameBuffer(streams.REMOTING)
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, code: RequestCode, header: Header | None = None, body: bytes = b"") -> Command:
        """The answer to one request. Raises OSError (time-out too) and RemoteProtocolError."""
        fields = header.to_ext_fields() if header is not None else None
        return self.ask_fields(code, fields, body)

    def ask_fields(self, code: int, fields: Fields | None, body: bytes = b"") -> Command:
        """The answer to a request with any fields. Raises as `ask` does."""
        self._opaque += 1
        if self._sign is not None:
            fields = self._sign(fields, body)
        request = RemotingHeader(code=code, opaque=self._opaque, ext_fields=fields)
        self._socket.sendall(Command(request, body).encode())
        while True:
            data = self._socket.recv(CHUNK_BYTES)
            if not data:
                raise ConnectionResetError("the peer closed the connection")
            for frame in self._frames.receive(data):
                answer = decode_command(frame)
                if answer.is_answer and answer.header.opaque == self._opaque:
                    return answer
