"""Who has an id when a controller tells that it is the next: certain is what the same connection tells."""

from __future__ import annotations

from replispec.wire.rocketmq import controller as to_controller
from replispec.wire.rocketmq.codes import ResponseCode
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged
from tests.replay.traffic import Link
from tests.replay.world import ADMIN, CLUSTER, CONTROLLER, World


def asks(world: World, link: Link, told: int) -> None:
    """1012, answered with this id."""
    world._exchange(
        link,
        to_controller.GetNextBrokerIdRequest(CLUSTER, world.name),
        to_controller.GetNextBrokerIdResponse(CLUSTER, world.name, told),
    )


def is_refused(world: World, link: Link, applied: int) -> None:
    """1013 for an id, refused."""
    world._exchange(
        link,
        to_controller.ApplyBrokerIdRequest(CLUSTER, world.name, applied, "10.0.1.9:10911;7"),
        to_controller.ApplyBrokerIdResponse(CLUSTER, world.name),
        code=ResponseCode.CONTROLLER_BROKER_ID_INVALID,
    )


def verdict(world: World) -> str:
    found = judged(pcap(world.traffic.packets()))
    (finding,) = [each for each in found.findings if each.invariant == "next-id-is-free"]
    return str(finding.verdict.value)


def test_an_id_that_another_connection_was_granted_leaves_the_next_one_open() -> None:
    """The question may have been answered before it, however late it was captured."""
    world = two_brokers()
    world.traffic.wait(60)
    asks(world, world.traffic.connect(ADMIN, CONTROLLER), 2)
    assert verdict(world) == "unknown"


def test_an_id_that_was_refused_before_is_not_the_next() -> None:
    world = two_brokers()
    link = world.traffic.connect(ADMIN, CONTROLLER)
    asks(world, link, 2)
    is_refused(world, link, 2)
    asks(world, link, 2)
    assert verdict(world) == "violated"


def test_an_id_that_was_refused_because_others_come_first_may_be_the_next() -> None:
    world = two_brokers()
    link = world.traffic.connect(ADMIN, CONTROLLER)
    is_refused(world, link, 3)
    asks(world, link, 3)
    assert verdict(world) == "ok"


def test_an_id_that_was_granted_before_on_the_same_connection_is_not_the_next() -> None:
    world = two_brokers()
    asks(world, world.link(world.brokers[2].to_controller), 2)
    assert verdict(world) == "violated"


def test_an_id_that_was_removed_may_be_the_next_again() -> None:
    world = two_brokers()
    world.remove(2)
    asks(world, world.link(world.brokers[2].to_controller), 2)
    assert verdict(world) == "unknown"


def test_an_id_that_nobody_was_granted_is_free() -> None:
    world = two_brokers()
    asks(world, world.traffic.connect(ADMIN, CONTROLLER), 3)
    assert verdict(world) == "ok"
