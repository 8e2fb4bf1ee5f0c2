"""Logical queues at a broker that crashes, is cut, is asked by two at once, or is told what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import telling
from replispec.runtime.sim import Left
from replispec.wire.rocketmq.client import CreateTopicRequest
from replispec.wire.rocketmq.codes import MessageFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import SEGMENT_START_MAX, SINGLE_TAG, TEMPLATE_TOPIC
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    GoneOffsets,
    GoneOffsetsList,
    LogicalQueuesEnabled,
    MigrateLogicalQueue,
    UpdateLogicalQueueMapping,
)
from replispec.wire.rocketmq.static_topic import DeleteTopicRequest
from tests.broker.simulated_set import OK, BrokerSet, message
from tests.queues.logical_sets import LogicalSet, LogicalSets, both, elsewhere, own, short, shorts
from tests.queues.test_static_topics import FIRST, detail, put

FAILED = ResponseCode.SYSTEM_ERROR
PREPARE = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
COMMIT = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
UPDATE = RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING
CREATE = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE


def test_a_seal_is_not_acknowledged_before_the_set_has_it_and_never_was_when_it_is_cut() -> None:
    brokers = LogicalSet()
    first, second = brokers.pair()
    brokers.mapped(first, 1)
    brokers.send(first, b"m", topic="L")
    # Nobody lets the replica leave the set.
    brokers.world.kill("controller")
    brokers.world.kill("broker2")
    body = MigrateLogicalQueue(own(), elsewhere()).encode()
    waiting = [brokers.asked(first, PREPARE, body=body) for _ in range(2)]
    brokers.world.run_for(500)
    sending = message("L", 0, sys_flag=MessageFlag.LOGICAL_QUEUE)
    sent = brokers.asked(first, RequestCode.SEND_MESSAGE_V2, sending, b"x")
    brokers.world.run_for(500)
    # Neither who asks, nor who repeats it, nor a producer is told what may be undone.
    assert (waiting, sent) == ([[], []], [])
    assert shorts(brokers.told(first)) == {0: [(0, "Normal", 0, 0, -1)]}
    brokers.world.kill("broker1")
    brokers.start("controller")
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    assert brokers.send(second, b"m", topic="L")[0] == OK
    for address in (first, second):
        brokers.until(lambda address=address: bool(brokers.told(address)))  # type: ignore[misc]
        assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)]}
    # The next administrator names whom he likes, and the end is where it is now.
    _, prepared = brokers.prepare(second, own(), elsewhere("broker-c"))
    assert prepared is not None
    assert short(prepared.to_queue_route_data)[2] == 2


# ---- a crash inside any change -------------------------------------------------------------------

SOURCE = own(0, 1)
Step = tuple[int, dict[str, str | None], bytes]


def steps() -> list[Step]:
    """A life of logical queues: each step may be asked again until it is answered."""
    topic = CreateTopicRequest("L", TEMPLATE_TOPIC, 1, 1, 6, SINGLE_TAG, 0, False).to_ext_fields()
    begun = elsewhere("broker-a", 1, 0, logical_queue_delta=7)
    enabled = LogicalQueuesEnabled(5, None, 1, 2)
    bodies: list[tuple[int, Any]] = [
        (UPDATE, UpdateLogicalQueueMapping(logical_queue_idx=1, queue_id=0, topic="L")),
        (PREPARE, MigrateLogicalQueue(SOURCE, elsewhere(index=1))),
        (CREATE, CreateLogicalQueue(0, "WriteOnly", "L")),
        (
            COMMIT,
            MigrateLogicalQueue(elsewhere(state="ReadOnly", logical_queue_delta=0, offset_max=7), begun),
        ),
        (UPDATE, UpdateLogicalQueueMapping(enabled=enabled, topic="L")),
    ]
    made = [(code, dict[str, str | None](), body.encode()) for code, body in bodies]
    return [(RequestCode.UPDATE_AND_CREATE_TOPIC, topic, b""), *made]


def stage(brokers: LogicalSet, address: str) -> int:
    """How many of the steps are there."""
    told = shorts(brokers.told(address))
    if not told:
        return 1
    if told[1][0][1] == "Normal":
        return 2
    if 0 not in told:
        return 3
    if told[0][0][1] == "WriteOnly":
        return 4
    return 5 if brokers.enabled(address) is None else 6


CRASHES = 40


def lived(number: int, left: Left) -> int:
    """A broker that crashes in one of its changes comes back with all that it acknowledged, or with the step
    after; returns how many changes there were."""
    brokers = LogicalSet()
    address = brokers.add_broker(1)
    victim = brokers.world.processes["broker1"]
    victim.loses_power = bool(number % 2)
    victim.disk.crash_at(number, left)
    acknowledged = 0
    every = steps()

    def is_dead() -> bool:
        return not victim.is_alive

    while acknowledged < len(every):
        if is_dead():
            brokers.world.run_for(300)
            brokers.world.start("broker1")
        brokers.world.run_until(lambda: is_dead() or brokers.broker(1).serves, at_most_ms=60_000)
        if is_dead():
            continue
        if acknowledged > 1:
            brokers.world.run_for(500)
            if not is_dead():
                assert acknowledged <= stage(brokers, address) <= acknowledged + 1
        answers = brokers.client.ask(address, *every[acknowledged])
        brokers.world.run_until(lambda found=answers: bool(found), at_most_ms=60_000)  # type: ignore[misc]
        if isinstance(answers[0], Command):
            # 17 of a topic that is mapped already is refused; so it is not asked again.
            assert answers[0].header.code == OK, answers[0].header.remark
            acknowledged += 1
    if is_dead():
        brokers.world.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.world.run_for(500)
    assert stage(brokers, address) == len(every)
    assert shorts(brokers.told(address)) == {
        0: [(1, "Normal", 7, 0, -1)],
        1: [(0, "Expired", 0, 0, 0)],
    }
    return len(victim.disk.changes)


@pytest.mark.parametrize("part", range(4))
def test_a_crash_inside_any_change_costs_no_step_that_was_acknowledged(part: int) -> None:
    lefts = (Left.NOTHING, Left.PART, Left.ALL)
    for number in range(part + 1, CRASHES, 4):
        lived(number, lefts[number % 3])


def test_every_change_is_among_those_that_are_tried() -> None:
    assert lived(10_000, Left.ALL) < CRASHES


# ---- two administrators --------------------------------------------------------------------------


def test_of_two_administrators_the_first_target_wins_and_both_finish_the_same_migration() -> None:
    sets = LogicalSets("abc")
    one, two, three = (sets.at[f"broker-{name}"] for name in "abc")
    sets.mapped(one, 1)
    sets.send(one, b"m", topic="L")
    mine, other = (sets.create(each, 0)[1] for each in (two, three))
    assert mine is not None
    assert other is not None
    first, second = (sets.prepare(one, own(), each)[1] for each in (mine, other))
    assert first is not None
    assert first == second
    begun = [sets.start_at(two, *both(first)) for _ in range(2)]
    assert begun[0] == begun[1]
    assert begun[0][0] == (OK, "")
    # What the loser took was never used: it goes.
    assert sets.map(three, 0, -1) == (OK, "")
    states = [short(each)[1] for at in (one, two, three) for each in sets.told(at).get(0, [])]
    assert states == ["ReadOnly", "Normal"]


def test_the_target_of_another_logical_queue_is_not_begun_by_a_request_for_this_one() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.create(address, 0)
    source = elsewhere(index=1, state="ReadOnly", logical_queue_delta=0, offset_max=7)
    target = elsewhere("broker-a", index=1, logical_queue_delta=7)
    assert brokers.start_at(address, source, target)[0] == (FAILED, "queue route data not found")


# ---- what cannot be ------------------------------------------------------------------------------


def segment(**changes: Any) -> dict[str, Any]:
    """A segment as JSON."""
    queue = {"brokerName": "broker-b", "queueId": 0, "topic": "L"} | changes.pop("messageQueue", {})
    said = {
        "firstMsgTimeMillis": -1,
        "lastMsgTimeMillis": -1,
        "logicalQueueDelta": -1,
        "logicalQueueIndex": 0,
        "messageQueue": queue,
        "offsetDelta": 0,
        "offsetMax": -1,
        "state": "WriteOnly",
    }
    return said | changes


OWN = segment(messageQueue={"brokerName": "broker-a"}, logicalQueueDelta=0, state="Normal")
HOSTILE: dict[str, dict[str, Any]] = {
    "another topic": segment(messageQueue={"topic": "Other"}),
    "another index": segment(logicalQueueIndex=3),
    "no broker": segment(messageQueue={"brokerName": ""}),
    "a broker with a long name": segment(messageQueue={"brokerName": "b" * 10_000}),
    "a long address": segment(brokerAddr="1" * 10_000),
    "a queue below 0": segment(messageQueue={"queueId": -1}),
    "a queue beyond all": segment(messageQueue={"queueId": 2**31 - 1}),
    "a start below -1": segment(logicalQueueDelta=-2),
    "a start that leaves no room": segment(logicalQueueDelta=SEGMENT_START_MAX + 1),
    "a physical start below 0": segment(offsetDelta=-1),
    "an end before its start": segment(offsetDelta=5, offsetMax=3, state="ReadOnly", logicalQueueDelta=0),
    "an end beyond all": segment(logicalQueueDelta=2**63 - 1, offsetMax=9, state="ReadOnly"),
    "no state": segment(state="Sealed"),
    "itself": OWN,
    "nothing": {},
}


def migration(target: Any, source: Any = OWN) -> bytes:
    """The body of 417 and 418."""
    return json.dumps({"fromQueueRouteData": source, "toQueueRouteData": target}).encode()


@pytest.mark.parametrize("why", HOSTILE)
def test_a_target_that_cannot_be_is_refused_and_nothing_is_sealed(why: str) -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    end = brokers.epochs(address).max_offset
    answer = brokers.ask(address, PREPARE, body=migration(HOSTILE[why]))
    assert answer.header.code != OK
    assert brokers.epochs(address).max_offset == end
    assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)]}


BODIES = {
    "no JSON": (PREPARE, b"{"),
    "a list": (PREPARE, b"[]"),
    "nothing": (PREPARE, b""),
    "a foreign source": (PREPARE, migration(segment(), segment())),
    "millions of segments": (PREPARE, migration([segment()] * 20_000)),
    "a number for a topic": (UPDATE, b'{"logicalQueueIdx":0,"queueId":0,"topic":7}'),
    "an index beyond all": (UPDATE, b'{"logicalQueueIdx":2147483647,"queueId":0,"topic":"L"}'),
    "a queue below 0": (UPDATE, b'{"logicalQueueIdx":1,"queueId":-5,"topic":"L"}'),
    "a system topic": (
        CREATE,
        b'{"logicalQueueIndex":0,"messageQueueStatus":"WriteOnly","topic":"rmq_sys_static_topic_mapping"}',
    ),
    "totals beyond all": (UPDATE, b'{"enabled":{"epoch":7,"queues":1,"total":2147483647},"topic":"L"}'),
    "an epoch far ahead": (
        UPDATE,
        b'{"enabled":{"epoch":9223372036854775807,"queues":1,"total":1},"topic":"L"}',
    ),
    "gone before it began": (
        UPDATE,
        b'{"enabled":{"epoch":7,"gone":{"0":[{"begin":9,"end":4}]},"queues":1,"total":1},"topic":"L"}',
    ),
}


@pytest.mark.parametrize("why", BODIES)
def test_a_body_that_cannot_be_is_refused_and_the_store_untouched(why: str) -> None:
    code, body = BODIES[why]
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    end = brokers.epochs(address).max_offset
    answer = brokers.ask(address, code, body=body)
    assert answer.header.code != OK
    assert brokers.epochs(address).max_offset == end
    assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)]}


def test_what_nobody_would_read_again_is_refused_and_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of more intervals than are read would be acknowledged, and count for nothing."""
    monkeypatch.setattr(telling, "MAPPING_SEGMENTS_MAX", 3)
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)

    def enable(epoch: int, *begins: int) -> int:
        gone = {0: GoneOffsetsList([GoneOffsets(each, each + 1) for each in begins])}
        body = UpdateLogicalQueueMapping(LogicalQueuesEnabled(epoch, gone, 1, 1), -1, -1, "L").encode()
        return brokers.ask(address, UPDATE, body=body).header.code

    assert enable(5, 0, 10) == OK
    assert enable(6, 20) == OK
    end = brokers.epochs(address).max_offset
    assert enable(7, 30) == FAILED
    assert brokers.epochs(address).max_offset == end


