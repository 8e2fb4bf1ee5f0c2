"""Brokers and a controller of ours that go by the design alone: its paths, its requests, INIT, reading at a start."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import BrokerIds, DesignBrokerNode, DesignLeaderAndIsrNode, DesignTopicNode
from tests.broker_kafka.led import LedCluster, fetch, only, produce, values_in
from tests.controller_kafka.simulated import Record

VERSIONS = (1, 2)
ALL = [1, 2, 3]
KEY = ("t", 0)


class DesignedBrokers(LedCluster):
    """Three brokers, one of which is the controller."""

    def __init__(self, version: int) -> None:
        settings = {
            "controller_candidate": True,
            "replica_lag_time_max_ms": 2_000,
            "replication_profile": f"design@3 version {version}",
        }
        super().__init__(brokers=len(ALL), candidates=0, settings=settings)

    def create(self, topic: str, *replicas: Sequence[int]) -> None:
        assigned = {number: BrokerIds(list(each)) for number, each in enumerate(replicas)}
        path, node = paths.DESIGN_TOPIC.at(topic=topic), DesignTopicNode(assigned).encode()
        self.administrator.client.create(path, node, lambda _: None)

    def record(self, topic: str = "t", partition: int = 0) -> Record | None:
        found = self.store.find(paths.DESIGN_LEADER_AND_ISR.at(topic=topic, partition=partition))
        if found is None:
            return None
        node = DesignLeaderAndIsrNode.decode(found.data)
        assert node.leader is not None
        assert node.leader_epoch is not None
        return Record(node.leader, node.leader_epoch, sorted(node.isr or []), found.version)

    def leader(self) -> int:
        found = self.record()
        return -1 if found is None else found.leader

    def is_whole(self) -> bool:
        found = self.record()
        return found is not None and found.isr == ALL

    def held(self, broker: int) -> list[str]:
        log = self.node(broker).replicas.by_key[KEY].log
        return values_in(log.read(0, 1 << 20, log.end))


@pytest.fixture(params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> DesignedBrokers:
    made = DesignedBrokers(request.param)
    made.create("t", ALL)
    assert made.run_until(made.is_whole)
    made.run(2_000)
    return made


def test_brokers_are_registered_as_the_design_says(cluster: DesignedBrokers) -> None:
    found = cluster.data(paths.DESIGN_BROKER.at(broker_id=2))
    assert DesignBrokerNode.decode(found or b"") == DesignBrokerNode("10.0.2.2", 9092)


def test_what_is_acknowledged_is_in_every_log_and_read_by_clients(cluster: DesignedBrokers) -> None:
    leader = cluster.leader()
    assert only(cluster.ask(produce("a", "b"), 3, broker=leader)).error == 0
    cluster.run(1_000)
    assert [cluster.held(each) for each in ALL] == [["a", "b"]] * 3
    assert values_in(only(cluster.ask(fetch(0), 4, broker=leader)).records) == ["a", "b"]


def test_a_leader_that_ends_is_followed_and_comes_back(cluster: DesignedBrokers) -> None:
    first = cluster.leader()
    assert only(cluster.ask(produce("a"), 3, broker=first)).error == 0
    cluster.kill(first)
    assert cluster.run_until(lambda: cluster.leader() not in (first, -1))
    now = cluster.leader()
    cluster.run(3_000)
    assert only(cluster.ask(produce("b"), 3, broker=now)).error == 0
    cluster.start(first)
    assert cluster.run_until(cluster.is_whole)
    cluster.run(1_000)
    assert cluster.held(first) == ["a", "b"]


def test_what_is_not_assigned_any_more_when_a_broker_begins_is_deleted(cluster: DesignedBrokers) -> None:
    cluster.create("gone", [2, 3])
    assert cluster.run_until(lambda: ("gone", 0) in cluster.node(2).replicas.by_key)
    cluster.run(1_000)
    cluster.kill(2)
    record = paths.DESIGN_LEADER_AND_ISR.at(topic="gone", partition=0)
    for path in (record, record.rpartition("/")[0], paths.DESIGN_TOPIC.at(topic="gone")):
        cluster.administrator.client.delete(path, -1, lambda _: None)
    cluster.run(8_000)
    cluster.start(2)
    assert cluster.run_until(cluster.is_whole)
    cluster.run(1_000)
    logs = cluster.node(2)._keeper.folder.logs
    assert sorted(logs) == [KEY]
