"""Members of a group believe each other by the address: each is to be seen where it listens."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import pytest
import trio

from replispec.controller.rocketmq.process import members
from replispec.runtime.adapting.instances_shell import free_port
from replispec.runtime.configuration import parse
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.runtime.world import Level, Member
from replispec.wire.rocketmq.parameters import CONTROLLER
from tests.runtime.net.hosted import until

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


def _made(folder: Path, group: str, number: int) -> Member:
    """One member of the group."""
    text = (
        f"controllerDLegerPeers={group}\ncontrollerDLegerSelfId=n{number}\n"
        f"controllerStorePath={folder / str(number)}\n"
    )
    (found,) = members(parse(text, CONTROLLER).options, DiskStorage(), number)
    return found


def _knows_a_leader(member: Member) -> bool:
    assert member.view is not None
    return all(check.holds for check in member.view.checks())


@pytest.mark.trio
async def test_a_group_whose_members_listen_on_addresses_of_their_own_has_a_leader(tmp_path: Path) -> None:
    port, claimed = free_port(HOSTS[0])
    group = ";".join(f"n{number}-{host}:{port}" for number, host in enumerate(HOSTS))
    made = [_made(tmp_path, group, number) for number in range(len(HOSTS))]
    clock, stop, written = Clock(), trio.Event(), io.StringIO()
    log = Log(written, Level.DEBUG, clock.now_us)
    async with trio.open_nursery() as nursery:
        for member in made:
            await nursery.start(partial(serve, [member], Process(), log, clock=clock, stop=stop))
        await until(lambda: all(map(_knows_a_leader, made)))
        stop.set()
    claimed.end()
    assert "peer dropped" not in written.getvalue()
