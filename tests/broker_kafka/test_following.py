"""Brokers of Kafka's replication copy what another one leads, lead in its place, cut what nobody else has."""

from __future__ import annotations

import pytest

from replispec.wire.kafka.codes import ErrorCode
from tests.broker_kafka.led import LedCluster, fetch, only, produce, values_in

KEY = ("t", 0)
ALL = [1, 2, 3]
GENERATIONS = ("0.11.0-IV1", "1.0", "2.2", "2.6")


def copied(generation: str = "1.0") -> LedCluster:
    """Three brokers with t-0, which the first one leads."""
    cluster = LedCluster(brokers=3, settings={"inter_broker_protocol_version": generation})
    cluster.administrator.create("t", ALL)
    cluster.run(3_000)
    return cluster


def held(cluster: LedCluster, broker: int) -> list[str]:
    """The values in the log of a broker, committed or not."""
    log = cluster.node(broker).replicas.by_key[KEY].log
    return values_in(log.read(0, 1 << 20, log.end))


def in_sync(cluster: LedCluster) -> list[int]:
    record = cluster.record()
    assert record is not None
    return sorted(record.isr)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_what_is_acknowledged_by_all_is_in_every_log(generation: str) -> None:
    cluster = copied(generation)
    for number in range(20):
        said = only(cluster.ask(produce(str(number)), 3))
        assert (said.error, said.base_offset) == (ErrorCode.NONE, number)
    assert in_sync(cluster) == ALL
    assert [held(cluster, each) for each in ALL] == [[str(number) for number in range(20)]] * 3
    cluster.run(2_000)
    assert {cluster.node(each).replicas.by_key[KEY].log.high_watermark for each in ALL} == {20}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_whoever_leads_next_has_all_that_was_acknowledged_and_the_old_leader_returns(generation: str) -> None:
    cluster = copied(generation)
    for number in range(5):
        assert only(cluster.ask(produce(str(number)), 3)).error == ErrorCode.NONE
    # Of these nobody is told, and perhaps nobody has them: the old leader must be rid of them.
    cluster.send(produce("lost", acks=0), 3, silent=True)
    cluster.world.kill("broker-1", power=True)
    assert cluster.run_until(lambda: (cluster.record() or pytest.fail("no record")).leader in (2, 3))
    leader = cluster.record().leader  # type: ignore[union-attr]
    assert cluster.run_until(lambda: cluster.node(leader).replicas.by_key[KEY].leads)
    assert values_in(only(cluster.ask(fetch(0), 4, broker=leader)).records) == list("01234")
    for number in range(5, 10):
        assert only(cluster.ask(produce(str(number)), 3, broker=leader)).error == ErrorCode.NONE
    cluster.start(1)
    assert cluster.run_until(lambda: in_sync(cluster) == ALL)
    assert only(cluster.ask(produce("10"), 3, broker=leader)).error == ErrorCode.NONE
    assert [held(cluster, each) for each in ALL] == [[str(number) for number in range(11)]] * 3
