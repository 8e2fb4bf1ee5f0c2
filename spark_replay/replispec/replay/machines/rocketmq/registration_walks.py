"""Every broker's way to its id and its registration, walked request by request and answer by answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.replay.events.content import seen_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.registrations import SENT
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.releases import walk_of
from replispec.replay.machines.steps import Findings, MachineFinding, step
from replispec.replay.machines.walks import Walk
from replispec.wire.rocketmq.machines.broker_registration import MACHINE
from replispec.wire.rocketmq.machines.broker_registration_wire import OUTCOMES

_ANSWERS_OF: Final = {
    asked: tuple(MACHINE.events[kind].name for kind in kinds) for asked, kinds in OUTCOMES.items()
}
"""The events that the answer to a request may be, by the code of the request."""
_SENT: Final = frozenset(SENT.values())
_KINDS: Final = {info.name: kind for kind, info in MACHINE.events.items()}
_OWNING: Final = (ObservationKind.REGISTRATION, ObservationKind.ALIVE)


@dataclass(slots=True)
class _Registration:
    """One broker's registration as one connection shows it, and what it waits for."""

    walk: Walk
    asked: int = 0
    opaque: int | None = None


def owners_of(rows: Sequence[Observation]) -> dict[str, str]:
    """The address of the broker whose registrations or heartbeats a connection carries."""
    return {row.connection: row.address for row in rows if row.kind in _OWNING and row.address}


@dataclass(frozen=True, slots=True)
class _Broker:
    """What was seen of one broker of a group, by connection."""

    group: str
    rows: Mapping[str, Sequence[Observation]]

    @property
    def groups(self) -> Collection[str]:
        """Its group."""
        return (self.group,)

    def walk(self, found: Findings) -> None:
        """Connection by connection: these tell no order, so that between two frames of one of them it may
        have done whatever the others show."""
        for connection, own in self.rows.items():
            broker = _Registration(walk_of(MACHINE, own[0].version))
            others = [row for each, rows in self.rows.items() if each != connection for row in rows]
            elsewhere = [*dict.fromkeys(_KINDS[row.message or ""] for row in others)]
            for row in own:
                broker.walk.meanwhile(elsewhere)
                _register(broker, row, found[self.group, MACHINE.finding])


def walks_of_registrations(rows: Sequence[Observation]) -> Iterator[GroupWalk]:
    """The machine of registration for each broker."""
    owners = owners_of(rows)
    brokers: dict[tuple[str, str], dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.kind == ObservationKind.REGISTRATION:
            key = (row.group or "", owners.get(row.connection) or row.connection)
            brokers[key][row.connection].append(row)
    for (group, _), connections in brokers.items():
        yield _Broker(group, dict(connections))


def _register(broker: _Registration, row: Observation, finding: MachineFinding) -> None:
    """Step one request or answer. Late answers, to other than the last request, decide nothing any more."""
    sent = row.message in _SENT
    if not sent and row.opaque != broker.opaque:
        return
    if sent:
        _catch_up(broker, row)
        broker.asked, broker.opaque = row.code or 0, row.opaque
    else:
        broker.opaque = None
    facts = seen_of(row.content, _KINDS[row.message or ""])
    step(broker.walk, row, facts, finding, sent=sent)


def _catch_up(broker: _Registration, row: Observation) -> None:
    """What may have happened since the request before: its answer was lost."""
    if not row.from_start:
        broker.walk.forget()
    if broker.opaque is not None:
        broker.walk.perhaps(_ANSWERS_OF[broker.asked])
