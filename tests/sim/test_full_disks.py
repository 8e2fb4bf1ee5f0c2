"""Disks that fill up under a cluster that is at work: refused, nothing acknowledged lost, and on it goes."""

from __future__ import annotations

import pytest

from replispec.runtime.sim import NetworkConditions, Pace
from tests.sim.cluster import BROKERS, CONTROLLER, LEARNER, SERVERS, Cluster, broker_at, build
from tests.sim.run import misled

FULL_MS = 15_000


def running(seed: int) -> Cluster:
    """A cluster that has stored something, with two members in its set at least."""
    cluster = build(seed, conditions=NetworkConditions(spike_per_mille=0, slow_per_mille=0), pace=Pace())
    for name in (*SERVERS, "client"):
        cluster.world.start(name)
    assert cluster.world.run_until(
        lambda: len(cluster.history.acknowledged) > 20 and len(cluster.members()) > 1, at_most_ms=60_000
    )
    return cluster


def fill(cluster: Cluster, *names: str) -> None:
    """No more room on the disks of these."""
    for name in names:
        disk = cluster.world.processes[name].disk
        disk.room_bytes = disk.used_bytes()


def free(cluster: Cluster, *names: str) -> None:
    """Room for everything."""
    for name in names:
        cluster.world.processes[name].disk.room_bytes = None


def check(cluster: Cluster) -> None:
    """Messages are acknowledged again, and nothing is lost."""
    before = len(cluster.history.acknowledged)
    world, client = cluster.world, cluster.client
    assert world.run_until(lambda: len(cluster.history.acknowledged) > before + 20, at_most_ms=60_000)
    client.is_sending = False
    world.run_for(20_000)
    master = broker_at(client.master)
    assert cluster.history.judge(cluster.messages(master)) == []
    assert misled(cluster) == []
    assert all(process.failure is None for process in world.processes.values())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("names", [(CONTROLLER,), BROKERS, (LEARNER,), SERVERS], ids=lambda names: names[0])
def test_full_disks_end_nobody_and_cost_nothing(names: tuple[str, ...], seed: int) -> None:
    cluster = running(seed)
    fill(cluster, *names)
    cluster.world.run_for(FULL_MS)
    assert all(cluster.world.processes[name].is_alive for name in SERVERS)
    free(cluster, *names)
    check(cluster)


@pytest.mark.parametrize("seed", range(3))
def test_a_master_that_dies_while_the_controller_has_no_room_is_replaced_when_it_has(seed: int) -> None:
    cluster = running(seed)
    fill(cluster, CONTROLLER)
    master = broker_at(cluster.client.master)
    epoch = cluster.history.views[-1].epoch
    cluster.world.kill(master)
    cluster.world.run_for(FULL_MS)
    assert cluster.history.views[-1].epoch == epoch
    free(cluster, CONTROLLER)
    cluster.world.run_for(10_000)
    cluster.world.start(master)
    check(cluster)
    assert cluster.history.views[-1].epoch > epoch


@pytest.mark.parametrize("seed", range(3))
def test_brokers_that_start_on_full_disks_serve_when_there_is_room(seed: int) -> None:
    cluster = running(seed)
    fill(cluster, *BROKERS)
    for name in BROKERS:
        cluster.world.kill(name)
        cluster.world.run_for(500)
        cluster.world.start(name)
    cluster.world.run_for(FULL_MS)
    free(cluster, *BROKERS)
    check(cluster)
