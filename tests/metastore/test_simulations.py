"""Metastore and clients under faults, from one seed: what all saw is one history, nothing is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.runtime.zookeeper.client import SessionStanding
from tests.linearizable.checker import contradiction, shown
from tests.metastore.simulated import PATHS, Node, Simulation

SEEDS = range(12)


def ended(seed: int, faults: int = 8, *, settles: bool = False) -> Simulation:
    simulation = Simulation(seed, settles=settles)
    simulation.run(faults)
    return simulation


@pytest.mark.parametrize("settles", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_clients_were_told_is_one_history_and_watches_end_at_its_end(seed: int, settles: bool) -> None:
    simulation = ended(seed, settles=settles)
    for path in PATHS:
        history = simulation.history.done[path]
        stuck = contradiction(history, Node())
        assert stuck is None, f"seed {seed} {path}: {stuck}\n{shown(history)}"
    tree: Any = simulation.tree()
    for asker in simulation.askers:
        assert asker.client.session.is_connected, f"seed {seed}: {asker.name}"
        for path in PATHS:
            node, seen = tree.find(path), asker.seen[path]
            assert (node and (node.version, node.data)) == (seen.stat and (seen.stat.version, seen.data)), (
                f"seed {seed}: {asker.name} {path}"
            )
    live = {asker.client.session.number for asker in simulation.askers}
    owners = {node.ephemeral_owner for _, node in tree.nodes()} - {0}
    assert owners <= live, f"seed {seed}: nodes of sessions that are over"


def test_the_simulations_disturb_what_they_claim_to() -> None:
    simulations = [ended(seed) for seed in range(4)]
    stood = {standing for each in simulations for asker in each.askers for standing in asker.stood}
    assert stood >= {SessionStanding.CONNECTING, SessionStanding.CONNECTED, SessionStanding.LOST}
    operations = [each for one in simulations for path in PATHS for each in one.history.done[path]]
    assert len(operations) > 400
    assert sum(each.what.error == 0 and each.what.kind != "get" for each in operations) > 100
    assert sum(each.returned is None for each in operations) > 0
    assert sum(one.world.processes["metastore"].starts for one in simulations) > 6


def test_the_same_seed_is_the_same_run() -> None:
    assert ended(3).world.digest() == ended(3).world.digest()


@pytest.mark.parametrize("power", [False, True])
def test_a_crash_inside_any_write_of_the_metastore_forgets_nothing_that_was_told(power: bool) -> None:
    """A crash at each change of its disk in turn, the others as before."""
    snapshots = 0
    for at in range(1, 46):
        simulation = Simulation(7, clients=2, snapshot_bytes=600)
        world = simulation.world
        process = world.processes["metastore"]
        process.loses_power = power
        process.disk.crash_at(at)
        crashed = world.run_until(simulation.is_down, at_most_ms=12_000)
        assert crashed, f"no change {at}"
        snapshots += process.disk.changes[-1].startswith("replace")
        process.disk.mend()
        world.start("metastore")
        simulation.run(0)
        for path in PATHS:
            history = simulation.history.done[path]
            stuck = contradiction(history, Node())
            assert stuck is None, f"change {at} {path}: {stuck}\n{shown(history)}"
    assert snapshots > 1
