"""The simulated world keeps what the real one promises to nodes, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from replispec.runtime.sim import NetworkConditions, Pace, Stuck, World
from replispec.runtime.storage import FlushFiles
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Halt,
    Pause,
    Persist,
    Received,
    Resume,
    Send,
    Started,
    Ticked,
    Writable,
)
from tests.sim.toy_nodes import Toy, nothing, put

SERVER = "127.0.0.2:9000"
TEXT = bytes(range(256)) * 40


def said(toy: Toy) -> bytes:
    """All bytes that a toy received."""
    return b"".join(event.data for event in toy.received if isinstance(event, Received))


def sends(*effects: Effect) -> Callable[[Event], Sequence[Effect]]:
    """Dials at the start, and does this once connected."""

    def react(event: Event) -> Sequence[Effect]:
        match event:
            case Started():
                return [Dial(-1, SERVER)]
            case Connected():
                return effects
            case _:
                return ()

    return react


def pair(
    world: World, *effects: Effect, answers: Callable[[Event], Sequence[Effect]] = nothing
) -> tuple[Toy, Toy]:
    """A client that carries out some effects once it is connected, and a server."""
    server = Toy(answers, {"main": SERVER})
    client = Toy(sends(*effects))
    put(world, "server", "127.0.0.2", server)
    put(world, "client", "127.0.0.1", client)
    return client, server


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_and_whole(seed: int) -> None:
    conditions = NetworkConditions(
        cut_per_mille=500, kernel_bytes=1_000, slow_per_mille=300, spike_per_mille=50
    )
    world = World(seed, conditions=conditions)
    client, server = pair(world, *(Send(-1, TEXT[at : at + 100]) for at in range(0, len(TEXT), 100)))
    world.run_for(10_000)
    assert said(server) == TEXT
    assert client.kinds() == ["Started", "Connected"]
    assert server.kinds()[:2] == ["Started", "Accepted"]


def test_who_dials_where_nobody_listens_is_refused() -> None:
    world = World(1)
    toy = Toy(lambda event: [Dial(-1, "127.0.0.2:9001")] if isinstance(event, Started) else ())
    put(world, "client", "127.0.0.1", toy)
    put(world, "server", "127.0.0.2", Toy())
    world.run_for(100)
    assert [event.reason for event in toy.received if isinstance(event, Closed)] == ["connection refused"]


def test_who_dials_a_machine_that_is_off_waits_until_it_is_on() -> None:
    world = World(1)
    server = Toy(listeners={"main": SERVER})
    put(world, "server", "127.0.0.2", server)
    world.kill("server", power=True)
    client = Toy(sends())
    put(world, "client", "127.0.0.1", client)
    world.run_for(4_000)
    assert client.kinds() == ["Started"]
    world.start("server")
    world.run_for(2_000)
    assert client.kinds() == ["Started", "Connected"]


@pytest.mark.parametrize("seed", range(10))
def test_a_peer_hears_of_a_killed_process_but_not_of_a_dark_machine(seed: int) -> None:
    received = {}
    for power in (False, True):
        world = World(seed)
        client, _ = pair(world)
        world.run_for(100)
        world.kill("server", power=power)
        world.run_for(100_000)
        received[power] = client.kinds()[2:]
    assert received == {False: ["Closed"], True: []}


def test_a_half_open_connection_is_reset_when_something_is_sent_after_the_restart() -> None:
    world = World(1)
    client = Toy(lambda event: [Send(-1, b"x")] if isinstance(event, Ticked) else sends()(event))
    put(world, "server", "127.0.0.2", Toy(listeners={"main": SERVER}))
    put(world, "client", "127.0.0.1", client)
    client.deadlines_ms = [client.received[0].now_ms + 5_000]
    world.run_for(100)
    world.kill("server", power=True)
    world.start("server")
    world.run_for(4_000)
    assert "Closed" not in client.kinds()
    world.run_for(4_000)
    assert client.kinds()[-1] == "Closed"


def test_a_blocked_direction_holds_bytes_back_until_it_is_open_again() -> None:
    world = World(1)
    _, server = pair(world, Send(-1, b"before"), answers=lambda event: [Send(1, b"!")] * (said_some(event)))
    world.run_for(100)
    world.network.block("client", "server")
    client_life = world.processes["client"].lives[0]
    world.network.send(client_life.ends[-1], b" and after", False)
    world.run_for(60_000)
    assert said(server) == b"before"
    world.network.unblock("client", "server")
    world.run_for(1_000)
    assert said(server) == b"before and after"


def said_some(event: Event) -> bool:
    return isinstance(event, Received)


def test_a_connection_whose_peer_takes_nothing_ends() -> None:
    world = World(1, conditions=NetworkConditions(kernel_bytes=1_000))
    client, server = pair(world, Send(-1, TEXT, tell=True))
    world.pause("server")
    world.run_for(60_000)
    assert client.kinds() == ["Started", "Connected", "Closed"]
    world.go_on("server")
    world.run_for(1_000)
    assert server.kinds() == ["Started", "Accepted", "Closed"]


def test_writable_is_told_when_all_has_left_and_not_before() -> None:
    world = World(1, conditions=NetworkConditions(kernel_bytes=1_000))
    client, server = pair(world, Send(-1, TEXT, tell=True), answers=held_for_a_second)
    server.deadlines_ms = [server.received[0].now_ms + 1_000]
    world.run_for(900)
    assert client.kinds() == ["Started", "Connected"]
    assert len(said(server)) <= 1_000
    world.run_for(2_000)
    assert any(isinstance(event, Writable) for event in client.received)
    assert said(server) == TEXT


def held_for_a_second(event: Event) -> Sequence[Effect]:
    match event:
        case Accepted(connection):
            return [Pause(connection)]
        case Ticked():
            return [Resume(1)]
        case _:
            return ()


def test_bytes_that_change_while_they_are_sent_are_a_fault() -> None:
    data = bytearray(TEXT)
    world = World(1, conditions=NetworkConditions(kernel_bytes=1_000))
    pair(world, Send(-1, memoryview(data), tell=True))
    world.pause("server")
    world.run_for(100)
    data[-1] ^= 1
    with pytest.raises(AssertionError, match="bytes changed"):
        world.go_on("server")


def test_a_paused_process_hears_everything_in_order_when_it_goes_on() -> None:
    world = World(3)
    _, server = pair(world, Send(-1, b"a"), Close(-1))
    world.pause("server")
    world.run_for(500)
    assert server.kinds() == ["Started"]
    world.go_on("server")
    world.run_for(500)
    assert server.kinds() == ["Started", "Accepted", "Received", "Closed"]
    assert server.received[1].now_ms >= server.received[0].now_ms + 500


def test_a_tick_comes_when_it_was_asked_for_or_a_little_later() -> None:
    for seed in range(20):
        world = World(seed, pace=Pace(drift_per_mille=50))
        toy = Toy()
        toy.deadlines_ms = [1_700_000_000_000 + 1_234]
        put(world, "toy", "127.0.0.1", toy)
        world.run_for(2_000)
        assert toy.kinds() == ["Started", "Ticked"]
        assert 0 <= toy.received[1].now_ms - 1_700_000_001_234 <= 3


def test_the_clock_never_goes_back_in_one_life_and_may_between_two() -> None:
    jumps = []
    for seed in range(20):
        world = World(seed)
        toy = Toy()
        put(world, "toy", "127.0.0.1", toy)
        world.run_for(1_000)
        world.kill("toy")
        world.start("toy")
        jumps.append(toy.received[1].now_ms - toy.received[0].now_ms)
    assert min(jumps) < 0 < 1_000 < max(jumps)


def test_a_node_that_burns_the_processor_is_found() -> None:
    world = World(1)
    toy = Toy()
    toy.deadline_ms = lambda: 0  # type: ignore[method-assign]
    put(world, "toy", "127.0.0.1", toy)
    with pytest.raises(Stuck, match="again and again"):
        world.run_for(10_000)


def halts(_: Event) -> Sequence[Effect]:
    return [Halt("the disk is full")]


def test_a_halt_ends_the_process_as_failed() -> None:
    world = World(1)
    put(world, "toy", "127.0.0.1", Toy(halts))
    process = world.processes["toy"]
    assert not process.is_alive
    assert process.failure == "the disk is full"


@pytest.mark.parametrize("refuses", [False, True])
def test_a_write_is_answered_by_what_became_of_it(refuses: bool) -> None:
    world = World(1)
    toy = Toy(lambda event: [Persist(7, (FlushFiles(("log",)),))] if isinstance(event, Ticked) else ())
    toy.deadlines_ms = [1_700_000_000_100]
    put(world, "toy", "127.0.0.1", toy, folder="store")
    disk = world.processes["toy"].disk
    disk.plan = lambda what: "no power" if refuses and what.startswith("flush") else None
    world.run_for(5_000)
    assert toy.kinds() == ["Started", "Ticked", "PersistFailed" if refuses else "Persisted"]
    assert disk.changes == ["flush store/log"]


def test_the_same_seed_gives_the_same_trace_and_another_one_another() -> None:
    def digest(seed: int) -> str:
        world = World(seed)
        pair(world, Send(-1, TEXT))
        world.run_for(1_000)
        return world.digest()

    assert digest(5) == digest(5) != digest(6)


@pytest.mark.parametrize("both", [False, True])
def test_what_is_sent_on_a_forgotten_connection_vanishes_and_nobody_is_told(both: bool) -> None:
    world = World(1)

    def answers(event: Event) -> Sequence[Effect]:
        return [Send(1, b"back")] if isinstance(event, Ticked) else ()

    server = Toy(answers, {"main": SERVER})
    client = Toy(lambda event: [Send(-1, b"there")] if isinstance(event, Ticked) else sends()(event))
    put(world, "server", "127.0.0.2", server)
    put(world, "client", "127.0.0.1", client)
    for toy in (server, client):
        toy.deadlines_ms = [toy.received[0].now_ms + 5_000]
    world.run_for(1_000)
    world.network.forget("client", "server")
    if both:
        world.network.forget("server", "client")
    world.run_for(60_000)
    assert said(server) == b""
    assert said(client) == (b"" if both else b"back")
    assert "Closed" not in client.kinds() + server.kinds()
