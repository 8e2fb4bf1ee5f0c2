"""A group of controllers in the simulated world, as its process is configured, and who asks whoever leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import replispec.controller.rocketmq.process
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.configuration import parse
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import NetworkConditions, Rng, World
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member, Note
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.asker import AGAIN_MS, Asker, Question

PORT = 9878
ELECTED_MS_MAX = 10_000
SHORT_RECORDS = 4
"""Records after which a controller with a short log keeps what they have made instead."""


def hosts(size: int = 3) -> dict[str, str]:
    """The host of each controller, by its name."""
    return {f"controller-{number}": f"127.0.0.{number}" for number in range(1, size + 1)}


def peers(size: int = 3) -> str:
    """controllerDLegerPeers."""
    return ";".join(f"n{number}-127.0.0.{number}:{PORT}" for number in range(1, size + 1))


def properties(name: str, size: int = 3) -> dict[str, object]:
    """How a controller of a group is configured; shorter times than the defaults."""
    return {
        "controllerDLegerGroup": "simulation",
        "controllerDLegerPeers": peers(size),
        "controllerDLegerSelfId": f"n{name.rpartition('-')[2]}",
        "controllerStorePath": "controller",
        "scanNotActiveBrokerInterval": 500,
        "scanInactiveMasterInterval": 500,
        "electedListeningPeriod": 2_000,
    }


def make(of: Mapping[str, object], rng: Rng, storage: Storage, short: bool = False) -> Sequence[Member]:
    """What a process holds that is configured so; `short`: its log is kept for a few records alone."""
    text = "".join(f"{key}={value}\n" for key, value in of.items())
    options = parse(text, ROLES["controller"]).options
    seed = rng.bits()
    if not short:
        return replispec.controller.rocketmq.process.members(options, storage, seed)
    kept = MemberOptions(snapshot_keeps_entries=1, snapshot_part_bytes=100)
    controller = replispec.controller.rocketmq.process.controller
    return [
        controller(
            options, storage, seed, ends_process=True, snapshot_records=SHORT_RECORDS, member_options=kept
        )
    ]


@dataclass
class Controllers:
    """Such a group and what it noted; `overrides` change what single ones are configured with. `is_short`:
    their logs are kept for a few records alone."""

    seed: int
    size: int = 3
    conditions: NetworkConditions = field(default_factory=NetworkConditions)
    overrides: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    notes: list[tuple[str, Note]] = field(default_factory=list)
    is_short: bool = False

    def __post_init__(self) -> None:
        rng = Rng(self.seed)
        self.world = World(self.seed, conditions=self.conditions)
        self.world.notes = lambda name, note: self.notes.append((name, note))
        self.hosts = hosts(self.size)
        for name, host in self.hosts.items():
            self.world.add(name, host, partial(self._make, name, rng.fork()))
        self._askers = 0

    def _make(self, name: str, rng: Rng, storage: Storage) -> Sequence[Member]:
        of = properties(name, self.size) | dict(self.overrides.get(name, {}))
        return make(of, rng, storage, short=self.is_short)

    def start(self) -> Controllers:
        """All of them start."""
        for name in self.hosts:
            self.world.start(name)
        return self

    def node(self, name: str) -> ControllerNode:
        """What lives in a process."""
        (found,) = self.world.processes[name].nodes
        assert isinstance(found, ControllerNode)
        return found

    def living(self) -> list[str]:
        """Those that run."""
        return [name for name in self.hosts if self.world.processes[name].nodes]

    def leaders(self) -> list[str]:
        """Who believes to lead."""
        return [name for name in self.living() if self.node(name)._leads]

    def leader(self, *, but: Sequence[str] = ()) -> str:
        """The one that leads, soon."""

        def found() -> list[str]:
            return [name for name in self.leaders() if name not in but]

        assert self.world.run_until(lambda: len(found()) == 1, at_most_ms=ELECTED_MS_MAX), self.leaders()
        return found()[0]

    def follower(self) -> str:
        """One that does not lead."""
        leader = self.leader()
        return next(name for name in self.living() if name != leader)

    def term(self, name: str) -> int:
        """The newest term that one of them knows."""
        consensus = self.node(name)._log._consensus
        assert consensus is not None
        return consensus.term

    def records(self) -> int:
        """How many different records they have."""
        return len({str(self.record(each)) for each in self.living()})

    def record(self, name: str) -> dict[str, object]:
        """All that one of them has on record."""
        return {each.name: (each.state, each.variables) for each in self.node(name)._sets}

    def noted(self, what: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Who noted this, with its values."""
        return [(name, note.values) for name, note in self.notes if note.what == what]

    def add(self, asker: Asker) -> Asker:
        """Start who asks."""
        self._askers += 1
        name = f"asker-{self._askers}"
        self.world.add(name, f"127.0.1.{self._askers}", lambda _: [Member(name, asker)])
        self.world.start(name)
        return asker

    def ask(self, name: str, *questions: Question) -> list[Command]:
        """Ask one of them, and take its answers."""
        asker = self.add(Asker(f"{self.hosts[name]}:{PORT}", questions))
        assert self.world.run_until(lambda: asker.is_done, at_most_ms=10_000), asker.answers
        return asker.answers

    def codes(self, name: str, *questions: Question) -> list[int]:
        """Likewise, of its answers the codes."""
        return [answer.header.code for answer in self.ask(name, *questions)]


@dataclass
class GroupAsker(Asker):
    """Asks whoever leads: who refuses to, or does not answer, is passed over."""

    addresses: Sequence[str] = ()

    def _answered(self, outcome: Outcome, now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code == ResponseCode.CONTROLLER_NOT_LEADER:
            place = self.addresses.index(self.address)
            self.address = self.addresses[(place + 1) % len(self.addresses)]
            super()._answered(Failure("it does not lead", True), now_ms)
            self._next_ms = now_ms + AGAIN_MS
        else:
            super()._answered(outcome, now_ms)


def asking_the_group(
    group: Controllers, questions: Sequence[Question], preamble: Sequence[Question]
) -> Asker:
    """Somebody who asks all of this of whoever leads."""
    addresses = [f"{host}:{PORT}" for host in group.hosts.values()]
    return group.add(GroupAsker(addresses[0], questions, preamble, addresses=addresses))
