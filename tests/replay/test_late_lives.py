"""A connection that is captured late is of no other broker set and of no other life: it invents no loss
there, and hides none.

Two broker sets that use one address after each other, or two lives of one set, whose logs begin at 0 both.
Of messages only the order of the capture tells which of the two they are of, unless controllers named the
masters.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.replay.expectations import SEND_SURVIVES
from tests.replay.pcap_writer import in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import judged
from tests.replay.traffic import Link
from tests.replay.world import World

MINUTE_NS = 60 * 10**9


def led(world: World, rng: random.Random) -> None:
    """Broker 1 is master of epoch 1, broker 2 of epoch 2, and some of what the first one stored is lost."""
    world.come_up(1)
    world.elect(1)
    world.announce(1)
    if rng.random() < 0.3:
        world.subnet = 3
    world.come_up(2)
    world.announce(2)
    world.follow(2)
    world.alter((1, 2))
    sent(world, rng, rng.randrange(3, 12))
    world.replicate(2)
    sent(world, rng, rng.choice((0, 0, 1, 4)))
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    sent(world, rng, rng.randrange(4))


def sent(world: World, rng: random.Random, messages: int) -> None:
    """Messages over several connections."""
    for _ in range(messages):
        if rng.random() < 0.3:
            world.producer = None
        world.send(1)


def one_after_the_other(rng: random.Random) -> Sequence[World]:
    """Two sets that share an address at least, or two lives of one."""
    world = World()
    led(world, rng)
    if rng.random() < 0.5:
        world.start_another_life()
        world.subnet = 1
        led(world, rng)
        return [world]
    for number in (1, 2):
        world.die(number)
    other = World(name="broker-b", traffic=world.traffic)
    led(other, rng)
    return [world, other]


def late(links: Sequence[Link], link: Link, late_ns: int) -> bytes:
    talks = [each.talk for each in links]
    moved = [replace(packet, time_ns=packet.time_ns + late_ns) for packet in link.talk.packets]
    others = in_time_order(talk for talk in talks if talk is not link.talk)
    packets = sorted((*others, *moved), key=lambda packet: packet.time_ns)
    return pcap(packets, nanoseconds=True)


@pytest.mark.parametrize("seed", range(20 * SEEDS))
def test_a_connection_a_minute_late_is_of_no_other_set_and_of_no_other_life(seed: int) -> None:
    rng = random.Random(seed)
    worlds = one_after_the_other(rng)
    links = worlds[0].traffic.links
    link = rng.choice(links)
    found = judged(late(links, link, rng.choice((-MINUTE_NS, MINUTE_NS))))
    truth: dict[tuple[str, int | None], int] = {
        (each.group, each.epoch): each.acknowledged for world in worlds for each in world.ledger.losses()
    }
    for loss in found.losses:
        assert loss.acknowledged <= truth.get((loss.group, loss.epoch), 0), (loss, link.talk.client)
    survived = [each for each in found.findings if each.invariant == SEND_SURVIVES]
    kept = sum(len(world.ledger.acknowledged) for world in worlds) - sum(truth.values())
    assert sum(each.counts.get("ok", 0) for each in survived) <= kept, link.talk.client


def test_what_controllers_tell_of_masters_keeps_the_lives_of_a_set_apart() -> None:
    """Another broker is master of the second life: the losses of both are told, in any order."""
    world = two_brokers(messages=5)
    world.send(3)
    world.start_another_life()
    world.come_up(1)
    world.come_up(2)
    world.elect(2)
    world.announce(2)
    world.announce(1)
    world.follow(1)
    world.send(4)
    found = judged(pcap(world.traffic.packets(), nanoseconds=True))
    told = {each.group: each.counts for each in found.findings if each.invariant == SEND_SURVIVES}
    assert {group: sum(counts.values()) for group, counts in told.items()} == {
        "Controllers/broker-a": 8,
        "Controllers/broker-a#2": 4,
    }
