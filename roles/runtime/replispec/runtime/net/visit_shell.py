"""A node without listeners that comes to an end by itself: run for a command that waits for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.node_shell import Bounds, NodeShell
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.world import Effect, Event, Level, Member

ROLE: Final = "visitor"


class Visitor(Protocol):
    """A node that knows when it is done."""

    @property
    def is_done(self) -> bool:
        """Whether it wants no further event."""
        ...

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        ...

    def receive(self, event: Event) -> Sequence[Effect]:
        """See `replispec.runtime.world.Node`."""
        ...

    def deadline_ms(self) -> int | None:
        """See `replispec.runtime.world.Node`."""
        ...


class _Watched:
    """The same node, and a flag for when it is done."""

    def __init__(self, node: Visitor) -> None:
        self._node = node
        self.listeners = node.listeners
        self.deadline_ms = node.deadline_ms
        self.done = trio.Event()

    def receive(self, event: Event) -> Sequence[Effect]:
        effects = self._node.receive(event)
        if self._node.is_done:
            self.done.set()
        return effects


def visit(node: Visitor, sealing: Sealing | None = None) -> None:
    """Run a node until it is done; its connections are closed then. Raises KeyboardInterrupt."""
    try:
        trio.run(_visit, node, sealing)
    except* KeyboardInterrupt:
        raise KeyboardInterrupt from None


def pause(seconds: float) -> None:
    """Wait between two visits. Raises KeyboardInterrupt."""
    trio.run(trio.sleep, seconds)


async def _visit(node: Visitor, sealing: Sealing | None) -> None:
    watched, clock = _Watched(node), Clock()
    log = Log(sys.stderr, Level.ERROR, clock.now_us)
    async with trio.open_nursery() as nursery:
        shell = NodeShell(Member(ROLE, watched), nursery, clock, log, None, Bounds(), sealing)
        try:
            shell.start({})
            await watched.done.wait()
        finally:
            shell.abandon()
        nursery.cancel_scope.cancel()
