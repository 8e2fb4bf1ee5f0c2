"""Answers may overtake each other on one connection: a request is decided at any moment before its answer."""

from __future__ import annotations

from replispec.wire.rocketmq import controller as to_controller
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged, verdicts
from tests.replay.world import CLUSTER, World


def verdict(world: World, rule: str = "broker-set-machine") -> str:
    return verdicts(judged(pcap(world.traffic.packets())))["Controllers/broker-a", rule]


def elected_behind(world: World, number: int) -> None:
    """An election, whose answer comes behind one about the master that it made, all on one connection."""
    broker = world.brokers[number]
    link = world.link(broker.to_controller)
    world._make_master(number)
    asked = to_controller.ElectMasterRequest(CLUSTER, world.name, None, number, False)
    opaque = world.traffic.request(link, asked)
    world.ask(number)
    told = to_controller.ElectMasterResponse(number, broker.address, world.epoch, world.set_epoch)
    group = to_controller.BrokerMemberGroup(CLUSTER, world.name, {number: broker.address})
    body = to_controller.ElectMasterResponseBody(group, list(world.members))
    world.traffic.answer(link, opaque, told, body)
    world.ask(number)


def altered_behind(world: World, told: tuple[int, ...]) -> None:
    """A change of the set, whose answer comes behind one about what it made."""
    link = world.link(world.brokers[1].to_controller)
    asked = to_controller.AlterSyncStateSetRequest(world.name, None, 1, world.epoch)
    opaque = world.traffic.request(link, asked, world._set((1, 2, 3)))
    world.members, world.set_epoch = (1, 2, 3), world.set_epoch + 1
    world.ask(1, members=told)
    answer = to_controller.AlterSyncStateSetResponse(world.set_epoch)
    world.traffic.answer(link, opaque, answer, world._set((1, 2, 3)))
    world.ask(1)


def test_an_election_may_be_answered_behind_its_outcome() -> None:
    first = World()
    first.come_up(1)
    elected_behind(first, 1)
    assert verdict(first) == "ok"
    later = two_brokers()
    later.die(1)
    elected_behind(later, 2)
    assert verdict(later) == "ok"


def test_a_change_may_be_answered_behind_its_outcome() -> None:
    world = two_brokers()
    world.come_up(3)
    altered_behind(world, (1, 2, 3))
    assert verdict(world) == "ok"


def test_an_outcome_that_no_waiting_request_explains_is_found_behind_another_answer() -> None:
    world = two_brokers()
    world.come_up(3)
    altered_behind(world, (1, 3))
    assert verdict(world) == "violated"


def test_a_question_may_be_answered_behind_a_change_with_what_was_before_it() -> None:
    world = two_brokers()
    world.come_up(3)
    link = world.link(world.brokers[1].to_controller)
    opaque = world.traffic.request(link, to_controller.GetReplicaInfoRequest(world.name))
    before = world._set((1, 2))
    world.alter((1, 2, 3))
    told = to_controller.GetReplicaInfoResponse(1, world.brokers[1].address, world.epoch)
    world.traffic.answer(link, opaque, told, before)
    world.ask(1)
    assert verdict(world) == "ok"
    assert verdict(world, "epochs-grow") == "ok"


def test_epochs_that_fall_behind_a_later_question_are_found() -> None:
    world = two_brokers()
    world.come_up(3)
    before = world._set((1, 2))
    world.alter((1, 2, 3))
    link = world.link(world.brokers[1].to_controller)
    told = to_controller.GetReplicaInfoResponse(1, world.brokers[1].address, world.epoch)
    world._exchange(link, to_controller.GetReplicaInfoRequest(world.name), told, body=before)
    assert verdict(world, "epochs-grow") == "violated"
