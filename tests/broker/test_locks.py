"""A queue that is read in order is one client's of a group, whoever is master."""

from __future__ import annotations

import pytest

from replispec.broker.rocketmq.core import locks as module
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Outcome
from replispec.runtime.world import Member
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import LockedQueues, QueueLocks
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.message_queue import MessageQueue
from tests.broker.simulated_set import OK, BrokerSet, Client

ALL = (0, 1, 2, 3)


def _body(client: str, queues: tuple[int, ...], group: str = "g") -> bytes:
    return QueueLocks(client, group, [MessageQueue("broker-a", each, "T") for each in queues]).encode()


def lock(
    brokers: BrokerSet, address: str, client: str, queues: tuple[int, ...] = ALL, group: str = "g"
) -> list[int | None]:
    """The queues that a client is given."""
    answer = brokers.ask(address, RequestCode.LOCK_BATCH_MQ, body=_body(client, queues, group))
    return given(answer)


def given(answer: Outcome) -> list[int | None]:
    """The queues that an answer gives."""
    assert isinstance(answer, Command)
    assert answer.header.code == OK, answer.header.remark
    return [each.queue_id for each in LockedQueues.decode(answer.body).locked or ()]


def wanted(brokers: BrokerSet, address: str, client: str, queues: tuple[int, ...] = ALL) -> list[Outcome]:
    """Ask for queues without waiting."""
    return brokers.asked(address, RequestCode.LOCK_BATCH_MQ, body=_body(client, queues))


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


def test_a_client_of_two_hosts_is_told_what_it_has_when_the_first_host_gives_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newest queue of the host that has most goes for another one: here for one of the same request."""
    monkeypatch.setattr(module, "LOCKS_MAX", 8)
    brokers = BrokerSet()
    address = brokers.alone()
    other = Client()
    brokers.world.add("other", "10.0.0.4", lambda _storage: [Member("client", other)])
    brokers.start("other")
    assert lock(brokers, address, "a", tuple(range(8))) == [*range(8)]
    found = other.ask(address, RequestCode.LOCK_BATCH_MQ, {}, _body("a", (7, 8)))
    brokers.until(lambda: bool(found))
    assert given(found[0]) == [8]
    assert lock(brokers, address, "b", tuple(range(8))) == []


def test_queues_that_nobody_asks_for_any_more_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCKS_MAX", 8)
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", tuple(range(8))) == [*range(8)]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS // 2)
    assert lock(brokers, address, "a", (0,)) == [0]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS // 2)
    assert len(lock(brokers, address, "b", tuple(range(8)), "other")) == 7


def test_what_cannot_be_a_queue_is_given_to_nobody() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", (-1, constants.QUEUES_MAX, 0)) == [0]
    long = "x" * 2_000
    assert lock(brokers, address, "a", (0,), long) == lock(brokers, address, long, (1,)) == []
    body = QueueLocks("a", "g", [MessageQueue("broker-a", 0, long), MessageQueue("broker-a", 0, "other")])
    answer = brokers.ask(address, RequestCode.LOCK_BATCH_MQ, body=body.encode())
    assert [each.topic for each in LockedQueues.decode(answer.body).locked or ()] == ["other"]


def test_a_queue_of_another_topic_is_another_queue() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", (0,)) == [0]
    body = QueueLocks("b", "g", [MessageQueue("broker-a", 0, topic) for topic in ("T", "other")])
    answer = brokers.ask(address, RequestCode.LOCK_BATCH_MQ, body=body.encode())
    assert [each.topic for each in LockedQueues.decode(answer.body).locked or ()] == ["other"]


def test_who_gives_back_what_is_anothers_changes_nothing() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert lock(brokers, address, "a", (0,)) == [0]
    unlock(brokers, address, "b", (0,))
    assert lock(brokers, address, "b", (0,)) == []


def test_what_was_given_back_meanwhile_is_not_told_as_had() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    brokers.world.pause("broker2")
    early = wanted(brokers, first, "a")
    brokers.world.run_for(100)
    unlock(brokers, first, "a", (0,))
    late = wanted(brokers, first, "b", (0,))
    brokers.world.run_for(100)
    assert early == late == []
    brokers.world.go_on("broker2")
    brokers.until(lambda: bool(early and late))
    assert (given(early[0]), given(late[0])) == ([1, 2, 3], [0])


def test_who_was_refused_as_too_late_is_told_no_sooner_when_it_asks_again() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(slave_timeout_ms=500)
    brokers.world.pause("broker2")
    early = wanted(brokers, first, "a")
    brokers.until(lambda: bool(early))
    answer = early[0]
    assert isinstance(answer, Command)
    assert answer.header.code == ResponseCode.SYSTEM_ERROR
    again = wanted(brokers, first, "a")
    brokers.world.run_for(200)
    assert again == []
    brokers.world.go_on("broker2")
    brokers.until(lambda: bool(again))
    assert given(again[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value"), [("LOCKS_REMEMBERED", 8), ("FOUND_BYTES_MAX", 1_500)], ids=["records", "bytes"]
)
def test_what_a_new_master_cannot_know_is_somebodys_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    """More is said within a minute than counts: a queue may be of one who was told so before all that."""
    monkeypatch.setattr(constants if hasattr(constants, name) else module, name, value)
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert lock(brokers, first, "a") == [0, 1, 2, 3]
    for number in range(20):
        assert lock(brokers, first, "c", (0,), f"g{number}") == [0]
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert lock(brokers, second, "b", (*ALL, 4)) == []
    assert lock(brokers, second, "c", (0,), "g19") == [0]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS)
    assert lock(brokers, second, "b", (*ALL, 4)) == [0, 1, 2, 3, 4]


def test_a_new_master_gives_what_is_free_where_all_that_may_count_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(constants, "LOCKS_REMEMBERED", 8)
    brokers = BrokerSet()
    first, second = brokers.pair()
    for number in range(20):
        assert lock(brokers, first, "c", (0,), f"g{number}") == [0]
    brokers.world.run_for(constants.LOCK_EXPIRY_MS)
    assert lock(brokers, first, "a", (0,)) == [0]
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert lock(brokers, second, "b", (0, 1)) == [1]


def test_what_was_said_last_counts_where_not_all_that_was_said_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOCKS_MAX", 4)
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert lock(brokers, first, "a") == [0, 1, 2, 3]
    unlock(brokers, first, "a")
    assert lock(brokers, first, "b", (4, 5, 6, 7)) == [4, 5, 6, 7]
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert lock(brokers, second, "b", (4, 5, 6, 7)) == [4, 5, 6, 7]
    assert lock(brokers, second, "c", (4, 5, 6, 7)) == []
