"""The life of segments: what has no message any more expires, stays listed, and is taken again."""

from __future__ import annotations

from replispec.wire.rocketmq.broker import PullMessageResponse
from replispec.wire.rocketmq.codes import PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import QUEUE_REST_MS
from replispec.wire.rocketmq.logical_queue import GoneOffsets
from tests.broker.simulated_set import OK, wanted
from tests.queues.logical_sets import LogicalSet, elsewhere, own, short, shorts

LATE_MS = 1 << 40


def filled(brokers: LogicalSet, address: str, number: int = 1) -> None:
    """Messages of another topic, so that older files of the log may be deleted, and are."""
    node = brokers.broker(number)
    for _ in range(6):
        assert brokers.send(address, bytes(30_000), topic="T")[0] == OK
    log = node._log.store.log
    brokers.until(lambda: node._log.safe_to_delete(True) > 2 * log.file_bytes)
    # What is mapped is recorded again first, and is to be kept then.
    for _ in range(6):
        node._log.retention._clean(LATE_MS, takes_young=True)
        brokers.world.run_for(1_000)
    assert log.first > 0


def aged(brokers: LogicalSet, address: str) -> None:
    """Logical queue 0 has three messages that are deleted, and went to broker-b."""
    brokers.mapped(address, 1)
    for _ in range(3):
        brokers.send(address, b"m", topic="L")
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    filled(brokers, address)


def test_a_segment_whose_messages_are_gone_expires_and_stays_listed() -> None:
    """PREVIEW takes it out of the list."""
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    assert shorts(brokers.told(address)) == {0: [(0, "Expired", 0, 0, 3)]}
    brokers.world.run_for(2_000)
    # Who reads it is told where it goes on.
    header = wanted("L", 0, 1, flags=PullFlag.LOGICAL_QUEUE)
    answer = brokers.ask(address, RequestCode.PULL_MESSAGE, header)
    assert answer.header.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    # It keeps its successor.
    _, again = brokers.prepare(address, own(), elsewhere("broker-c"))
    assert again is not None
    assert short(again.to_queue_route_data) == (0, "WriteOnly", 3, 0, -1)


def test_a_segment_that_is_written_does_not_expire() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    brokers.send(address, b"m", topic="L")
    filled(brokers, address)
    assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)]}
    assert short(brokers.seal(address, 0, 0)[1]) == (0, "Expired", 0, 0, 1)


def test_an_expired_queue_is_taken_again_by_its_own_logical_queue_from_its_end_on() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    assert brokers.commit(address, 5, 1)[0] == OK
    code, target = brokers.reuse(address, 0, 0)
    assert code == (OK, "")
    assert short(target) == (0, "WriteOnly", -1, 3, -1)
    source = elsewhere(state="ReadOnly", logical_queue_delta=3, offset_max=6)
    begun = own(offset_delta=3, logical_queue_delta=9, state="WriteOnly")
    assert brokers.start_at(address, source, begun)[0] == (OK, "")
    assert shorts(brokers.told(address)) == {0: [(0, "Normal", 9, 3, -1)]}
    # Nobody lists what it was before: the broker says that it is gone.
    enabled = brokers.enabled(address)
    assert enabled is not None
    assert list((enabled.gone or {})[0].intervals or ()) == [GoneOffsets(begin=0, end=3)]
    # What is said late of what it was is refused.
    assert brokers.prepare(address, own(), elsewhere("broker-c"))[0][0] == ResponseCode.SYSTEM_ERROR
    assert brokers.send(address, b"m", topic="L")[1].queue_offset == 3


RESTING = (
    ResponseCode.SYSTEM_ERROR,
    "clients may still send to the queue for the logical queue that left it",
)


def test_a_queue_that_was_left_a_moment_ago_is_taken_by_no_other_logical_queue() -> None:
    """Who sends names a message queue alone: a producer with a route of before means the one that left."""
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    for state in ("WriteOnly", "Normal"):
        assert brokers.reuse(address, 0, 1, state)[0] == RESTING
    assert shorts(brokers.told(address)) == {0: [(0, "Expired", 0, 0, 3)]}
    # Another one is made instead.
    assert short(brokers.create(address, 1)[1]) == (1, "WriteOnly", -1, 0, -1)
    # Nor after it was unmapped.
    assert brokers.map(address, 0, -1) == (OK, "")
    assert brokers.map(address, 0, 2) == RESTING
    brokers.world.run_for(QUEUE_REST_MS)
    assert brokers.map(address, 0, 2) == (OK, "")


def test_a_new_master_counts_the_rest_of_a_queue_from_when_it_began() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    brokers.world.run_for(QUEUE_REST_MS)
    brokers.world.kill("broker1", power=True)
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: bool(brokers.told(address)))
    assert brokers.reuse(address, 0, 1, "Normal")[0] == RESTING
    brokers.world.run_for(QUEUE_REST_MS)
    assert brokers.reuse(address, 0, 1, "Normal")[0] == (OK, "")


def test_an_expired_queue_that_rested_is_taken_by_another_logical_queue() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    brokers.world.run_for(QUEUE_REST_MS)
    code, grown = brokers.reuse(address, 0, 1, "Normal")
    assert code == (OK, "")
    assert short(grown) == (0, "Normal", 0, 3, -1)
    assert set(brokers.told(address)) == {1}
    # It was never used by this one yet: sealed so, another queue is made.
    brokers.seal(address, 0, 1)
    assert brokers.reuse(address, 0, 1)[0][1] == "the queue was taken before and never used"
    assert short(brokers.create(address, 1)[1]) == (1, "WriteOnly", -1, 0, -1)


