"""However many peers come, bring much or leave together, one turn of the loop is only so much work."""

from __future__ import annotations

import gc
import io
import socket
from collections.abc import Callable, Sequence

import pytest
import trio
import trio.testing

from replispec.runtime.net import launch_shell
from replispec.runtime.net.host_shell import ACCEPTS_MAX
from replispec.runtime.net.node_shell import RECEIVE_BYTES_SMALL
from replispec.runtime.net.turns import Turns
from replispec.runtime.world import Accepted, Closed, Effect, Event, Received, Send, Writable
from replispec.wire.rocketmq.options import ProcessOptions
from tests.runtime.net.hosted import ScriptedNode, hosted, until

PEERS = 24
MUCH = 4 * RECEIVE_BYTES_SMALL


class Counted(trio.abc.Instrument):
    """Events that were handed to a node in each turn of the loop."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._now: dict[str, int] = {}

    def after_io_wait(self, timeout: float) -> None:
        """A turn begins."""
        del timeout
        self._now = {}

    def take(self, event: Event) -> Sequence[Effect]:
        """What the node does with an event."""
        kind = type(event).__name__
        if isinstance(event, Received) and len(event.data) <= RECEIVE_BYTES_SMALL:
            kind = "little"
        self._now[kind] = self._now.get(kind, 0) + 1
        self.most[kind] = max(self.most.get(kind, 0), self._now[kind])
        if isinstance(event, Received) and len(event.data) == 1:
            return [Send(event.connection, b"", tell=True)]
        return []


def _counted(data: bytes, is_done: Callable[[ScriptedNode], bool]) -> tuple[Counted, ScriptedNode]:
    """All peers send this together, and leave together when something holds."""
    counted = Counted()
    node = ScriptedNode(counted.take)

    async def test() -> None:
        async with hosted(node) as host:
            streams = [await host.connect() for _ in range(PEERS)]
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(stream.send_all, data)
            await until(lambda: is_done(node))
            for stream in streams:
                stream.socket.close()
            await until(lambda: len(node.of(Closed)) == PEERS)

    trio.run(test, instruments=[counted])
    return counted, node


def _bytes_of(node: ScriptedNode) -> int:
    return sum(len(event.data) for event in node.of(Received))


def test_peers_that_bring_much_at_once_are_heard_one_in_a_turn() -> None:
    counted, node = _counted(bytes(MUCH), lambda node: _bytes_of(node) == PEERS * MUCH)
    assert counted.most["Received"] == 1
    assert _bytes_of(node) == PEERS * MUCH


def test_of_peers_that_leave_together_a_node_is_told_one_in_a_turn() -> None:
    counted, _ = _counted(b"", lambda node: len(node.of(Accepted)) == PEERS)
    assert counted.most["Closed"] == 1


def test_of_peers_that_are_found_gone_by_what_one_event_has_sent_a_node_is_told_one_in_a_turn() -> None:
    counted = Counted()

    def to_all(event: Event) -> Sequence[Effect]:
        counted.take(event)
        if isinstance(event, Received) or (isinstance(event, Closed) and len(node.of(Closed)) == 1):
            return [Send(each.connection, b"told") for each in node.of(Accepted)]
        return []

    node = ScriptedNode(to_all)

    async def test() -> None:
        async with hosted(node) as host:
            streams = [await host.connect() for _ in range(PEERS)]
            await until(lambda: len(node.of(Accepted)) == PEERS)
            await streams[0].send_all(b"all are to be told")
            await until(lambda: node.of(Received) != [])
            for stream in streams:
                await stream.socket.recv(1, socket.MSG_PEEK)
            for stream in streams:
                # What was not read makes this a reset: whoever sends there next learns of it at once.
                stream.socket.close()
            await until(lambda: len(node.of(Closed)) == PEERS)

    trio.run(test, instruments=[counted])
    assert counted.most["Closed"] == 1


def test_peers_whose_requests_wait_go_on_one_in_a_turn() -> None:
    counted, _ = _counted(b"x", lambda node: len(node.of(Writable)) == PEERS)
    assert counted.most["Writable"] == 1


def test_of_connections_that_wait_to_be_taken_a_turn_takes_only_so_many() -> None:
    counted = Counted()
    node = ScriptedNode(counted.take)

    async def test() -> None:
        async with hosted(node) as host:
            streams: list[trio.SocketStream] = []

            async def one() -> None:
                streams.append(await host.connect())

            async with trio.open_nursery() as nursery:
                for _ in range(4 * ACCEPTS_MAX):
                    nursery.start_soon(one)
            await until(lambda: len(node.of(Accepted)) == 4 * ACCEPTS_MAX)
            for stream in streams:
                await stream.aclose()

    trio.run(test, instruments=[counted])
    assert 1 < counted.most["Accepted"] <= ACCEPTS_MAX


def test_turns_are_given_in_the_order_in_which_they_were_asked_for_also_after_one_who_gave_up() -> None:
    given: list[int] = []

    async def test() -> None:
        turns = Turns()
        gives_up = trio.CancelScope()

        async def one(number: int) -> None:
            with gives_up if number == 1 else trio.CancelScope():
                await turns.mine()
                given.append(number)

        async with trio.open_nursery() as nursery:
            await turns.mine()
            for number in range(4):
                nursery.start_soon(one, number)
                await trio.testing.wait_all_tasks_blocked()
            gives_up.cancel()
            assert given == []
            nursery.start_soon(turns.run)
            await trio.testing.wait_all_tasks_blocked()
            assert given == [0, 2, 3]
            await turns.mine()
            nursery.cancel_scope.cancel()

    trio.run(test)


def test_nobody_takes_a_turn_of_the_loop_that_was_given_to_another() -> None:
    """What runs first in a turn of the loop is chance: 200 runs have both orders, again and again."""

    class Now(trio.abc.Instrument):
        turn = 0

        def after_io_wait(self, timeout: float) -> None:
            del timeout
            self.turn += 1

    now, taken = Now(), list[int]()

    async def test() -> None:
        turns = Turns()

        async def one(after: int) -> None:
            for _ in range(after):
                await trio.lowlevel.checkpoint()
            await turns.mine()
            taken.append(now.turn)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(turns.run)
            for late in range(200):
                async with trio.open_nursery() as each:
                    for after in (0, 0, late % 5):
                        each.start_soon(one, after)
            nursery.cancel_scope.cancel()

    trio.run(test, instruments=[now])
    assert len(taken) == len(set(taken)) == 600


def test_what_a_role_is_made_of_is_looked_through_for_garbage_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[int] = []

    def run(*_: object, **__: object) -> int:
        frozen.append(gc.get_freeze_count())
        return 0

    monkeypatch.setattr(launch_shell, "run", run)
    before = gc.get_freeze_count()
    try:
        out, errors = io.StringIO(), io.StringIO()
        options = ProcessOptions()
        launch_shell.launch("broker", options, lambda _storage, _seed: [], out=out, errors=errors)
        assert frozen[0] > before + 10_000
    finally:
        gc.unfreeze()
