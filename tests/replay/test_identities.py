"""A broker that starts again at another address is the same broker: its id says so."""

from __future__ import annotations

import pytest

from replispec.replay.events.observation import Alive
from replispec.replay.events.rocketmq.identities import Identities
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged, violated
from tests.replay.world import World

SURVIVES = ("Controllers/broker-a", "acknowledged-send-survives")
OF_LOSSES = {SURVIVES, ("Controllers/broker-a", "log-end-holds")}


def losses(world: World) -> list[tuple[int | None, int]]:
    found = judged(pcap(world.traffic.packets()))
    assert not violated(found) - OF_LOSSES
    return [(each.epoch, each.acknowledged) for each in found.losses]


def moved(world: World, number: int, subnet: int) -> None:
    """A broker stops, and starts again at another address."""
    world.die(number)
    world.brokers[number].subnet = subnet
    world.come_back(number)
    world.announce(number)


def followed_again(world: World) -> None:
    world.announce(2)
    world.follow(2)
    world.send(5)
    world.replicate(2)
    world.heartbeat(2)


def fail_over(world: World) -> None:
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(2)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)


@pytest.mark.parametrize("lost", [0, 3])
def test_messages_count_that_a_master_acknowledged_at_another_address(lost: int) -> None:
    world = two_brokers(messages=5)
    moved(world, 1, 7)
    followed_again(world)
    world.send(lost)
    fail_over(world)
    assert losses(world) == [(1, 3)] * bool(lost)


def test_every_message_of_a_master_that_moved_is_judged() -> None:
    world = two_brokers(messages=5)
    moved(world, 1, 7)
    followed_again(world)
    fail_over(world)
    finding = next(
        each
        for each in judged(pcap(world.traffic.packets())).findings
        if (each.group, each.invariant) == SURVIVES
    )
    assert {each: count for each, count in finding.counts.items() if count} == {"ok": 12}


def test_a_log_that_falls_while_its_master_moves_has_lost_messages() -> None:
    world = two_brokers(messages=5)
    kept = len(world.brokers[1].log)
    world.send(4)
    world.die(1)
    del world.brokers[1].log[kept:]
    moved(world, 1, 7)
    world.heartbeat_controller(1)
    world.send(2)
    assert losses(world) == [(1, 4)]


def test_brokers_that_changed_addresses_with_each_other_have_lost_nothing() -> None:
    world = two_brokers(messages=5)
    world.send(3)
    world.die(1)
    world.die(2)
    for number, other in ((1, 2), (2, 1)):
        world.brokers[number].machine = other
    world.come_back(2)
    world.heartbeat_controller(2)
    world.heartbeat_controller(2)
    world.come_back(1)
    world.announce(1)
    followed_again(world)
    assert losses(world) == []


def alive(address: str, broker_id: int, group: str = "g") -> Alive:
    return Alive("c", 0, 0, "a<->b#1", 0, 0, 0, group=group, address=address, broker_id=broker_id)


def test_an_address_that_two_brokers_had_tells_neither() -> None:
    told = Identities([alive("a", 1), alive("b", 1), alive("b", 2), alive("c", 2), alive("d", 1, "other")])
    assert [told.broker("g", each) for each in "abcd"] == ["a", "b", "c", "d"]
    assert told.perhaps("g", "a") == {"a", "b"}
    assert told.perhaps("g", "b") == {"a", "b", "c"}
    assert told.perhaps("g", "x") == {"x"}


def test_the_addresses_of_one_broker_are_called_by_its_first() -> None:
    told = Identities([alive("a", 1), alive("b", 1), alive("c", 2)])
    assert [told.broker("g", each) for each in "abc"] == ["a", "a", "c"]
