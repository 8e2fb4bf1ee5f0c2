"""Replication under faults of every kind: what all members had is never lost, and all logs end the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest

from replispec.runtime.sim import Rng, World
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from tests.sim.client import number_of, records
from tests.sim.cluster_kinds import some_conditions, some_pace
from tests.sim.nemesis import Fault, Nemesis
from tests.sim.replication_only import FILE_BYTES, Arbiter, Copier

HOSTS = {1: "127.0.0.11", 2: "127.0.0.12", 3: "127.0.0.13"}
NAMES = {number: f"broker-{number}" for number in HOSTS}


@dataclass
class Copies:
    """Three brokers and their arbiter."""

    world: World
    arbiter: Arbiter
    nemesis: Nemesis
    rng: Rng

    def arbitrate(self) -> None:
        """Now and then another member, or one that lives when the master does not, becomes master."""
        arbiter = self.arbiter
        living = [each for each in HOSTS if self.world.processes[NAMES[each]].is_alive]
        electable = [each for each in living if each in arbiter.members or not arbiter.members]
        # A master that is gone often comes back before anybody else is elected.
        is_gone = arbiter.master not in living and (not arbiter.is_sending or self.rng.happens(300))
        wanted = is_gone or not arbiter.master or (arbiter.is_sending and self.rng.happens(30))
        if wanted and electable:
            arbiter.elect(self.rng.one_of(electable))
        self.world.after(self.rng.between(100, 500) * 1_000, self.arbitrate)

    def log(self, broker: int) -> bytes:
        """The log of a broker, as its disk holds it."""
        contents = self.world.processes[NAMES[broker]].disk.contents
        names = sorted(name for name in contents if name.startswith("store/commitlog/"))
        return b"".join(bytes(contents[name].data) for name in names)

    def settled(self) -> bool:
        """Whether all brokers are members and have the same log."""
        return (
            len(self.arbiter.members) == len(HOSTS)
            and len({self.log(each).rstrip(b"\0") for each in HOSTS}) == 1
        )

    def lost(self) -> list[int]:
        """The acknowledged messages that the last master's log does not hold where they were."""
        log = self.log(self.arbiter.master)
        held = {
            number_of(record): record.physical_offset
            for start in range(0, len(log), FILE_BYTES)
            for record in records(log[start : start + FILE_BYTES])
        }
        return [number for number, at in self.arbiter.acknowledged.items() if held.get(number) != at]


def build(seed: int) -> Copies:
    """The brokers run."""
    rng = Rng(seed)
    world = World(rng.bits(), conditions=some_conditions(rng), pace=some_pace(rng))
    arbiter = Arbiter({number: f"{host}:10912" for number, host in HOSTS.items()})

    def make(number: int, broker_rng: Rng, storage: Storage) -> list[Member]:
        files = storage.files("store")
        return [Member("copier", Copier(number, files, arbiter, broker_rng), Stores(files))]

    for number, host in HOSTS.items():
        world.add(NAMES[number], host, partial(make, number, rng.fork()))
        world.start(NAMES[number])
    names = list(NAMES.values())
    nemesis = Nemesis(
        world,
        rng.fork(),
        controllers=names,
        brokers=names,
        others=[],
        master=lambda: NAMES[arbiter.master or 1],
    )
    copies = Copies(world, arbiter, nemesis, rng.fork())
    copies.arbitrate()
    return copies


def run(seed: int) -> tuple[list[str], list[Fault], str]:
    """What was wrong, what was done, and the digest of the trace."""
    copies = build(seed)
    copies.nemesis.supervise()
    copies.nemesis.plan(6, from_ms=500, until_ms=8_000)
    copies.world.run_for(9_000)
    copies.nemesis.heal()
    copies.world.run_for(2_000)
    copies.arbiter.is_sending = False
    wrong = []
    if not copies.world.run_until(copies.settled, at_most_ms=30_000):
        wrong.append(f"not settled: {copies.arbiter}")
    lost = copies.lost()
    if lost:
        wrong.append(f"{len(lost)} of {len(copies.arbiter.acknowledged)} lost: {lost[:5]}")
    return wrong, copies.nemesis.faults, copies.world.digest()


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_what_all_members_had_is_never_lost(first: int) -> None:
    for seed in range(first, first + 10):
        wrong, faults, _ = run(seed)
        assert wrong == [], f"seed {seed}: {faults}"
