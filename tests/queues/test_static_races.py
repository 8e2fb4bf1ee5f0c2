"""What a static topic is while nobody knows what is kept of it, and while two administrators move it."""

from __future__ import annotations

import pytest

from replispec.administrator.rocketmq.mappings import Topic, overtaken, part_of
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.administrator.rocketmq.remapping import checked, finished, is_unfinished
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetTopicConfigRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet
from tests.queues.test_static_topics import Place, detail, put, told

ALL = ("broker-a", "broker-b", "broker-c")
UNTOLD = -1


def said(name: str, epoch: int, *places: Place, queues: int = 8) -> TopicConfigAndQueueMapping:
    """What a broker says of a topic with one logical queue."""
    mapping = detail(epoch, [*places], total=1, bname=name)
    return TopicConfigAndQueueMapping(
        topic_name="S", read_queue_nums=queues, write_queue_nums=queues, perm=6, mapping_detail=mapping
    )


def topic(*parts: TopicConfigAndQueueMapping) -> Topic:
    """A topic as brokers tell it."""
    by_name = {(each.mapping_detail and each.mapping_detail.bname) or "": each for each in parts}
    return Topic("S", {name: part_of(name, "S", each) for name, each in by_name.items()})


def places(known: Topic, name: str) -> list[Place]:
    """What a broker is told of the logical queue."""
    chain = known.parts[name].chains.get(0)
    segments = () if chain is None else chain.queue.segments
    return [(*each.queue, each.logical_start) for each in segments]


FIRST: Place = ("broker-a", 0, 0)
B: Place = ("broker-b", 1, UNTOLD)
C: Place = ("broker-c", 2, UNTOLD)


def test_of_two_that_were_to_lead_the_one_counts_that_the_leader_was_told_of() -> None:
    known = topic(said("broker-a", 5, FIRST, B), said("broker-b", 5, FIRST, B), said("broker-c", 6, FIRST, C))
    assert is_unfinished(known, ALL)
    run = finished(known, ALL, 7)
    assert (run.gains, run.loses) == (["broker-b"], ["broker-a"])
    assert places(run.topic, "broker-a") == places(run.topic, "broker-b") == [FIRST, B]
    # It would refuse this: its own item comes later.
    assert places(run.topic, "broker-c") == []


def test_who_was_overtaken_leads_next_so_that_nothing_that_it_took_is_lost() -> None:
    decided: Place = ("broker-b", 1, 10_000)
    known = topic(
        said("broker-a", 7, FIRST, B), said("broker-b", 7, FIRST, decided), said("broker-c", 7, FIRST, C)
    )
    assert {index: [each.queue for each in found] for index, found in overtaken(known).items()} == {
        0: [("broker-c", 2)]
    }
    assert is_unfinished(known, ALL)
    run = finished(known, ALL, 8)
    assert (run.gains, run.loses) == (["broker-c"], ["broker-b"])
    assert places(run.topic, "broker-c") == places(run.topic, "broker-b") == [FIRST, decided, C]


def test_two_that_both_decided_a_start_are_refused() -> None:
    known = topic(
        said("broker-a", 5, FIRST),
        said("broker-b", 5, FIRST, ("broker-b", 1, 10_000)),
        said("broker-c", 6, FIRST, ("broker-c", 2, 10_000)),
    )
    with pytest.raises(NotAsWantedError, match="another broker or queue than others do"):
        checked(known)


def test_a_broker_has_all_queues_that_items_name_whoever_did_not_know_of_them() -> None:
    known = topic(said("broker-a", 5, FIRST, queues=1), said("broker-b", 6, FIRST, B, queues=1))
    assert finished(known, ("broker-a", "broker-b"), 7).topic.parts["broker-b"].writes == 2
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, detail(5, [("broker-a", 3, 0)]), queues=4)[0] == OK
    assert put(brokers, address, detail(6, [], total=1), queues=1)[0] == OK
    found = told(brokers, address)
    assert found is not None
    assert (found.read_queue_nums, found.write_queue_nums) == (4, 4)


def test_a_topic_whose_mapping_may_not_be_kept_is_plain_to_nobody() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    assert put(brokers, first, detail(5, [FIRST], [("broker-a", 1, 0)]))[0] == OK
    brokers.world.kill("controller")
    brokers.world.kill("broker2")
    brokers.world.kill("broker1")
    brokers.world.kill("nameserver")
    brokers.start("nameserver", "controller", "broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    assert brokers.broker(1)._mappings.static.kept("S") is None
    asked = brokers.ask(first, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest("S", True)).header
    assert asked.code == ResponseCode.SERVICE_NOT_AVAILABLE
    commit = UpdateConsumerOffsetRequest(
        consumer_group="G", topic="S", queue_id=1, commit_offset=3, bname="__syslo__global__"
    )
    answer = brokers.ask(first, RequestCode.UPDATE_CONSUMER_OFFSET, commit).header
    assert answer.code == ResponseCode.NOT_LEADER_FOR_QUEUE
    route = brokers.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic="S"))
    assert route.header.code == ResponseCode.TOPIC_NOT_EXIST
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(1)._mappings.static.kept("S") is not None)
    brokers.world.run_for(2_000)
    route = brokers.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic="S"))
    assert TopicRouteData.decode(route.body).topic_queue_mapping_by_broker
    end = brokers.ask(first, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest("S", 1)).header
    assert end.code == OK


def test_a_replica_keeps_no_position_that_its_masters_table_would_undo() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    commit = UpdateConsumerOffsetRequest(consumer_group="G", topic="T", queue_id=0, commit_offset=3)
    answers = [brokers.ask(at, RequestCode.UPDATE_CONSUMER_OFFSET, commit).header for at in (first, second)]
    assert [each.code for each in answers] == [OK, ResponseCode.SERVICE_NOT_AVAILABLE]


def test_an_item_without_messages_ends_where_the_next_one_begins() -> None:
    first = Segment(PhysicalQueue("broker-a", 0), State.READ_ONLY, 0)
    second = Segment(PhysicalQueue("broker-b", 0), State.NORMAL, 10_000)
    queue = LogicalQueue(0, (first, second))
    view = LogicalView("S", 0, first, first, second, 10_000, "broker-a", second, queue=queue)
    # A log that was copied from its middle on counts a queue that it does not know from there.
    assert view.begin_of(first, lambda _: (163_840, 163_840)) == 10_000
    assert view.begin_of(first, lambda _: (7, 7)) == 7
