"""A broker that dies inside any change of its disk comes back as who it was, with all it acknowledged."""

from __future__ import annotations

from functools import cache

import pytest

from replispec.runtime.sim import Left, NetworkConditions, Pace
from tests.sim.cluster import CONTROLLER, Cluster, broker_at, build

MASTER, REPLICA = "broker-1", "broker-2"
MESSAGES = 12
PATIENCE_STEPS = 1_200
"""Steps of 50 ms: a master that begins again doubts what it had asked for, for `alterationDoubtPeriod`."""


def live(
    victim_name: str, number: int | None = None, left: Left = Left.PART, *, power: bool = False
) -> Cluster:
    """Two brokers from their first start to some messages; one crashes in one of its changes."""
    cluster = build(3, conditions=NetworkConditions(spike_per_mille=0, slow_per_mille=0), pace=Pace())
    world, client, history = cluster.world, cluster.client, cluster.history
    victim = world.processes[victim_name]
    victim.loses_power = power
    if number is not None:
        victim.disk.crash_at(number, left)
    for name in (CONTROLLER, "nameserver", MASTER, "client"):
        world.start(name)
    started = [MASTER]

    def wait_for(messages: int) -> None:
        for step in range(PATIENCE_STEPS):
            if step == 30 and REPLICA not in started:
                started.append(REPLICA)
                world.start(REPLICA)
            if len(history.acknowledged) >= messages and len(cluster.members()) == 2:
                return
            world.run_for(50)
            if not victim.is_alive and victim_name in started:
                assert victim.failure is not None
                assert victim.failure.startswith(("change", "start: change")), victim.failure
                world.run_for(300)
                world.start(victim_name)
        raise AssertionError((len(history.acknowledged), history.views[-1:]))

    wait_for(MESSAGES)
    wait_for(len(history.acknowledged) + 3)
    client.is_sending = False
    world.run_for(3_000)
    return cluster


@cache
def changes(victim: str) -> tuple[str, ...]:
    """What a broker changes on its disk when nothing happens to it."""
    return tuple(live(victim).world.processes[victim].disk.changes)


def check(cluster: Cluster) -> None:
    """Nothing acknowledged is lost, and everybody is who it was."""
    assert cluster.history.judge(cluster.messages(broker_at(cluster.client.master))) == []
    assert len({cluster.log(name).rstrip(b"\0") for name in (MASTER, REPLICA)}) == 1
    identities = [cluster.identity(name) for name in (MASTER, REPLICA)]
    assert None not in identities
    assert len(set(identities)) == 2
    assert {member for view in cluster.history.views for member in view.members} <= {1, 2}


@pytest.mark.parametrize("victim", [MASTER, REPLICA])
def test_every_kind_of_change_is_among_those_that_are_tried(victim: str) -> None:
    assert {change.partition(" ")[0] for change in changes(victim)} >= {
        "replace",
        "rename",
        "make",
        "write",
        "flush",
    }


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
@pytest.mark.parametrize("victim", [MASTER, REPLICA])
@pytest.mark.parametrize("part", range(6))
def test_a_crash_inside_any_change_costs_nothing_that_was_acknowledged(
    part: int, victim: str, power: bool
) -> None:
    lefts = (Left.NOTHING, Left.PART, Left.ALL)
    for number in range(part + 1, len(changes(victim)) + 1, 6):
        check(live(victim, number, lefts[(number + power) % 3], power=power))
