"""Logical queues at a broker: segments are records of the log, as safe as messages, moved step by step."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import MAPPING_COPY_MS
from replispec.wire.rocketmq.logical_queue import GoneOffsets
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSet, elsewhere, own, short, shorts

FAILED = ResponseCode.SYSTEM_ERROR


def test_a_queue_that_is_mapped_is_told_and_mapping_it_again_changes_nothing() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    assert brokers.told(address) == {}
    brokers.mapped(address)
    assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)], 1: [(1, "Normal", 0, 0, -1)]}
    assert brokers.told(address)[0][0].broker_addr == address
    assert brokers.map(address, 0, 0) == (OK, "")


def test_an_index_and_a_queue_are_mapped_once() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.made(address, queues=3)
    assert brokers.map(address, 0, 0)[0] == OK
    assert brokers.map(address, 0, 1) == (FAILED, "the queue belongs to logical queue 0")
    assert brokers.map(address, 1, 0) == (FAILED, "duplicate logicalQueueOffset found")
    assert brokers.map(address, 7, 1) == (FAILED, "found no queue")
    assert brokers.map(address, 0, 0, topic="Other") == (FAILED, "topic not exist")
    # An index that is there somewhere does not begin a second time.
    assert brokers.commit(address, 5, 3)[0] == OK
    assert brokers.map(address, 1, 2) == (FAILED, "duplicate logicalQueueOffset found")
    assert brokers.map(address, 1, 3)[0] == OK


def test_a_seal_is_the_end_of_the_segment_and_repeating_it_tells_the_same() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    for _ in range(3):
        brokers.send(address, b"m", topic="L")
    code, sealed = brokers.seal(address, 0, 0)
    assert code == (OK, "")
    assert short(sealed) == (0, "ReadOnly", 0, 0, 3)
    assert sealed is not None
    assert 0 < (sealed.first_msg_time_millis or 0) < (sealed.last_msg_time_millis or 0)
    assert brokers.seal(address, 0, 0) == (code, sealed)
    assert brokers.send(address, b"m", topic="L")[0] == ResponseCode.NO_PERMISSION
    # PREVIEW: without a queue it says that there was nothing to do.
    assert brokers.seal(address, 0, 1)[0] == (FAILED, "queue route data not found")


def test_a_queue_with_exactly_one_message_is_sealed_to_be_read() -> None:
    """PREVIEW compares its first offset with its last, and takes it for empty."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    brokers.send(address, b"m", topic="L")
    assert short(brokers.seal(address, 0, 0)[1]) == (0, "ReadOnly", 0, 0, 1)
    # An empty one has nothing to be read.
    assert short(brokers.seal(address, 1, 1)[1]) == (1, "Expired", 0, 0, 0)


