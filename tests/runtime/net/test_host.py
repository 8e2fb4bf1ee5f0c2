"""The host carries out what nodes decide, on real sockets of loopback."""

from __future__ import annotations

import io
import itertools
import socket
import threading
from collections.abc import Callable, Iterable, Sequence

import pytest
import trio

from replispec.runtime.net.host_shell import EXIT_FAILED, CannotListen, Process, run
from replispec.runtime.net.node_shell import RECEIVE_BYTES_MAX, Bounds
from replispec.runtime.net.sockets import open_socket
from replispec.runtime.storage import Operation, ReplaceFile, StorageFailed, StorageFull
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Halt,
    Level,
    Member,
    Note,
    Pause,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Resume,
    Send,
    Started,
    Stopping,
    Ticked,
    Writable,
)
from replispec.runtime.world.effects import Buffer
from tests.runtime.net.hosted import ScriptedNode, hosted, run_jumping, until


def _echo(event: Event) -> Iterable[Effect]:
    if isinstance(event, Received):
        yield Send(event.connection, event.data)


def _nothing(_: Event) -> Iterable[Effect]:
    return ()


async def _read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([chunk async for chunk in stream])


def test_what_a_peer_sends_reaches_the_node_and_its_answer_the_peer() -> None:
    node = ScriptedNode(_echo)

    async def test() -> None:
        async with hosted(node) as host, await host.connect() as stream:
            await stream.send_all(b"hello")
            assert await stream.receive_some() == b"hello"
        started, accepted = node.events[:2]
        assert isinstance(started, Started)
        assert started.addresses == host.addresses
        assert isinstance(accepted, Accepted)
        assert (accepted.connection, accepted.listener) == (1, "remoting")
        assert isinstance(node.events[-1], Stopping | Closed)

    trio.run(test)


def test_all_that_one_event_sends_leaves_in_order_whatever_its_sizes() -> None:
    view = memoryview(b"c" * 300_000)
    pieces: list[Buffer] = [b"a", b"b" * 100, view, b"d", bytearray(b"e" * 20_000), b"", b"f"]

    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield from (Send(event.connection, piece) for piece in pieces)
            yield Close(event.connection)

    async def test() -> None:
        async with hosted(ScriptedNode(react)) as host, await host.connect() as stream:
            await stream.send_all(b"?")
            assert await _read_all(stream) == b"".join(pieces)

    trio.run(test)


def test_a_received_is_never_longer_than_its_bound() -> None:
    node = ScriptedNode(_nothing)
    size = 4 * RECEIVE_BYTES_MAX

    async def test() -> None:
        async with hosted(node) as host, await host.connect() as stream:
            await stream.send_all(bytes(size))
            await until(lambda: sum(len(event.data) for event in node.of(Received)) == size)
        assert max(len(event.data) for event in node.of(Received)) <= RECEIVE_BYTES_MAX

    trio.run(test)


def test_a_node_hears_when_its_bytes_have_left_and_the_loop_serves_others_meanwhile() -> None:
    """It sends again at each Writable, for ever: another peer is served all the same."""
    chunk = bytes(100_000)

    def react(event: Event) -> Iterable[Effect]:
        match event:
            case Received(data=b"flood"):
                yield Send(event.connection, chunk, tell=True)
            case Writable():
                yield Send(event.connection, chunk, tell=True)
            case Received():
                yield Send(event.connection, event.data)

    async def test() -> None:
        async with hosted(ScriptedNode(react)) as host:
            greedy, other = await host.connect(), await host.connect()
            async with greedy, other, trio.open_nursery() as nursery:
                nursery.start_soon(_read_all, greedy)
                await greedy.send_all(b"flood")
                for _ in range(20):
                    await other.send_all(b"ping")
                    assert await other.receive_some() == b"ping"
                nursery.cancel_scope.cancel()

    trio.run(test)


def test_a_paused_peer_is_not_read_until_it_is_resumed() -> None:
    release = []

    def react(event: Event) -> Iterable[Effect]:
        match event:
            case Accepted():
                yield Pause(event.connection)
            case Ticked():
                release.append(event)
                yield Resume(1)

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node) as host, await host.connect() as stream:
            await stream.send_all(b"early")
            await trio.sleep(1)
            assert node.of(Received) == []
            node.due_ms = 0
            other = await host.connect()
            await until(lambda: bool(release))
            await until(lambda: bool(node.of(Received)))
            await other.aclose()

    run_jumping(test)


def test_the_node_is_told_the_time_that_it_named_and_not_before() -> None:
    node = ScriptedNode(_nothing)

    async def test() -> None:
        async with hosted(node) as host:
            started = node.events[0].now_ms
            node.due_ms = started + 5_000
            stream = await host.connect()
            await until(lambda: bool(node.of(Ticked)), every_s=1)
            assert node.of(Ticked)[0].now_ms >= started + 5_000
            await stream.aclose()

    run_jumping(test)


