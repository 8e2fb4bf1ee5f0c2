"""What strangers say to a name server of topics of logical queues, what comes late, and what is too much."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from replispec.nameserver.rocketmq import Limits
from replispec.runtime.rocketmq.queues.telling import Enabled
from replispec.runtime.rocketmq.remoting.answering import BODY_OBJECTS_MAX
from replispec.wire.rocketmq.broker import RegisterBrokerBody
from replispec.wire.rocketmq.codes import ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import MAPPING_EPOCH_AHEAD_MS
from tests.queues.registering_queues import NOW_MS, NameServer, Says, info, open_segment, segment
from tests.queues.test_nameserver_queues import CHAIN, NEW, OLD, ONE, led

WITHDRAWN = "logical queues are told no more"
MANY = Enabled(NOW_MS + MAPPING_EPOCH_AHEAD_MS // 2, 1024, 1024)
STRANGERS = [Says("evil", 1, {}, MANY, queues=0), Says("evil", 1, static=info("evil", 9, {}), queues=0)]


@pytest.mark.parametrize("says", STRANGERS)
def test_what_a_stranger_said_who_holds_nothing_counts_no_more_when_it_is_gone(says: Says) -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    names.hears(says)
    names.loses("evil")
    assert names.told() == CHAIN
    assert names.route(flag=RouteFlag.NONE).topic_queue_mapping_by_broker is None


def test_who_leads_nothing_makes_no_static_topic_of_logical_queues() -> None:
    names = NameServer()
    names.hears(OLD, NEW, STRANGERS[1])
    assert names.told() == CHAIN
    assert names.route(flag=RouteFlag.NONE).topic_queue_mapping_by_broker is None


def test_a_topic_that_is_enabled_is_not_told_plain_where_replicas_are_heard_alone() -> None:
    names = NameServer()
    names.hears(OLD, role=2)
    assert names.asked().header.code == ResponseCode.SERVICE_NOT_AVAILABLE
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE))
    assert names.told() == {0: [("b1", 0, -1)]}


def test_who_keeps_a_topic_from_being_told_is_named_once() -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    names.hears(STRANGERS[0], STRANGERS[0])
    assert "nobody registered queue" in (names.refusal() or "")
    assert [each for each in names.talk.noted() if each == WITHDRAWN] == [WITHDRAWN]
    # A broker that has the topic, and not its mapping, is another one.
    names.loses("evil")
    assert names.told() == CHAIN
    names.hears(Says("b3", 1, queues=1))
    assert "b3" in (names.refusal() or "")
    assert [each for each in names.talk.noted() if each == WITHDRAWN] == 2 * [WITHDRAWN]


def test_who_is_heard_without_a_segment_counts_when_it_says_that_the_topic_is_enabled() -> None:
    """It may have learnt it before those did who are silent."""
    names = NameServer()
    names.hears(OLD, NEW, Says("b3", 1, {}, Enabled(ONE.epoch + 1, 2, 2), queues=0))
    assert "nobody registered queue 1" in (names.refusal() or "")


def test_a_late_registration_is_late_also_where_the_newer_one_has_no_segments() -> None:
    early = Says("b1", 1, {0: [segment("b1", 0, 0)]}, queues=0)
    newer = Says("b1", 2, queues=0)
    for order in permutations((early, newer)):
        names = NameServer()
        names.hears(*order, Says("b2", 1, {0: [segment("b2", 0, 0)]}))
        assert names.told() == {0: [("b2", 0, -1)]}, [each.counter for each in order]
        # A master that was lost is believed whatever its version.
        names.loses("b1")
        names.hears(early)
        assert (names.told() or {}).get(0) != [("b2", 0, -1)]


def test_of_one_epoch_the_newest_version_counts_whatever_comes_between() -> None:
    said = [
        Says("b1", 1, static=info("b1", 5, {0: 0})),
        Says("b1", 2, static=info("b1", 5, {1: 0})),
        Says("b1", 3),
    ]
    for order in permutations(said):
        names = NameServer()
        names.hears(*order)
        assert led(names) == {"b1": (5, {1: 0})}, [each.counter for each in order]


def test_what_a_registration_holds_is_counted_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million segments are 7 MB: reading them would keep everybody waiting, the controller, too."""

    def reads(_data: bytes) -> RegisterBrokerBody:
        raise AssertionError("it is read")

    names = NameServer()
    names.hears(OLD, NEW)
    with monkeypatch.context() as patched:
        patched.setattr(RegisterBrokerBody, "decode", reads)
        answer = names.answers_body("b1", _of_segments(BODY_OBJECTS_MAX))
    assert answer.header.code == ResponseCode.SYSTEM_ERROR
    remark = f"a body of {BODY_OBJECTS_MAX + 1} objects, {BODY_OBJECTS_MAX} allowed"
    assert remark in (answer.header.remark or "")
    assert names.told() == CHAIN


