"""From which address a node dials: peers are to see it where it listens."""

from __future__ import annotations

import socket
from collections.abc import Iterable

import pytest
import trio

from replispec.runtime.net.addresses import join
from replispec.runtime.net.sockets import connect, leads, own_host
from replispec.runtime.world import Accepted, Connected, Dial, Effect, Event, Started
from tests.runtime.net.hosted import ScriptedNode, hosted, until


def _nothing(_: Event) -> Iterable[Effect]:
    return ()


async def _seen_from(listeners: dict[str, str]) -> str:
    """From which host a node dials one of 127.0.0.1 that listens at these addresses."""
    dialled = ScriptedNode(_nothing)
    async with hosted(dialled) as host:
        address = host.addresses["remoting"]
        dialling = ScriptedNode(
            lambda event: [Dial(-1, address)] if isinstance(event, Started) else (), listeners=listeners
        )
        async with hosted(dialling):
            await until(lambda: bool(dialling.of(Connected) and dialled.of(Accepted)))
        (accepted,), (connected,) = dialled.of(Accepted), dialling.of(Connected)
    assert accepted.peer == connected.local
    return str(accepted.peer.rpartition(":")[0])


@pytest.mark.parametrize(
    ("listens", "seen"),
    [
        (["127.0.0.2:0"], "127.0.0.2"),
        (["127.0.0.2:0", "127.0.0.2:0"], "127.0.0.2"),
        (["127.0.0.2:0", "127.0.0.3:0"], "127.0.0.1"),
        (["0.0.0.0:0"], "127.0.0.1"),
        ([], "127.0.0.1"),
    ],
)
def test_a_node_dials_from_where_it_listens_if_that_is_one_address(listens: list[str], seen: str) -> None:
    listeners = {str(number): address for number, address in enumerate(listens)}
    assert trio.run(_seen_from, listeners) == seen


@pytest.mark.parametrize(
    ("own", "host", "may"),
    [
        ("127.0.0.2", "127.0.0.1", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("10.0.0.1", "127.0.0.1", False),
        ("10.0.0.1", "192.168.1.1", True),
        ("10.0.0.1", "fd00::1", False),
        ("::1", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_an_own_address_is_used_where_it_leads_to_the_other(own: str, host: str, may: bool) -> None:
    assert leads(own, host) is may


def test_link_local_addresses_and_names_are_left_to_the_system() -> None:
    assert own_host(["[fe80::1]:1"]) == own_host(["[::]:1"]) == own_host(["host:1"]) == own_host([]) == ""
    assert own_host(["[::1]:1", "[::1]:2"]) == "::1"


def test_of_many_dials_from_one_address_none_wants_a_port_that_another_one_has() -> None:
    async def main() -> None:
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        few = [await connect(join(each.getsockname()), "127.0.0.2") for each in listeners]
        assert all(each.getsockname()[0] == "127.0.0.2" for each in few)
        assert all(each.getsockopt(socket.IPPROTO_IP, 24) == 1 for each in few)
        for each in (*few, *listeners):
            each.close()

    trio.run(main)