def test_a_queue_without_messages_keeps_its_position_over_a_restart() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    aged(brokers, address)
    brokers.world.kill("broker1", power=True)
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: bool(brokers.told(address)))
    assert short(brokers.reuse(address, 0, 0)[1]) == (0, "WriteOnly", -1, 3, -1)


def test_a_segment_is_recorded_again_before_its_record_is_deleted() -> None:
    brokers = LogicalSet()
    first, second = brokers.pair()
    brokers.mapped(first, 1)
    assert brokers.commit(first, 5, 1)[0] == OK
    filled(brokers, first)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.broker(2)._log.retention._clean(LATE_MS, takes_young=True)
    # A third one has nothing but what the log has now.
    third = brokers.add_broker(3)
    brokers.start("broker3")
    brokers.until(lambda: 3 in brokers.members(2))
    for address in (second, third):
        brokers.until(lambda address=address: bool(brokers.told(address)))  # type: ignore[misc]
        assert shorts(brokers.told(address)) == {0: [(0, "Normal", 0, 0, -1)]}
        assert brokers.enabled(address) is not None


def test_with_reuse_read_only_a_queue_that_is_read_serves_again_and_is_read_on() -> None:
    """PREVIEW's way; else it is refused."""
    brokers = LogicalSet()
    address = brokers.alone(reuse_read_only=True)
    brokers.mapped(address, 1)
    for _ in range(3):
        brokers.send(address, b"m", topic="L")
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    assert brokers.commit(address, 5, 1)[0] == OK
    code, target = brokers.reuse(address, 0, 0)
    assert (code, short(target)) == ((OK, ""), (0, "WriteOnly", -1, 3, -1))
    source = elsewhere(state="ReadOnly", logical_queue_delta=3, offset_max=6)
    begun = own(offset_delta=3, logical_queue_delta=9, state="WriteOnly")
    assert brokers.start_at(address, source, begun)[0] == (OK, "")
    listed = [(0, "ReadOnly", 0, 0, 3), (0, "Normal", 9, 3, -1)]
    assert shorts(brokers.told(address)) == {0: listed}
    assert brokers.send(address, b"n", topic="L")[1].queue_offset == 3
    brokers.world.run_for(2_000)
    for position, code_told, following in ((0, OK, 3), (2, OK, 3), (3, OK, 4)):
        header = wanted("L", 0, position, flags=PullFlag.LOGICAL_QUEUE)
        answer = brokers.ask(address, RequestCode.PULL_MESSAGE, header)
        said = PullMessageResponse.from_ext_fields(answer.header.ext_fields or {})
        assert (answer.header.code, said.next_begin_offset) == (code_told, following)
    enabled = brokers.enabled(address)
    assert enabled is not None
    assert not enabled.gone
    brokers.world.kill("broker1")
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: bool(brokers.told(address)))
    assert shorts(brokers.told(address)) == {0: listed}
    # When both are expired and the queue serves once more, nobody lists them.
    assert brokers.seal(address, 0, 0)[0] == (OK, "")
    filled(brokers, address)
    assert shorts(brokers.told(address)) == {0: [(0, "Expired", 0, 0, 3), (0, "Expired", 9, 3, 4)]}
    assert short(brokers.reuse(address, 0, 0)[1]) == (0, "WriteOnly", -1, 4, -1)
    assert shorts(brokers.told(address)) == {0: [(0, "WriteOnly", -1, 4, -1)]}
    enabled = brokers.enabled(address)
    assert enabled is not None
    gone = (enabled.gone or {})[0].intervals or ()
    assert list(gone) == [GoneOffsets(begin=0, end=3), GoneOffsets(begin=9, end=10)]


def test_with_reuse_read_only_a_queue_that_is_read_becomes_a_segment_that_is_written_at_once() -> None:
    brokers = LogicalSet()
    address = brokers.alone(reuse_read_only=True)
    brokers.mapped(address, 1)
    for _ in range(3):
        brokers.send(address, b"m", topic="L")
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    assert brokers.commit(address, 5, 1)[0] == OK
    # Where the logical queue ends is not known here: it went on elsewhere.
    assert brokers.reuse(address, 0, 0, "Normal")[0] == (
        ResponseCode.SYSTEM_ERROR,
        "it is not known here where the logical queue ends",
    )
    # Another one begins where the message queue ends, once clients have heard where the first one is.
    assert brokers.reuse(address, 0, 7, "Normal")[0] == (
        ResponseCode.SYSTEM_ERROR,
        "clients may still send to the queue for the logical queue that left it",
    )
    brokers.world.run_for(QUEUE_REST_MS)
    code, begun = brokers.reuse(address, 0, 7, "Normal")
    assert (code, short(begun)) == ((OK, ""), (0, "Normal", 0, 3, -1))
    listed = {0: [(0, "ReadOnly", 0, 0, 3)], 7: [(0, "Normal", 0, 3, -1)]}
    assert shorts(brokers.told(address)) == listed
    # Nobody follows it yet: the first who prepares that does.
    successor = elsewhere("broker-c", index=7)
    came, again = brokers.prepare(address, own(index=7, offset_delta=3), successor)
    assert came == (OK, "")
    assert again is not None
    assert short(again.to_queue_route_data) == (0, "WriteOnly", 0, 0, -1)


def test_a_queue_that_is_read_does_not_serve_again_by_default() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    brokers.send(address, b"m", topic="L")
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    assert brokers.reuse(address, 0, 0)[0][1] == "the queue has messages that are read"
