"""What is promised of acknowledged messages and of consumers, whatever the settings."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.client import GetMaxOffsetRequest, SearchOffsetRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.options import ReplicationOptions
from tests.broker.simulated_set import OK, BrokerSet, Header, message, wanted

ASYNC = ReplicationOptions(flush_disk_type="ASYNC_FLUSH")
AGAIN = ResponseCode.PULL_NOT_FOUND
UNKNOWN = ResponseCode.SERVICE_NOT_AVAILABLE


def texts(brokers: BrokerSet, address: str) -> list[bytes]:
    """Which of the messages that a test sends a broker shows."""
    body = brokers.pull(address, 0)[2]
    return [text for text in (b"old-%d" % number for number in range(9)) if text in body]


def test_a_master_that_may_have_lost_what_it_acknowledged_goes_on_in_no_epoch_of_before() -> None:
    """RIP-44, example (2): asynchronous flush; the one that lost its tail copies it from the other."""
    brokers = BrokerSet()
    first, second = brokers.pair(replication=ASYNC)
    brokers.send(first, b"base")
    brokers.world.run_for(3_000)
    acknowledged = [b"old-%d" % number for number in range(6)]
    assert [brokers.send(first, text)[0] for text in acknowledged] == [OK] * 6
    # Its machine is reset, and back before the controller misses it.
    brokers.world.kill("broker1", power=True)
    brokers.world.run_for(2_000)
    brokers.world.start("broker1")
    brokers.until(lambda: brokers.broker(2).serves and brokers.members(2) == {1, 2})
    assert texts(brokers, second) == acknowledged
    assert brokers.epochs(first).max_offset == brokers.epochs(second).max_offset


@pytest.mark.parametrize("restarts_controller", [False, True])
def test_who_is_alone_and_may_have_lost_messages_is_elected_anew(restarts_controller: bool) -> None:
    brokers = BrokerSet()
    address = brokers.alone(replication=ASYNC)
    brokers.send(address, b"m")
    brokers.world.kill("broker1", power=True)
    brokers.world.start("broker1")
    if restarts_controller:
        # What it knew of living brokers is gone: it can miss nobody that it has not heard of again.
        brokers.world.run_for(3_000)
        brokers.world.kill("controller")
        brokers.world.start("controller")
    brokers.until(lambda: brokers.broker(1).serves, at_most_ms=120_000)
    assert brokers.broker(1).master_epoch > 1
    assert brokers.send(address, b"again")[0] == OK


def test_what_is_on_the_disk_is_gone_on_with_after_a_loss_of_power() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    brokers.world.run_for(2_000)
    brokers.world.kill("broker1", power=True)
    brokers.world.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves, at_most_ms=5_000)
    assert brokers.broker(1).master_epoch == 1


def test_no_message_is_answered_as_stored_while_the_set_is_smaller_than_wanted() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(min_in_sync_replicas=2)
    brokers.send(first, b"m")
    brokers.world.pause("broker2")
    waiting = brokers.asked(first, RequestCode.SEND_MESSAGE_V2, message("T", 0), b"only here")
    brokers.world.run_for(100)
    brokers.world.kill("broker2")
    brokers.until(lambda: brokers.members(1) == {1})
    brokers.until(lambda: bool(waiting))
    assert getattr(waiting[0], "header").code == ResponseCode.FLUSH_SLAVE_TIMEOUT  # noqa: B009


def test_more_copies_wanted_than_the_set_has_members_is_refused_at_once() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(all_ack_in_sync_state_set=False, in_sync_replicas=3)
    assert brokers.send(first, b"m")[0] == ResponseCode.SYSTEM_ERROR
    assert brokers.epochs(first).max_offset == 0


def asked_for_ends(brokers: BrokerSet, address: str) -> set[int]:
    """The codes of the answers to where a queue ends, and where it was at a time."""
    questions: tuple[tuple[int, Header], ...] = (
        (RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic="T", queue_id=0)),
        (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetRequest(topic="T", queue_id=0, timestamp=1)),
    )
    return {brokers.ask(address, code, header).header.code for code, header in questions}


def test_a_broker_without_a_role_leaves_consumers_where_they_are() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for _ in range(5):
        brokers.send(address, b"m")
    brokers.world.kill("controller")
    brokers.world.kill("broker1")
    brokers.start("broker1")
    code, told, _ = brokers.pull(address, 5)
    assert (code, told.next_begin_offset) == (AGAIN, 5)
    assert asked_for_ends(brokers, address) == {UNKNOWN}
    waiting = brokers.asked(address, RequestCode.PULL_MESSAGE, wanted("T", 0, 3, wait_ms=20_000))
    brokers.start("controller")
    brokers.until(lambda: bool(waiting), at_most_ms=20_000)
    assert getattr(waiting[0], "header").code == OK  # noqa: B009
    assert asked_for_ends(brokers, address) == {OK}


def test_a_master_that_does_not_know_what_is_confirmed_leaves_consumers_where_they_are() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    for _ in range(5):
        brokers.send(first, b"m")
    brokers.world.run_for(2_000)
    brokers.world.kill("controller")
    for name in ("broker1", "broker2"):
        brokers.world.kill(name)
    brokers.start("controller", "broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    code, told, _ = brokers.pull(first, 5)
    assert (code, told.next_begin_offset) == (AGAIN, 5)
    assert asked_for_ends(brokers, first) == {UNKNOWN}


def test_a_replica_leaves_consumers_where_they_are() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    brokers.send(first, b"m")
    # It has the topics of its master then.
    brokers.world.run_for(15_000)
    code, told, _ = brokers.pull(second, 7)
    assert (code, told.next_begin_offset) == (AGAIN, 7)
    assert asked_for_ends(brokers, second) == {UNKNOWN}


def test_a_master_that_was_replaced_and_does_not_know_leaves_consumers_where_they_are() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    brokers.send(first, b"m")
    for name in ("controller", "broker2"):
        brokers.world.network.block("broker1", name)
        brokers.world.network.block(name, "broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    for _ in range(5):
        brokers.send(second, b"m")
    assert brokers.broker(1).serves
    code, told, _ = brokers.pull(first, 6)
    assert (code, told.next_begin_offset) == (AGAIN, 6)


def trio(seed: int = 1) -> tuple[BrokerSet, list[str]]:
    """A set of three whose sends wait for two, and three messages in it."""
    brokers = BrokerSet(seed)
    wanted_copies = {"all_ack_in_sync_state_set": False, "in_sync_replicas": 2}
    addresses = [brokers.add_broker(number, **wanted_copies) for number in (1, 2, 3)]
    brokers.start("broker1", "broker2", "broker3")
    brokers.until(lambda: brokers.members(1) == {1, 2, 3})
    assert [brokers.send(addresses[0], b"base")[0] for _ in range(3)] == [OK] * 3
    brokers.world.run_for(3_000)
    return brokers, addresses


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_of_the_living_members_the_longest_log_wins_however_late_another_was(seed: int) -> None:
    """Both said the same in their last heartbeats, which are older than what one of them has."""
    brokers, addresses = trio(seed)
    brokers.world.network.block("broker1", "broker2")
    brokers.world.run_for(30)
    acknowledged = [b"old-%d" % number for number in range(5)]
    assert [brokers.send(addresses[0], text)[0] for text in acknowledged] == [OK] * 5
    brokers.world.kill("broker1")
    brokers.until(lambda: any(brokers.broker(number).serves for number in (2, 3)))
    brokers.world.network.heal()
    brokers.until(lambda: brokers.broker(3).serves and brokers.members(3) == {2, 3})
    assert texts(brokers, addresses[2]) == acknowledged
