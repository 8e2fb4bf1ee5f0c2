"""Losses that Apache RocketMQ has had, played on a whole cluster of ours, and what must come of them.

Each test names the report it comes from. The cluster is calm but for what the scenario does to it.
"""

from __future__ import annotations

import pytest

from replispec.runtime.sim import NetworkConditions, Pace
from replispec.runtime.world import Member
from tests.sim.client import Client
from tests.sim.cluster import BROKERS, CONTROLLER, LEARNERS, Cluster, address, broker_at, build, new_client
from tests.sim.run import differing, is_whole, outsiders

SEEDS = range(5)
HALVES = (("broker-1", "broker-2"), ("broker-3",))


def calm(seed: int, *starting: str) -> Cluster:
    """A cluster in which nothing goes wrong by itself; some of it runs."""
    cluster = build(seed, conditions=NetworkConditions(spike_per_mille=0, slow_per_mille=0), pace=Pace())
    for name in starting:
        cluster.world.start(name)
    return cluster


def wait_for_members(cluster: Cluster, count: int) -> None:
    """Let time pass until the set has so many members, and messages are acknowledged."""
    sent = len(cluster.history.acknowledged)
    assert cluster.world.run_until(
        lambda: len(cluster.members()) == count and len(cluster.history.acknowledged) > sent + 5,
        at_most_ms=30_000,
    ), (cluster.history.views[-1:], sent)


def heal_and_judge(cluster: Cluster) -> None:
    """Start and connect everything again; then nothing may be lost."""
    cluster.nemesis.heal()
    sent = len(cluster.history.acknowledged)
    assert cluster.world.run_until(lambda: is_whole(cluster, sent), at_most_ms=60_000)
    cluster.client.is_sending = False
    cluster.world.run_for(3_000)
    assert cluster.world.run_until(lambda: not differing(cluster), at_most_ms=60_000), differing(cluster)
    assert cluster.history.judge(cluster.messages(broker_at(cluster.client.master))) == []
    assert outsiders(cluster) == []


def isolate(cluster: Cluster, room: tuple[str, ...], others: tuple[str, ...]) -> None:
    """Nothing passes between two groups of processes."""
    for one in room:
        for other in others:
            cluster.world.network.block(one, other)
            cluster.world.network.block(other, one)


def second_client(cluster: Cluster) -> Client:
    """A client in the same room as the old master, which asks nobody else."""
    client = new_client(cluster.history, cluster.rng)
    client.master = cluster.client.master
    client.is_reading = False
    cluster.world.add("client-2", "127.0.0.32", lambda _: [Member("client", client)])
    cluster.world.start("client-2")
    return client


@pytest.mark.parametrize("seed", SEEDS)
def test_a_member_counts_from_when_it_may_have_been_added_not_from_when_the_answer_came(seed: int) -> None:
    """apache/rocketmq #5663: the set grows from {A} to {A, B}, the answer to A is lost, A acknowledges
    alone and dies, B is elected."""
    cluster = calm(seed, CONTROLLER, "nameserver", "broker-1", "client")
    wait_for_members(cluster, 1)
    world = cluster.world
    world.network.block(CONTROLLER, "broker-1")
    world.start("broker-2")
    world.run_until(lambda: len(cluster.members()) == 2, at_most_ms=10_000, step_ms=1)
    # Whatever B has now is all it will ever get.
    isolate(cluster, ("broker-1",), ("broker-2",))
    world.run_for(400)
    world.kill("broker-1", power=True)
    world.run_for(6_000)
    heal_and_judge(cluster)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("room", [1, 2])
def test_an_old_master_in_a_room_of_its_own_confirms_nothing(seed: int, room: int) -> None:
    """apache/rocketmq #7017 (the old master alone) and #6662 (together with a slave)."""
    cluster = calm(seed, CONTROLLER, "nameserver", *BROKERS, "client")
    wait_for_members(cluster, 3)
    master = broker_at(cluster.client.master)
    inside = (master, *[name for name in BROKERS if name != master][: room - 1])
    second_client(cluster)
    cluster.world.run_for(500)
    outside = (CONTROLLER, "nameserver", "client", *(name for name in BROKERS if name not in inside))
    isolate(cluster, (*inside, "client-2"), outside)
    before = {**cluster.history.acknowledged_by}
    cluster.world.run_for(10_000)
    late = {number: by for number, by in cluster.history.acknowledged_by.items() if number not in before}
    assert broker_at(cluster.client.master) not in inside
    assert any(by == cluster.client.master for by in late.values())
    assert sum(by == address(master) for by in late.values()) <= 8, "sent before the room was closed"
    heal_and_judge(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_queue_offsets_are_not_used_twice_after_master_and_controller_died_together(seed: int) -> None:
    """apache/rocketmq #7689: the new master goes back to confirmOffset and gives offsets again."""
    cluster = calm(seed, CONTROLLER, "nameserver", *BROKERS, *LEARNERS, "client")
    wait_for_members(cluster, 3)
    for power in (False, True):
        cluster.world.kill(CONTROLLER, power=power)
        cluster.world.kill(broker_at(cluster.client.master), power=power)
        cluster.world.run_for(2_000)
        cluster.world.start(CONTROLLER)
        cluster.world.run_for(6_000)
    heal_and_judge(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_learner_copies_from_the_next_master_soon_after_a_switch(seed: int) -> None:
    """It asks the name servers when it loses its master, not when it next happens to tell them of itself."""
    cluster = calm(seed, CONTROLLER, "nameserver", *BROKERS, *LEARNERS, "client")
    wait_for_members(cluster, 3)
    assert cluster.world.run_until(lambda: len(cluster.messages(LEARNERS[0])) > 20, at_most_ms=30_000)
    old = cluster.client.master
    cluster.world.kill(broker_at(old), power=False)
    assert cluster.world.run_until(lambda: cluster.client.master != old, at_most_ms=10_000)
    copied = len(cluster.messages(LEARNERS[0]))
    assert cluster.world.run_until(lambda: len(cluster.messages(LEARNERS[0])) > copied + 20, at_most_ms=7_000)