def test_a_node_is_told_the_time_as_often_as_it_names_one() -> None:
    node = ScriptedNode(_nothing)

    async def test() -> None:
        async with hosted(node) as host:
            for count in range(1, 4):
                node.due_ms = node.events[-1].now_ms + 2_000
                await (await host.connect()).aclose()
                await until(lambda wanted=count: len(node.of(Ticked)) == wanted, every_s=1)  # type: ignore[misc]

    run_jumping(test)


def test_an_earlier_deadline_moves_the_timer() -> None:
    node = ScriptedNode(_nothing)

    async def test() -> None:
        async with hosted(node) as host:
            started = node.events[0].now_ms
            for wait_ms in (3_600_000, 2_000):
                node.due_ms = started + wait_ms
                await (await host.connect()).aclose()
                await until(lambda: bool(node.of(Closed)))
            await until(lambda: bool(node.of(Ticked)), every_s=1)
            assert node.of(Ticked)[0].now_ms < started + 60_000

    run_jumping(test)


def test_a_dial_ends_in_connected_or_in_closed_with_a_reason() -> None:
    free = ScriptedNode(_echo)

    async def test() -> None:
        async with hosted(free) as host:
            targets = [host.addresses["remoting"], "127.0.0.1:1", "nonsense", "127.0.0.1:99999", "\0:1", ":1"]

            def react(event: Event) -> Iterable[Effect]:
                if isinstance(event, Started):
                    yield from (Dial(-index, address) for index, address in enumerate(targets, start=1))
                elif isinstance(event, Connected):
                    yield Send(event.connection, b"hello")

            node = ScriptedNode(react, listeners={})
            async with hosted(node):
                await until(lambda: len(node.of(Closed)) == 5 and bool(node.of(Received)))
                assert [event.connection for event in node.of(Connected)] == [-1]
                assert [event.data for event in node.of(Received)] == [b"hello"]
                assert {event.connection for event in node.of(Closed)} == {-2, -3, -4, -5, -6}
                assert all(event.reason for event in node.of(Closed))

    trio.run(test)


def test_a_dial_that_is_closed_before_it_is_open_is_never_told() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Started):
            yield Dial(-1, "127.0.0.1:1")
            yield Close(-1)

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node) as host, await host.connect():
            await until(lambda: bool(node.of(Accepted)))
            assert not node.of(Connected)
            assert not node.of(Closed)

    trio.run(test)


def test_a_peer_that_takes_nothing_is_dropped_and_the_node_hears_of_it() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield Send(event.connection, bytes(64 * 1024 * 1024))

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node, bounds=Bounds(stall_s=7)) as host, await host.connect() as stream:
            await stream.send_all(b"?")
            await until(lambda: bool(node.of(Closed)), every_s=1)
            assert "took nothing for 7 s" in node.of(Closed)[0].reason

    run_jumping(test)


def test_a_peer_for_which_too_much_waits_is_dropped() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield Send(event.connection, bytes(64 * 1024 * 1024))

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node, bounds=Bounds(unsent_bytes=1024)) as host, await host.connect() as stream:
            await stream.send_all(b"?")
            await until(lambda: bool(node.of(Closed)))
            assert "wait for the peer" in node.of(Closed)[0].reason

    trio.run(test)


def test_what_was_sent_before_a_close_arrives_even_when_the_peer_still_talks() -> None:
    """Bytes that nobody read would turn the close into a reset that takes the answer along."""

    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield Send(event.connection, b"answer" * 100_000)
            yield Close(event.connection)

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node) as host:
            async with await host.connect() as stream:
                await stream.send_all(bytes(2 * 1024 * 1024))
                await stream.send_eof()
                assert await _read_all(stream) == b"answer" * 100_000
            await (await host.connect()).aclose()
            await until(lambda: bool(node.of(Closed)))
        assert [event.connection for event in node.of(Closed)] == [2], "who closed it himself is not told"

    trio.run(test)


def test_what_does_not_fit_into_the_kernel_arrives_whole_and_in_order() -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(4_000_000))

    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield from (
                Send(event.connection, memoryview(data)[at : at + 99_999])
                for at in range(0, len(data), 99_999)
            )
            yield Close(event.connection)

    async def test() -> None:
        async with hosted(ScriptedNode(react)) as host, await host.connect() as stream:
            await stream.send_all(b"?")
            assert await _read_all(stream) == data

    trio.run(test)


def test_a_dial_that_finds_itself_is_refused() -> None:
    """The system may give a dial the very port that it dials, when nobody listens there."""

    async def test() -> None:
        with socket.socket() as sock:
            sock.setblocking(False)
            sock.bind(("127.0.0.1", 0))
            with pytest.raises(OSError, match="nobody listens"):
                await open_socket(sock, sock.getsockname())

    trio.run(test)


class _Kept:
    """Stores that count: what is asked for is kept in the order in which it is carried out. The file
    `broken` cannot be replaced, nor can `full`; `slow` waits for `go_on`."""

    def __init__(self) -> None:
        self.carried_out: list[Operation] = []
        self.go_on = threading.Event()

    def carry_out(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if operation == BROKEN:
                raise StorageFailed("input/output error")
            if operation == FULL:
                raise StorageFull("no room")
            if operation == SLOW:
                assert self.go_on.wait(60)
            self.carried_out.append(operation)


A, B, BROKEN, FULL, SLOW = (ReplaceFile(name, b"") for name in ("a", "b", "broken", "full", "slow"))


def _asks(
    *persists: tuple[ReplaceFile, ...], at: type[Event] = Started
) -> Callable[[Event], Iterable[Effect]]:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, at):
            yield from (Persist(token, operations) for token, operations in enumerate(persists, start=1))

    return react


