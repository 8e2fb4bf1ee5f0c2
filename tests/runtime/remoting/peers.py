"""A request server with peers that say what a test wants."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting import Request, RequestServer
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Effect,
    Note,
    Outbox,
    Pause,
    Received,
    Resume,
    Send,
    Writable,
)
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from replispec.wire.rocketmq.options import RemotingLimits
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

READ = int(RequestCode.CONTROLLER_GET_METADATA_INFO)


def request(opaque: int, *, body: bytes = b"", oneway: bool = False, code: int = READ) -> bytes:
    """The bytes of a request."""
    flag = RemotingFlag.ONEWAY if oneway else RemotingFlag.REQUEST
    header = RemotingHeader(code=code, language="JAVA", version=1, opaque=opaque, flag=flag)
    return Command(header, body).encode()


class Served:
    """A server, the effects it had, and what each peer was sent. `take` makes of sends what a kernel does
    that takes everything, unless the peer is in `stuck`."""

    def __init__(
        self,
        handle: Callable[[Request], None],
        limits: RemotingLimits | None = None,
        dropped: Callable[[int], None] = lambda _connection: None,
    ) -> None:
        self.outbox = Outbox()
        self.server = RequestServer(self.outbox, handle, limits=limits or RemotingLimits(), dropped=dropped)
        self.effects: list[Effect] = []
        self.sent: dict[int, bytearray] = {}
        self.paused: set[int] = set()
        self.closed: set[int] = set()
        self.stuck: set[int] = set()
        self.now_ms = 0

    def open(self, *connections: int, host: str = "127.0.0.1") -> None:
        """Peers on a host connect."""
        for connection in connections:
            self.sent[connection] = bytearray()
            self.server.accepted(Accepted(connection, "remoting", f"{host}:{connection}", self.now_ms))
        self.take()

    def say(self, connection: int, data: bytes) -> None:
        """A peer sends bytes."""
        self.server.received(Received(connection, data, self.now_ms))
        self.take()

    def unstick(self, connection: int) -> None:
        """A peer reads all that was sent."""
        self.stuck.discard(connection)
        self.server.writable(Writable(connection, self.now_ms))
        self.take()

    def close(self, connection: int) -> None:
        """A peer goes away."""
        self.server.closed(Closed(connection, "gone", self.now_ms))
        self.take()

    def take(self) -> None:
        """Carry out effects until there are none."""
        while effects := self.outbox.take():
            self.effects += effects
            for effect in effects:
                match effect:
                    case Send(connection, data, tell):
                        assert connection not in self.closed, "sent after a close"
                        self.sent[connection] += data
                        if tell and connection not in self.stuck:
                            self.server.writable(Writable(connection, self.now_ms))
                    case Close(connection):
                        self.closed.add(connection)
                    case Pause(connection):
                        self.paused.add(connection)
                    case Resume(connection):
                        self.paused.discard(connection)

    def answers(self, connection: int) -> list[Command]:
        """What a peer was answered."""
        return [
            decode_command(frame) for frame in FrameBuffer(REMOTING).receive(bytes(self.sent[connection]))
        ]

    def opaques(self, connection: int) -> list[int]:
        """Which requests of a peer were answered, in order."""
        return [command.header.opaque for command in self.answers(connection)]

    @property
    def notes(self) -> list[Note]:
        """The lines of the log."""
        return [effect for effect in self.effects if isinstance(effect, Note)]
