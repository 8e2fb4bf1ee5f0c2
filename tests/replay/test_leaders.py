"""Whether heartbeats reach a new leader is told by causes: what a broker was told, and what it sent then."""

from __future__ import annotations

from dataclasses import replace

from replispec.replay.judges.rocketmq.judge import Judgement
from tests.replay.pcap_writer import Packet, in_time_order, pcap
from tests.replay.scenarios import another_leader, two_brokers
from tests.replay.test_order import judged
from tests.replay.world import CONTROLLER, OTHER_CONTROLLER, World

RULE = "heartbeats-reach-leader"


def verdict(packets: list[Packet]) -> str:
    return said_of(judged(pcap(packets)))


def said_of(found: Judgement) -> str:
    (finding,) = [each for each in found.findings if each.invariant == RULE]
    return str(finding.verdict.value)


def told(*, beats: int = 10, again: bool = True) -> World:
    """Both brokers are told another leader, send the old one heartbeats alone, and are told it again."""
    world = two_brokers()
    world.leader = OTHER_CONTROLLER
    for number in (1, 2):
        world.ask_leader(world.traffic.connect(world.brokers[number].host, OTHER_CONTROLLER))
    for _ in range(1 + again):
        for number in (1, 2):
            world.ask_leader(world.link(world.brokers[number].to_controller), broker=True)
            for _ in range(beats):
                world.traffic.wait(1)
                world.heartbeat_controller(number)
    return world


def without(world: World, host: str) -> list[Packet]:
    """The packets of connections that this host has no part in."""
    links = [link.talk for link in world.traffic.links]
    return in_time_order(talk for talk in links if host not in (talk.client[0], talk.server[0]))


def test_a_broker_that_goes_on_to_another_controller_alone_is_found() -> None:
    assert verdict(told().traffic.packets()) == "violated"


def test_what_was_captured_where_the_new_leader_has_no_connection_is_unknown() -> None:
    assert verdict(without(told(), OTHER_CONTROLLER[0])) == "unknown"


def test_a_broker_that_falls_silent_beside_the_change_is_not_blamed() -> None:
    """It has lost power: nothing of it comes any more, not even the end of its connection."""
    world = told(again=False)
    world.traffic.wait(15)
    world.heartbeat_controller(1)
    assert verdict(world.traffic.packets()) == "unknown"


def test_a_leader_that_is_gone_again_at_once_asks_for_nothing() -> None:
    world = told(beats=1)
    world.leader = CONTROLLER
    for number in (1, 2):
        world.ask_leader(world.link(world.brokers[number].to_controller), broker=True)
        for _ in range(12):
            world.heartbeat_controller(number)
    assert verdict(world.traffic.packets()) != "violated"


def shifted(packets: list[Packet], host: str) -> list[Packet]:
    """All connections of one host are seen 20 s late."""
    moved = [
        replace(each, time_ns=each.time_ns + (host in (each.source[0], each.destination[0])) * 20 * 10**9)
        for each in packets
    ]
    return sorted(moved, key=lambda each: each.time_ns)


def test_connections_that_were_captured_late_alter_nothing() -> None:
    for reached, expected in ((True, "ok"), (False, "violated")):
        packets = list(another_leader(reached=reached).packets)
        for host in (CONTROLLER[0], OTHER_CONTROLLER[0]):
            assert verdict(shifted(packets, host)) == expected
