"""Every broker's way from its start to serving, walked over its questions, heartbeats and announcements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.content import seen_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.registrations import SENT as REGISTERING
from replispec.replay.events.rocketmq.starts import ANSWERS, HEARTBEAT, SENT
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.registration_walks import owners_of
from replispec.replay.machines.rocketmq.releases import walk_of
from replispec.replay.machines.steps import Findings, step
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.machines import replicas_manager

MACHINE: Final = replicas_manager.MACHINE
_SENT: Final = frozenset(SENT.values())
_KINDS: Final = {info.name: kind for kind, info in MACHINE.events.items()}
_ID: Final = MACHINE.finding
_FIRST_TIME: Final = REGISTERING[controller.GetNextBrokerIdRequest.__name__]


@dataclass(slots=True)
class _Broker:
    """One broker: what each of its connections carries, each row with its group, and which of them may have
    lost something.

    `begun`: it was seen from its very first start.
    """

    version: int | None
    begun: bool = False
    holed: set[str] = field(default_factory=set)
    rows: dict[str, list[tuple[Observation, str]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def groups(self) -> Collection[str]:
        """Those that its name is in, by where its rows stand: it may outlive a broker set."""
        return {group for own in self.rows.values() for _, group in own}

    def walk(self, found: Findings) -> None:
        """Connection by connection: these tell no order, so that between two frames of one of them it may
        have done whatever the others show, and on a new one a new process may begin."""
        kinds = {connection: _kinds(own) for connection, own in self.rows.items()}
        for connection, own in self.rows.items():
            elsewhere = [kind for each, others in kinds.items() if each != connection for kind in others]
            walk = walk_of(MACHINE, self.version)
            if self.begun:
                walk.begin()
            for row, group in own:
                if connection in self.holed:
                    walk.forget()
                walk.meanwhile([*dict.fromkeys(elsewhere)])
                message = row.message or HEARTBEAT
                facts = seen_of(row.content, _KINDS[message])
                sent, whole = message in _SENT, not self.holed
                step(walk, row, facts, found[group, _ID], sent=sent, message=message, whole=whole)


def walks_of_starts(rows: Sequence[Observation], groups: BrokerGroups) -> Iterable[GroupWalk]:
    """The machine of a broker's start for each broker whose address is told.

    A broker that asks for its first id on a connection seen from its start begins there; of every other one
    nobody knows how far it was when the capture began.
    """
    owners, holed = owners_of(rows), _with_holes(rows)
    fresh = _first_connections(rows)
    brokers: dict[str, _Broker] = {}
    for row in rows:
        if row.kind != ObservationKind.START and not _is_heartbeat(row, groups):
            continue
        address = row.address or owners.get(row.connection)
        name = groups.name_at(address)
        if address is None or name is None:
            continue
        broker = brokers.setdefault(address, _Broker(groups.version_at(address)))
        broker.begun = broker.begun or row.connection in fresh
        broker.holed |= {row.connection} & holed
        broker.rows[row.connection].append((row, groups.group_of(name, row)))
    return brokers.values()


def _kinds(rows: Sequence[tuple[Observation, str]]) -> tuple[type, ...]:
    """The events that rows are."""
    return tuple(dict.fromkeys(_KINDS[row.message or HEARTBEAT] for row, _ in rows))


def _is_heartbeat(row: Observation, groups: BrokerGroups) -> bool:
    """True for a heartbeat to a controller; name servers get the same command."""
    return row.kind == ObservationKind.ALIVE and row.controller in groups.controllers


def _first_connections(rows: Sequence[Observation]) -> set[str]:
    """Connections, seen from their start, on which a broker without identity asks for its first id."""
    return {
        row.connection
        for row in rows
        if row.kind == ObservationKind.REGISTRATION and row.message == _FIRST_TIME and row.from_start
    }


def _with_holes(rows: Sequence[Observation]) -> set[str]:
    """Connections of which not everything was seen: an answer that is missing may have led a broker on."""
    return {
        row.connection
        for row in rows
        if row.from_start is False
        or row.kind == ObservationKind.UNSEEN
        or (row.kind == ObservationKind.LATENCY and row.code in ANSWERS and row.unanswered)
    }
