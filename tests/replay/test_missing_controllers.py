"""Where packets of controllers are missing nobody tells who is master: what that leaves open is no loss."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

import pytest

from tests.replay.pcap_writer import Packet, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged
from tests.replay.world import CONTROLLER, World

MINUTE_S = 60
CHANGES = 3


def change_of_master(world: World, old: int, new: int) -> Iterator[int]:
    """The old master dies, the new one writes, the old one comes back and follows. Yields the moments, in
    ns, between these steps."""
    yield world.traffic.now_ns
    world.die(old)
    world.take_over(new)
    yield world.traffic.now_ns
    world.announce(new)
    world.send(3)
    world.traffic.wait(MINUTE_S)
    yield world.traffic.now_ns
    world.send(2)
    world.heartbeat_controller(new)
    yield world.traffic.now_ns
    world.come_back(old)
    world.announce(old)
    world.follow(old)
    world.replicate(old)
    world.heartbeat(old)
    world.alter((1, 2))
    world.traffic.wait(MINUTE_S)


@cache
def masters_in_turn(lost: int = 0) -> tuple[World, list[int]]:
    """Brokers 1 and 2 are masters in turn, each twice; the last `lost` messages of epoch 1 are lost, all
    others survive."""
    world = two_brokers(messages=5)
    world.send(lost)
    masters = [1 + at % 2 for at in range(CHANGES + 1)]
    moments = [at for old, new in pairwise(masters) for at in change_of_master(world, old, new)]
    return world, [*moments, world.traffic.now_ns]


def without_controller(packets: list[Packet], since: int, until: int) -> list[Packet]:
    """The packets but for those to and from the controller between two moments in ns."""
    return [
        each
        for each in packets
        if not since <= each.time_ns < until or CONTROLLER[0] not in (each.source[0], each.destination[0])
    ]


def lost(world: World, since: int = 0, until: int = 0) -> list[tuple[int | None, int]]:
    """By epoch how many messages a replay without some packets of the controller calls lost."""
    found = judged(pcap(without_controller(world.traffic.packets(), since, until)))
    return [(each.epoch, each.acknowledged) for each in found.losses]


@pytest.mark.parametrize(("first", "last"), [*combinations(range(CHANGES * 4 + 1), 2)])
def test_no_message_is_lost_where_a_controller_was_not_seen(first: int, last: int) -> None:
    world, moments = masters_in_turn()
    assert lost(world, moments[first], moments[last]) == []


def test_losses_of_a_master_that_is_master_again_are_told() -> None:
    world, moments = masters_in_turn(lost=4)
    assert lost(world) == [(1, 4)]
    # The end of the capture says nothing of the first change of the master any more.
    assert lost(world, moments[-4], moments[-1]) == [(1, 4)]
