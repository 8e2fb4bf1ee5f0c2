"""Logical queues at a name server: as their brokers registered them, whole or not at all."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.nameserver.rocketmq import Limits
from replispec.runtime.rocketmq.queues import LOGICAL_QUEUES, LogicalQueue
from replispec.runtime.rocketmq.queues.telling import Enabled
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import MAPPING_EPOCH_AHEAD_MS
from replispec.wire.rocketmq.static_topic import DeleteTopicRouteRequest
from tests.queues.registering_queues import (
    NOW_MS,
    TOPIC,
    NameServer,
    Says,
    address,
    info,
    open_segment,
    segment,
)
from tests.runtime.queues.queues import grown

ONE = Enabled(NOW_MS, 1, 1)
TWO = Enabled(NOW_MS, 2, 2)
OLD = Says("b1", segments={0: [segment("b1", 0, 0, 101)]}, enabled=ONE)
NEW = Says("b2", segments={0: [segment("b2", 0, 101)]}, enabled=ONE)
CHAIN = {0: [("b1", 0, 101), ("b2", 101, -1)]}


def test_who_asks_for_logical_queues_is_told_them_and_nobody_else() -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    assert names.told() == CHAIN
    plain = names.route(flag=RouteFlag.NONE)
    assert plain.logical_queues_info is None
    assert [each.broker_name for each in plain.queue_datas or ()] == ["b1", "b2"]


def test_a_route_has_the_keys_of_the_release_that_had_them() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}))
    told = names.asked().body
    assert (
        b'"logicalQueuesInfo":{"0":[{"brokerAddr":"127.0.0.1:30910","firstMsgTimeMillis":-1,'
        b'"lastMsgTimeMillis":-1,"logicalQueueDelta":0,"logicalQueueIndex":0,'
        b'"messageQueue":{"brokerName":"b1","queueId":0,"topic":"T"},"offsetDelta":0,"offsetMax":-1,"state":"Normal"}]}'
    ) in told
    assert b"logicalQueuesInfo" not in names.asked(flag=RouteFlag.NONE).body


@pytest.mark.parametrize(
    ("indexes", "told"),
    [("[0]", [0]), ("[1, 0]", [0, 1]), ("[7]", []), ("[]", []), (None, [0, 1])],
)
def test_only_the_indexes_that_are_named_are_told(indexes: str | None, told: list[int]) -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)], 1: [segment("b1", 1, 0)]}, queues=2))
    assert sorted(names.told(indexes) or {}) == told


@pytest.mark.parametrize("indexes", ["", "0", "[a]", "[-1]", "[0", "[1024]", "[" + "0, " * 9_000 + "0]"])
def test_a_filter_that_is_none_is_refused(indexes: str) -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}))
    assert names.asked(indexes=indexes).header.code == ResponseCode.INVALID_PARAMETER
    assert names.asked(flag=RouteFlag.NONE, indexes=indexes).header.code == ResponseCode.SUCCESS


# ---- merging ---------------------------------------------------------------------------------------


def own(queue: LogicalQueue) -> list[Says]:
    """What each broker of a logical queue registers of it: its own segments, as of two versions."""
    brokers = sorted({each.queue.broker_name for each in queue.segments})
    found = []
    for broker in brokers:
        segments = [each for each in queue.segments if each.queue.broker_name == broker]
        found += [
            Says(broker, 1, {0: segments[:1]}, ONE, queues=0),
            Says(broker, 2, {0: segments}, ONE, queues=0),
        ]
    return found


@given(grown(LOGICAL_QUEUES), st.randoms(use_true_random=False))
def test_in_whatever_order_brokers_register_one_route_comes_of_it(
    queue: LogicalQueue, rng: random.Random
) -> None:
    said = own(queue)
    expected = [(each.queue.broker_name, each.logical_start, each.physical_end) for each in queue.segments]
    for _ in range(3):
        names = NameServer()
        names.hears(*rng.sample(said, len(said)), *rng.sample(said, len(said)))
        assert names.told() == {0: expected}


def test_all_orders_of_three_brokers_and_a_topic_that_is_enabled_last() -> None:
    said = [
        OLD,
        Says("b2", segments={0: [segment("b2", 0, 101, 100)]}, enabled=ONE),
        Says("b3", segments={0: [segment("b3", 0, 201)]}, enabled=ONE),
        Says("b3", 2, {0: [segment("b3", 0, 201)], 1: [segment("b3", 1, 0)]}, TWO, queues=2),
    ]
    expected = {0: [("b1", 0, 101), ("b2", 101, 100), ("b3", 201, -1)], 1: [("b3", 0, -1)]}
    for order in permutations(said):
        names = NameServer()
        names.hears(*order)
        assert names.told() == expected


def test_a_broker_speaks_for_its_own_segments_alone() -> None:
    names = NameServer()
    foreign = segment("b2", 3, 500)
    names.hears(NEW, Says("b1", segments={0: [segment("b1", 0, 0, 101), foreign]}, enabled=ONE))
    assert names.told() == CHAIN
    assert names.noted() == ["a mapping of queues was not taken"]


def test_what_a_broker_does_not_say_any_more_is_not_its_own_any_more() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)], 1: [segment("b1", 1, 0)]}, queues=2))
    assert sorted(names.told() or {}) == [0, 1]
    names.hears(Says("b1", 2, {0: [segment("b1", 0, 0)]}))
    assert sorted(names.told() or {}) == [0]
    names.hears(Says("b1", 3))
    assert names.told() is None


def test_a_registration_of_another_topic_leaves_this_one_alone() -> None:
    names = NameServer()
    names.hears(OLD, NEW, Says("b1", 2, topics=("Other",)))
    assert names.told() == CHAIN


def test_an_older_version_that_is_late_undoes_no_seal() -> None:
    names = NameServer()
    late = Says("b1", 1, {0: [segment("b1", 0, 0)]}, ONE)
    names.hears(Says("b1", 2, OLD.segments, ONE), late, NEW)
    assert names.told() == CHAIN


def test_a_broker_that_lost_its_count_is_believed_when_it_comes_anew() -> None:
    names = NameServer()
    names.hears(Says("b1", 9, {0: [segment("b1", 0, 0)]}, ONE))
    names.loses("b1")
    names.hears(Says("b1", 1, OLD.segments, ONE), NEW)
    assert names.told() == CHAIN


def test_segments_are_those_of_the_master_not_of_who_stands_in_for_it() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}), role=2)
    assert names.told() is None


# ---- whole or not at all ---------------------------------------------------------------------------


HOLE = Says("b2", segments={0: [segment("b2", 0, 150)]})
INCOMPLETE = {
    "no queue": Says("b1", segments={}),
    "an index is missing": Says("b1", segments={1: [segment("b1", 0, 0)]}),
    "it begins later": Says("b1", segments={0: [segment("b1", 0, 101)]}),
    "a physical queue is not mapped": Says("b1", segments={0: [segment("b1", 0, 0)]}, queues=2),
    "another one is mapped": Says("b1", segments={0: [segment("b1", 5, 0)]}),
}


@pytest.mark.parametrize("says", INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_is_not_whole_is_told_plain_before_it_is_enabled(says: Says) -> None:
    names = NameServer()
    names.hears(says)
    assert names.told() is None


@pytest.mark.parametrize("says", INCOMPLETE.values(), ids=INCOMPLETE)
def test_once_it_is_enabled_what_is_not_whole_is_refused_and_never_told_plain(says: Says) -> None:
    names = NameServer()
    names.hears(Says(says.broker, segments=says.segments, enabled=ONE, queues=says.queues))
    assert names.refusal() is not None
    assert names.route(flag=RouteFlag.NONE).queue_datas


def test_a_hole_between_segments_is_not_told() -> None:
    names = NameServer()
    names.hears(Says("b1", segments=OLD.segments), HOLE)
    assert names.told() is None


def test_two_brokers_that_hold_one_offset_are_not_told() -> None:
    names = NameServer()
    names.hears(OLD, Says("b2", segments={0: [segment("b2", 0, 100)]}, enabled=ONE))
    assert "offset 100 of queue 0" in (names.refusal() or "")


def test_a_broker_whose_queues_are_not_mapped_keeps_the_others_from_being_told() -> None:
    names = NameServer()
    names.hears(OLD, NEW, Says("b3"))
    assert "b3" in (names.refusal() or "")
    names.hears(Says("b3", 2, {0: []}, ONE, queues=0))
    assert names.told() == CHAIN


def test_between_the_seal_and_the_decision_producers_and_consumers_are_told() -> None:
    names = NameServer()
    names.hears(OLD, Says("b2", segments={0: [open_segment("b2", 0)]}, enabled=ONE))
    assert names.told() == {0: [("b1", 0, 101), ("b2", -1, -1)]}


def test_a_seal_that_is_heard_later_than_the_next_segment_is_no_fault() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE), NEW)
    assert names.told() == {0: [("b1", 0, -1), ("b2", 101, -1)]}


def test_enabled_once_it_is_never_plain_again_whatever_its_brokers_say() -> None:
    names = NameServer()
    names.hears(OLD, NEW, Says("b1", 2), Says("b2", 2))
    assert names.refusal() is not None
    names.hears(Says("b1", 3, OLD.segments), Says("b2", 3, NEW.segments))
    assert names.told() == CHAIN


def test_an_index_that_is_not_committed_yet_is_not_told() -> None:
    names = NameServer()
    more = {0: [segment("b1", 0, 0)], 1: [segment("b1", 1, 0)]}
    names.hears(Says("b1", 1, more, ONE, queues=2))
    assert sorted(names.told() or {}) == [0]
    names.hears(Says("b1", 2, more, Enabled(NOW_MS + 1, 2, 2), queues=2))
    assert sorted(names.told() or {}) == [0, 1]


def test_when_the_number_shrinks_the_last_queue_is_still_read() -> None:
    names = NameServer()
    shrunk = {0: [segment("b1", 0, 0)], 1: [segment("b1", 1, 0, 7)]}
    names.hears(Says("b1", 1, shrunk, TWO, queues=2))
    assert "queue 1 is written" in (names.refusal() or "")
    names.hears(Says("b1", 2, shrunk, Enabled(NOW_MS + 1, 1, 2), queues=2))
    assert names.told() == {0: [("b1", 0, -1)], 1: [("b1", 0, 7)]}


# ---- silent brokers --------------------------------------------------------------------------------


def test_what_a_silent_broker_holds_is_told_as_before_with_where_it_was() -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    names.loses("b1")
    route = names.route()
    assert names.told() == CHAIN
    assert [each.broker_name for each in route.broker_datas or ()] == ["b2"]
    segments = (route.logical_queues_info or {})[0].segments or []
    assert segments[0].broker_addr == address("b1")


def test_when_no_broker_is_heard_he_is_refused_and_told_nothing_else() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE))
    names.loses("b1")
    assert "no broker of it is heard" in (names.refusal() or "")
    assert names.asked(flag=RouteFlag.NONE).header.code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("heard", [(OLD,), (NEW,)], ids=["the successor is silent", "the first is silent"])
def test_a_name_server_that_started_empty_waits_for_who_is_silent(heard: tuple[Says, ...]) -> None:
    names = NameServer()
    names.hears(*heard)
    assert names.refusal() is not None
    names.hears(OLD, NEW)
    assert names.told() == CHAIN


def test_the_middle_broker_is_silent_and_nobody_skips_what_it_holds() -> None:
    names = NameServer()
    names.hears(OLD, Says("b3", segments={0: [segment("b3", 0, 201)]}, enabled=ONE))
    assert "offset 101 of queue 0" in (names.refusal() or "")


def test_what_is_deleted_is_missed_by_nobody_when_a_broker_says_so() -> None:
    names = NameServer()
    names.hears(NEW)
    assert names.refusal() is not None
    for number, (gone, is_told) in enumerate(
        [(((0, 100),), False), (((1, 101),), False), (((50, 101), (0, 60)), True), (((0, 101),), True)], 2
    ):
        names.hears(Says("b2", number, NEW.segments, ONE, {0: gone}))
        assert (names.refusal() is None) is is_told


def test_what_one_broker_says_is_gone_counts_for_all() -> None:
    names = NameServer()
    names.hears(NEW, Says("b3", segments={}, enabled=ONE, gone={0: ((0, 101),)}, queues=0))
    assert names.told() == {0: [("b2", 101, -1)]}


def test_what_a_lost_broker_has_is_not_told_once_another_one_says_that_it_is_gone() -> None:
    """Its queue was carried on elsewhere, at an offset that an administrator gave."""
    names = NameServer()
    source = Says("b1", segments={0: [segment("b1", 0, 0)]}, enabled=ONE)
    target = Says("b2", 2, {0: [segment("b2", 0, 500)]}, ONE, {0: ((0, 500),)})
    names.hears(source, target)
    assert names.told() == {0: [("b1", 0, -1), ("b2", 500, -1)]}
    names.loses("b1")
    assert names.told() == {0: [("b2", 500, -1)]}
    names.hears(source)
    assert names.told() == {0: [("b1", 0, -1), ("b2", 500, -1)]}


def test_expired_segments_stay_listed() -> None:
    names = NameServer()
    names.hears(Says("b1", segments={0: [segment("b1", 0, 0, 101, State.EXPIRED)]}, enabled=ONE), NEW)
    assert names.told() == CHAIN


# ---- forgetting ------------------------------------------------------------------------------------


def forget(names: NameServer, cluster: str | None = None) -> None:
    header = DeleteTopicRouteRequest(TOPIC, cluster)
    answer = names.talk.ask(names.talk.connect(), RequestCode.DELETE_TOPIC_IN_NAMESRV, header)
    assert answer.header.code == ResponseCode.SUCCESS


def test_a_topic_that_an_administrator_deletes_is_forgotten_with_its_mappings() -> None:
    names = NameServer()
    names.hears(OLD, NEW, Says("b3", static=info("b3", 5, {0: 0})))
    names.loses("b1")
    forget(names)
    assert names.asked().header.code == ResponseCode.TOPIC_NOT_EXIST
    names.hears(Says("b2", 2))
    route = names.route()
    assert (route.logical_queues_info, route.topic_queue_mapping_by_broker) == (None, None)
    assert [each.broker_name for each in route.queue_datas or ()] == ["b2"]
    forget(names, "")


def test_in_another_cluster_it_stays() -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    forget(names, "OtherCluster")
    assert names.told() == CHAIN
    forget(names, "DefaultCluster")
    assert names.asked().header.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_cluster_without_a_name_is_every_cluster() -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    forget(names, "")
    assert names.asked().header.code == ResponseCode.TOPIC_NOT_EXIST


# ---- what no broker of ours says -------------------------------------------------------------------


BAD = {
    "overlapping": Says("b1", 2, {0: [segment("b1", 0, 0, 9), segment("b1", 1, 5)]}),
    "a queue twice": Says("b1", 2, {0: [segment("b1", 0, 0)], 1: [segment("b1", 0, 0)]}),
    "a negative start": Says("b1", 2, {0: [segment("b1", 0, -2)]}),
    "no index": Says("b1", 2, {1_024: [segment("b1", 0, 0)]}),
    "two that are written": Says("b1", 2, {0: [segment("b1", 0, 0), segment("b1", 1, 5)]}),
    "another topic": Says("b1", 2, {0: [segment("b1", 0, 0)]}, said_as="Other"),
    "too many queues": Says("b1", 2, {each: [segment("b1", each, 0)] for each in range(1_025)}),
    "too many segments": Says("b1", 2, {0: [segment("b1", each, each, 1) for each in range(4_097)]}),
    "more are written than there are": Says("b1", 2, OLD.segments, Enabled(NOW_MS, 2, 1)),
    "queues without end": Says("b1", 2, OLD.segments, Enabled(NOW_MS, 1, 2**31 - 1)),
    "below zero": Says("b1", 2, OLD.segments, Enabled(-5, 1, 1)),
    "an epoch far ahead": Says("b1", 2, OLD.segments, Enabled(2**63 - 1, 1, 1)),
    "an interval from its end": Says("b1", 2, OLD.segments, ONE, {0: ((5, 5),)}),
    "gone of no queue": Says("b1", 2, OLD.segments, ONE, {1: ((0, 5),)}),
}


@pytest.mark.parametrize("says", BAD.values(), ids=BAD)
def test_a_mapping_that_cannot_be_changes_nothing_and_leaves_one_line(says: Says) -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    before = names.asked().body
    names.hears(says, says)
    assert names.asked().body == before
    assert names.noted() == ["a mapping of queues was not taken"]


@pytest.mark.parametrize(
    "mapping",
    [
        b"[]",
        b"7",
        b'{"T":[]}',
        b'{"T":{"x":[]}}',
        b'{"T":{"0":{}}}',
        b'{"T":{"0":[7]}}',
        b'{"T":{"0":' + b"[" * 5_000,
    ],
)
def test_a_body_that_is_no_mapping_refuses_the_registration(mapping: bytes) -> None:
    names = NameServer()
    names.hears(OLD, NEW)
    before = names.asked().body
    body = b'{"filterServerList":[],"topicConfigSerializeWrapper":{"logicalQueuesInfoMap":' + mapping + b"}}"
    assert names.hears_body("b1", body) != ResponseCode.SUCCESS
    assert names.asked().body == before


def test_segments_are_bounded_and_who_has_most_gives_way() -> None:
    names = NameServer(Limits(segments=40))
    flood = {index: [segment("b3", index, 0)] for index in range(30)}
    names.hears(OLD, NEW)
    names.hears(Says("b3", segments=flood, queues=0), host="127.0.0.3")
    names.talk.noted()
    names.hears(
        Says(
            "b2",
            2,
            {index: [segment("b2", index, 101 if not index else 0)] for index in range(30)},
            ONE,
            queues=30,
        )
    )
    assert names.noted() == []
    assert names.told() == CHAIN
    names.hears(Says("b2", 3, {index: [segment("b2", index, 0)] for index in range(50)}, ONE, queues=50))
    assert names.noted() == ["a mapping of queues was not taken"]
    assert "a queue of b2 is not mapped" in (names.refusal() or "")


def test_a_topic_of_both_kinds_is_told_as_the_static_one() -> None:
    names = NameServer()
    names.hears(OLD, NEW, Says("b2", 2, NEW.segments, ONE, static=info("b2", 5, {0: 0})))
    assert "static" in (names.refusal() or "")
    assert names.route(flag=RouteFlag.NONE).topic_queue_mapping_by_broker is not None


# ---- static topics ---------------------------------------------------------------------------------


def led(names: NameServer) -> dict[str, tuple[int, dict[int, int]]]:
    """The epoch and the queues that each broker leads, as clients are told."""
    found = names.route(flag=RouteFlag.NONE).topic_queue_mapping_by_broker or {}
    return {broker: (each.epoch or 0, dict(each.curr_id_map or {})) for broker, each in found.items()}


def test_what_each_broker_leads_of_a_static_topic_is_told_to_everybody() -> None:
    names = NameServer()
    names.hears(
        Says("b1", static=info("b1", 5, {0: 0, 2: 1})),
        Says("b2", static=info("b2", 5, {1: 0, 3: 1})),
        Says("b3", static=info("b3", 5, {})),
    )
    expected = {"b1": (5, {0: 0, 2: 1}), "b2": (5, {1: 0, 3: 1}), "b3": (5, {})}
    assert led(names) == expected
    assert names.route().topic_queue_mapping_by_broker == names.route(flag=0).topic_queue_mapping_by_broker
    names.loses("b1")
    assert led(names) == expected
    assert b'"currIdMap":{"0":0,"2":1}' in names.asked(flag=RouteFlag.NONE).body


def test_the_newest_epoch_of_a_broker_counts_also_under_an_equal_version() -> None:
    said = [Says("b1", static=info("b1", epoch, {0: epoch})) for epoch in (5, 6, 7)]
    for order in permutations(said):
        names = NameServer()
        names.hears(*order)
        assert led(names) == {"b1": (7, {0: 7})}


@given(st.permutations([(epoch, counter) for epoch in (5, 6) for counter in (1, 2)]))
def test_of_one_epoch_the_newest_version_counts(order: list[tuple[int, int]]) -> None:
    names = NameServer()
    for epoch, counter in order:
        names.hears(Says("b1", counter, static=info("b1", epoch, {0: 10 * epoch + counter})))
    assert led(names)["b1"][0] == 6


STATIC = {
    "of another broker": info("b2", 6, {0: 0}),
    "queues without end": info("b1", 6, {0: 0}, 2**31 - 1),
    "more than there are": info("b1", 6, {4: 0}),
    "below zero": info("b1", 6, {-1: 0}),
    "a negative queue": info("b1", 6, {0: -1}),
    "a queue twice": info("b1", 6, {0: 0, 1: 0}),
    "an epoch far ahead": info("b1", NOW_MS + MAPPING_EPOCH_AHEAD_MS + 1, {0: 0}),
    "no epoch": info("b1", -2, {0: 0}),
}


@pytest.mark.parametrize("static", STATIC.values(), ids=STATIC)
def test_a_static_mapping_that_cannot_be_changes_nothing_and_leaves_one_line(static: object) -> None:
    names = NameServer()
    names.hears(Says("b1", static=info("b1", 5, {0: 3})))
    names.hears(Says("b1", 2, static=static), Says("b1", 2, static=static))  # type: ignore[arg-type]
    assert led(names) == {"b1": (5, {0: 3})}
    assert names.noted() == ["a mapping of queues was not taken"]
