"""The other end of what a node sends, in memory and at once: peers that answer requests by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.world import Closed, Connected, Dial, Effect, Event, Halt, Note, Received, Send
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer answers."""

    code: int = 0
    ext_fields: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes = b""


Peer = Callable[[Command], Answer | None]
"""Takes a request and answers it; with None, never."""


class Talk:
    """Carries effects to `peers`, by address, and their answers back as events. A peer that is not there
    refuses the connection. Keeps every request as (address, command), every note, and a halt's reason."""

    def __init__(self, peers: Mapping[str, Peer]) -> None:
        self.peers = dict(peers)
        self.requests: list[tuple[str, Command]] = []
        self.notes: list[Note] = []
        self.halted: str | None = None
        self._addresses: dict[int, str] = {}
        self._buffers: dict[int, FrameBuffer] = {}

    def carry_out(self, effects: Sequence[Effect], now_ms: int) -> list[Event]:
        """The events that follow."""
        events: list[Event] = []
        for effect in effects:
            match effect:
                case Dial(connection, address):
                    events.append(self._dialled(connection, address, now_ms))
                case Send(connection, data, _):
                    events += self._sent(connection, bytes(data), now_ms)
                case Note():
                    self.notes.append(effect)
                case Halt(reason):
                    self.halted = reason
                case _:
                    pass
        return events

    def codes(self) -> list[int]:
        """The codes of all requests so far, in order."""
        return [command.header.code for _, command in self.requests]

    def _dialled(self, connection: int, address: str, now_ms: int) -> Event:
        if address not in self.peers:
            return Closed(connection, "refused", now_ms)
        self._addresses[connection] = address
        self._buffers[connection] = FrameBuffer(REMOTING)
        return Connected(connection, "127.0.0.1:50000", now_ms)

    def _sent(self, connection: int, data: bytes, now_ms: int) -> list[Event]:
        answers = b""
        for frame in self._buffers[connection].receive(data):
            command = decode_command(frame)
            address = self._addresses[connection]
            self.requests.append((address, command))
            answer = self.peers[address](command)
            if answer is not None and command.wants_answer:
                header = RemotingHeader(
                    code=answer.code,
                    opaque=command.header.opaque,
                    flag=RemotingFlag.RESPONSE,
                    ext_fields=dict(answer.ext_fields),
                )
                answers += Command(header, answer.body).encode()
        return [Received(connection, answers, now_ms)] if answers else []
