"""Routes that were registered unseen, and retention below readers: nobody is blamed for either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.wire.rocketmq.broker import (
    GetRouteInfoRequest,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    SendMessageResponse,
    SendMessageV2Request,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import GetMinOffsetRequest, GetMinOffsetResponse
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.static_topic import UpdateStaticTopicRequest, UpdateStaticTopicResponse
from tests.replay.faults import Frames, put, taken, with_fields, written
from tests.replay.pcap_writer import pcap
from tests.replay.queue_faults import a_route_of_an_epoch_that_nobody_registered, answers, asked, spoken
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
    detail,
    info,
    item,
    moved,
    static_topic,
)
from tests.replay.test_queues import judged_packets

ROUTES, READS, REACHES = "routes-tell-what-is-registered", "reads-are-contiguous", "acknowledged-is-read"


def frames_of(world: World, folder: Path) -> Frames:
    path = folder / "told.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    return spoken(taken(path), "PYTHON")


def verdicts_of(frames: Frames, folder: Path) -> dict[str, str]:
    return {
        each.invariant: each.verdict.value for each in judged_packets(written(frames), folder / "now.pcap")
    }


# ---- routes --------------------------------------------------------------------------------------


def without_its_registrations(frames: Frames) -> Frames:
    """The host of one broker was not captured."""
    host = BROKERS["broker-c"][0]
    return [each for each in frames if host not in (each.source[0], each.destination[0])]


def one_is_compressed(frames: Frames) -> Frames:
    """The body of a registration is not read."""
    at = asked(frames, RegisterBrokerRequest, broker_name="broker-c")[-1]
    told = frames[at].with_command(frames[at].command()[1], b"\x78\x9c" + bytes(80))
    return put(frames, at, with_fields(told, RegisterBrokerRequest, compressed=True))


def told_by_another_connection(frames: Frames) -> Frames:
    """The name server told nothing of the topic on this connection before."""
    routes = [at for at in asked(frames, GetRouteInfoRequest) if frames[at].source[0] == CONSUMER]
    told = frames[routes[1]].command()[1].opaque
    of_client = (frames[routes[-1]].source, frames[routes[-1]].destination)
    return [
        each
        for each in frames
        if {each.source, each.destination} != {*of_client} or each.command()[1].opaque == told
    ]


@pytest.mark.parametrize("unseen", [without_its_registrations, one_is_compressed, told_by_another_connection])
def test_what_may_have_been_registered_unseen_is_unknown(
    unseen: Callable[[Frames], Frames], tmp_path: Path
) -> None:
    frames = frames_of(static_topic(), tmp_path)
    edited = a_route_of_an_epoch_that_nobody_registered(frames)
    assert verdicts_of(edited, tmp_path)[ROUTES] == "violated"
    assert verdicts_of(unseen(edited), tmp_path)[ROUTES] == "unknown"


def test_a_registration_counts_before_it_is_answered(tmp_path: Path) -> None:
    """A name server may tell of it at once; its broker may be killed meanwhile."""
    world, epoch = static_topic(), FIRST_EPOCH + 500_000
    told = {name: info(name, epoch, leads) for name, leads in (("broker-b", {1: 0}), ("broker-c", {0: 0}))}
    own = TopicConfigTable(topic_queue_mapping_info_map={TOPIC: told["broker-c"]})
    world.register("broker-c", own)
    frames = frames_of(world, tmp_path)
    answer = max(at for at, each in enumerate(frames) if each.source == NAME_SERVER)
    lacking = frames[:answer] + frames[answer + 1 :]
    again = a_route_of_an_epoch_that_nobody_registered(lacking)
    wrong = str(FIRST_EPOCH + 7).encode()
    at = next(at for at, each in enumerate(again) if wrong in each.data)
    command, header = again[at].command()
    body = command.body.replace(wrong, str(epoch).encode())
    told_now = replace(again[at].with_command(header, body), time_ns=lacking[-1].time_ns + 1)
    assert verdicts_of([*again[:at], *again[at + 1 :], told_now], tmp_path)[ROUTES] == "ok"


# ---- retention -----------------------------------------------------------------------------------


def read_from(first: int, *, then: int | None, asks: int = 2) -> World:
    """Somebody asks for what is acknowledged and gets messages from a later one on; `then`: the first offset
    that is told afterwards."""
    world = static_topic()
    more = [world.store("broker-b", 0) for _ in range(6)]
    for each in more:
        world.send("broker-b", 1, each, each.queue_offset)
    world.pull(CONSUMER, "broker-b", (1, asks), more[first - 2 :], 8, 0)
    if then is not None:
        world.least("broker-b", 1, then)
    return world


@pytest.mark.parametrize(
    ("then", "reads", "reaches"), [(5, "ok", "unknown"), (7, "ok", "unknown"), (None, "unknown", "unknown")]
)
def test_what_retention_removes_below_a_reader_is_no_hole(
    then: int | None, reads: str, reaches: str, tmp_path: Path
) -> None:
    found = verdicts_of(frames_of(read_from(5, then=then), tmp_path), tmp_path)
    assert (found[READS], found[REACHES]) == (reads, reaches)


def test_what_is_told_to_be_there_afterwards_was_not_removed(tmp_path: Path) -> None:
    found = verdicts_of(frames_of(read_from(5, then=3), tmp_path), tmp_path)
    assert (found[READS], found[REACHES]) == ("violated", "violated")


def test_a_reader_that_is_moved_to_where_a_queue_begins_is_led_past_nothing(
    tmp_path: Path,
) -> None:
    """Its offset is gone (21), and it goes on where the queue begins now."""
    world = read_from(5, then=5)
    is_moved = ResponseCode.PULL_OFFSET_MOVED
    world.pull(CONSUMER, "broker-b", (1, 0), [], 5, 0, code=is_moved, group="slow", least=5)
    own = world.queues["broker-b", 0][5:]
    world.pull(CONSUMER, "broker-b", (1, 5), own, 8, 0, group="slow", least=5)
    found = verdicts_of(frames_of(world, tmp_path), tmp_path)
    assert "violated" not in found.values()
    assert found["removed-is-not-read"] == "ok"


def test_a_hole_that_retention_made_within_an_answer_is_none(tmp_path: Path) -> None:
    """A file of the log goes while an answer is made of two."""
    for least, verdict in ((0, "violated"), (6, "ok")):
        world = static_topic()
        more = [world.store("broker-b", 0) for _ in range(6)]
        for each in more:
            world.send("broker-b", 1, each, each.queue_offset)
        world.pull(CONSUMER, "broker-b", (1, 2), [more[0], *more[4:]], 8, 0)
        world.least("broker-b", 1, least)
        assert verdicts_of(frames_of(world, tmp_path), tmp_path)[READS] == verdict


# ---- what is right and unusual -------------------------------------------------------------------


def test_a_client_that_sends_again_under_one_key_has_two_messages(tmp_path: Path) -> None:
    """It heard nothing of the first try; both are stored, and read."""
    world = static_topic()
    one, again = (world.store("broker-b", 0) for _ in range(2))
    for each in (one, again):
        world.send("broker-b", 1, each, each.queue_offset)
    world.pull(CONSUMER, "broker-b", (1, 2), [one, again], 4, 0)
    frames = frames_of(world, tmp_path)
    sends = answers(frames, asked(frames, SendMessageV2Request, "broker-b"))[-2:]
    for at in sends:
        frames = put(frames, at, with_fields(frames[at], SendMessageResponse, transaction_id="ONE-KEY"))
    found = verdicts_of(frames, tmp_path)
    assert {*found.values()} <= {"ok", "unknown"}
    assert found[REACHES] == "ok"


def test_every_member_of_a_group_may_read_all(tmp_path: Path) -> None:
    """As those that are told everything (BROADCASTING): one goes on where another one began."""
    world = static_topic()
    more = [world.store("broker-b", 0) for _ in range(4)]
    for each in more:
        world.send("broker-b", 1, each, each.queue_offset)
    for member, (first, behind) in (("10.0.0.31", (2, 6)), ("10.0.0.32", (2, 4)), ("10.0.0.32", (4, 6))):
        own = more[first - 2 : behind - 2]
        world.pull(member, "broker-b", (1, first), own, behind, 0, group="broadcast")
    found = verdicts_of(frames_of(world, tmp_path), tmp_path)
    assert {*found.values()} <= {"ok", "unknown"}
    assert (found[READS], found[REACHES]) == ("ok", "ok")


def test_a_broker_that_is_called_otherwise_later_is_blamed_for_nothing(tmp_path: Path) -> None:
    """Its address has two names then: where its messages should lie is not known."""
    world = static_topic()
    host, port = BROKERS["broker-a"]
    header = RegisterBrokerRequest("renamed", f"{host}:{port}", "DefaultCluster", "", 0, compressed=False)
    body = RegisterBrokerBody([], TopicConfigTable())
    world.ask(host, NAME_SERVER, header, RegisterBrokerResponse(), body=body)
    found = verdicts_of(frames_of(world, tmp_path), tmp_path)
    assert {*found.values()} <= {"ok", "unknown"}


def test_two_administrators_of_one_epoch_leave_in_doubt_who_leads(tmp_path: Path) -> None:
    """Each took the epoch that followed the one that it had read: none of the brokers is at fault."""
    for who, verdict in (("10.0.0.24", "unknown"), (ADMIN, "violated")):
        world, epoch = static_topic(), SECOND_EPOCH + 1_000
        older = moved(10_000)[0]
        world.set_mapping("broker-a", epoch, {0: [*older, item(2, "broker-a", 1, -1)]})
        header = UpdateStaticTopicRequest(TOPIC, "TBW102", 1, 1, 6, "SINGLE_TAG", 0, order=False, force=False)
        body = detail("broker-b", epoch, {0: [*older, item(2, "broker-b", 1, -1)]})
        world.ask(who, BROKERS["broker-b"], header, UpdateStaticTopicResponse(), body=body)
        assert verdicts_of(frames_of(world, tmp_path), tmp_path)["one-writable-segment"] == verdict


def test_what_a_broker_keeps_of_before_it_leads_under_no_new_epoch(tmp_path: Path) -> None:
    """It is told of one logical queue alone, and says the new epoch of all that it has."""
    world, epoch = static_topic(), SECOND_EPOCH + 1_000
    older = moved(10_000)[0]
    world.set_mapping("broker-a", epoch, {0: [*older, item(2, "broker-a", 1, 20_000)]})
    world.set_mapping("broker-c", epoch, {1: FIRST[1]})
    world.tell_mapping("broker-c", epoch, {0: older, 1: FIRST[1]})
    found = verdicts_of(frames_of(world, tmp_path), tmp_path)
    assert "violated" not in found.values()
    assert found["one-writable-segment"] == "unknown"


def test_who_is_not_the_leader_passes_on_what_the_leader_says(tmp_path: Path) -> None:
    """A client of an old route asks a broker that asks who leads, which asks the broker of the segment."""
    world = static_topic()
    asker, leader = BROKERS["broker-b"][0], BROKERS["broker-c"][0]
    world.least("broker-a", 0, 0, leader)
    header = GetMinOffsetRequest(TOPIC, 0, "broker-c", lo=True)
    world.ask(asker, BROKERS["broker-c"], header, GetMinOffsetResponse(0))
    world.least("broker-b", 0, 0)
    found = verdicts_of(frames_of(world, tmp_path), tmp_path)
    assert found["answers-are-translated"] == "ok"