def _of_segments(objects: int) -> bytes:
    listed = b",".join([b"{}"] * (objects - 3))
    return b'{"topicConfigSerializeWrapper":{"logicalQueuesInfoMap":{"T":{"0":[' + listed + b"]}}}}"


def test_nobody_is_told_logical_queues_before_every_broker_that_writes_some_says_so() -> None:
    """Else a name server that begins empty, and hears first whom no administrator told, would tell the plain
    route to who knows the topic by logical offsets."""
    enabled = Enabled(NOW_MS, 2, 2)
    server = NameServer()
    first = Says("b1", 1, {0: [segment("b1", 0, 0)]}, enabled)
    untold = Says("b2", 1, {1: [segment("b2", 0, 0)]}, None)
    server.hears(first, untold)
    answer = server.asked()
    assert answer.header.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "b2 does not say yet that they are enabled" in (answer.header.remark or "")
    server.hears(Says("b2", 2, {1: [segment("b2", 0, 0)]}, enabled))
    assert set(server.told() or ()) == {0, 1}


def test_who_waits_for_a_move_to_be_finished_keeps_nobody_from_the_queue_that_moves() -> None:
    """Else an administrator who goes on where another one died hears nothing of a broker that is lost."""
    enabled = Enabled(NOW_MS, 1, 1)
    server = NameServer()
    source = Says("b1", 1, {0: [segment("b1", 0, 0)]}, enabled)
    target = {0: [open_segment("b2", 0)]}
    server.hears(source, Says("b2", 1, target, None))
    assert set(server.told() or ()) == {0}
    server.loses("b1")
    assert set(server.told() or ()) == {0}


def test_who_waits_for_a_move_to_be_finished_makes_the_topic_one_of_logical_queues() -> None:
    """A name server that begins empty may hear it first, and it may not have been told."""
    server = NameServer()
    server.hears(Says("b2", 1, {0: [open_segment("b2", 0)]}, None))
    answer = server.asked()
    assert answer.header.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "nobody registered where queue 0 begins" in (answer.header.remark or "")


def test_what_cannot_be_taken_of_a_topic_that_is_enabled_turns_nobody_to_the_plain_route() -> None:
    """A name server whose clock is a day behind takes no mapping: clients would take logical offsets for
    those of message queues."""
    names = NameServer()
    names.talk.now_ms = NOW_MS - 2 * MAPPING_EPOCH_AHEAD_MS
    names.hears(OLD, NEW)
    assert names.refusal() == "logical queues of T: what b1 registers of them was not taken"
    assert names.route(flag=RouteFlag.NONE).logical_queues_info is None
    names.talk.now_ms = NOW_MS
    names.hears(OLD, NEW)
    assert names.told() == CHAIN


def test_what_cannot_be_taken_counts_as_long_as_it_is_said() -> None:
    names = NameServer()
    names.talk.now_ms = NOW_MS - 2 * MAPPING_EPOCH_AHEAD_MS
    names.hears(OLD)
    assert names.refusal() is not None
    names.hears(Says("b1", 2))
    assert names.told() is None, "it says no more that the topic is one of logical queues"
    names.hears(replace(OLD, counter=3))
    names.loses("b1")
    names.hears(Says("b1", 1))
    assert names.told() is None


@pytest.mark.parametrize("room", [0, 1])
def test_a_topic_that_is_enabled_is_not_told_plain_for_want_of_room(room: int) -> None:
    names = NameServer(Limits(segments=room))
    names.hears(OLD, NEW)
    assert names.refusal() is not None


def test_a_topic_that_was_forgotten_for_want_of_room_is_not_told_plain() -> None:
    names = NameServer(Limits(segments=3))
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE))
    assert names.told() == {0: [("b1", 0, -1)]}
    other = {index: [segment("b3", index, 0)] for index in range(2)}
    names.hears(Says("b3", segments=other, queues=0), host="10.0.0.9")
    assert names.refusal() == "logical queues of T: what b1 registers of them was not taken"