def test_preparing_decides_start_and_successor_at_once_and_the_first_target_wins() -> None:
    """PREVIEW refuses whoever repeats it with "not normal state", and remembers no target."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    for _ in range(3):
        brokers.send(address, b"m", topic="L")
    code, first = brokers.prepare(address, own(), elsewhere())
    assert code == (OK, "")
    assert first is not None
    assert short(first.from_queue_route_data) == (0, "ReadOnly", 0, 0, 3)
    assert short(first.to_queue_route_data) == (0, "WriteOnly", 3, 0, -1)
    assert brokers.prepare(address, own(), elsewhere()) == (code, first)
    # Another administrator names another target, and is told the first.
    assert brokers.prepare(address, own(), elsewhere("broker-c", 4)) == (code, first)
    # What the queue was before is not this segment.
    assert brokers.prepare(address, own(offset_delta=9), elsewhere())[0][0] == FAILED


def test_a_segment_that_was_sealed_alone_takes_a_successor() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    brokers.send(address, b"m", topic="L")
    brokers.seal(address, 0, 0)
    _, found = brokers.prepare(address, own(), elsewhere())
    assert found is not None
    assert short(found.to_queue_route_data) == (0, "WriteOnly", 1, 0, -1)


def test_a_target_is_written_before_it_knows_where_it_begins_and_is_told_once() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    source = elsewhere(state="ReadOnly", logical_queue_delta=0, offset_max=7)
    code, target = brokers.create(address, 0)
    assert code == (OK, "")
    assert short(target) == (0, "WriteOnly", -1, 0, -1)
    assert target is not None
    # Whoever repeats it gets the same, and no second queue.
    assert brokers.create(address, 0) == (code, target)
    assert brokers.send(address, b"m", topic="L")[0] == OK
    decided = elsewhere("broker-a", logical_queue_delta=7)
    assert brokers.start_at(address, source, target)[0] == (FAILED, "the queue does not know where it begins")
    code, found = brokers.start_at(address, source, decided)
    assert code == (OK, "")
    assert found is not None
    assert short(found.to_queue_route_data) == (0, "Normal", 7, 0, -1)
    assert found.from_queue_route_data == source
    assert brokers.start_at(address, source, decided) == (code, found)
    other = elsewhere("broker-a", logical_queue_delta=9)
    assert brokers.start_at(address, source, other)[0] == (FAILED, "the queue begins at 7")


def test_a_start_below_an_end_that_is_known_is_refused() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.create(address, 0)
    source = elsewhere(state="ReadOnly", logical_queue_delta=0, offset_max=7)
    early = elsewhere("broker-a", logical_queue_delta=6)
    assert brokers.start_at(address, source, early)[0] == (FAILED, "the logical queue ends at 7")


def test_of_a_source_that_is_lost_the_target_says_what_is_gone() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.create(address, 0)
    lost = elsewhere(state="Normal", logical_queue_delta=0)
    assert brokers.start_at(address, lost, elsewhere("broker-a", logical_queue_delta=50))[0][0] == OK
    assert brokers.commit(address, 5, 1)[0] == OK
    enabled = brokers.enabled(address)
    assert enabled is not None
    assert enabled.gone is not None
    assert list(enabled.gone[0].intervals or ()) == [GoneOffsets(begin=0, end=50)]


def test_a_number_that_shrank_grows_again_behind_the_old_end() -> None:
    """PREVIEW begins at logical 0 again, and gives offsets twice."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    for _ in range(3):
        brokers.send(address, b"m", topic="L", queue=1)
    brokers.seal(address, 1, 1)
    code, grown = brokers.create(address, 1, "Normal")
    assert code == (OK, "")
    assert short(grown) == (2, "Normal", 3, 0, -1)
    # Where its end is not known here, nobody begins it: the broker that has its end decides.
    assert brokers.commit(address, 5, 3)[0] == OK
    assert brokers.create(address, 2, "Normal")[0] == (
        FAILED,
        "it is not known here where the logical queue ends",
    )
    assert brokers.create(address, 2)[0][0] == OK


