"""Every broker that is known as an async learner, walked by its handshakes and what controllers say of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.machines.steps import Findings, MachineFinding, step
from replispec.replay.machines.walks import Walk
from replispec.wire.rocketmq.machines import learner

MACHINE = learner.MACHINE
REPLICA_INFO = MACHINE.events[learner.ReplicaInfoReceived].name


@dataclass(slots=True)
class _Claims:
    """What a controller said last about one group."""

    master: str | None = None
    members: frozenset[str] = frozenset()

    def learn(self, row: Observation) -> None:
        """An answer that names no master leaves the one that was named before."""
        self.master = row.master or self.master
        self.members = self.members if row.members is None else frozenset(row.members)


def walk_learners(rows: Sequence[Observation], given: Collection[str], found: Findings) -> None:
    """Walk each broker that `given` names, or that some handshake calls a learner.

    Brokers are named as in the facts. What happened before the capture is not known, unless `given` tells.
    """
    walks = _learners(rows, given)
    claims: dict[str, _Claims] = defaultdict(_Claims)
    replicas: dict[str, str] = {}
    for row in rows:
        group = row.group or ""
        if group not in walks:
            continue
        finding = found[group, MACHINE.finding]
        if row.kind == ObservationKind.HANDSHAKE:
            replicas[row.connection] = name_of(row)
        if row.kind in (ObservationKind.HANDSHAKE, ObservationKind.REPORT):
            walk = walks[group].get(replicas.get(row.connection, ""))
            if walk is not None:
                step(walk, row, SimpleNamespace(async_learner=row.async_learner), finding, sent=True)
        elif row.kind == ObservationKind.FACT and (row.master is not None or row.members is not None):
            claims[group].learn(row)
            for name, walk in walks[group].items():
                _tell(walk, row, name, claims[group], finding)


def name_of(handshake: Observation) -> str:
    """The replica's name: its id in decimal, in old releases its address."""
    return str(handshake.broker_id) if handshake.text is None else handshake.text


def _learners(rows: Sequence[Observation], given: Collection[str]) -> dict[str, dict[str, Walk]]:
    walks: dict[str, dict[str, Walk]] = defaultdict(dict)
    for row in rows:
        if row.group is None:
            continue
        if row.kind == ObservationKind.FACT:
            for name in given:
                if name not in walks[row.group]:
                    walk = walks[row.group][name] = Walk(MACHINE, None)
                    walk.begin()
                    walk.step(learner.Configured, SimpleNamespace())
        elif row.kind == ObservationKind.HANDSHAKE and row.async_learner:
            walks[row.group].setdefault(name_of(row), Walk(MACHINE, None))
    return walks


def _tell(walk: Walk, row: Observation, name: str, claims: _Claims, finding: MachineFinding) -> None:
    facts = SimpleNamespace(is_member=name in claims.members, is_master=name == claims.master)
    judged = walk.step(learner.ReplicaInfoReceived, facts)
    finding.note(judged.verdict, f"{judged.says} (broker {name})" if judged.says else "", row)
