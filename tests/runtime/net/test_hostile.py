"""Hostile peers on real sockets: each loses its connection for one log line, and nobody else notices."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import trio

from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.sockets import SILENCE_OPTIONS, prepare
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.world import (
    Accepted,
    Closed,
    Effect,
    Event,
    Outbox,
    Received,
    Started,
    Stopping,
    Writable,
)
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.options import RemotingLimits
from tests.runtime.net.hosted import ScriptedNode, hosted, run_jumping, until
from tests.runtime.remoting.peers import request
from tests.runtime.remoting.test_server import HOSTILE

LIMITS = RemotingLimits(
    connections_max=60,
    request_bytes_max=1024 * 1024,
    unsent_bytes_max=64 * 1024,
    waiting_bytes_max=4 * 1024 * 1024,
)


class Answering(ScriptedNode):
    """Answers every request with its own body."""

    def __init__(self) -> None:
        super().__init__(self._take)
        self.outbox = Outbox()
        self.server = RequestServer(
            self.outbox,
            lambda one: one.answer(ResponseCode.SUCCESS, body=one.command.body),
            limits=LIMITS,
        )
        self.held_bytes_max = 0

    def _take(self, event: Event) -> Sequence[Effect]:
        match event:
            case Accepted():
                self.server.accepted(event)
            case Received():
                self.server.received(event)
            case Writable():
                self.server.writable(event)
            case Closed():
                self.server.closed(event)
            case Started() | Stopping() | _:
                pass
        self.held_bytes_max = max(self.held_bytes_max, self.server.held_bytes)
        return self.outbox.take()


async def _served(stream: trio.SocketStream) -> None:
    """A well-behaved peer is answered."""
    question = request(7, body=b"hello")
    await stream.send_all(question)
    answer = b""
    while not answer.endswith(b"hello"):
        answer += await stream.receive_some()


async def _drops(stream: trio.SocketStream) -> None:
    """Read until the other side ends the connection, in whichever way."""
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass


def test_garbage_ends_its_connection_with_one_line_each() -> None:
    async def test() -> None:
        node = Answering()
        async with hosted(node) as host, await host.connect() as good:
            for bad in HOSTILE.values():
                async with await host.connect() as stream:
                    await stream.send_all(bad)
                    await _drops(stream)
                await _served(good)
            assert [line["what"] for line in host.lines] == ["peer dropped"] * len(HOSTILE)
            assert node.server.connections == 1

    trio.run(test)


def test_a_peer_that_asks_and_never_reads_is_stopped_and_then_dropped() -> None:
    """The kernel's buffers fill up, then reading stops: what it sends stays in its own process."""

    async def flood(stream: trio.SocketStream) -> None:
        questions = b"".join(request(opaque, body=bytes(10_000)) for opaque in range(100))
        try:
            while True:
                await stream.send_all(questions)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def test() -> None:
        node = Answering()
        async with hosted(node, bounds=Bounds(stall_s=20)) as host, await host.connect() as good:
            async with await host.connect() as greedy, trio.open_nursery() as nursery:
                nursery.start_soon(flood, greedy)
                await until(lambda: bool(node.of(Closed)), every_s=10)
                nursery.cancel_scope.cancel()
            assert "took nothing" in node.of(Closed)[0].reason
            assert node.held_bytes_max <= LIMITS.waiting_bytes_max
            await _served(good)

    run_jumping(test)


def test_many_half_requests_hold_no_more_than_the_bound_and_the_rest_is_served() -> None:
    half = request(1, body=bytes(900_000))[:500_000]

    async def test() -> None:
        node = Answering()
        async with hosted(node) as host, await host.connect() as good:
            streams = [await host.connect() for _ in range(20)]
            for stream in streams:
                try:
                    await stream.send_all(half)
                except trio.BrokenResourceError:
                    continue
            await until(lambda: len(host.lines) >= 12)
            await _served(good)
            assert node.held_bytes_max <= LIMITS.waiting_bytes_max + 256 * 1024
            for stream in streams:
                await stream.aclose()

    trio.run(test)


def test_beyond_the_limit_connections_that_ask_nothing_are_closed_and_the_others_live() -> None:
    async def test() -> None:
        node = Answering()
        async with hosted(node) as host, await host.connect() as good:
            await _served(good)
            streams = [await host.connect() for _ in range(LIMITS.connections_max + 5)]
            await _served(streams[-1])
            await _served(good)
            assert len(host.lines) == 1, "one line while they are too many"
            for stream in streams:
                await stream.aclose()

    trio.run(test)


def test_a_silent_machine_ends_a_connection_whichever_side_opened_it() -> None:
    with socket.socket() as sock:
        prepare(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name, value in SILENCE_OPTIONS.items():
            assert sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
