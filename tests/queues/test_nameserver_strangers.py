"""What strangers say to a name server of topics of logical queues, what comes late, and what is too much."""

from __future__ import annotations

from itertools import permutations

import pytest

from replispec.runtime.rocketmq.queues.telling import Enabled
from replispec.runtime.rocketmq.remoting.answering import BODY_OBJECTS_MAX
from replispec.wire.rocketmq.broker import RegisterBrokerBody
from replispec.wire.rocketmq.codes import ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import MAPPING_EPOCH_AHEAD_MS
from tests.queues.registering_queues import NOW_MS, NameServer, Says, info, segment
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
