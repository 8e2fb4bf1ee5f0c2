"""Brokers that stand for the controller in their own processes; there is no other one."""

from __future__ import annotations

import pytest

from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import ApacheControllerNode
from tests.broker_kafka.led import LedCluster, fetch, only, produce, values_in

BROKERS = (1, 2, 3)


def controller(cluster: LedCluster) -> int | None:
    data = cluster.data(paths.APACHE_CONTROLLER.at())
    return None if data is None else ApacheControllerNode.decode(data).broker_id


def leader(cluster: LedCluster) -> int:
    record = cluster.record()
    return -1 if record is None else record.leader


def whole(cluster: LedCluster) -> bool:
    record = cluster.record()
    return record is not None and sorted(record.isr) == [*BROKERS]


@pytest.fixture
def cluster() -> LedCluster:
    """The controller's broker leads."""
    settings = {"controller_candidate": True, "replica_lag_time_max_ms": 2_000}
    made = LedCluster(brokers=len(BROKERS), candidates=0, settings=settings)
    first = controller(made)
    assert first in BROKERS
    made.administrator.create("t", [first, *({*BROKERS} - {first})])
    assert made.run_until(lambda: whole(made))
    return made


def test_the_leader_ends_that_is_the_controller_too_and_what_was_acknowledged_is_read(
    cluster: LedCluster,
) -> None:
    first = leader(cluster)
    assert controller(cluster) == first
    cluster.run(1_000)
    assert only(cluster.ask(produce("a", "b"), 3, broker=first)).error == 0
    cluster.kill(first)
    others = {*BROKERS} - {first}
    assert cluster.run_until(lambda: controller(cluster) in others and leader(cluster) in others)
    now = leader(cluster)
    cluster.run(3_000)
    assert only(cluster.ask(produce("c"), 3, broker=now)).error == 0
    cluster.start(first)
    assert cluster.run_until(lambda: whole(cluster))
    cluster.run(1_000)
    assert values_in(only(cluster.ask(fetch(0), 4, broker=now)).records) == ["a", "b", "c"]


def test_nobody_stands_who_is_not_told_to() -> None:
    assert controller(LedCluster(brokers=2, candidates=0)) is None
