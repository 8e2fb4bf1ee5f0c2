"""Brokers that are their addresses become brokers with ids, one after the other, while controllers and
brokers fail: every one keeps its id, no id has two owners, no masterEpoch two masters, nothing is lost."""

from __future__ import annotations

from functools import partial
from typing import cast

import pytest

from replispec.runtime.sim import NetworkConditions, Rng, SimulatedFiles
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq.machines.broker_set import MACHINE, State, Variables
from tests.sim.controllers import PORT, Controllers
from tests.sim.nemesis import Nemesis
from tests.sim.old_broker import NAME, OldBroker, Told
from tests.sim.registrar import Registrar

BROKERS = ("broker-1", "broker-2", "broker-3")
HOSTS = {name: f"127.0.0.{at}" for at, name in enumerate(BROKERS, start=11)}
ADDRESSES = {name: f"{host}:10911" for name, host in HOSTS.items()}
FAULTS_MS, CALM_MS_MAX = 8_000, 60_000


class Upgrading:
    """A set of three, each of which is of the later generation from its next start on once it `is_later`."""

    def __init__(self, seed: int, size: int) -> None:
        rng = Rng(seed)
        conditions = NetworkConditions(spike_per_mille=20)
        self.group = Controllers(seed, size, conditions, is_short=True).start()
        self.world = self.group.world
        self.told = Told()
        self.is_later: set[str] = set()
        self.ids: dict[str, list[int]] = {name: [] for name in BROKERS}
        for name in BROKERS:
            self.world.add(name, HOSTS[name], partial(self._make, name))
            self.world.start(name)
        self.nemesis = Nemesis(
            self.world,
            rng,
            controllers=list(self.group.hosts),
            brokers=BROKERS,
            others=[],
            master=lambda: BROKERS[0],
        )
        self.nemesis.supervise()
        self.nemesis.plan(6, from_ms=0, until_ms=FAULTS_MS)
        for name in BROKERS[-rng.between(1, 3) :]:
            self.world.after(rng.between(2_000, FAULTS_MS) * 1_000, partial(self._upgrade, name))

    def _make(self, name: str, storage: Storage) -> list[Member]:
        first, *others = [f"{host}:{PORT}" for host in self.group.hosts.values()]
        if name not in self.is_later:
            at, known = ADDRESSES[name], list(ADDRESSES.values())
            return [Member(name, OldBroker([first, *others], at, known, self.told))]
        files = storage.files("store")
        broker = Registrar(files, first, ADDRESSES[name], self.ids[name], others=others)
        return [Member(name, broker, Stores(files))]

    def _upgrade(self, name: str) -> None:
        self.is_later.add(name)
        self.world.kill(name)

    def run(self) -> None:
        """Faults, then calm until everybody is at home."""
        self.world.run_for(FAULTS_MS)
        self.nemesis.heal()
        for known in self.ids.values():
            known.append(0)
        assert self.world.run_until(self._is_whole, at_most_ms=CALM_MS_MAX), (self.told, self.ids)

    def _is_whole(self) -> bool:
        later = all(self.ids[name][-1] for name in self.is_later)
        return later and self.group.records() == 1 and all(self.recorded(name) for name in BROKERS)

    def known(self) -> Variables:
        """What a controller has on record of the set."""
        found = self.group.record(self.group.living()[0]).get(NAME)
        return MACHINE.variables if found is None else cast("tuple[State, Variables]", found)[1]

    def recorded(self, name: str) -> set[int]:
        """The ids that are on record for the address of a broker."""
        return {each for each, at in self.known().addresses.items() if at == ADDRESSES[name]}

    def owners(self) -> dict[str, set[int]]:
        """All ids that each broker was ever told to have, as either generation, and has on record."""
        return {
            name: self.told.ids.get(ADDRESSES[name], set())
            | {each for each in self.ids[name] if each}
            | self.recorded(name)
            for name in BROKERS
        }


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("seed", range(12))
def test_whoever_is_upgraded_keeps_its_id_and_an_epoch_has_one_master(seed: int, size: int) -> None:
    upgrading = Upgrading(seed, size)
    upgrading.run()
    owners = upgrading.owners()
    assert all(len(ids) == 1 for ids in owners.values()), owners
    assert len(set.union(*owners.values())) == len(BROKERS), owners
    assert all(len(masters) == 1 for masters in upgrading.told.masters.values()), upgrading.told.masters
    for name in upgrading.is_later:
        kept = SimulatedFiles(upgrading.world.processes[name].disk, "store").read("brokerIdentity")
        assert kept is not None
    known = upgrading.known()
    assert known.next_broker_id == len(BROKERS) + 1
    addresses = {ADDRESSES[name] for name in BROKERS if name not in upgrading.is_later}
    assert {known.addresses[each] for each in known.by_address} == addresses


def test_masters_of_the_earlier_generation_change_their_sets() -> None:
    granted = [each for seed in range(3) for each in _granted(seed)]
    assert max(map(len, granted)) == len(BROKERS)


def _granted(seed: int) -> list[frozenset[str]]:
    upgrading = Upgrading(seed, 3)
    upgrading.run()
    return upgrading.told.granted
