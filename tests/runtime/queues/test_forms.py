"""Both JSON forms become the model and come back; what a peer makes up is refused, with bounded work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues import LOGICAL_QUEUES, STATIC_TOPICS, LogicalQueue, fault_of
from replispec.runtime.rocketmq.queues.forms import (
    holding_of,
    items_of,
    message_of_queues,
    queues_of,
    queues_of_items,
)
from replispec.wire.rocketmq.constants import LOGICAL_QUEUES_MAX, MAPPING_SEGMENTS_MAX, OFFSET_MAX
from replispec.wire.rocketmq.logical_queue import LogicalQueues, LogicalQueueSegment, LogicalQueueSegments
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)
from tests.runtime.queues.queues import grown


def _detail(items: dict[int, LogicQueueItems], **others: Any) -> TopicQueueMappingDetail:
    said: dict[str, Any] = {"topic": "T", "scope": "__global__", "bname": "b1", "epoch": 7, "total_queues": 4}
    return TopicQueueMappingDetail(hosted_queues=items, **(said | others))


@given(queue=grown(LOGICAL_QUEUES))
def test_a_logical_queue_comes_back_as_it_was_said(queue: LogicalQueue) -> None:
    said = LogicalQueues.decode(message_of_queues([queue], "T").encode())
    assert queues_of(said.queues or {}, "T") == {0: queue}


@given(queue=grown(LOGICAL_QUEUES), random=st.randoms(use_true_random=False))
def test_segments_may_be_said_in_any_order(queue: LogicalQueue, random: Any) -> None:
    said = message_of_queues([queue], "T").queues or {}
    listed = list(said[0].segments or ())
    random.shuffle(listed)
    assert queues_of({0: LogicalQueueSegments(listed)}, "T") == {0: queue}


@given(queue=grown(STATIC_TOPICS))
def test_a_static_queue_comes_back_as_it_was_said(queue: LogicalQueue) -> None:
    said = TopicQueueMappingDetail.decode(_detail({0: items_of(queue)}).encode())
    assert queues_of_items(said, "T") == {0: queue}


# ---- what is made up -----------------------------------------------------------------------------


def _segment(**others: Any) -> LogicalQueueSegment:
    said: dict[str, Any] = {
        "logical_queue_delta": 0,
        "logical_queue_index": 0,
        "message_queue": MessageQueue("b1", 0, "T"),
        "offset_delta": 0,
        "offset_max": 10,
        "state": "ReadOnly",
    }
    return LogicalQueueSegment(**(said | others))


TAIL = {"message_queue": MessageQueue("b2", 0, "T"), "offset_max": -1, "state": "Normal"}
SEGMENTS = {
    "it overlaps": [_segment(), _segment(**TAIL, logical_queue_delta=9)],
    "it begins below 0": [_segment(logical_queue_delta=-2)],
    "its queue begins below 0": [_segment(offset_delta=-1)],
    "it ends before it begins": [_segment(offset_delta=11)],
    "it ends beyond all offsets": [_segment(logical_queue_delta=OFFSET_MAX)],
    "a queue below 0": [_segment(message_queue=MessageQueue("b1", -1, "T"))],
    "no broker": [_segment(message_queue=MessageQueue("", 0, "T"))],
    "no queue": [_segment(message_queue=None)],
    "another topic": [_segment(message_queue=MessageQueue("b1", 0, "U"))],
    "another index": [_segment(logical_queue_index=1)],
    "no state": [_segment(state="Sealed")],
    "read only without an end": [_segment(offset_max=-1)],
    "two that are written": [
        _segment(**TAIL),
        _segment(**TAIL | {"message_queue": MessageQueue("b3", 0, "T")}),
    ],
    "a queue that serves twice": [
        _segment(),
        _segment(**TAIL | {"message_queue": MessageQueue("b1", 0, "T")}, logical_queue_delta=10),
    ],
    "written before the last": [_segment(**TAIL), _segment(logical_queue_delta=5)],
    "undecided and read": [_segment(logical_queue_delta=-1)],
}


@pytest.mark.parametrize("segments", SEGMENTS.values(), ids=SEGMENTS)
def test_logical_queues_that_cannot_be_are_refused(segments: list[LogicalQueueSegment]) -> None:
    with pytest.raises(RemoteProtocolError):
        queues_of({0: LogicalQueueSegments(segments)}, "T")


def test_a_logical_queue_that_can_be_is_taken() -> None:
    said = [_segment(), _segment(**TAIL, logical_queue_delta=10)]
    assert fault_of(queues_of({0: LogicalQueueSegments(said)}, "T")[0], LOGICAL_QUEUES) is None


def _item(**others: Any) -> LogicQueueMappingItem:
    said: dict[str, Any] = {"bname": "b1", "gen": 0, "queue_id": 0, "logic_offset": 0, "start_offset": 0}
    return LogicQueueMappingItem(**(said | {"end_offset": -1} | others))


NEXT = _item(bname="b2", gen=1, logic_offset=10000)
ITEMS = {
    "not sorted": [replace(NEXT, gen=0), _item(gen=1)],
    "generations out of order": [_item(), replace(NEXT, gen=2)],
    "a generation below 0": [_item(gen=-1)],
    "an undecided item that is not the last": [_item(logic_offset=-1), NEXT],
    "two that begin alike": [_item(), replace(NEXT, logic_offset=0)],
    "a start below 0": [_item(logic_offset=-2)],
    "a queue below 0": [_item(queue_id=-1)],
    "a physical start": [_item(start_offset=1)],
    "it overlaps": [_item(end_offset=10001), NEXT],
    "a queue that serves twice": [_item(), replace(NEXT, bname="b1")],
    "no broker": [_item(bname=None)],
}


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_items_that_cannot_be_are_refused(items: list[LogicQueueMappingItem]) -> None:
    with pytest.raises(RemoteProtocolError):
        queues_of_items(_detail({0: LogicQueueItems(items)}), "T")


def test_items_that_can_be_are_taken() -> None:
    found = queues_of_items(_detail({0: LogicQueueItems([_item(), NEXT]), 1: LogicQueueItems([])}), "T")
    assert [each.index for each in found.values()] == [0]


def test_a_physical_queue_serves_one_index_alone() -> None:
    both = {0: LogicQueueItems([_item()]), 1: LogicQueueItems([_item()])}
    with pytest.raises(RemoteProtocolError, match="serves twice"):
        queues_of_items(_detail(both), "T")


@pytest.mark.parametrize(
    "others",
    [
        {"topic": "U"},
        {"scope": "mine"},
        {"bname": ""},
        {"total_queues": 2**31 - 1},
        {"total_queues": -1},
        {"epoch": -2},
    ],
    ids=str,
)
def test_a_mapping_of_something_else_is_refused(others: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError):
        queues_of_items(_detail({}, **others), "T")


class Counted(list[Any]):
    """A list that nobody may walk through."""

    def __iter__(self) -> Any:
        raise AssertionError("looked at")


def test_millions_of_segments_are_counted_and_not_looked_at() -> None:
    many = Counted([None] * (MAPPING_SEGMENTS_MAX + 1))
    with pytest.raises(RemoteProtocolError, match="segments"):
        queues_of({0: LogicalQueueSegments(many)}, "T")
    with pytest.raises(RemoteProtocolError, match="segments"):
        queues_of_items(_detail({0: LogicQueueItems(many)}), "T")


def test_more_queues_than_a_topic_may_have_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="logical queues"):
        queues_of({index: LogicalQueueSegments([]) for index in range(LOGICAL_QUEUES_MAX + 1)}, "T")
    with pytest.raises(RemoteProtocolError, match="no index"):
        queues_of({-1: LogicalQueueSegments([])}, "T")


def _info(led: dict[int, int], total: int) -> TopicQueueMappingInfo:
    return TopicQueueMappingInfo("b1", led, False, 7, "__global__", "T", total)


def test_a_broker_says_what_it_leads() -> None:
    held = holding_of(_info({0: 3, 2: 1}, 4), "T")
    assert {index: each[0].queue for index, each in held.segments.items()} == {0: ("b1", 3), 2: ("b1", 1)}
    assert (held.broker_name, held.epoch, held.total) == ("b1", 7, 4)


@pytest.mark.parametrize(
    ("led", "total"), [({4: 0}, 4), ({-1: 0}, 4), ({0: 0, 1: 0}, 4), ({0: -1}, 4), ({0: 0}, 0)]
)
def test_a_broker_leads_no_more_than_there_is(led: dict[int, int], total: int) -> None:
    with pytest.raises(RemoteProtocolError):
        holding_of(_info(led, total), "T")
