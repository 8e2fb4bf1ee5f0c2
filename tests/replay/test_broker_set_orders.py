"""However the connections of a controller are delayed, what it decided is no fault: some order explains it.

A controller decides in one order about a broker set, as Apache RocketMQ does: masters are lost, brokers start
again on new connections, elections fail and succeed, administrators ask on connections of their own.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from replispec.replay.events.capture_order import in_capture_order
from replispec.replay.events.content import content_of
from replispec.replay.events.observation import Decision, Observation
from replispec.replay.events.rocketmq.decisions import NOTIFIED
from replispec.replay.events.rocketmq.groups import learn_groups
from replispec.replay.machines.group_walks import walked
from replispec.replay.machines.rocketmq.broker_set_walks import walks_of_broker_sets
from replispec.replay.machines.steps import MachineFinding
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq.codes import ResponseCode
from tests.replay.test_stream_events import CONTROLLER, FIRST, SECOND, THIRD, named

ADDRESSES: Final = {1: FIRST, 2: SECOND, 3: THIRD}
STEPS = 40
SEEDS = 15


@dataclass
class World:
    """A controller with one broker set of three brokers, of which some live; what its connections carry.

    `delays`: how much later than it was each connection is captured.
    """

    rng: random.Random
    late: int
    master: int | None = 1
    master_epoch: int = 1
    members: set[int] = field(default_factory=lambda: {1})
    set_epoch: int = 1
    living: set[int] = field(default_factory=lambda: {1, 2, 3})
    starts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    delays: dict[str, int] = field(default_factory=dict)
    rows: list[Observation] = field(default_factory=list)
    clock: int = 100

    def tell(self, connection: str, direction: int, **told: Any) -> None:
        """One frame of the controller's, or to it."""
        self.clock += 10
        delay = self.delays.setdefault(connection, self.rng.randrange(self.late))
        at = self.clock + delay
        self.rows.append(Decision("c", at, at, connection, direction, self.clock, 0, name="broker-a", **told))

    def decide(
        self, connection: str, event: str, asked: dict[str, Any], code: int, claims: dict[str, Any]
    ) -> None:
        """A request and its answer."""
        opaque = self.clock
        content = content_of(asked)
        self.tell(connection, 1, controller=CONTROLLER, message=event, opaque=opaque, content=content)
        self.tell(
            connection,
            0,
            controller=CONTROLLER,
            message=event,
            opaque=opaque,
            code=code,
            accepted=code in (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST),
            content=content_of(claims),
        )

    def of(self, broker: int) -> str:
        """The connection of a broker since its last start."""
        return f"{CONTROLLER}<->{ADDRESSES[broker]}{self.starts[broker]}#1"

    def the_set(self) -> dict[str, Any]:
        return {"sync_state_set": sorted(self.members), "sync_state_set_epoch": self.set_epoch}

    def all(self) -> dict[str, Any]:
        named = {"master": self.master} if self.master is not None else {}
        return {**named, "master_epoch": self.master_epoch, **self.the_set()}

    def elect(self, chosen: int) -> None:
        self.master, self.members = chosen, {chosen}
        self.master_epoch += 1
        self.set_epoch += 1

    def notify(self) -> None:
        for each in sorted(self.living):
            told = content_of(self.all())
            self.tell(
                f"{CONTROLLER}<->{ADDRESSES[each]}notices#1",
                0,
                address=ADDRESSES[each],
                code=1008,
                master=str(self.master),
                master_epoch=self.master_epoch,
                message=NOTIFIED,
                content=told,
            )

    def dies(self, broker: int) -> None:
        """Its heartbeats stop; the controller elects another member, or as Apache RocketMQ does nobody."""
        self.living.discard(broker)
        if broker == self.master and self.rng.random() < 0.7:
            following = sorted(self.members & self.living)
            if following:
                self.elect(self.rng.choice(following))
                self.notify()
            else:
                self.master = None
                self.master_epoch += 1

    def starts_again(self, broker: int) -> None:
        """It registers and asks for an election, before the controller has heard its heartbeats or after."""
        self.starts[broker] += 1
        asked = {"broker_id": broker, "address": ADDRESSES[broker], "cluster_name": "c"}
        lives = self.master is not None and self.master in self.living
        told = self.all() if lives else self.the_set()
        self.decide(self.of(broker), "registered", asked, 0, told)
        if not lives:
            for _ in range(2):
                self.asks(broker)
                self.living.add(broker)
        self.living.add(broker)

    def asks(self, broker: int) -> None:
        asked = {"broker_id": broker, "preferred": None}
        able = sorted(self.members & self.living)
        if not able:
            self.decide(
                self.of(broker), "election_asked", asked, ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, {}
            )
        elif self.master in able:
            told = self.all()
            code = ResponseCode.CONTROLLER_MASTER_STILL_EXIST
            self.decide(self.of(broker), "election_asked", asked, code, told)
        else:
            self.elect(self.rng.choice(able))
            self.decide(self.of(broker), "election_asked", asked, 0, self.all())
            self.notify()

    def alters(self) -> None:
        """The master wants another set of living brokers."""
        master = self.master
        if master is None or master not in self.living:
            return
        wanted = {master, *(each for each in self.living if self.rng.random() < 0.6)}
        asked = {
            "master": master,
            "master_epoch": self.master_epoch,
            "sync_state_set_epoch": self.set_epoch,
            "members": sorted(wanted),
        }
        if wanted != self.members:
            self.members = wanted
            self.set_epoch += 1
            self.decide(self.of(master), "alteration_asked", asked, 0, self.the_set())

    def polls(self, connection: str) -> None:
        self.decide(connection, "info_asked", {}, 0, self.all())

    def step(self) -> None:
        """Whatever happens next."""
        broker = self.rng.choice([1, 2, 3])
        what = self.rng.random()
        if what < 0.3 and broker in self.living:
            self.polls(self.of(broker))
        elif what < 0.5:
            self.polls(f"{CONTROLLER}<->10.0.9.9:{self.clock}#1")
        elif what < 0.75:
            self.alters()
        elif broker in self.living:
            self.dies(broker)
        else:
            self.starts_again(broker)


def finding(world: World) -> MachineFinding:
    rows = in_capture_order([*named(FIRST, SECOND, THIRD), *world.rows])
    groups = learn_groups(rows)
    (only,) = walked(walks_of_broker_sets(rows, groups)).values()
    return only


@pytest.mark.parametrize("late", [1, 200, 4_000])
def test_an_order_is_found_in_which_all_was_decided(late: int) -> None:
    for seed in range(SEEDS):
        world = World(random.Random(f"{late} {seed}"), late)
        for _ in range(STEPS):
            world.step()
        found = finding(world)
        assert found.counts[Verdict.OK] > 0
        assert found.counts[Verdict.VIOLATED] == 0, (seed, [each.says for each in found.faults])
