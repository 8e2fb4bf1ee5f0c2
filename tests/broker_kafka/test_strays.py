"""What a broker does while nobody can tell it what to do, and what it keeps of that."""

from __future__ import annotations

from tests.broker_kafka.led import LedCluster, produce

SESSION_MS = 8_000


def folders(cluster: LedCluster, broker: int) -> set[str]:
    """The folders of logs on a broker's disk."""
    contents = cluster.world.processes[f"broker-{broker}"].disk.contents
    return {name.split("/")[1] for name in contents if name.count("/") > 1}


def test_a_broker_without_a_store_waits_and_does_nothing_again_and_again() -> None:
    cluster = LedCluster()
    cluster.kill(1)
    cluster.world.kill("metastore")
    cluster.start(1)
    cluster.run(5_000)
    cluster.world.start("metastore")
    cluster.run(SESSION_MS + 4_000)
    assert cluster.node(1).registration.is_registered


def test_a_log_that_moved_while_its_broker_was_down_is_deleted_when_it_is_back() -> None:
    cluster = LedCluster(brokers=3)
    cluster.administrator.create("t", [1, 2])
    cluster.administrator.create("u", [1, 2])
    cluster.run(3_000)
    cluster.ask(produce("a"), 3)
    cluster.kill(1)
    cluster.run(SESSION_MS)
    cluster.administrator.move(("t", 0, [2, 3]))
    cluster.run(6_000)
    assert sorted(cluster.record().isr) == [2, 3]  # type: ignore[union-attr]
    assert folders(cluster, 1) == {"t-0", "u-0"}
    cluster.start(1)
    cluster.run(4_000)
    assert folders(cluster, 1) == {"u-0"}
    assert folders(cluster, 3) == {"t-0"}


def test_a_log_that_was_commanded_after_the_store_was_asked_stays() -> None:
    cluster = LedCluster()
    cluster.administrator.create("t", [1])
    cluster.run(3_000)
    commands = vars(cluster.node(1))["_commands"]
    commands.leave_out(("t", 0), -1)
    cluster.run(1_000)
    assert folders(cluster, 1) == {"t-0"}
    commands.leave_out(("t", 0), 0)
    cluster.ask(produce("a"), 3)
    cluster.run(1_000)
    assert folders(cluster, 1) == set()
