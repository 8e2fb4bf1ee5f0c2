"""A learner that dies inside any change of its disk tells of every confirmed message once, all the same."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import pytest

from replispec.learner.rocketmq.core.export import Export
from replispec.runtime.sim import Left, NetworkConditions, Pace
from tests.sim.cluster import CONTROLLER, LEARNER, Cluster, build
from tests.sim.run import misled

MASTER = "broker-1"
MESSAGES = 30


def live(
    number: int | None = None, left: Left = Left.PART, *, power: bool = False, behind: bool = False
) -> Cluster:
    """A broker and a learner from their first start to some messages; the learner crashes in one change.
    `behind`: it starts when all of them are there, and copies them at once."""
    cluster = build(5, conditions=NetworkConditions(spike_per_mille=0, slow_per_mille=0), pace=Pace())
    world = cluster.world
    learner = world.processes[LEARNER]
    learner.loses_power = power
    if number is not None:
        learner.disk.crash_at(number, left)
    for name in (CONTROLLER, "nameserver", MASTER, "client"):
        world.start(name)
    if behind:
        assert world.run_until(lambda: len(cluster.messages(MASTER)) >= MESSAGES, at_most_ms=60_000)
    world.start(LEARNER)

    def is_caught_up() -> bool:
        if not learner.is_alive:
            world.run_for(300)
            world.start(LEARNER)
        known = len(cluster.exported())
        # Until the learner has followed for a while: what it copies at once at first is one change.
        cluster.client.is_sending = cluster.client.is_sending and known < MESSAGES
        return not cluster.client.is_sending and known == len(cluster.messages(MASTER))

    assert world.run_until(is_caught_up, at_most_ms=60_000), cluster.exported()
    return cluster


@cache
def changes() -> tuple[str, ...]:
    """What the learner changes on its disk when nothing happens to it."""
    return tuple(live().world.processes[LEARNER].disk.changes)


def test_every_kind_of_change_is_among_those_that_are_tried() -> None:
    assert {change.partition(" ")[0] for change in changes()} >= {
        "replace",
        "make",
        "write",
        "flush",
        "append",
    }


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
@pytest.mark.parametrize("part", range(4))
def test_a_crash_inside_any_change_costs_no_message_and_tells_none_twice(part: int, power: bool) -> None:
    lefts = (Left.NOTHING, Left.PART, Left.ALL)
    for number in range(part + 1, len(changes()) + 1, 4):
        cluster = live(number, lefts[(number + power) % 3], power=power)
        assert misled(cluster) == [], changes()[number - 1]
        assert cluster.log(LEARNER).rstrip(b"\0") == cluster.log(MASTER).rstrip(b"\0")
        assert all(cluster.broker_id(LEARNER) not in view.members for view in cluster.history.views)


@pytest.mark.parametrize("behind", [False, True])
def test_nothing_is_exported_before_it_is_on_the_disk_with_its_epoch(behind: bool) -> None:
    """Else who crashes between cuts what it had exported, and takes it back."""
    write, seen = Export._write, []

    def watched(export: Export, lines: list[bytes], end: int, cut: int | None) -> None:
        seen.append(cut is not None or (export._store.is_settled and end <= export._store.log.flushed))
        write(export, lines, end, cut)

    with patch.object(Export, "_write", watched):
        live(behind=behind)
    assert seen
    assert all(seen)
