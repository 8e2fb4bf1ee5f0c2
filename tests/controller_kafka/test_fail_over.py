"""Controllers that end, hang and come back: who is next, and what became of what was under way."""

from __future__ import annotations

import pytest

from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import ApacheControllerNode, DecimalNode
from tests.controller_kafka.simulated import Record, SimulatedCluster

SESSION_MS = 8_000


def two() -> SimulatedCluster:
    """Two candidates over three brokers, and a topic."""
    cluster = SimulatedCluster(candidates=2)
    cluster.administrator.create("t", [1, 2], [2, 3])
    cluster.run(1_500)
    return cluster


def who_is(cluster: SimulatedCluster) -> tuple[int | None, int]:
    """The id in the node of the controller, and the epoch."""
    node = ApacheControllerNode.decode(cluster.data(paths.APACHE_CONTROLLER.at()) or b"{}")
    epoch = DecimalNode.decode(cluster.data(paths.APACHE_CONTROLLER_EPOCH.at()) or b"0")
    return node.broker_id, epoch.number


def test_the_next_candidate_follows_and_tells_everything() -> None:
    cluster = two()
    assert who_is(cluster) == (100, 1)
    for double in cluster.doubles.values():
        double.replicas.clear()
        double.seen.clear()
    cluster.world.kill("controller-0")
    cluster.run(SESSION_MS)
    assert who_is(cluster) == (101, 2)
    # Records are as they were; brokers are told all of them.
    assert cluster.record() == Record(1, 0, [1, 2], 0)
    assert sorted(cluster.doubles[2].replicas) == [("t", 0), ("t", 1)]
    assert sorted(cluster.doubles[3].seen) == [("t", 0), ("t", 1)]
    assert cluster.doubles[1].controller_epoch == 2


def test_what_happened_while_nobody_was_controller_is_decided_by_the_next() -> None:
    cluster = two()
    cluster.world.kill("controller-0")
    cluster.kill(1)
    cluster.administrator.create("u", [3, 2])
    cluster.run(2 * SESSION_MS)
    assert cluster.record() == Record(2, 1, [2], 1)
    assert cluster.record("u") == Record(3, 0, [3, 2], 0)
    assert cluster.doubles[3].replicas["u", 0].leader == 3


def test_a_deposed_controller_writes_and_commands_no_more() -> None:
    """It hung until its session was over; what it decides when it goes on is refused by its epoch."""
    cluster = two()
    old = cluster.controller(0)
    cluster.world.pause("controller-0")
    cluster.run(SESSION_MS)
    assert who_is(cluster) == (101, 2)
    before = cluster.record()
    cluster.kill(1)
    cluster.run(100)
    cluster.world.go_on("controller-0")
    cluster.run(2 * SESSION_MS)
    assert old.reign is None
    # It has no connection to a broker any more, and dials none.
    assert old.links.deadline_ms() is None
    assert who_is(cluster) == (101, 2)
    assert before == Record(1, 0, [1, 2], 0)
    assert cluster.record() == Record(2, 1, [2], 1)
    assert cluster.doubles[2].replicas["t", 0].controller_epoch == 2


def test_what_a_controller_of_an_older_epoch_writes_is_refused() -> None:
    cluster = SimulatedCluster()
    cluster.administrator.create("t", [1, 2])
    cluster.run(2_500)
    later = DecimalNode(9).encode()
    cluster.administrator.client.set_data(paths.APACHE_CONTROLLER_EPOCH.at(), later, -1, lambda _: None)
    cluster.run(2_500)
    cluster.kill(1)
    cluster.world.run_until(
        lambda: cluster.data(paths.APACHE_BROKER.at(broker_id=1)) is None, at_most_ms=SESSION_MS
    )
    cluster.run(200)
    assert cluster.data(paths.APACHE_BROKER.at(broker_id=1)) is None
    assert cluster.record() == Record(1, 0, [1, 2], 0)


def test_one_whose_node_was_removed_stands_again() -> None:
    cluster = SimulatedCluster()
    cluster.administrator.client.delete(paths.APACHE_CONTROLLER.at(), -1, lambda _: None)
    cluster.run(2_000)
    assert who_is(cluster) == (100, 2)
    cluster.administrator.create("t", [1])
    cluster.run(1_500)
    assert cluster.record() == Record(1, 0, [1], 0)


def test_the_metastore_may_begin_again_under_it() -> None:
    cluster = two()
    cluster.world.kill("metastore")
    cluster.run(500)
    cluster.world.start("metastore")
    cluster.run(3_000)
    assert who_is(cluster) == (100, 1)
    cluster.kill(1)
    cluster.run(2 * SESSION_MS)
    assert cluster.record() == Record(2, 1, [2], 1)


@pytest.mark.parametrize("writes", range(1, 16))
def test_a_controller_that_ends_anywhere_in_a_move_leaves_it_to_the_next(writes: int) -> None:
    """It ends after so many changes of the store, whoever made them."""
    cluster = two()
    cluster.administrator.move(("t", 0, [3, 2]))
    zxid = cluster.store.zxid
    cluster.world.run_until(lambda: cluster.store.zxid >= zxid + writes, at_most_ms=6_000, step_ms=1)
    cluster.world.kill("controller-0")
    cluster.run(2 * SESSION_MS)
    record = cluster.record()
    assert record is not None
    assert sorted(record.isr) == [2, 3]
    assert cluster.data(paths.APACHE_REASSIGNMENTS.at()) is None
    topic = cluster.controller(1).reign.cluster.topics["t"]
    assert (topic.replicas[0], topic.adding.get(0), topic.removing.get(0)) == ((3, 2), None, None)
    assert ("t", 0) not in cluster.doubles[1].replicas
    assert cluster.doubles[3].replicas["t", 0].leader == record.leader


@pytest.mark.parametrize("writes", range(1, 12))
def test_a_controller_that_ends_anywhere_in_a_deletion_leaves_it_to_the_next(writes: int) -> None:
    cluster = two()
    cluster.administrator.delete("t")
    zxid = cluster.store.zxid
    cluster.world.run_until(lambda: cluster.store.zxid >= zxid + writes, at_most_ms=3_000, step_ms=1)
    cluster.world.kill("controller-0")
    cluster.run(2 * SESSION_MS)
    assert [path for path, _ in cluster.store.nodes() if path.split("/")[-1] == "t" or "/t/" in path] == []
    assert all(not double.replicas for double in cluster.doubles.values())


@pytest.mark.parametrize("writes", range(1, 10))
def test_a_controller_that_ends_anywhere_in_a_creation_leaves_it_to_the_next(writes: int) -> None:
    cluster = two()
    zxid = cluster.store.zxid
    cluster.administrator.create("u", [1, 2], [3])
    cluster.world.run_until(lambda: cluster.store.zxid >= zxid + writes, at_most_ms=3_000, step_ms=1)
    cluster.world.kill("controller-0")
    cluster.run(2 * SESSION_MS)
    assert cluster.record("u") == Record(1, 0, [1, 2], 0)
    assert cluster.record("u", 1) == Record(3, 0, [3], 0)
    assert cluster.doubles[2].replicas["u", 0].leader == 1
