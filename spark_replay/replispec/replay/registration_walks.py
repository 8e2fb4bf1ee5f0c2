"""Every broker's way to its id and its registration, walked request by request and answer by answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

from replispec.replay.machine_steps import Findings, MachineFinding, step
from replispec.replay.observation import Kind, Observation
from replispec.replay.registrations import FAILED, REFUSED, UNKNOWN_HERE
from replispec.replay.walks import Walk, release_of
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.machines import broker_registration

_ANSWERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    controller.GetNextBrokerIdRequest.__name__: ("next_id_answered", FAILED),
    controller.ApplyBrokerIdRequest.__name__: ("application_granted", REFUSED, FAILED),
    controller.RegisterBrokerToControllerRequest.__name__: ("registered", UNKNOWN_HERE, FAILED),
}
"""The events that the answer to a request may be, by the request's message."""
_OWNING: Final = (Kind.REGISTRATION, Kind.ALIVE)


@dataclass(slots=True)
class _Registration:
    """One broker's registration: on which connection it was last seen, and what it waits for."""

    walk: Walk
    connection: str
    asked: str = ""
    opaque: int | None = None


def owners_of(rows: Sequence[Observation]) -> dict[str, str]:
    """The address of the broker whose registrations or heartbeats a connection carries."""
    return {row.connection: row.address for row in rows if row.kind in _OWNING and row.address}


def walk_registrations(rows: Sequence[Observation], found: Findings) -> None:
    """Walk the machine of registration for each broker."""
    machine = broker_registration.MACHINE
    owners = owners_of(rows)
    brokers: dict[tuple[str, str], _Registration] = {}
    for row in rows:
        if row.kind != Kind.REGISTRATION:
            continue
        key = (row.group or "", owners.get(row.connection) or row.connection)
        broker = brokers.get(key)
        if broker is None:
            walk = Walk(machine, release_of(row.version))
            broker = brokers[key] = _Registration(walk, row.connection)
        _register(broker, row, found[key[0], machine.finding])


def _register(broker: _Registration, row: Observation, finding: MachineFinding) -> None:
    """Step one request or answer. Late answers, to other than the last request, decide nothing any more."""
    sent = row.message in _ANSWERS_OF
    if not sent and (row.connection, row.opaque) != (broker.connection, broker.opaque):
        return
    if sent:
        _catch_up(broker, row)
        broker.asked, broker.opaque = row.message or "", row.opaque
    else:
        broker.opaque = None
    refused = row.message in (REFUSED, UNKNOWN_HERE, FAILED)
    facts = SimpleNamespace(next_broker_id=UNKNOWN if refused else row.broker_id)
    step(broker.walk, row, facts, finding, sent=sent)


def _catch_up(broker: _Registration, row: Observation) -> None:
    """What may have happened since the request before: its answer was lost, the process began again."""
    if not row.from_start:
        broker.walk.forget()
    if broker.opaque is not None:
        broker.walk.perhaps(_ANSWERS_OF[broker.asked])
    if row.connection != broker.connection:
        broker.walk.perhaps(("restarted",))
        broker.connection = row.connection
