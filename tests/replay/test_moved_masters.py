"""A master that has another address within its epoch: found where its own word would have been captured."""

from __future__ import annotations

from tests.replay.brokers import Broker
from tests.replay.pcap_writer import Packet, in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged, verdicts
from tests.replay.world import CONTROLLER, World


class Moved(Broker):
    """A broker on another host than before."""

    @property
    def host(self) -> str:
        return "10.0.1.77"


def verdict(packets: list[Packet]) -> str:
    return verdicts(judged(pcap(packets)))["Controllers/broker-a", "epochs-grow"]


def moved(*, comes_back: bool) -> World:
    """Master 1 starts again in its epoch at another address; the other broker is told."""
    world = two_brokers()
    world.die(1)
    before = world.brokers[1]
    world.brokers[1] = Moved(1, 1, log=before.log, epochs=before.epochs)
    if comes_back:
        world.come_back(1)
        world.announce(1)
    else:
        world.ask_leader(world.traffic.connect("10.0.1.77", CONTROLLER))
    world.ask(2)
    return world


def test_a_master_that_moved_is_unknown_where_its_own_connections_were_not_captured() -> None:
    world = moved(comes_back=True)
    assert verdict(world.traffic.packets()) == "ok"
    host = world.brokers[2].host
    seen = [link.talk for link in world.traffic.links if host in (link.talk.client[0], link.talk.server[0])]
    assert verdict(in_time_order(seen)) == "unknown"


def test_an_address_that_its_host_never_told_is_found() -> None:
    assert verdict(moved(comes_back=False).traffic.packets()) == "violated"
