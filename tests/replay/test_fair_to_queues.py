"""What is right of topics with logical queues, and looks as if it were not: nobody is blamed for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.codes import Release, ResponseCode
from replispec.wire.rocketmq.constants import MOCK_BROKER_GLOBAL
from replispec.wire.rocketmq.logical_queue import (
    CommitMigrationRequest,
    CommitMigrationResponse,
    MigrateLogicalQueue,
)
from replispec.wire.rocketmq.static_topic import DeleteTopicRequest, DeleteTopicResponse
from tests.replay import logical_queues as lq
from tests.replay.faults import Frames, put, taken, with_fields, written
from tests.replay.pcap_writer import pcap
from tests.replay.queue_faults import answers, asked, spoken
from tests.replay.queues import (
    ADMIN,
    BROKERS,
    CONSUMER,
    FIRST,
    FIRST_EPOCH,
    SECOND_EPOCH,
    TOPIC,
    World,
    item,
    moved,
    static_topic,
)
from tests.replay.test_queues import clean, judged_packets, verdicts

BLAMES = {"violated", "diverged"}


def blamed(world: World, folder: Path, edit: Callable[[Frames], Frames] = list) -> Collection[str]:
    path = folder / "told.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    return blamed_in(edit(spoken(taken(path), "PYTHON")), folder)


def blamed_in(frames: Frames, folder: Path) -> Collection[str]:
    found = judged_packets(written(frames), folder / "judged.pcap")
    return {each.invariant for each in found if each.verdict.value in BLAMES}


# ---- older clients -------------------------------------------------------------------------------


def test_what_an_older_client_sent_lies_in_the_queue_that_took_it(tmp_path: Path) -> None:
    """It is answered under the queue that it asked for, which is another one at the broker that took it."""
    world = World()
    lq.registered(world, lq.A, lq.SEALED)
    lq.registered(world, lq.B, lq.OTHER, lq.SECOND)
    lq.sent(world, lq.B, 0)
    stored = world.store(lq.B, 1)
    world.send(lq.A, 0, stored, stored.queue_offset)

    def forwarded(frames: Frames) -> Frames:
        at = answers(frames, asked(frames, SendMessageV2Request, lq.A))[-1]
        return put(frames, at, with_fields(frames[at], SendMessageResponse, forward_queue_id="1"))

    assert blamed(world, tmp_path) == {"logical-offset-is-one-message"}
    assert not blamed(world, tmp_path, forwarded)


def test_a_client_of_4_9_that_names_the_broker_it_asks_may_mean_a_physical_queue(tmp_path: Path) -> None:
    """Brokers of ours take it so, brokers of Java's do not."""
    world = static_topic()
    stored = world.store("broker-b", 0)
    world.send("broker-b", 0, stored, stored.queue_offset)

    def of_4_9(frames: Frames) -> Frames:
        at = asked(frames, SendMessageV2Request, "broker-b")[-1]
        before = Release.V5_0_0 - 12
        return put(frames, at, frames[at].with_command(replace(frames[at].command()[1], version=before)))

    assert blamed(world, tmp_path) == {"logical-offset-is-one-message", "message-lies-in-its-segment"}
    assert not blamed(world, tmp_path, of_4_9)


