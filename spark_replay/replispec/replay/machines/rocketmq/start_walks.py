"""Every broker's way from its start to serving, walked over its questions, heartbeats and announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.content import seen_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.registrations import SENT as REGISTERING
from replispec.replay.events.rocketmq.starts import ANSWERS, HEARTBEAT, SENT
from replispec.replay.machines.rocketmq.registration_walks import owners_of
from replispec.replay.machines.steps import Findings, step
from replispec.replay.machines.walks import Walk, release_of
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.machines import replicas_manager

MACHINE: Final = replicas_manager.MACHINE
_SENT: Final = frozenset(SENT.values())
_KINDS: Final = {info.name: kind for kind, info in MACHINE.events.items()}
_FIRST_TIME: Final = REGISTERING[controller.GetNextBrokerIdRequest.__name__]


@dataclass(slots=True)
class _Broker:
    """One broker; each of its connections may be the first one of a new process."""

    walk: Walk
    connections: set[str] = field(default_factory=set)


def walk_starts(rows: Sequence[Observation], groups: BrokerGroups, found: Findings) -> None:
    """Walk the machine of a broker's start for each broker whose address is told.

    A broker that asks for its first id on a connection seen from its start begins there; of every other
    one nobody knows how far it was when the capture began.
    """
    owners = owners_of(rows)
    fresh, holed = _first_connections(rows), _with_holes(rows)
    brokers: dict[str, _Broker] = {}
    for row in rows:
        if row.kind != ObservationKind.START and not _is_heartbeat(row, groups):
            continue
        address = row.address or owners.get(row.connection)
        name = groups.name_at(address)
        if address is None or name is None:
            continue
        if address not in brokers:
            brokers[address] = _Broker(Walk(MACHINE, release_of(groups.version_at(address))))
            if row.connection in fresh:
                brokers[address].walk.begin()
        broker = brokers[address]
        if row.connection not in broker.connections:
            broker.connections.add(row.connection)
            broker.walk.perhaps_anew()
        if row.connection in holed:
            broker.walk.forget()
        message = row.message or HEARTBEAT
        facts = seen_of(row.content, _KINDS[message])
        group = groups.group_of(name, row.controller, row.order)
        step(broker.walk, row, facts, found[group, MACHINE.finding], sent=message in _SENT, message=message)


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
    """Connections of which not everything was seen: an answer that is missing may have led a broker on.

    Bytes that were lost of an answer leave its request unanswered; those of a request show in the next
    command of its direction.
    """
    return {
        row.connection
        for row in rows
        if row.from_start is False
        or (row.kind == ObservationKind.LATENCY and row.code in ANSWERS and row.unanswered)
    }
