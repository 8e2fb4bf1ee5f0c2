"""The controller over a metastore and brokers that do as they are told: every procedure of the design."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from replispec.wire.kafka import paths
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsrRequest,
    ApacheStopReplicaRequest,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.nodes import (
    ApacheReassignedPartition,
    ApacheReassignmentNode,
    ApacheTopicNode,
    BrokerIds,
)
from tests.controller_kafka.simulated import Record, SimulatedCluster

SESSION_MS = 8_000


@pytest.fixture(params=["0.11.0-IV1", "1.0", "2.2"])
def cluster(request: Any) -> SimulatedCluster:
    """Three brokers under one controller."""
    return SimulatedCluster(inter_broker_protocol_version=request.param)


def with_topic(cluster: SimulatedCluster, *replicas: list[int]) -> SimulatedCluster:
    """And a topic, led."""
    cluster.administrator.create("t", *(replicas or ([1, 2, 3],)))
    cluster.run(1_500)
    return cluster


def test_a_new_topic_is_led_and_everybody_knows(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2, 3], [2, 3, 1])
    assert cluster.record() == Record(1, 0, [1, 2, 3], 0)
    assert cluster.record("t", 1) == Record(2, 0, [2, 3, 1], 0)
    for double in cluster.doubles.values():
        assert {key: each.leader for key, each in double.replicas.items()} == {("t", 0): 1, ("t", 1): 2}
        assert {key: each.leader for key, each in double.seen.items()} == {("t", 0): 1, ("t", 1): 2}
        assert double.live == {1, 2, 3}


def test_a_broker_hears_who_lives_before_who_leads(cluster: SimulatedCluster) -> None:
    with_topic(cluster)
    for double in cluster.doubles.values():
        assert isinstance(double.commands[0], ApacheUpdateMetadataRequest)
        led = [each for each in double.commands if isinstance(each, ApacheLeaderAndIsrRequest)]
        assert led
        assert {each.broker_id for each in led[-1].live_leaders} == {1}


def test_another_member_of_the_isr_leads_when_the_leader_dies(cluster: SimulatedCluster) -> None:
    with_topic(cluster)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    assert cluster.record() == Record(2, 1, [2, 3], 1)
    assert cluster.doubles[3].replicas["t", 0].leader == 2
    assert cluster.doubles[2].live == {2, 3}
    cluster.start(1)
    cluster.run(3_000)
    # It is told everything, follows, and its leader takes it in again.
    assert cluster.doubles[1].replicas["t", 0].leader == 2
    assert cluster.record() == Record(2, 1, [2, 3, 1], 2)
    assert cluster.doubles[3].seen["t", 0].isr == [2, 3, 1]
    assert cluster.doubles[3].live == {1, 2, 3}


def test_a_follower_that_dies_leaves_the_isr_under_a_new_epoch(cluster: SimulatedCluster) -> None:
    with_topic(cluster)
    cluster.kill(3)
    cluster.run(SESSION_MS)
    assert cluster.record() == Record(1, 1, [1, 2], 1)
    assert cluster.doubles[1].replicas["t", 0].isr == [1, 2]


def test_nobody_leads_while_nobody_in_sync_lives(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2])
    cluster.kill(2)
    cluster.run(SESSION_MS)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    assert cluster.record() == Record(-1, 2, [1], 2)
    cluster.start(2)
    cluster.run(3_000)
    assert cluster.record() == Record(-1, 2, [1], 2)
    assert cluster.doubles[3].seen["t", 0].leader == -1
    cluster.start(1)
    cluster.run(3_000)
    record = cluster.record()
    assert record is not None
    assert (record.leader, record.epoch, record.isr) == (1, 3, [1, 2])


def test_an_unclean_election_is_made_only_when_it_is_allowed() -> None:
    cluster = with_topic(SimulatedCluster(unclean_leader_election_enable=True), [1, 2])
    cluster.kill(2)
    cluster.run(SESSION_MS)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    cluster.start(2)
    cluster.run(3_000)
    assert cluster.record() == Record(2, 3, [2], 3)
    assert cluster.controller().reign.leaders.unclean == 1


def test_a_topic_without_any_living_broker_waits_for_one(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [8, 4])
    assert cluster.record() is None
    cluster.world.add("broker-4", "10.0.2.4", partial(cluster.broker, 4))
    cluster.start(4)
    cluster.run(2_000)
    assert cluster.record() == Record(4, 0, [4], 0)


def test_a_broker_that_is_back_at_once_is_not_taken_for_what_it_was() -> None:
    """It may have lost what it had not flushed, so that another member of the ISR leads."""
    cluster = with_topic(SimulatedCluster())
    # The controller sees nothing of what lies between the two registrations.
    cluster.world.pause("controller-0")
    cluster.doubles[1].client.leave()
    cluster.doubles[1].client.begin(cluster.doubles[1].now_ms)
    cluster.run(1_500)
    cluster.world.go_on("controller-0")
    cluster.run(3_000)
    record = cluster.record()
    assert record is not None
    assert (record.leader, record.epoch) == (2, 1)
    assert sorted(record.isr) == [1, 2, 3]


def test_a_topic_grows(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2])
    cluster.administrator.grow("t", [1, 2], [3, 1])
    cluster.run(1_500)
    assert cluster.record("t", 1) == Record(3, 0, [3, 1], 0)
    assert cluster.doubles[1].replicas["t", 1].leader == 3


def test_a_topic_is_deleted_with_all_that_is_left_of_it(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2, 3], [2, 3, 1])
    cluster.administrator.delete("t")
    cluster.run(2_000)
    assert [path for path, _ in cluster.store.nodes() if path.split("/")[-1] == "t" or "/t/" in path] == []
    for double in cluster.doubles.values():
        assert (double.replicas, double.seen) == ({}, {})
    # And comes again under the same name, as another one.
    with_topic(cluster, [3])
    assert cluster.record() == Record(3, 0, [3], 0)


def test_a_deletion_waits_for_a_broker_that_is_down(cluster: SimulatedCluster) -> None:
    with_topic(cluster)
    cluster.kill(3)
    cluster.run(SESSION_MS)
    cluster.administrator.delete("t")
    cluster.run(2_000)
    assert cluster.data(paths.APACHE_TOPIC.at(topic="t")) is not None
    assert cluster.doubles[1].replicas == {}
    cluster.start(3)
    cluster.run(3_000)
    assert cluster.data(paths.APACHE_TOPIC.at(topic="t")) is None
    assert cluster.data(paths.APACHE_TOPIC_DELETED.at(topic="t")) is None


def test_a_deletion_waits_for_a_broker_that_cannot_delete() -> None:
    cluster = with_topic(SimulatedCluster())
    cluster.doubles[2].refuses_to_delete = True
    cluster.administrator.delete("t")
    cluster.run(2_000)
    assert cluster.data(paths.APACHE_TOPIC.at(topic="t")) is not None


def test_a_wish_to_delete_what_is_not_there_is_removed(cluster: SimulatedCluster) -> None:
    cluster.administrator.delete("nothing")
    cluster.run(1_000)
    assert cluster.data(paths.APACHE_TOPIC_DELETED.at(topic="nothing")) is None


def test_a_partition_moves_to_other_brokers(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2])
    cluster.administrator.move(("t", 0, [3, 2]))
    cluster.run(4_000)
    record = cluster.record()
    assert record is not None
    assert (record.leader, record.epoch, sorted(record.isr)) == (3, 2, [2, 3])
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is None
    assert ("t", 0) not in cluster.doubles[1].replicas
    assert cluster.doubles[3].replicas["t", 0].replicas == [3, 2]
    topic = cluster.controller().reign.cluster.topics["t"]
    assert (topic.replicas, topic.adding, topic.removing) == ({0: (3, 2)}, {}, {})
    node = ApacheTopicNode.decode(cluster.data(paths.APACHE_TOPIC.at(topic="t")) or b"")
    assert node.partitions == {"0": BrokerIds([3, 2])}


def test_a_partition_moves_away_from_a_broker_that_is_down(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2])
    cluster.kill(1)
    cluster.run(SESSION_MS)
    cluster.administrator.move(("t", 0, [2, 3]))
    cluster.run(4_000)
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is None
    assert sorted(cluster.record().isr) == [2, 3]  # type: ignore[union-attr]


def test_a_broker_that_comes_back_during_a_move_deletes_its_old_replica() -> None:
    """Found by the system `moving`: it was away when the others were told to delete theirs."""
    cluster = with_topic(SimulatedCluster(brokers=4), [1, 2, 4])
    cluster.doubles[2].refuses_to_delete = True
    cluster.kill(1)
    cluster.run(SESSION_MS)
    cluster.administrator.move(("t", 0, [3, 4]))
    cluster.run(3_000)
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is not None
    cluster.start(1)
    cluster.run(1_500)
    stops = [each for each in cluster.doubles[1].commands if isinstance(each, ApacheStopReplicaRequest)]
    assert stops
    assert stops[-1].delete_partitions


def test_who_was_to_join_another_target_leaves_with_the_old_replicas() -> None:
    """Found by simulation: it may be in the ISR already."""
    cluster = with_topic(SimulatedCluster(brokers=4), [1, 2])
    cluster.doubles[2].refuses_to_delete = True
    cluster.kill(4)
    cluster.run(SESSION_MS)
    cluster.administrator.move(("t", 0, [3]))
    cluster.run(2_000)
    assert cluster.record().isr == [3]  # type: ignore[union-attr]
    cluster.start(4)
    cluster.run(2_000)
    node = ApacheReassignmentNode(1, [ApacheReassignedPartition("t", 0, [4])]).encode()
    path = paths.APACHE_REASSIGNMENTS.at()
    cluster.administrator.client.set_data(path, node, -1, lambda _: None)
    cluster.doubles[2].refuses_to_delete = False
    cluster.run(6_000)
    assert cluster.record().isr == [4]  # type: ignore[union-attr]
    assert cluster.data(path) is None
    assert [double.replicas for number, double in cluster.doubles.items() if number != 4] == [{}, {}, {}]


def test_a_topic_that_moves_goes_on_until_it_has_moved_and_is_deleted_then() -> None:
    """Found by simulation: the deletion waited for the move, and the move for the deletion."""
    cluster = with_topic(SimulatedCluster(brokers=3), [1, 2])
    cluster.doubles[3].is_silent = True
    cluster.administrator.move(("t", 0, [3, 2]))
    cluster.run(1_000)
    cluster.administrator.delete("t")
    cluster.run(2_000)
    assert cluster.record() is not None
    cluster.kill(3)
    cluster.run(SESSION_MS)
    cluster.start(3)
    cluster.run(8_000)
    assert cluster.record() is None
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is None
    assert cluster.data(paths.APACHE_TOPIC_DELETED.at(topic="t")) is None


def test_a_move_that_was_refused_by_the_store_is_made_from_what_it_says_then() -> None:
    """Found by simulation: the version of the topic ran away from what the store has."""
    cluster = with_topic(SimulatedCluster(brokers=3), [1, 2])
    move = partial(cluster.administrator.move, ("t", 0, [3, 2]))
    found = cluster.store.find(paths.APACHE_STATE.at(topic="t", partition=0))
    asked = cluster.administrator.client
    # The leader writes its record in the same moment.
    asked.set_data(paths.APACHE_STATE.at(topic="t", partition=0), found.data, 0, lambda _: None)
    move()
    cluster.run(6_000)
    assert sorted(cluster.record().isr) == [2, 3]  # type: ignore[union-attr]
    topic = cluster.store.find(paths.APACHE_TOPIC.at(topic="t"))
    assert topic.version == cluster.controller().reign.cluster.topics["t"].version < 6


def test_a_move_that_cannot_be_made_is_removed_and_the_others_are_made(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2], [2, 3])
    moves = [("t", 0, [1, 9]), ("u", 0, [1]), ("t", 7, [1]), ("t", 1, [1, 3])]
    cluster.administrator.move(*moves)
    cluster.run(5_000)
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is None
    assert cluster.record() == Record(1, 0, [1, 2], 0)
    assert sorted(cluster.record("t", 1).isr) == [1, 3]  # type: ignore[union-attr]


def test_nobody_waits_for_a_silent_broker() -> None:
    cluster = with_topic(SimulatedCluster())
    cluster.doubles[1].is_silent = True
    cluster.administrator.create("u", [2, 3], [1, 2])
    cluster.run(1_500)
    assert cluster.doubles[2].replicas["u", 0].leader == 2
    cluster.doubles[1].is_silent = False
    # After its time is over it is told the same again, and what came since.
    cluster.run(40_000)
    assert cluster.doubles[1].replicas["u", 1].leader == 1


def test_records_that_are_not_understood_stay_as_they_are(cluster: SimulatedCluster) -> None:
    with_topic(cluster, [1, 2], [1, 2])
    path = paths.APACHE_STATE.at(topic="t", partition=0)
    cluster.administrator.client.set_data(path, b"no record", -1, lambda _: None)
    cluster.run(500)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    assert cluster.data(path) == b"no record"
    assert cluster.record("t", 1) == Record(2, 1, [2], 1)
