"""A controller that goes by the design: its paths, its requests, INIT, in both of its versions."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.wire.kafka import paths
from replispec.wire.kafka.design import DesignLeaderAndIsrRequest
from tests.controller_kafka.designed import DesignedCluster
from tests.controller_kafka.simulated import Record

SESSION_MS = 8_000
VERSIONS = (1, 2)


def led(version: int, **options: Any) -> DesignedCluster:
    """Three brokers, and a topic of two partitions."""
    cluster = DesignedCluster(version, **options)
    cluster.create("t", [1, 2], [2, 3])
    cluster.run(1_500)
    return cluster


def leaders_told(cluster: DesignedCluster, broker: int) -> list[DesignLeaderAndIsrRequest]:
    return [each for each in cluster.designs[broker].commands if isinstance(each, DesignLeaderAndIsrRequest)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_topic_is_led_and_its_brokers_are_told(version: int) -> None:
    cluster = led(version)
    assert cluster.controller_id == 100
    assert [cluster.record(partition=each) for each in (0, 1)] == [
        Record(1, 0, [1, 2], 0),
        Record(2, 0, [2, 3], 0),
    ]
    assert [sorted(cluster.designs[each].replicas) for each in (1, 2, 3)] == [
        [("t", 0)],
        [("t", 0), ("t", 1)],
        [("t", 1)],
    ]
    assert cluster.designs[1].versions == {version}


def test_version_2_counts_controllers_and_says_who_may_fetch_of_which_topic() -> None:
    first, second = led(1), led(2)
    assert first.data(paths.DESIGN_CONTROLLER_EPOCH.at()) is None
    assert second.data(paths.DESIGN_CONTROLLER_EPOCH.at()) == b"1"
    said = [cluster.designs[1].replicas["t", 0] for cluster in (first, second)]
    assert [each.replicas or [] for each in said] == [[], [1, 2]]
    generation = second.store.find(paths.DESIGN_TOPIC.at(topic="t")).czxid
    assert (said[0].topic_generation, said[1].topic_generation) == (None, generation)
    assert [leaders_told(each, 1)[-1].controller_epoch for each in (first, second)] == [None, 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_leader_that_ends_is_followed_by_a_member_of_the_isr(version: int) -> None:
    cluster = led(version)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    assert cluster.record() == Record(2, 1, [2], 1)
    assert cluster.designs[2].replicas["t", 0].leader == 2
    cluster.start(1)
    cluster.run(2_000)
    assert cluster.designs[1].replicas["t", 0].leader == 2


def test_nobody_leads_where_nobody_of_the_isr_lives_and_the_isr_is_kept() -> None:
    cluster = led(2)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    cluster.kill(2)
    cluster.run(SESSION_MS)
    found = cluster.record()
    assert found is not None
    assert (found.leader, found.isr) == (-1, [2])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_command_of_a_controller_is_init_and_names_everything(version: int) -> None:
    """What a broker has of a topic that went while nobody was controller is deleted by it."""
    cluster = led(version, candidates=2, brokers=4)
    cluster.create("gone", [1, 4])
    cluster.run(1_500)
    assert [("gone", 0) in cluster.designs[each].replicas for each in (1, 4)] == [True, True]
    cluster.world.kill("controller-0")
    record = paths.DESIGN_LEADER_AND_ISR.at(topic="gone", partition=0)
    cluster.delete(record, record.rpartition("/")[0], paths.DESIGN_TOPIC.at(topic="gone"))
    before = {each: len(leaders_told(cluster, each)) for each in (1, 2, 3, 4)}
    cluster.run(2 * SESSION_MS)
    assert cluster.controller_id == 101
    first = {each: leaders_told(cluster, each)[count] for each, count in before.items()}
    assert [each.is_init for each in first.values()] == [True] * 4
    assert [len(each.partitions) for each in first.values()] == [1, 2, 1, 0]
    assert [sorted(cluster.designs[each].replicas) for each in (1, 4)] == [[("t", 0)], []]
    assert cluster.record() == Record(1, 0, [1, 2], 0)


@pytest.mark.parametrize("broken", ["record", "topic"])
def test_init_is_not_said_by_who_does_not_understand_everything(broken: str) -> None:
    """A node that is no JSON names nothing: what it meant must not be deleted."""
    cluster = led(2, candidates=2)
    of_record = broken == "record"
    path = (
        paths.DESIGN_LEADER_AND_ISR.at(topic="t", partition=0)
        if of_record
        else paths.DESIGN_TOPIC.at(topic="t")
    )
    cluster.write(path, b"no JSON")
    cluster.run(500)
    cluster.world.kill("controller-0")
    cluster.run(2 * SESSION_MS)
    assert cluster.controller_id == 101
    assert ("t", 0) in cluster.designs[1].replicas
    assert not leaders_told(cluster, 1)[-1].is_init


@pytest.mark.parametrize("version", VERSIONS)
def test_replicas_of_a_topic_whose_node_is_gone_are_deleted(version: int) -> None:
    cluster = led(version)
    records = [paths.DESIGN_LEADER_AND_ISR.at(topic="t", partition=each) for each in (0, 1)]
    parents = [each.rpartition("/")[0] for each in records]
    cluster.delete(*records, *parents, paths.DESIGN_TOPIC.at(topic="t"))
    cluster.run(2_000)
    assert [each.replicas for each in cluster.designs.values()] == [{}, {}, {}]


@pytest.mark.parametrize(("version", "found"), [(1, Record(2, 1, [2], 1)), (2, Record(1, 0, [1, 2], 0))])
def test_what_a_controller_writes_after_another_one_came_is_refused_in_version_2_alone(
    version: int, found: Record
) -> None:
    """R2: in version 1 nothing but the version of the record stands in the way of a deposed controller."""
    cluster = led(version)
    path = paths.DESIGN_CONTROLLER_EPOCH.at()
    cluster.administrator.make(path)
    cluster.write(path, b"9")
    cluster.run(500)
    cluster.kill(1)
    gone = paths.DESIGN_BROKER.at(broker_id=1)
    assert cluster.world.run_until(lambda: cluster.data(gone) is None, at_most_ms=SESSION_MS)
    cluster.run(200)
    assert cluster.record() == found
