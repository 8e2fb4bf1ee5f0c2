"""A node made of functions, and a host around it, for tests on loopback."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
import trio.testing

from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Process, serve
from replispec.runtime.net.link import Tap
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.storage import Stores
from replispec.runtime.world import Effect, Event, Level, Member, Ticked

IDLE_S = 0.05
"""Nothing may happen for so long before the mock clock jumps; sockets need real time."""


class ScriptedNode:
    """Answers each event with what a function gives, and keeps all events."""

    def __init__(
        self, react: Callable[[Event], Iterable[Effect]], *, listeners: Mapping[str, str] | None = None
    ) -> None:
        self.listeners = {"remoting": "127.0.0.1:0"} if listeners is None else listeners
        self.events: list[Event] = []
        self.due_ms: int | None = None
        self._react = react

    def receive(self, event: Event) -> tuple[Effect, ...]:
        """Keep the event and do as the function says."""
        self.events.append(event)
        if isinstance(event, Ticked):
            self.due_ms = None
        return tuple(self._react(event))

    def deadline_ms(self) -> int | None:
        """What the test set, until it was told."""
        return self.due_ms

    def of(self, kind: type) -> list[Any]:
        """The events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]


class Host:
    """A running host of one node: where it listens, and what it logged."""

    def __init__(self, addresses: Mapping[str, str], stop: trio.Event, log: io.StringIO) -> None:
        self.addresses = addresses
        self.stop = stop
        self.opened: list[trio.SocketStream] = []
        self._log = log

    async def connect(self) -> trio.SocketStream:
        """A connection to the only listener."""
        host, _, port = self.addresses["remoting"].rpartition(":")
        self.opened.append(await trio.open_tcp_stream(host, int(port)))
        return self.opened[-1]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self._log.getvalue().splitlines()]


@asynccontextmanager
async def hosted(
    node: ScriptedNode,
    *,
    stores: Any = None,
    bounds: Bounds | None = None,
    tap: Tap | None = None,
    sealing: Sealing | None = None,
    plain: frozenset[str] = frozenset(),
) -> AsyncIterator[Host]:
    """A host that runs `node` until the block ends."""
    clock, written, stop = Clock(), io.StringIO(), trio.Event()
    log = Log(written, Level.DEBUG, clock.now_us)
    process = Process(bounds=bounds or Bounds(), sealing=sealing)
    member = Member("role", node, stores or Stores(), plain_listeners=plain)
    run = partial(serve, [member], process, log, clock=clock, tap=tap, stop=stop)
    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(run)
        host = Host(addresses["role"], stop, written)
        yield host
        stop.set()
        for stream in host.opened:
            await trio.aclose_forcefully(stream)


def run_jumping(test: Callable[[], Any]) -> None:
    """Run a test on a clock that jumps over waits."""
    trio.run(test, clock=trio.testing.MockClock(autojump_threshold=IDLE_S))


async def until(condition: Callable[[], bool], *, every_s: float = 0.001) -> None:
    """Let the loop turn until something holds. On a clock that jumps, each look costs IDLE_S."""
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(every_s)