# ---- what was not seen ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100, 140))
def test_lost_packets_of_logical_queues_blame_nobody(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    packets = written([*clean(lq.logical_queues, tmp_path)])
    rate, begin = chance.choice((0.02, 0.1, 0.3, 0.6)), chance.choice((0, chance.randrange(len(packets))))
    left = [each for each in packets[begin:] if chance.random() > rate]
    found = judged_packets(left, tmp_path / "less.pcap")
    assert [each for each in found if each.verdict.value in BLAMES] == []


# ---- administrators ------------------------------------------------------------------------------


def test_a_start_that_an_administrator_chose_follows_no_end(tmp_path: Path) -> None:
    """The broker of the segment before is gone for good, and nobody knows its end."""
    world = lq.logical_queues()
    began = lq.segment(1, lq.A, 7, 5000)
    told = MigrateLogicalQueue(lq.OTHER, began)
    world.ask(
        ADMIN,
        BROKERS[lq.A],
        CommitMigrationRequest(),
        CommitMigrationResponse(),
        body=told,
        told=told,
        asks=418,
    )
    assert not blamed(world, tmp_path)


def test_who_is_told_older_items_again_is_not_told_who_leads(tmp_path: Path) -> None:
    """mqadmin repeats older items to whom holds nothing else of a queue that moves, under the new epoch."""
    world, epoch = static_topic(), SECOND_EPOCH + 50
    older = moved(10_000)[0]
    newer = {0: [*older, item(2, "broker-b", 1, 20_000)], 1: FIRST[1]}
    for name, hosted in (("broker-b", newer), ("broker-c", {0: newer[0]}), ("broker-a", {0: older})):
        world.set_mapping(name, epoch, hosted)
    assert not blamed(world, tmp_path)


def deleted(world: World) -> World:
    """The topic is deleted at all its brokers."""
    for broker in BROKERS.values():
        world.ask(ADMIN, broker, DeleteTopicRequest(TOPIC), DeleteTopicResponse())
    return world


def made_again(world: World, epoch: int) -> World:
    """The topic is made as it was first."""
    for name, hosted in (("broker-a", {0: FIRST[0]}), ("broker-b", {1: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, epoch, hosted)
    return world


@pytest.mark.parametrize("epoch", [FIRST_EPOCH + 50, SECOND_EPOCH + 50])
def test_a_topic_that_was_deleted_may_begin_at_any_epoch_and_without_positions(
    epoch: int, tmp_path: Path
) -> None:
    """Another administrator's clock may be slow, and brokers forget how far groups have read."""
    world = static_topic()
    world.commit("broker-b", 1, 2)
    made_again(deleted(world), epoch)
    world.position("broker-b", 1, 0)
    assert not blamed(world, tmp_path)


def test_what_a_deleted_topic_acknowledged_is_read_by_nobody(tmp_path: Path) -> None:
    epoch = SECOND_EPOCH + 100
    world = made_again(deleted(static_topic()), epoch)
    world.queues.clear()
    one = world.store("broker-a", 0)
    world.send("broker-a", 0, one, one.queue_offset)
    moved = [*FIRST[0], item(1, "broker-c", 1, 10_000)]
    for name, hosted in (("broker-c", {0: moved}), ("broker-a", {0: moved}), ("broker-b", {1: FIRST[1]})):
        world.set_mapping(name, epoch + 1000, hosted)
    world.pull(CONSUMER, "broker-c", (0, 0), [one], 1, 0, group="fresh")
    led_on = ResponseCode.PULL_RETRY_IMMEDIATELY
    world.pull(CONSUMER, "broker-c", (0, 1), [], 10_000, 0, code=led_on, group="fresh")
    assert not blamed(world, tmp_path)


# ---- consumer groups -----------------------------------------------------------------------------


def test_a_group_that_says_in_its_heartbeats_what_it_wants_may_not_want_all(tmp_path: Path) -> None:
    """As a push consumer of Java's does: its pulls name no subscription."""
    world = static_topic()
    more = [world.store("broker-b", 0) for _ in range(4)]
    for each in more:
        world.send("broker-b", 1, each, each.queue_offset)
    header = PullMessageRequest("t", TOPIC, 1, 2, 32, 0, 0, 0, None, 0, "TAG", bname=MOCK_BROKER_GLOBAL)
    told = more[0].record + more[2].record
    world.ask(CONSUMER, BROKERS["broker-b"], header, PullMessageResponse(0, 6, 0, 6, 0), told=told, asks=11)
    assert not blamed(world, tmp_path)


def test_a_group_that_is_sent_past_what_expired_is_led_past_nothing(tmp_path: Path) -> None:
    """The messages are gone: the next segment is all that there is."""
    world = lq.logical_queues()
    lq.pull(world, lq.A, (0, 0), [], elsewhere=True, group="late")
    assert not blamed(world, tmp_path)


def test_a_group_that_skips_acknowledged_messages_by_itself_is_in_doubt(tmp_path: Path) -> None:
    """It may have been told to: only what an answer leads past is surely lost to it."""
    world = static_topic()
    more = [world.store("broker-b", 0) for _ in range(4)]
    for each in more:
        world.send("broker-b", 1, each, each.queue_offset)
    world.pull(CONSUMER, "broker-b", (1, 2), more[:1], 3, 0)
    world.pull(CONSUMER, "broker-b", (1, 5), more[3:], 6, 0)
    path = tmp_path / "told.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    found = verdicts(judged_packets(written(spoken(taken(path), "PYTHON")), path))
    assert {rule for rule, verdict in found.items() if verdict in BLAMES} == set()
    assert found["acknowledged-is-read"] == "unknown"
