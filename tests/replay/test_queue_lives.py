"""A topic that is made again is two topics, and so are topics of one name in two clusters."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.events.rocketmq.queue_seen import OF_TOPIC
from replispec.replay.judges.findings import FindingRow
from replispec.wire.rocketmq.broker import SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.static_topic import (
    DeleteTopicRequest,
    DeleteTopicResponse,
    DeleteTopicRouteRequest,
    DeleteTopicRouteResponse,
)
from tests.replay import queues
from tests.replay.faults import Frames, put, taken, with_fields, written
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.queue_faults import answers, asked, spoken
from tests.replay.queues import (
    ADMIN,
    BROKERS,
    CONSUMER,
    FIRST,
    FIRST_EPOCH,
    NAME_SERVER,
    SECOND_EPOCH,
    TOPIC,
    World,
    item,
    static_topic,
)
from tests.replay.test_queues import judged_packets

FIRST_LIFE, SECOND_LIFE = OF_TOPIC + TOPIC, f"{OF_TOPIC}{TOPIC}#2"
BLAMES = {"violated", "diverged"}


def deleted(world: World) -> World:
    """The topic is deleted at all its brokers, and then at the name server."""
    for broker in BROKERS.values():
        world.ask(ADMIN, broker, DeleteTopicRequest(TOPIC), DeleteTopicResponse())
    world.ask(ADMIN, NAME_SERVER, DeleteTopicRouteRequest(TOPIC), DeleteTopicRouteResponse())
    return world


def made_again(world: World, epoch: int) -> World:
    """It is made as it was first; its logs are others, and its groups begin anew."""
    for name, hosted in (("broker-a", {0: FIRST[0]}), ("broker-b", {1: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, epoch, hosted)
    world.register_infos(epoch, {"broker-a": {0: 0}, "broker-b": {1: 0}})
    world.queues.clear()
    own = [world.store("broker-b", 0) for _ in range(3)]
    for each in own:
        world.send("broker-b", 1, each, each.queue_offset)
    world.position("broker-b", 1, 0)
    world.pull(CONSUMER, "broker-b", (1, 0), own, 3, 0)
    world.commit("broker-b", 1, 3)
    world.position("broker-b", 1, 3)
    return world


def frames_of(world: World, folder: Path) -> Frames:
    path = folder / "told.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    return spoken(taken(path), "PYTHON")


def found_in(frames: Frames, folder: Path) -> list[FindingRow]:
    return judged_packets(written(frames), folder / "judged.pcap")


def given_twice(frames: Frames) -> Frames:
    """The second message of the first life is acknowledged at the offset of the first one."""
    at = answers(frames, asked(frames, SendMessageV2Request, "broker-a"))[1]
    return put(frames, at, with_fields(frames[at], SendMessageResponse, queue_offset=0))


@pytest.mark.parametrize("epoch", [FIRST_EPOCH + 50, SECOND_EPOCH + 50])
def test_a_topic_that_is_made_again_keeps_every_rule_as_two_topics(epoch: int, tmp_path: Path) -> None:
    """Whatever the clock of who makes it says: offsets, messages and positions begin anew."""
    world = static_topic()
    world.commit("broker-b", 1, 2)
    found = found_in(frames_of(made_again(deleted(world), epoch), tmp_path), tmp_path)
    assert {each.group for each in found} == {FIRST_LIFE, SECOND_LIFE}
    assert {each.verdict.value for each in found if each.evaluated} == {"ok"}
    told = {each.invariant: each.evaluated for each in found if each.group == SECOND_LIFE}
    assert told["acknowledged-is-read"] == 3
    assert told["positions-never-fall"] == 1


def test_a_fault_before_a_deletion_is_found_where_nothing_follows(tmp_path: Path) -> None:
    frames = frames_of(deleted(static_topic()), tmp_path)
    broken = {
        each.invariant for each in found_in(given_twice(frames), tmp_path) if each.verdict == "violated"
    }
    assert broken == {"logical-offset-is-one-message", "message-has-one-logical-offset"}


def test_a_fault_before_a_deletion_is_in_doubt_where_the_topic_is_made_again(tmp_path: Path) -> None:
    """Only the order of connections tells of which of the two a message is."""
    frames = frames_of(made_again(deleted(static_topic()), SECOND_EPOCH + 50), tmp_path)
    found = {
        each.invariant: each.verdict.value
        for each in found_in(given_twice(frames), tmp_path)
        if each.group == FIRST_LIFE and each.evaluated and each.verdict.value != "ok"
    }
    broken = ("logical-offset-is-one-message", "message-has-one-logical-offset")
    assert found == dict.fromkeys(broken, "unknown")


@pytest.mark.parametrize("seed", range(30))
def test_late_connections_of_a_topic_that_is_made_again_blame_nobody(seed: int, tmp_path: Path) -> None:
    """Also where the deletion is captured behind all that followed."""
    chance = random.Random(seed)
    frames = frames_of(made_again(deleted(static_topic()), SECOND_EPOCH + 50), tmp_path)
    late_ns = {each.connection: chance.choice((0, chance.randrange(10**10))) for each in frames}
    moved = [replace(each, time_ns=each.time_ns + late_ns[each.connection]) for each in frames]
    moved.sort(key=lambda each: each.time_ns)
    assert [each for each in found_in(moved, tmp_path) if each.verdict.value in BLAMES] == []


# ---- deletions that were not captured ------------------------------------------------------------


@pytest.mark.parametrize("epoch", [FIRST_EPOCH + 50, SECOND_EPOCH + 50])
def test_a_topic_that_was_deleted_unseen_is_in_doubt_where_it_contradicts_itself(
    epoch: int, tmp_path: Path
) -> None:
    """Its epochs say that it may be two: a newer one has fewer segments."""
    found = found_in(frames_of(made_again(static_topic(), epoch), tmp_path), tmp_path)
    assert not BLAMES & {each.verdict.value for each in found}
    told = {each.invariant: each.verdict.value for each in found}
    assert told["logical-offset-is-one-message"] == "unknown"


def grown(world: World, second: str) -> World:
    """The topic gets a third logical queue at a broker, under a new epoch."""
    epoch, own = FIRST_EPOCH + 50, {2: [item(0, second, 1, 0)]}
    for name, hosted in (("broker-a", {0: FIRST[0]}), ("broker-b", {1: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, FIRST_EPOCH, hosted)
    for name, hosted in (("broker-a", {0: FIRST[0]}), ("broker-b", {1: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, epoch, {**hosted, **(own if name == second else {})}, total=3)
    world.register_infos(epoch, {"broker-a": {0: 0}, "broker-b": {1: 0}})
    for each in [world.store("broker-b", 0) for _ in range(2)]:
        world.send("broker-b", 1, each, 0)
    return world


def test_a_topic_that_grows_is_one(tmp_path: Path) -> None:
    """An offset that it gives twice is given twice."""
    found = found_in(frames_of(grown(World(), "broker-c"), tmp_path), tmp_path)
    told = {each.invariant: each.verdict.value for each in found}
    assert told["logical-offset-is-one-message"] == "violated"


# ---- two clusters --------------------------------------------------------------------------------


def elsewhere(patch: pytest.MonkeyPatch, make: Callable[[], list[Packet]]) -> list[Packet]:
    """What a story is in another network, with another name server."""
    with patch.context() as other:
        other.setattr(queues, "NAME_SERVER", ("10.0.9.1", 9876))
        for name, (host, port) in BROKERS.items():
            other.setitem(BROKERS, name, (host.replace("10.0.0.", "10.0.9."), port))
        for name in ("PRODUCER", "CONSUMER", "ADMIN"):
            other.setattr(queues, name, getattr(queues, name).replace("10.0.0.", "10.0.9."))
        return make()


def together(packets: list[Packet]) -> list[Packet]:
    """What was captured at the same time."""
    return sorted(packets, key=lambda each: each.time_ns)


def shorter() -> list[Packet]:
    """The topic as it was first, with other messages in its queues."""
    world = World()
    for name in BROKERS:
        world.register(name)
    for name, hosted in (("broker-a", {1: FIRST[0]}), ("broker-b", {0: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, FIRST_EPOCH, hosted)
    world.register_infos(FIRST_EPOCH, {"broker-a": {1: 0}, "broker-b": {0: 0}})
    for each in [world.store("broker-b", 0) for _ in range(5)]:
        world.send("broker-b", 0, each, each.queue_offset)
    return world.packets()


def test_two_clusters_with_topics_of_one_name_are_two_topics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their brokers have the same names, too."""
    packets = together([*static_topic().packets(), *elsewhere(monkeypatch, shorter)])
    found = judged_packets(packets, tmp_path / "both.pcap")
    groups = {f"{FIRST_LIFE} (10.0.0.1:9876)", f"{FIRST_LIFE} (10.0.9.1:9876)"}
    assert {each.group for each in found} == groups
    assert {each.verdict.value for each in found if each.evaluated} == {"ok"}
