"""The gate before the servers of a cluster strikes at the request that it was told, at the moment, once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from lab.ports import LOOPBACK, free_ports
from lab.rocketmq.crash_gate import OUTSIDE, Gate
from lab.rocketmq.crash_rows import Moment, Party, Row, Step
from lab.rocketmq.peer import Peer
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq import streams
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from replispec.wire.rocketmq.remoting import RemotingHeader

ASKED = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
STEP = Step(ASKED, Party.SOURCE, 2)


class Server:
    """Answers every request with its own address, and counts them."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self.count = 0
        self._port = port
        self._listener = stack.enter_context(socket.create_server((LOOPBACK, port)))
        stack.callback(self._shut)
        threading.Thread(target=self._serve, daemon=True).start()

    def _shut(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        frames = FrameBuffer(streams.REMOTING)
        with connection, suppress(OSError):
            while data := connection.recv(65_536):
                for frame in frames.receive(data):
                    self.count += 1
                    opaque = decode_command(frame).header.opaque
                    header = RemotingHeader(code=0, flag=int(RemotingFlag.RESPONSE), opaque=opaque)
                    connection.sendall(Command(header, f"{LOOPBACK}:{self._port}".encode()).encode())


@pytest.fixture
def servers() -> Iterator[tuple[Server, int, int]]:
    """One, its port, and that of a second one."""
    first, second = free_ports([0, 1])
    with ExitStack() as stack:
        server = Server(first, stack)
        Server(second, stack)
        yield server, first, second


def asked(port: int) -> bytes | None:
    """The answer to one request through the gate; None where the connection ends."""
    try:
        with Peer(OUTSIDE, port) as peer:
            return peer.ask(ASKED).body
    except OSError:
        return None


@pytest.mark.parametrize(
    ("who", "moment", "answered", "counted"),
    [
        (Party.ADMINISTRATOR, Moment.BEFORE, False, 1),
        (Party.ADMINISTRATOR, Moment.WRITTEN, False, 2),
        (Party.ADMINISTRATOR, Moment.ANSWERED, True, 2),
        (Party.SOURCE, Moment.BEFORE, False, 1),
        (Party.SOURCE, Moment.WRITTEN, False, 2),
        (Party.SOURCE, Moment.ANSWERED, True, 2),
        (Party.TARGET, Moment.BEFORE, True, 2),
        (Party.TARGET, Moment.WRITTEN, True, 2),
    ],
)
def test_who_dies_at_a_request_dies_then_and_what_was_done_is_what_the_moment_says(
    servers: tuple[Server, int, int], who: Party, moment: Moment, *, answered: bool, counted: int
) -> None:
    server, first, second = servers
    died: list[int] = []
    parties = {first: Party.SOURCE, second: Party.NAME_SERVER}
    with Gate(parties, Row(STEP, who, moment), lambda: died.append(server.count)) as gate:
        assert asked(first) == f"{LOOPBACK}:{first}".encode()
        assert asked(second) == f"{OUTSIDE}:{second}".encode(), "brokers are told to be at the gate"
        assert not gate.struck.is_set()
        assert (asked(first) is not None) is answered
        gate.struck.wait()
        assert died == [2 if moment is not Moment.BEFORE else 1]
        assert server.count == counted
        assert asked(first) is not None, "it strikes once"
    found = [Step(ASKED, Party.SOURCE), Step(ASKED, Party.NAME_SERVER), STEP]
    assert gate.steps.found[:3] == found
    assert len(died) == 1


@pytest.mark.parametrize(("who", "also"), [(Party.ADMINISTRATOR, Party.TARGET), (Party.TARGET, Party.SOURCE)])
def test_of_two_who_die_the_one_at_the_connection_ends_it(
    servers: tuple[Server, int, int], who: Party, also: Party
) -> None:
    server, first, _ = servers
    died: list[int] = []
    row = Row(Step(ASKED, Party.SOURCE), who, Moment.WRITTEN, also)
    with Gate({first: Party.SOURCE}, row, lambda: died.append(server.count)) as gate:
        assert asked(first) is None
        gate.struck.wait()
    assert died == [1]


def test_a_server_that_is_gone_is_gone_through_the_gate() -> None:
    (port,) = free_ports([0])
    with Gate({port: Party.SOURCE}, None, lambda: None) as gate:
        assert asked(port) is None
    assert gate.steps.found == []
