"""What a proxy or a translation of addresses passes on is one message, and what only looks like it is two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.observation import Acknowledged, ObservationKind
from replispec.replay.events.rocketmq.relays import told_once
from replispec.replay.events.tables import to_tables
from replispec.replay.judges.rocketmq.judge import Judgement
from replispec.wire.rocketmq import broker as to_broker
from replispec.wire.rocketmq.codes import RequestCode
from tests.replay.pcap_writer import Endpoint, Packet, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged, violated
from tests.replay.world import World

PROXY: Endpoint = ("10.0.0.60", 8080)
FRONT, BACK = "10.0.0.50:4000<->10.0.0.60:8080#1", "10.0.0.60:4000<->10.0.1.1:10911#1"
OTHER = "10.0.0.61:4000<->10.0.1.1:10911#1"


def through_a_proxy(world: World, messages: int, *, with_ids: bool, batch: bool = False) -> None:
    """Messages that a proxy passes on to the master, and their answers back."""
    traffic, broker = world.traffic, world.brokers[1]
    front = traffic.connect("10.0.0.50", PROXY)
    code = RequestCode.SEND_BATCH_MESSAGE if batch else None
    for _ in range(messages):
        stored = [broker.store() for _ in range(1 + batch)]
        body = b"".join(message for _, message in stored)
        born_ms = traffic.now_ns // 10**6
        request = to_broker.SendMessageV2Request(
            "p", "TopicA", queue_id=0, born_timestamp=born_ms, batch=batch
        )
        where = ",".join(broker.message_id(offset) for offset, _ in stored)
        answer = to_broker.SendMessageResponse(where, 0, 0, f"id {where}" if with_ids else None)
        asked = traffic.request(front, request, body, code=code)
        back = world._to(broker)
        traffic.answer(back, traffic.request(back, request, body, code=code), answer)
        traffic.answer(front, asked, answer)


def fail_over(world: World) -> None:
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(1)
    world.come_back(1)
    world.announce(1)
    world.follow(1)


def counts(found: Judgement) -> tuple[list[int], list[int]]:
    """Lost messages, and acknowledged ones, of each group."""
    return [each.acknowledged for each in found.losses], [each.acknowledged for each in found.sends]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
def test_what_a_proxy_passes_on_counts_once(with_ids: bool, batch: bool) -> None:
    world = two_brokers(messages=5)
    through_a_proxy(world, 4, with_ids=with_ids, batch=batch)
    world.replicate(2)
    world.heartbeat(2)
    fail_over(world)
    found = judged(pcap(world.traffic.packets()))
    assert counts(found) == ([], [6 + 4 * (1 + batch)])
    assert not violated(found)


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_loss_behind_a_proxy_counts_once(with_ids: bool) -> None:
    world = two_brokers(messages=5)
    through_a_proxy(world, 4, with_ids=with_ids)
    fail_over(world)
    assert counts(judged(pcap(world.traffic.packets()))) == ([4], [10])


def both_sides(packets: Sequence[Packet], port: int) -> list[Packet]:
    """The packets, those of a port also as they are behind a translation of who opened the connection."""
    found = []
    for each in packets:
        found.append(each)
        if port in (each.source[1], each.destination[1]):
            source, destination = (
                end if end[1] == port else ("172.16.0.1", end[1]) for end in (each.source, each.destination)
            )
            time_ns = each.time_ns + 20_000
            found.append(replace(each, source=source, destination=destination, time_ns=time_ns))
    return found


@pytest.mark.parametrize("lost", [0, 3])
def test_both_sides_of_a_translation_count_once(lost: int) -> None:
    world = two_brokers(messages=5)
    world.send(lost)
    fail_over(world)
    found = judged(pcap(both_sides(world.traffic.packets(), 10911)))
    assert counts(found) == ([3] if lost else [], [6 + lost])


def test_a_place_that_is_given_to_another_message_is_told() -> None:
    """Both messages have the same bytes, and no id of their client."""
    world = two_brokers(messages=5)
    kept = world.brokers[1].end
    world.send(2)
    world.heartbeat_controller(1)
    world.heartbeat_controller(1)
    world.restart_shorter(1, kept)
    world.send(2)
    found = judged(pcap(world.traffic.packets()))
    assert counts(found) == ([2], [9])


# ---- single acknowledgements ---------------------------------------------------------------------


def told(connection: str, offset: int = 0, text: str | None = None, born: int | None = 7) -> Acknowledged:
    place = ("a.pcap", 1, 1, connection, 1, offset, 0)
    return Acknowledged(
        *place, address="10.0.1.1:10911", offset=offset, text=text, born_ms=born, body_digest=5
    )


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([told(FRONT), told(BACK)], [BACK]),
        ([told(BACK), told(OTHER)], [BACK]),
        ([told(FRONT, text="a"), told(BACK, text="a", born=8)], [BACK]),
        ([told(FRONT, text="a"), told(BACK)], [BACK]),
        ([told(FRONT, text="a"), told(BACK, text="b"), told(OTHER)], [FRONT, BACK, OTHER]),
        ([told(BACK, text="a"), told(BACK)], [BACK, BACK]),
        ([told(FRONT, born=None), told(BACK, born=None)], [BACK]),
        ([told(FRONT, 0), told(BACK, 100)], [FRONT, BACK]),
        ([told(FRONT, born=7), told(BACK, born=8)], [FRONT, BACK]),
        ([told(FRONT, text="a"), told(BACK, text="b")], [FRONT, BACK]),
        ([told(BACK), told(BACK)], [BACK, BACK]),
        ([replace(told(each, born=None), body_digest=None) for each in (FRONT, BACK)], [FRONT, BACK]),
        ([replace(told(FRONT), body_digest=6), told(BACK)], [FRONT, BACK]),
        ([], []),
    ],
)
def test_copies_are_known_by_what_they_say(rows: list[Acknowledged], left: list[str]) -> None:
    sends = CaptureEvents(to_tables(rows)).columns(ObservationKind.ACKNOWLEDGED)
    assert told_once(sends).coded("connection").listed() == left


@pytest.mark.parametrize("connections", [1, 2])
def test_two_bodies_at_one_place_are_two_messages_whatever_id_is_told(connections: int) -> None:
    world = two_brokers(messages=5)
    broker = world.brokers[1]
    offset, message = broker.store()
    answer = to_broker.SendMessageResponse(broker.message_id(offset), 0, 0, "AAAA")
    links = [world.traffic.connect(f"10.0.0.{50 + each}", broker.endpoint) for each in range(connections)]
    for link, body in ((links[0], message), (links[-1], b"what another producer sent")):
        world.traffic.answer(link, world.traffic.request(link, world._sent(), body), answer)
    world.replicate(2)
    fail_over(world)
    assert counts(judged(pcap(world.traffic.packets()))) == ([1], [8])
