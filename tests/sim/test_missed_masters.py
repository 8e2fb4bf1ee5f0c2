"""A master that only its controllers miss, while their disk is full or fails, or their leader goes, in the
middle of the hearing before the election: nothing acknowledged is lost, and who lives has a master again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from replispec.runtime.sim import NetworkConditions, Pace
from replispec.runtime.world import Note
from tests.sim.cluster import CONTROLLER, broker_at, build
from tests.sim.run import judged
from tests.sim.settings import PLAIN

TWO_OF_THREE: Final = replace(PLAIN, all_ack=False, in_sync=2)
"""Some members may have what others have not, though it was acknowledged."""
LOST: Final = "broker lost"
LETS_GO: Final = "letting go of the master, which its controller misses"
ELECTED: Final = "master elected"
LASTS_MS: Final = 6_000
HEALED_MS: Final = 30_000


class Missing:
    """A cluster at work whose controllers have just begun to miss its master, which goes on."""

    def __init__(self, seed: int, controllers: int = 1) -> None:
        settings = replace(TWO_OF_THREE, controllers=controllers)
        calm = NetworkConditions(spike_per_mille=0, slow_per_mille=0)
        self.cluster = build(seed, conditions=calm, pace=Pace(), settings=settings)
        self.heard: list[tuple[str, str]] = []
        self._at: dict[str, Callable[[], None]] = {}
        self.world = self.cluster.world
        self.world.notes = self._hear
        for name in (*self.cluster.servers, "client"):
            self.world.start(name)
        assert self.world.run_until(self._is_whole, at_most_ms=60_000)
        self.began = len(self.heard)
        self.master = broker_at(self.cluster.client.master)
        for name in self.cluster.controllers:
            self.world.network.block(self.master, name)

    def _hear(self, name: str, note: Note) -> None:
        self.heard.append((name, note.what))
        if note.what in self._at:
            self.world.after(1, self._at.pop(note.what))

    def _is_whole(self) -> bool:
        history, everyone = self.cluster.history, len(self.cluster.brokers)
        return len(history.acknowledged) > 20 and len(self.cluster.members()) == everyone

    def at(self, what: str, fault: Callable[[], None]) -> None:
        """Let this happen as soon as a process says this for the first time."""
        done: list[bool] = []

        def happen() -> None:
            fault()
            done.append(True)

        self._at[what] = happen
        assert self.world.run_until(lambda: bool(done), at_most_ms=20_000), self.heard[-5:]

    @property
    def leader(self) -> str:
        """The controller that misses the master."""
        return next(name for name, what in self.heard if what == LOST)

    def ends_well(self, *, heals_master: bool) -> None:
        """The fault is over, and with it that of the master, if it is."""
        if heals_master:
            self.world.network.heal()
        history = self.cluster.history
        before = len(history.acknowledged)
        assert self.world.run_until(lambda: len(history.acknowledged) > before + 20, at_most_ms=HEALED_MS), (
            "there is no master"
        )
        self.world.network.heal()
        self.cluster.client.is_sending = False
        self.world.run_for(20_000)
        assert judged(self.cluster) == []
        assert all(process.failure is None for process in self.world.processes.values())


def _killed(missing: Missing, when: str) -> Callable[[], None]:
    missing.at(when, lambda: missing.world.kill(missing.leader, power=True))
    return lambda: missing.world.start(missing.leader)


def _cut_off(missing: Missing, when: str) -> Callable[[], None]:
    """From the other controllers alone: it goes on hearing, and telling, all brokers."""
    network = missing.world.network

    def each_way(change: Callable[[str, str], None]) -> None:
        for other in missing.cluster.controllers:
            if other != missing.leader:
                change(other, missing.leader)
                change(missing.leader, other)

    missing.at(when, lambda: each_way(network.block))
    return lambda: each_way(network.unblock)


def _full(missing: Missing, when: str) -> Callable[[], None]:
    def change(room: Callable[[int], int | None]) -> None:
        disk = missing.world.processes[missing.leader].disk
        disk.room_bytes = room(disk.used_bytes())

    missing.at(when, lambda: change(lambda used: used))
    return lambda: change(lambda _used: None)


@pytest.mark.parametrize("heals_master", [False, True])
@pytest.mark.parametrize("when", [LOST, LETS_GO])
@pytest.mark.parametrize("seed", range(2))
def test_a_controller_without_room_for_its_election_elects_when_it_has(
    seed: int, when: str, *, heals_master: bool
) -> None:
    missing = Missing(seed)
    freed = _full(missing, when)
    missing.world.run_for(LASTS_MS)
    assert (CONTROLLER, ELECTED) not in missing.heard[missing.began :], "nobody can be elected meanwhile"
    freed()
    missing.ends_well(heals_master=heals_master)


@pytest.mark.parametrize("heals_master", [False, True])
@pytest.mark.parametrize("when", [LOST, LETS_GO])
@pytest.mark.parametrize("seed", range(2))
def test_a_controller_whose_disk_fails_in_its_election_goes_on_from_what_is_there(
    seed: int, when: str, *, heals_master: bool
) -> None:
    missing = Missing(seed)
    process = missing.world.processes[CONTROLLER]

    def fail() -> None:
        process.disk.plan = lambda _what: "input/output error"

    missing.at(when, fail)
    assert missing.world.run_until(lambda: not process.is_alive, at_most_ms=20_000)
    missing.world.run_for(LASTS_MS)
    process.disk.mend()
    missing.world.start(CONTROLLER)
    missing.ends_well(heals_master=heals_master)


@pytest.mark.parametrize("heals_master", [False, True])
@pytest.mark.parametrize("fault", [_killed, _cut_off, _full], ids=lambda fault: fault.__name__[1:])
@pytest.mark.parametrize("when", [LOST, LETS_GO])
@pytest.mark.parametrize("seed", range(1))
def test_the_next_leader_of_a_group_elects_in_the_place_of_one_that_goes(
    seed: int, when: str, fault: Callable[[Missing, str], Callable[[], None]], *, heals_master: bool
) -> None:
    missing = Missing(seed, controllers=3)
    over = fault(missing, when)
    missing.world.run_for(LASTS_MS)
    over()
    missing.ends_well(heals_master=heals_master)


def test_all_of_it_is_the_same_in_every_run() -> None:
    heard = []
    for _ in range(2):
        missing = Missing(3)
        missing.at(LETS_GO, lambda: None)
        heard.append(missing.heard)
    assert heard[0] == heard[1]
