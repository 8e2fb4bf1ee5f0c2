"""A set whose members keep their logs in files of several sizes loses nothing, and says so."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.options import ComparisonOptions
from tests.broker.simulated_set import OK, BrokerSet

MASTERS = 16 * 1024
BODY = bytes(900)


def pair_of(size: int, *, compares: bool) -> BrokerSet:
    """A master with files of MASTERS bytes, and a member that begins with nothing and has files of `size`."""
    brokers = BrokerSet()
    brokers.add_broker(1, mapped_file_size_commit_log=MASTERS, all_ack_in_sync_state_set=True)
    brokers.add_broker(
        2,
        mapped_file_size_commit_log=size,
        all_ack_in_sync_state_set=True,
        comparison=ComparisonOptions(compare_log_with_master=compares),
    )
    brokers.start("broker1", "broker2")
    brokers.world.run_for(10_000)
    return brokers


def said(brokers: BrokerSet, who: str) -> str:
    return " ".join(str(note) for name, note in brokers.notes if name == who)


@pytest.mark.parametrize("compares", [True, False])
@pytest.mark.parametrize("size", [12 * 1024, 24 * 1024])
def test_no_record_is_kept_that_crosses_the_end_of_a_file_and_its_member_leaves_the_set(
    size: int, *, compares: bool
) -> None:
    """It begins with nothing, so that there is nothing to compare. Else it counts with bytes behind which it
    finds nothing, and cuts them once it is elected."""
    brokers = pair_of(size, compares=compares)
    assert brokers.members(1) == {1, 2}
    acknowledged = 0
    for _ in range(30):
        acknowledged += brokers.send("10.0.1.1:10911", BODY)[0] == OK
    brokers.until(lambda: "crosses the end of a file" in said(brokers, "broker2"))
    assert "mappedFileSizeCommitLog must be the same" in said(brokers, "broker2")
    brokers.until(lambda: brokers.members(1) == {1})
    copied = brokers.broker(2)._log.store.log
    assert copied.end <= copied.whole_end() + 32 * 1024
    brokers.world.kill("broker1")
    brokers.world.run_for(20_000)
    # Who has all of it is waited for.
    assert not brokers.broker(2).serves
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    assert acknowledged <= len(list(brokers.broker(1)._log.store.log.records(0, 1 << 40)))
