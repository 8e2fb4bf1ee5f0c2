"""What must hold of any logical queue, in both profiles."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    STATIC_TOPICS,
    Enabled,
    HeardQueues,
    Holding,
    LogicalQueue,
    PhysicalQueue,
    Profile,
    Segment,
    fault_of,
    fault_of_topic,
    lack_of,
    merged,
    with_holding,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import LOGIC_OFFSET_BLOCK, UNDECIDED
from tests.runtime.queues.queues import BROKERS, first, grown, migrated

profiles = pytest.mark.parametrize("profile", [LOGICAL_QUEUES, STATIC_TOPICS], ids=lambda each: each.name)


@profiles
@given(data=st.data())
def test_a_logical_offset_leads_to_one_message_and_back(profile: Profile, data: st.DataObject) -> None:
    queue = data.draw(grown(profile))
    for segment in queue.segments:
        end = segment.physical_end if segment.is_sealed else segment.physical_start + 10
        for physical in {segment.physical_start, end - 1} if end > segment.physical_start else set():
            logical = segment.logical_of(physical)
            assert queue.locate(logical) == segment
            assert segment.physical_of(logical) == physical == logical - segment.offset_delta


@given(queue=grown(LOGICAL_QUEUES))
def test_sealing_keeps_a_logical_queue_contiguous(queue: LogicalQueue) -> None:
    assert fault_of(queue, LOGICAL_QUEUES) is None
    assert lack_of(HeardQueues({0: queue}, Enabled(0, 1, 1)), {}) is None
    assert all(one.logical_end == two.logical_start for one, two in pairwise(queue.segments))
    assert queue.writable == queue.segments[-1]


@given(queue=grown(STATIC_TOPICS))
def test_a_static_queue_leaves_room_for_what_was_on_its_way(queue: LogicalQueue) -> None:
    assert fault_of(queue, STATIC_TOPICS) is None
    for one, two in pairwise(queue.segments):
        assert two.logical_start % LOGIC_OFFSET_BLOCK == 0
        assert LOGIC_OFFSET_BLOCK // 2 < two.logical_start - one.logical_end <= LOGIC_OFFSET_BLOCK * 3 // 2


@profiles
@given(data=st.data())
def test_every_segment_is_found_again_after_the_one_before(profile: Profile, data: st.DataObject) -> None:
    queue = data.draw(grown(profile))
    for one, two in pairwise(queue.segments):
        assert queue.next_of(one) == two
        assert queue.border_of(one) == two.logical_start
    assert queue.next_of(queue.segments[-1]) is None
    assert queue.border_of(queue.segments[-1]) == UNDECIDED


def test_what_repeats_a_seal_or_a_start_changes_nothing() -> None:
    queue = migrated(first("b1", 0, 0), LOGICAL_QUEUES, "b2", 0, 101)
    source, target = queue.segments
    assert queue.sealed(source.key, 999, 999) == queue
    assert queue.decided(target.key, 999) == queue


def test_a_queue_with_one_message_is_read_on_and_one_without_is_not() -> None:
    queue = first("b1", 0, 0, 5)
    key = queue.segments[0].key
    assert queue.sealed(key, 6, 0).segments[0].state == State.READ_ONLY
    assert queue.sealed(key, 5, 0).segments[0].state == State.EXPIRED
    assert queue.sealed(key, 9, 9).segments[0].state == State.EXPIRED


def test_what_is_read_and_written_while_a_target_is_undecided() -> None:
    queue = first("b1", 0, 0).continued(Segment(PhysicalQueue("b2", 0), State.WRITE_ONLY))
    source, target = queue.segments
    assert queue.writable == target
    assert (queue.first_readable, queue.last_readable) == (source, source)
    assert queue.locate(10**9) == source
    assert queue.border_of(source) == UNDECIDED
    assert target.logical_of(7) == UNDECIDED


def test_nothing_lies_before_the_first_segment() -> None:
    queue = migrated(first("b1", 0, 0), LOGICAL_QUEUES, "b2", 0, 101)
    queue = queue.expired(PhysicalQueue("b1", 0), 101).without(PhysicalQueue("b1", 0))
    assert queue.locate(100) is None
    assert queue.first_readable == queue.segments[0]
    assert LogicalQueue(0).first_readable is None
    assert LogicalQueue(0).writable is None


# ---- merging -------------------------------------------------------------------------------------


def _own(queue: LogicalQueue) -> list[Holding]:
    """What each broker says of it: its own segments."""
    return [
        Holding(broker, {0: tuple(each for each in queue.segments if each.queue.broker_name == broker)})
        for broker in BROKERS
    ]


@given(queue=grown(LOGICAL_QUEUES))
def test_a_name_server_finds_a_queue_in_its_parts_in_any_order_and_however_often(queue: LogicalQueue) -> None:
    found = set()
    for order in permutations(_own(queue)):
        known: dict[str, Holding] = {}
        for said in (*order, *order):
            known = dict(with_holding(known, said))
        found.add(merged(known, LOGICAL_QUEUES)[0])
    assert found == {queue}


@given(data=st.data())
def test_a_queue_that_moved_before_anybody_sent_overlaps_nowhere_when_its_messages_are_gone(
    data: st.DataObject,
) -> None:
    """Of segments that begin alike those without a message come first, whatever is expired."""
    queue = first("b1", 0, 0)
    for number in range(1, data.draw(st.integers(1, 5)) + 1):
        source = queue.writable
        assert source is not None
        end = source.physical_start + data.draw(st.integers(0, 2))
        queue = migrated(queue, LOGICAL_QUEUES, data.draw(st.sampled_from(BROKERS)), number, end)
    for each in data.draw(st.sets(st.sampled_from(queue.segments))):
        if each.is_sealed:
            queue = queue.expired(each.queue, each.physical_end)
    known = {said.broker_name: said for said in _own(queue)}
    found = merged(known, LOGICAL_QUEUES)[0]
    assert fault_of_topic([found], LOGICAL_QUEUES) is None
    assert lack_of(HeardQueues({0: found}, Enabled(1, 1, 1)), {}) is None


def test_a_broker_replaces_what_it_said_and_speaks_for_no_other() -> None:
    queue = migrated(first("b1", 0, 0), LOGICAL_QUEUES, "b2", 0, 101)
    known: dict[str, Holding] = {}
    for said in _own(queue):
        known = dict(with_holding(known, said))
    less = merged(with_holding(known, Holding("b1")), LOGICAL_QUEUES)
    assert less[0].segments == queue.segments[1:]


@given(st.lists(st.tuples(st.sampled_from(BROKERS), st.integers(0, 3)), min_size=1, unique=True))
def test_the_greatest_epoch_leads_a_static_queue_in_whatever_order(
    said: list[tuple[str, int]],
) -> None:
    holdings = [
        Holding(broker, {0: (Segment(PhysicalQueue(broker, epoch), State.WRITE_ONLY),)}, epoch, 1)
        for broker, epoch in said
    ]
    found = set()
    for order in (holdings, holdings[::-1], sorted(holdings, key=lambda each: each.broker_name)):
        known: dict[str, Holding] = {}
        for each in (*order, *order):
            known = dict(with_holding(known, each))
        found.add(merged(known, STATIC_TOPICS)[0].segments[-1].queue)
    epoch, broker = max((epoch, broker) for broker, epoch in said)
    assert found == {PhysicalQueue(broker, epoch)}


def test_a_hole_is_seen_while_a_broker_is_silent() -> None:
    queue = migrated(first("b1", 0, 0), LOGICAL_QUEUES, "b2", 0, 101)
    queue = migrated(queue, LOGICAL_QUEUES, "b3", 0, 100)
    known = {each.broker_name: each for each in _own(queue) if each.broker_name != "b2"}
    assert (
        lack_of(HeardQueues(merged(known, LOGICAL_QUEUES)), {}) == "nobody registered offset 101 of queue 0"
    )
    assert lack_of(HeardQueues({}), {}) == "no queue is mapped"
    assert lack_of(HeardQueues({1: first("b1", 0, 1)}), {}) == "nobody registered queue 0"


def test_a_queue_that_is_handed_on_without_an_end_is_found_on_both_sides() -> None:
    """An administrator of a static topic moves a queue before anybody knows where it ends."""
    old = Segment(PhysicalQueue("a", 0), State.NORMAL, 0)
    new = Segment(PhysicalQueue("b", 3), State.WRITE_ONLY)
    moved = LogicalQueue(2, (old,)).handed_on(new)
    assert fault_of(moved, STATIC_TOPICS) is None
    assert moved.writable == new
    assert moved.last_readable is not None
    assert moved.last_readable.queue == old.queue
    decided = moved.decided(new.key, STATIC_TOPICS.start_after(237))
    assert fault_of(decided, STATIC_TOPICS) is None
    assert [each.queue.broker_name for each in map(decided.locate, (236, 10_000)) if each] == ["a", "b"]
    again = decided.handed_on(Segment(PhysicalQueue("a", 1), State.WRITE_ONLY))
    assert [each.state for each in again.segments] == [State.READ_ONLY, State.READ_ONLY, State.WRITE_ONLY]
