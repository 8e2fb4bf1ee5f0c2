"""One service that a scripted broker asks, over one connection that it opens when it needs it."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from replispec.conformance.encoding import Encoded
from replispec.conformance.model import Sent
from replispec.conformance.received import Breach, ReceivedAnswer
from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.conformance.rocketmq.remoting import RemotingEncoder, SubjectRemotingReader
from tests.conformance.subjects.remoting_server import Broken

RELEASE = (5, 5, 0)
PATIENCE_S = 3.0


class Lost(Exception):
    """The connection is gone, or is to be."""


class Peer:
    """One service that is asked one question after the other."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._encoder, self._reader = RemotingEncoder(RELEASE, 1), SubjectRemotingReader()
        self._stream: trio.SocketStream | None = None
        self._one_by_one = trio.Lock()

    async def ask(self, command: str, **header: object) -> tuple[str, Mapping[str, object]]:
        """The name of the answer's code, and its header; without an answer in time nothing and nothing."""
        answer = await self.answer(Sent(command=command, header=header))
        if answer is None:
            return "", {}
        return VOCABULARY.response_name(answer.code, RELEASE), answer.header

    async def answer(self, sent: Sent) -> ReceivedAnswer | None:
        """The answer to one request, if there is one in time."""
        async with self._one_by_one:
            try:
                with trio.move_on_after(PATIENCE_S):
                    return await self._asked(sent)
            except (OSError, Lost, *Broken):
                pass
            self.leave()
            return None

    async def tell(self, command: str, **header: object) -> None:
        """Say something that is not answered; where nobody listens it is lost."""
        async with self._one_by_one:
            try:
                with trio.move_on_after(PATIENCE_S):
                    await self._send(Sent(command=command, header=header, oneway=True))
            except (OSError, *Broken):
                self.leave()

    def leave(self) -> None:
        """End the connection, if there is one."""
        if self._stream is not None:
            self._stream.socket.close()
            self._stream = None

    async def _send(self, sent: Sent) -> tuple[trio.SocketStream, Encoded]:
        if self._stream is None:
            host, _, port = self._address.rpartition(":")
            self._stream = await trio.open_tcp_stream(host, int(port))
            self._reader = SubjectRemotingReader()
        encoded = self._encoder.sent(sent, {})
        self._reader.asked(encoded.questions[0])
        await self._stream.send_all(encoded.data)
        return self._stream, encoded

    async def _asked(self, sent: Sent) -> ReceivedAnswer:
        stream, _ = await self._send(sent)
        while data := await stream.receive_some(65536):
            for received in self._reader.receive(bytes(data)):
                if isinstance(received, ReceivedAnswer):
                    return received
                assert not isinstance(received, Breach), received
        raise Lost