def test_writes_are_carried_out_and_answered_in_the_order_in_which_they_were_asked_for() -> None:
    async def test() -> None:
        node, stores = ScriptedNode(_asks((A, B), (A,), (B, A))), _Kept()
        async with hosted(node, stores=stores):
            await until(lambda: len(node.of(Persisted)) == 3)
        assert [event.token for event in node.of(Persisted)] == [1, 2, 3]
        assert stores.carried_out == [A, B, A, B, A]

    trio.run(test)


def test_what_follows_a_failed_operation_is_left_and_what_was_asked_for_later_is_not() -> None:
    async def test() -> None:
        node, stores = ScriptedNode(_asks((A, BROKEN, B), (FULL,), (A,))), _Kept()
        async with hosted(node, stores=stores):
            await until(lambda: bool(node.of(Persisted)))
        failed = [(event.token, event.reason, event.is_full) for event in node.of(PersistFailed)]
        assert failed == [(1, "input/output error", False), (2, "no room", True)]
        assert stores.carried_out == [A, A]

    trio.run(test)


def test_a_write_that_takes_its_time_holds_nobody_up() -> None:
    async def test() -> None:
        node, stores = ScriptedNode(_asks((SLOW,))), _Kept()
        async with hosted(node, stores=stores) as host, await host.connect():
            await until(lambda: bool(node.of(Accepted)))
            assert not node.of(Persisted)
            stores.go_on.set()
            await until(lambda: bool(node.of(Persisted)))

    trio.run(test)


def test_what_a_node_wants_written_while_it_stops_is_written_and_answered_to_nobody() -> None:
    async def test() -> None:
        node, stores = ScriptedNode(_asks((A,), (B,), at=Stopping)), _Kept()
        async with hosted(node, stores=stores):
            await until(lambda: bool(node.of(Started)))
        assert stores.carried_out == [A, B]
        assert not node.of(Persisted)

    trio.run(test)


def test_what_a_node_sends_while_it_stops_still_leaves() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Stopping):
            yield Send(1, b"goodbye" * 200_000)

    async def test() -> None:
        node = ScriptedNode(react)
        async with hosted(node) as host:
            stream = await host.connect()
            await until(lambda: bool(node.of(Accepted)))
            host.stop.set()
            assert await _read_all(stream) == b"goodbye" * 200_000
            await stream.aclose()

    trio.run(test)


def test_a_note_is_one_line_of_json_whatever_its_values_hold() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Started):
            yield Note(Level.WARNING, "peer dropped", {"reason": 'line\n"two"\x1b[31m', "bytes": 7})
            yield Note(Level.INFO, "long", {"text": "x" * 10_000})

    async def test() -> None:
        async with hosted(ScriptedNode(react)) as host:
            pass
        first, second = host.lines
        assert (first["level"], first["role"], first["what"]) == ("warning", "role", "peer dropped")
        assert (first["reason"], first["bytes"]) == ('line\n"two"\x1b[31m', 7)
        assert len(second["text"]) < 500

    trio.run(test)


@pytest.mark.parametrize(
    ("effect", "said"),
    [(Halt("a promise would break"), "a promise would break"), (None, "ZeroDivisionError")],
)
def test_a_node_that_halts_or_fails_ends_the_process(effect: Effect | None, said: str) -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Started):
            yield effect or Note(Level.INFO, "never", {"x": 1 // 0})

    out, errors = io.StringIO(), io.StringIO()
    assert run([Member("role", ScriptedNode(react))], Process(), out=out, errors=errors) == EXIT_FAILED
    assert said in errors.getvalue()


def test_an_address_that_is_taken_is_named() -> None:
    async def test() -> None:
        async with hosted(ScriptedNode(_nothing)) as host:
            second = ScriptedNode(_nothing, listeners={"remoting": host.addresses["remoting"]})
            with pytest.RaisesGroup(CannotListen, flatten_subgroups=True, allow_unwrapped=True) as caught:
                async with hosted(second):
                    pass
            assert host.addresses["remoting"] in str(_only(caught.value))

    trio.run(test)


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


def test_many_peers_that_come_and_go_leave_nothing_behind() -> None:
    node = ScriptedNode(_echo)

    async def one(host_connect: object) -> None:
        stream = await host_connect()  # type: ignore[operator]
        await stream.send_all(b"x")
        await stream.receive_some()
        await stream.aclose()

    async def test() -> None:
        async with hosted(node) as host:
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(one, host.connect)
            await until(lambda: len(node.of(Closed)) == 100)
        numbers = [event.connection for event in node.of(Accepted)]
        assert numbers == list(itertools.islice(itertools.count(1), 100))

    trio.run(test)
