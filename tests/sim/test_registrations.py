"""Brokers that register while everything around them fails keep one id for life, and no two have one."""

from __future__ import annotations

from functools import partial

import pytest

from replispec.runtime.sim import NetworkConditions, Rng, SimulatedFiles, World
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from tests.sim.controller_script import CONTROLLER, controller
from tests.sim.nemesis import Nemesis
from tests.sim.registrar import Registrar

BROKERS = ("broker-1", "broker-2", "broker-3")
HOSTS = {"broker-1": "127.0.0.11", "broker-2": "127.0.0.12", "broker-3": "127.0.0.13"}


def run(seed: int) -> tuple[dict[str, list[int]], str]:
    """The ids that each broker went by, and the digest of the trace."""
    rng = Rng(seed)
    world = World(seed, conditions=NetworkConditions(spike_per_mille=20))
    ids: dict[str, list[int]] = {name: [] for name in BROKERS}

    def make(name: str, storage: Storage) -> list[Member]:
        files = storage.files("store")
        return [Member(name, Registrar(files, CONTROLLER, f"{HOSTS[name]}:10911", ids[name]), Stores(files))]

    world.add("controller", "127.0.0.1", controller)
    for name in BROKERS:
        world.add(name, HOSTS[name], partial(make, name))
    for name in ("controller", *BROKERS):
        world.start(name)
    nemesis = Nemesis(
        world, rng, controllers=["controller"], brokers=BROKERS, others=[], master=lambda: "broker-1"
    )
    nemesis.supervise()
    # Early, so that the faults hit the registrations themselves.
    nemesis.plan(2, from_ms=0, until_ms=100)
    nemesis.plan(2, from_ms=100, until_ms=3_000)
    world.run_for(4_000)
    nemesis.heal()
    for known in ids.values():
        known.append(0)
    assert world.run_until(lambda: all(known[-1] for known in ids.values()), at_most_ms=30_000)
    for name in BROKERS:
        kept = SimulatedFiles(world.processes[name].disk, "store").read("brokerIdentity")
        assert kept is not None
    return ids, world.digest()


@pytest.mark.parametrize("seed", range(60))
def test_ids_are_unique_and_kept(seed: int) -> None:
    ids, _ = run(seed)
    known = {name: {each for each in known if each} for name, known in ids.items()}
    assert all(len(each) == 1 for each in known.values()), known
    assert len({min(each) for each in known.values()}) == len(BROKERS), known


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run(11)[1] == run(11)[1] != run(12)[1]
