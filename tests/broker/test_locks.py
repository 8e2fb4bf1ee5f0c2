"""A queue that is read in order is one client's of a group, whoever is master."""

from __future__ import annotations

import pytest

from replispec.broker.rocketmq.core import locks as module
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import LockedQueues, QueueLocks
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.message_queue import MessageQueue
from tests.broker.simulated_set import OK, BrokerSet

ALL = (0, 1, 2, 3)


def _body(client: str, queues: tuple[int, ...], group: str = "g") -> bytes:
    return QueueLocks(client, group, [MessageQueue("broker-a", each, "T") for each in queues]).encode()


def lock(
    brokers: BrokerSet, address: str, client: str, queues: tuple[int, ...] = ALL, group: str = "g"
) -> list[int | None]:
    """The queues that a client is given."""
    answer = brokers.ask(address, RequestCode.LOCK_BATCH_MQ, body=_body(client, queues, group))
    assert answer.header.code == OK, answer.header.remark
    return [each.queue_id for each in LockedQueues.decode(answer.body).locked or ()]


def unlock(brokers: BrokerSet, address: str, client: str, queues: tuple[int, ...] = ALL) -> None:
    answer = brokers.ask(address, RequestCode.UNLOCK_BATCH_MQ, body=_body(client, queues))
    assert answer.header.code == OK


def test_a_queue_is_one_clients_until_it_gives_it_back() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", (0, 1)) == [0, 1]
    assert lock(brokers, address, "b") == [2, 3]
    assert lock(brokers, address, "b", group="another") == [0, 1, 2, 3]
    unlock(brokers, address, "b", (0, 2))
    assert lock(brokers, address, "a") == [0, 1, 2]


def test_a_client_that_does_not_ask_any_more_has_nothing_a_minute_later() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a") == [0, 1, 2, 3]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS // 2)
    assert lock(brokers, address, "a", (1,)) == [1]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS // 2)
    assert lock(brokers, address, "b") == [0, 2, 3]


def test_a_new_master_gives_nobody_a_queue_that_its_predecessor_gave_another_one() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert lock(brokers, first, "a", (0, 1)) == [0, 1]
    assert lock(brokers, first, "b", (2,)) == [2]
    unlock(brokers, first, "a", (1,))
    assert lock(brokers, first, "b", (1,)) == [1]
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert lock(brokers, second, "b") == [1, 2, 3]
    assert lock(brokers, second, "a") == [0]


def test_a_client_is_given_a_queue_once_the_set_has_that_and_a_replica_gives_none() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    refused = brokers.ask(second, RequestCode.LOCK_BATCH_MQ, body=_body("a", ALL))
    assert refused.header.code == ResponseCode.SERVICE_NOT_AVAILABLE
    brokers.world.pause("broker2")
    found = brokers.asked(first, RequestCode.LOCK_BATCH_MQ, body=_body("a", ALL))
    brokers.world.run_for(500)
    assert found == []
    brokers.world.go_on("broker2")
    brokers.until(lambda: bool(found))


def test_the_log_says_it_once_and_again_before_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "LOCKS_REMEMBERED", 8)
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert lock(brokers, first, "a") == [0, 1, 2, 3]
    end = brokers.epochs(first).max_offset
    assert lock(brokers, first, "a") == [0, 1, 2, 3]
    assert brokers.epochs(first).max_offset == end
    for number in range(3 * constants.LOCKS_REMEMBERED):
        assert lock(brokers, first, "c", (0,), f"g{number}") == [0]
        if number % 3 == 0:
            assert lock(brokers, first, "a") == [0, 1, 2, 3]
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert lock(brokers, second, "b") == []


def test_one_host_that_asks_for_all_there_are_leaves_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCKS_MAX", 8)
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a") == [0, 1, 2, 3]
    assert len(lock(brokers, address, "b", tuple(range(20)), "other")) == 4
    for client in ("", "x" * 1_000):
        assert lock(brokers, address, client, (1,), "third") == []


def test_what_cannot_be_a_queue_is_given_to_nobody() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", (-1, constants.QUEUES_MAX, 0)) == [0]
