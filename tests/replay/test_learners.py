"""A learner is outside the SyncStateSet while it is one; what a broker was at other times does not count."""

from __future__ import annotations

from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged
from tests.replay.world import World

RULE = "learner-outside-set"


def verdict(world: World) -> str:
    (finding,) = [each for each in judged(pcap(world.traffic.packets())).findings if each.invariant == RULE]
    return str(finding.verdict.value)


def with_learner() -> World:
    """Broker 3 came third, as a learner."""
    world = two_brokers()
    world.come_up(3, learner=True)
    follows(world, 3)
    return world


def follows(world: World, number: int) -> None:
    world.announce(number)
    world.follow(number)
    world.replicate(number)
    world.report(number)


def starts_again(world: World, number: int, *, learner: bool) -> None:
    world.die(number)
    world.brokers[number].learner = learner
    world.come_back(number)
    follows(world, number)


def test_a_learner_that_is_elected_behind_another_master_is_found() -> None:
    world = with_learner()
    world.die(1)
    world.take_over(3)
    world.announce(3)
    world.ask(3)
    assert verdict(world) == "violated"


def test_a_learner_that_starts_again_as_a_replica_may_be_in_the_set() -> None:
    world = with_learner()
    starts_again(world, 3, learner=False)
    world.alter((1, 2, 3))
    world.ask(1)
    assert verdict(world) == "unknown"


def test_a_member_that_starts_again_as_a_learner_was_none_before() -> None:
    world = two_brokers()
    starts_again(world, 2, learner=True)
    world.ask(1)
    world.alter((1,))
    world.ask(1)
    assert verdict(world) == "unknown"


def test_a_learner_that_started_first_in_its_set_is_a_known_deviation() -> None:
    world = World()
    world.come_up(1, learner=True)
    world.elect(1)
    world.announce(1)
    world.come_up(2)
    follows(world, 2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.brokers[1].to_controller = world.link(world.brokers[2].to_controller)
    follows(world, 1)
    assert verdict(world) == "diverged"
