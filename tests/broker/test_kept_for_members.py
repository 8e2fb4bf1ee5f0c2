"""What a member of the SyncStateSet may still ask for is not deleted."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.replication import DigestCheck
from replispec.wire.rocketmq.constants import DIGEST_KEPT_MS
from tests.broker.simulated_set import BrokerSet
from tests.broker.test_repair import FILE_BYTES, SENT


def filled() -> BrokerSet:
    """A master and a replica in its set that has everything, with several files of log."""
    brokers = BrokerSet()
    first, _ = brokers.pair(mapped_file_size_commit_log=FILE_BYTES, all_ack_in_sync_state_set=False)
    for body in SENT:
        assert brokers.send(first, body)[0] == 0
    brokers.until(lambda: deletable(brokers) > FILE_BYTES)
    return brokers


def deletable(brokers: BrokerSet, *, needs_room: bool = False) -> int:
    return brokers.broker(1)._log.safe_to_delete(needs_room)


def counts_the_second(brokers: BrokerSet) -> bool:
    role = brokers.broker(1)._role
    return bool(role.counted - {role.broker_id})


def test_while_a_member_of_the_set_is_away_nothing_may_be_deleted() -> None:
    """It is in the set for as long as no controller takes it out."""
    brokers = filled()
    brokers.world.kill("controller")
    brokers.world.kill("broker2")
    brokers.until(lambda: deletable(brokers) == 0)
    assert counts_the_second(brokers)
    assert deletable(brokers, needs_room=True) == 0
    brokers.world.start("controller")
    brokers.until(lambda: not counts_the_second(brokers))
    assert deletable(brokers) > FILE_BYTES


def test_what_a_member_did_not_report_may_not_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = filled()
    master = brokers.broker(1)._log._master
    assert master is not None
    assert master.acknowledged([2]) == [brokers.broker(1)._log.store.log.end]
    monkeypatch.setattr(master, "acknowledged", lambda _members: [FILE_BYTES + 1])
    assert deletable(brokers, needs_room=True) == FILE_BYTES + 1


def test_what_is_not_confirmed_may_not_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = filled()
    for number in (1, 2):
        log = brokers.broker(number)._log
        monkeypatch.setattr(log, "_confirmed", FILE_BYTES - 1)
        assert log.safe_to_delete(True) == FILE_BYTES - 1


def left_behind() -> tuple[BrokerSet, int]:
    """A master that has deleted something, and a member that is out of the set and ends before the rest."""
    brokers = filled()
    store = brokers.broker(1)._log.store
    store.delete_before(FILE_BYTES)
    brokers.world.kill("broker2")
    brokers.until(lambda: not counts_the_second(brokers))
    end = store.log.end
    for body in SENT * 2:
        assert brokers.send("10.0.1.1:10911", body)[0] == 0
    brokers.until(lambda: deletable(brokers) > end + FILE_BYTES)
    return brokers, end


def test_while_a_replica_compares_its_log_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, _ = left_behind()
    monkeypatch.setattr(DigestCheck, "begin", lambda *_: False)
    brokers.world.start("broker2")
    brokers.until(lambda: deletable(brokers) == FILE_BYTES)
    # A disk that is nearly full waits for nobody.
    assert deletable(brokers, needs_room=True) > FILE_BYTES


def test_between_two_connections_what_a_replica_needs_next_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers, end = left_behind()
    # It asks, and is away before it has compared what it was told.
    monkeypatch.setattr(DigestCheck, "compare", lambda *_: ())
    brokers.world.start("broker2")
    brokers.until(lambda: deletable(brokers) == FILE_BYTES)
    brokers.world.run_for(1_000)
    brokers.world.kill("broker2")
    brokers.until(lambda: deletable(brokers) == end)
    brokers.world.run_for(DIGEST_KEPT_MS)
    assert deletable(brokers) > end + FILE_BYTES
