"""A partition is added, one moves, a topic is deleted, under load; somebody ends at one moment of it, each in
turn: the metastore and brokers inside every change of their disks, the controller around every operation that
it asks of the store. Then everything was done, and nothing is left over.

`REPLISPEC_CRASHES=all` plays every moment, else a sample.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.sim_kafka.cluster import CONTROLLERS, METASTORE
from tests.sim_kafka.scenes import PartitionsScene
from tests.sim_kafka.wishes import TopicWish

SAMPLE = 5
"""Of each kind so many moments are played, from first to last."""
PLAYS_ALL = os.environ.get("REPLISPEC_CRASHES") == "all"
DISKS = (METASTORE, "broker-2", "broker-4")
WISHES = (
    TopicWish("grow", "kept", [[1, 2]], 1),
    TopicWish("move", "kept", [[4, 2]]),
    TopicWish("delete", "gone"),
)


class StoreTap:
    """Counts what passes between candidates and the store, and has the one that is in office end at the
    `number`-th: its request is at the store, or the answer is at its door."""

    def __init__(self, scene: PartitionsScene, number: int) -> None:
        self.count = 0
        self._scene = scene
        self._number = number
        world = scene.cluster.world
        self._hosts = {world.processes[each].host for each in CONTROLLERS}
        self._store = world.processes[METASTORE].host

    def opened(self, dialer: str, listener: str, now_us: int) -> None:
        """See `NetworkTap`."""

    def ended(self, source: str, target: str, now_us: int, *, is_reset: bool) -> None:
        """See `NetworkTap`."""

    def carried(self, source: str, target: str, data: bytes, now_us: int) -> None:
        """See `NetworkTap`."""
        del data, now_us
        ends = {source.rpartition(":")[0], target.rpartition(":")[0]}
        if self._store in ends and ends & self._hosts:
            self.count += 1
            if self.count == self._number:
                self._scene.cluster.world.kill(self._scene.controller)


def begun() -> PartitionsScene:
    """Two topics, one of which is to go."""
    scene = PartitionsScene(brokers=4, seed=5)
    scene.make("gone", [2, 3])
    return scene


def carried_out(scene: PartitionsScene) -> None:
    """Everything is wished, and done in the end."""
    scene.nemesis.supervise()
    scene.wish(*WISHES)
    scene.run_for(3_000)
    scene.end()
    assert scene.record.assigned == (4, 2)
    assert ("kept", 1) in scene.cluster.stored
    assert "gone" not in scene.cluster.topics


@cache
def moments() -> dict[str, int]:
    """How many there are, of a run in which nobody ends."""
    scene = begun()
    disks = {name: scene.cluster.world.processes[name].disk for name in DISKS}
    before = {name: len(disk.changes) for name, disk in disks.items()}
    tap = scene.cluster.world.network.tap = StoreTap(scene, 0)
    scene.nemesis.supervise()
    scene.wish(*WISHES)
    scene.run_for(3_000)
    found = {name: len(disk.changes) - before[name] for name, disk in disks.items()} | {"store": tap.count}
    scene.end()
    return found


def played(what: str) -> range:
    """The moments that are played."""
    count = moments()[what]
    return range(1, count + 1, 1 if PLAYS_ALL else max(1, count // SAMPLE))


@pytest.mark.parametrize("name", DISKS)
def test_whoever_ends_inside_a_change_of_its_disk_finishes_what_was_wished(name: str) -> None:
    assert moments()[name] > SAMPLE
    for number in played(name):
        scene = begun()
        process = scene.cluster.world.processes[name]
        starts = process.starts
        process.disk.crash_at(number)
        carried_out(scene)
        # How fast others answer differs a little once one has ended: the last changes may not come.
        assert process.starts > starts or number > moments()[name] * 3 // 4, f"no change {number}"


def test_a_controller_that_ends_around_an_operation_of_the_store_leaves_nothing_half_done() -> None:
    assert moments()["store"] > SAMPLE
    for number in played("store"):
        scene = begun()
        first = scene.controller
        starts = scene.cluster.world.processes[first].starts
        scene.cluster.world.network.tap = StoreTap(scene, number)
        carried_out(scene)
        assert scene.cluster.world.processes[first].starts > starts
