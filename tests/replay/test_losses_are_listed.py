"""Every message that is told to be lost is in `losses`, also where nothing tells its masterEpoch."""

from __future__ import annotations

import random

import pytest

from replispec.replay.judges.rocketmq.judge import Judgement
from replispec.replay.report.model import LostSend
from replispec.replay.report.rocketmq.lost_messages import lost_sends
from tests.replay.brokers import PRODUCER
from tests.replay.expectations import SEND_SURVIVES
from tests.replay.pcap_writer import in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_late_lives import led, sent
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import judged, lost
from tests.replay.world import World


def elected_again(rng: random.Random, world: World | None = None) -> World:
    """A master is deposed, cuts its log and is elected again without a restart: clients stay connected."""
    world = two_brokers(world, messages=rng.randrange(1, 8))
    world.replicate(2)
    sent(world, rng, rng.randrange(1, 8))
    world.take_over(2)
    world.notify(1)
    world.follow(1)
    world.alter((1, 2))
    world.take_over(1)
    world.notify(2)
    world.send(rng.randrange(2, 9))
    return world


def listed(found: Judgement) -> list[LostSend]:
    return lost_sends("made.pcap", found.own.sends, found.losses, found.lost)


def of_producers(world: World) -> bytes:
    """Their connections alone."""
    alone = [each.talk for each in world.traffic.links if each.talk.client[0] == PRODUCER]
    return pcap(in_time_order(alone), nanoseconds=True)


@pytest.mark.parametrize("seed", range(10 * SEEDS))
def test_a_message_that_is_violated_is_among_the_losses(seed: int) -> None:
    rng = random.Random(seed)
    world = elected_again(rng)
    kept = [
        each.talk for each in world.traffic.links if each.talk.client[0] == PRODUCER or rng.random() < 0.2
    ]
    found = judged(pcap(in_time_order(kept), nanoseconds=True))
    survived = [each for each in found.findings if each.invariant == SEND_SURVIVES]
    told = sum(each.counts.get("violated", 0) for each in survived)
    assert told == lost(found) == len(listed(found))
    assert told <= sum(each.acknowledged for each in world.ledger.losses())


def test_some_messages_are_lost_in_an_epoch_that_was_not_seen() -> None:
    world = elected_again(random.Random(5))
    found = judged(of_producers(world))
    assert lost(found)
    assert {each.epoch for each in found.losses} == {None}


def test_a_connection_that_outlives_brokers_shows_no_fall_of_their_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy's connection carries messages of both lives of a set: the second one begins at 0."""
    world = World()
    proxy = world.traffic.connect(PRODUCER, ("10.0.7.7", 8081))
    monkeypatch.setattr(world, "_to", lambda _: proxy)
    rng = random.Random(1)
    led(world, rng)
    world.start_another_life()
    world.subnet = 1
    led(world, rng)
    assert not judged(pcap(world.traffic.packets(), nanoseconds=True)).losses