def test_what_is_not_expired_is_not_taken_again() -> None:
    """PREVIEW takes a queue that is read again as a second segment; the proposal makes a new one."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    brokers.send(address, b"m", topic="L")
    assert brokers.reuse(address, 0, 0, "Normal")[0] == (FAILED, "queue writable")
    brokers.seal(address, 0, 0)
    assert brokers.reuse(address, 0, 0)[0] == (FAILED, "the queue has messages that are read")
    assert brokers.reuse(address, 9, 0)[0] == (FAILED, "found no queue")


def test_a_queue_is_unmapped_when_it_holds_nothing() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    brokers.send(address, b"m", topic="L")
    assert brokers.map(address, 0, -1) == (FAILED, "queue writable")
    assert brokers.forget(address) == (FAILED, "still 2 message queues")
    brokers.seal(address, 0, 0)
    brokers.seal(address, 1, 1)
    assert brokers.map(address, 0, -1) == (FAILED, "the queue has messages that are read")
    assert brokers.map(address, 1, -1) == (OK, "")
    assert brokers.map(address, 1, -1) == (OK, "")
    assert set(brokers.told(address)) == {0}


def test_a_topic_is_enabled_for_good_and_by_growing_epochs() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    assert brokers.enabled(address) is None
    assert brokers.commit(address, 5, 2) == (OK, "")
    assert brokers.commit(address, 5, 2, q0=(0, 4)) == (OK, "")
    assert brokers.commit(address, 4, 2) == (FAILED, "epoch 4 is older than 5")
    assert brokers.commit(address, 5, 3) == (FAILED, "2 of 2 logical queues were committed in epoch 5")
    assert brokers.commit(address, 1 << 60, 3)[0] == FAILED
    assert brokers.commit(address, 6, 2, 3)[0] == FAILED
    assert brokers.commit(address, 6, 3, 2, q1=(2, 3)) == (OK, "")
    found = brokers.enabled(address)
    assert found is not None
    assert (found.epoch, found.queues, found.total) == (6, 2, 3)
    # What is gone is never taken back.
    gone = {index: list(each.intervals or ()) for index, each in (found.gone or {}).items()}
    assert gone == {0: [GoneOffsets(begin=0, end=4)], 1: [GoneOffsets(begin=2, end=3)]}


def test_the_name_server_tells_what_the_broker_registered() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    assert brokers.commit(address, 5, 2)[0] == OK
    brokers.world.run_for(2_000)
    route = brokers.route()
    assert route is not None
    queues = route.logical_queues_info or {}
    assert [short(each) for index in (0, 1) for each in queues[index].segments or ()] == [
        (0, "Normal", 0, 0, -1),
        (1, "Normal", 0, 0, -1),
    ]
    brokers.seal(address, 1, 1)
    brokers.world.run_for(2_000)
    # Of two that are written one is not written any more: told is all or nothing.
    assert brokers.route() is None
    assert brokers.commit(address, 6, 2, 1)[0] == OK
    brokers.world.run_for(2_000)
    route = brokers.route()
    assert route is not None
    assert [short(each) for each in (route.logical_queues_info or {})[1].segments or ()] == [
        (1, "Expired", 0, 0, 0)
    ]


def test_an_acknowledged_seal_survives_its_master() -> None:
    brokers = LogicalSet()
    first, second = brokers.pair()
    brokers.mapped(first)
    brokers.send(first, b"m", topic="L")
    _, prepared = brokers.prepare(first, own(), elsewhere())
    assert brokers.commit(first, 5, 2)[0] == OK
    assert brokers.map(second, 0, 0)[0] == ResponseCode.SERVICE_NOT_AVAILABLE
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    assert brokers.send(second, b"m", topic="L")[0] == ResponseCode.NO_PERMISSION
    brokers.until(lambda: bool(brokers.told(second)))
    assert shorts(brokers.told(second))[0] == [(0, "ReadOnly", 0, 0, 1)]
    # Whoever repeats it is told what the lost master decided.
    _, again = brokers.prepare(second, own(), elsewhere("broker-c"))
    assert prepared is not None
    assert again is not None
    assert again.to_queue_route_data == prepared.to_queue_route_data
    assert brokers.enabled(second) == brokers.enabled(second)
    found = brokers.enabled(second)
    assert found is not None
    assert (found.epoch, found.total) == (5, 2)


@pytest.mark.parametrize("power", [False, True])
def test_a_broker_that_comes_back_has_its_segments_of_its_log_and_needs_no_file(power: bool) -> None:
    """PREVIEW writes the mapping to a file and never reads it."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address)
    brokers.send(address, b"m", topic="L")
    brokers.seal(address, 0, 0)
    before = brokers.told(address)
    brokers.world.run_for(MAPPING_COPY_MS)
    brokers.world.kill("broker1", power=power)
    disk = brokers.world.processes["broker1"].disk
    names = [each for each in disk.contents if each.endswith(("logicalQueues.json", "topics.json"))]
    assert len(names) == 2
    for name in names:
        del disk.contents[name]
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: bool(brokers.told(address)))
    assert brokers.told(address) == before
    assert brokers.send(address, b"m", topic="L")[0] == ResponseCode.NO_PERMISSION