def test_what_a_peer_adds_to_a_segment_is_not_kept() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    answer = brokers.ask(address, PREPARE, body=migration(segment(extra="x" * 1000)))
    assert answer.header.code == OK
    assert b"extra" not in answer.body


# ---- a topic is one of them for life -------------------------------------------------------------


def test_a_topic_of_logical_queues_is_no_static_one_and_is_not_changed_as_a_plain_one() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    code, remark = put(brokers, address, detail(5, [("broker-a", 0, 0)], topic="L"))
    assert (code, remark) == (FAILED, "no such mapping can be: the topic is one of logical queues")
    plain = CreateTopicRequest("L", TEMPLATE_TOPIC, 4, 4, 6, SINGLE_TAG, 0, False)
    answer = brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, plain).header
    assert answer.code == ResponseCode.INVALID_PARAMETER


def test_a_static_topic_takes_no_logical_queue() -> None:
    brokers: BrokerSet = LogicalSet()
    assert isinstance(brokers, LogicalSet)
    address = brokers.alone()
    assert put(brokers, address, FIRST)[0] == OK
    assert brokers.map(address, 0, 0, topic="S") == (FAILED, "the topic is a static one")
    assert brokers.create(address, 0, topic="S")[0] == (FAILED, "the topic is a static one")


def test_a_deleted_topic_of_logical_queues_is_plain_again_and_stays_deleted_after_a_fail_over() -> None:
    brokers = LogicalSet()
    first, second = brokers.pair()
    brokers.mapped(first, 1)
    brokers.send(first, b"m", topic="L")
    assert brokers.commit(first, 5, 1)[0] == OK
    assert brokers.notify(first, own(), elsewhere(logical_queue_delta=4, state="Normal")) == (OK, "")
    assert brokers.ask(first, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequest("L")).header.code == OK
    assert brokers.told(first) == {}
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    assert brokers.told(second) == {}
    # Made again it is a plain one, and may be mapped; nothing is left of what was committed.
    brokers.mapped(second, 2)
    assert set(brokers.told(second)) == {0, 1}
    assert brokers.enabled(second) is None
