"""Where the life of a broker set ends: a second owner of the first id alone does not end it."""

from __future__ import annotations

from replispec.wire.rocketmq import controller as to_controller
from tests.replay.brokers import Broker
from tests.replay.pcap_writer import in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged, verdicts
from tests.replay.world import ADMIN, CLUSTER, CONTROLLER, World


class Elsewhere(Broker):
    """A broker on a host of its own."""

    @property
    def host(self) -> str:
        return "10.0.1.9"


def granted_again() -> World:
    """The master dies; its id is granted to another broker while the set lives on."""
    world = two_brokers()
    world.send(3)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    broker = world.brokers[1] = Elsewhere(1, 1)
    broker.to_controller = link = world.traffic.connect(broker.host, CONTROLLER)
    world.ask_leader(link, broker=True)
    applied = to_controller.ApplyBrokerIdRequest(CLUSTER, world.name, 1, f"{broker.address};99")
    world._exchange(link, applied, to_controller.ApplyBrokerIdResponse(CLUSTER, world.name))
    world.register(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    world.alter((1, 2))
    world.ask(2)
    return world


def test_an_id_that_is_granted_again_while_its_set_lives_on_is_found() -> None:
    found = judged(pcap(granted_again().traffic.packets()))
    assert verdicts(found)["Controllers/broker-a", "id-granted-once"] == "violated"
    assert sum(loss.acknowledged for loss in found.losses) == 3


def test_a_set_that_was_removed_unseen_and_begins_anew_is_no_fault() -> None:
    world = two_brokers()
    world.start_another_life()
    world.come_up(1)
    world.come_up(2)
    world.elect(2)
    world.announce(2)
    world.ask(1)
    seen = [link.talk for link in world.traffic.links if link.talk.client[0] != ADMIN]
    found = verdicts(judged(pcap(in_time_order(seen))))
    assert ("Controllers/broker-a#2", "id-granted-once") in found
    assert "violated" not in found.values()
