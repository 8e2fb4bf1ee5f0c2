"""Every broker that is known as an async learner, walked by its handshakes and what controllers say of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.releases import walk_of
from replispec.replay.machines.steps import Findings, MachineFinding, step
from replispec.replay.machines.walks import Walk
from replispec.wire.rocketmq.machines import learner

MACHINE = learner.MACHINE
_REPLICATION = (
    ObservationKind.OPENED,
    ObservationKind.HANDSHAKE,
    ObservationKind.REPORT,
    ObservationKind.GAP,
)


@dataclass(slots=True)
class _Group:
    """What one capture shows of a group: its connections, and what each replica called itself.

    `declared`: whether it called itself a learner, for every handshake of each replica. `whole`: every
    replication connection was seen from its start, and nothing of it was lost.
    """

    replication: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    told: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    declared: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    whole: bool = True


@dataclass(slots=True)
class _Claims:
    """What a controller said last on one connection; None is what it did not say yet."""

    master: str | None = None
    epoch: int | None = None
    members: frozenset[str] | None = None

    def learn(self, row: Observation) -> None:
        """An answer that names no master leaves the one that was named before."""
        self.master = row.master or self.master
        self.epoch = self.epoch if row.master_epoch is None else row.master_epoch
        self.members = self.members if row.members is None else frozenset(row.members)


@dataclass(frozen=True, slots=True)
class _Learners:
    """Those brokers of a group that are walked as learners."""

    group: str
    own: _Group
    names: Collection[str]
    given: Collection[str]

    @property
    def groups(self) -> Collection[str]:
        """Their group."""
        return (self.group,)

    def walk(self, found: Findings) -> None:
        """Each of them, connection by connection."""
        for name in self.names:
            _walk(self.own, name, found[self.group, MACHINE.finding], is_given=name in self.given)


def walks_of_learners(rows: Sequence[Observation], given: Collection[str]) -> Iterator[GroupWalk]:
    """Each broker that `given` names, or that some handshake calls a learner.

    Brokers are named as in the facts. What happened before the capture is not known, unless `given` tells.
    What a broker calls itself to its master and what controllers say of it are ordered by one thing alone:
    a broker that joins a SyncStateSet has said before, in a handshake with the master, what it is.
    """
    for group, own in _groups(rows).items():
        learners = {name for name, declared in own.declared.items() if any(declared)}
        names = [*dict.fromkeys((*(given if own.told else ()), *sorted(learners)))]
        if names:
            yield _Learners(group, own, names, given)


def name_of(handshake: Observation) -> str:
    """The replica's name: its id in decimal, in old releases its address."""
    return str(handshake.broker_id) if handshake.text is None else handshake.text


def _groups(rows: Sequence[Observation]) -> dict[str, _Group]:
    groups: dict[str, _Group] = defaultdict(_Group)
    for row in rows:
        if row.group is None:
            continue
        if row.kind in _REPLICATION:
            own = groups[row.group]
            before = own.replication[row.connection]
            opened = row.kind == ObservationKind.OPENED
            own.whole = own.whole and row.kind != ObservationKind.GAP and (opened or bool(before))
            before.append(row)
            if row.kind == ObservationKind.HANDSHAKE:
                own.declared[name_of(row)].append(bool(row.async_learner))
        elif row.kind == ObservationKind.FACT:
            groups[row.group].told[row.connection].append(row)
    return groups


def _walk(own: _Group, name: str, finding: MachineFinding, *, is_given: bool) -> None:
    """Walk one broker over every connection; elsewhere anything that the others show may happen meanwhile."""
    kinds = {True: learner.Declared, False: learner.JoinedAsReplica}
    called = [kinds[each] for each in dict.fromkeys(own.declared.get(name, ()))]
    for rows in own.replication.values():
        walk = _begun(is_given=is_given)
        replica: str | None = None
        for row in rows:
            if row.kind == ObservationKind.HANDSHAKE:
                replica = name_of(row)
            if replica == name and row.kind in (ObservationKind.HANDSHAKE, ObservationKind.REPORT):
                walk.meanwhile([learner.ReplicaInfoReceived, *called])
                step(walk, row, SimpleNamespace(async_learner=row.async_learner), finding, sent=True)
    for rows in own.told.values():
        walk = _begun(is_given=is_given)
        claims = _Claims()
        for row in rows:
            if row.master is not None or row.members is not None:
                walk.meanwhile(called)
                if own.whole and called == [learner.Declared] and _joins(claims, row, name):
                    walk.step(learner.Declared, SimpleNamespace(async_learner=True))
                claims.learn(row)
                _tell(walk, row, name, claims, finding)


def _begun(*, is_given: bool) -> Walk:
    walk = walk_of(MACHINE)
    if is_given:
        walk.begin()
        walk.step(learner.Configured, SimpleNamespace())
    return walk


def _joins(before: _Claims, row: Observation, name: str) -> bool:
    """True when the broker became a member between the last word of a controller and this one, under the same
    master: it has replicated then."""
    if row.members is None or before.members is None or before.master is None:
        return False
    is_new = name in row.members and name not in before.members
    same = row.master in (None, before.master) and row.master_epoch in (None, before.epoch)
    return is_new and same and name != before.master


def _tell(walk: Walk, row: Observation, name: str, claims: _Claims, finding: MachineFinding) -> None:
    facts = SimpleNamespace(is_member=name in (claims.members or ()), is_master=name == claims.master)
    judged = walk.step(learner.ReplicaInfoReceived, facts)
    finding.note(judged.verdict, f"{judged.says} (broker {name})" if judged.says else "", row)
