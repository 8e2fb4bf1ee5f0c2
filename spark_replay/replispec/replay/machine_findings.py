"""The machines of the specification walked over what one capture shows: one finding a machine and group.

One evaluation is one event that was seen and stepped. An event without any edge from where the
machine may be, or that its edge lays at the peer's door, is violated; see walks.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.groups import Groups
from replispec.replay.observation import Kind, Observation
from replispec.replay.registrations import FAILED, REFUSED, UNKNOWN_HERE
from replispec.replay.walks import Walk, release_of
from replispec.runtime.primitives.invariants import EVIDENCE_MAX, Verdict, worst
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq import controller, ha
from replispec.wire.rocketmq.machines import broker_registration, ha_master, ha_replica

REPLICA, MASTER, REGISTRATION = "ha-replica-machine", "ha-master-machine", "registration-machine"
MACHINES: Final[Mapping[str, Machine[Any, Any]]] = {
    REPLICA: ha_replica.MACHINE,
    MASTER: ha_master.MACHINE,
    REGISTRATION: broker_registration.MACHINE,
}
"""The machines that are walked, by the id of their findings."""

_SIDES: Final = (0, 1)
_FROM_REPLICA: Final = (Kind.HANDSHAKE, Kind.REPORT)
_FROM_MASTER: Final = (Kind.ANSWER, Kind.BATCH, Kind.HEARTBEAT)
_FROM_BOTH: Final = (*_FROM_REPLICA, *_FROM_MASTER)
_ANSWERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    controller.GetNextBrokerIdRequest.__name__: ("next_id_answered", FAILED),
    controller.ApplyBrokerIdRequest.__name__: ("application_granted", REFUSED, FAILED),
    controller.RegisterBrokerToControllerRequest.__name__: ("registered", UNKNOWN_HERE, FAILED),
}
"""The events that the answer to a request may be, by the request's message."""
_OWNING: Final = (Kind.REGISTRATION, Kind.ALIVE)


@dataclass(frozen=True, slots=True)
class Fault:
    """One step that was not ok, and the row that shows it."""

    verdict: Verdict
    says: str
    row: Observation


@dataclass(slots=True)
class MachineFinding:
    """What one machine comes to in one group; `faults` are at most EVIDENCE_MAX, the worst first."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    kept: list[Fault] = field(default_factory=list)

    def note(self, verdict: Verdict, says: str, row: Observation) -> None:
        """One event was stepped."""
        self.counts[verdict] += 1
        same = sum(1 for each in self.kept if each.verdict is verdict)
        if verdict is not Verdict.OK and same < EVIDENCE_MAX:
            self.kept.append(Fault(verdict, says, row))

    @property
    def verdict(self) -> Verdict:
        """The verdict of all steps; unknown when there was none."""
        return worst(verdict for verdict, count in self.counts.items() if count)

    @property
    def faults(self) -> list[Fault]:
        """The steps that were not ok."""
        return sorted(self.kept, key=lambda each: -each.verdict.rank)[:EVIDENCE_MAX]


Findings = Mapping[tuple[str, str], MachineFinding]
"""Findings by (group, id)."""


def machine_findings(rows: Sequence[Observation], groups: Groups) -> Findings:
    """Walk every machine over the observations of one capture, in the order of the capture."""
    found: dict[tuple[str, str], MachineFinding] = defaultdict(MachineFinding)
    for connection in _by_connection(rows).values():
        for machine, is_replica in ((REPLICA, True), (MASTER, False)):
            _walk_replication(machine, connection, groups, found, is_replica=is_replica)
    _walk_registrations(rows, found)
    return found


# ---- replication ---------------------------------------------------------------------------------


def _by_connection(rows: Sequence[Observation]) -> dict[str, list[Observation]]:
    """The rows of each replication connection."""
    kinds = {Kind.OPENED, Kind.GAP, *_FROM_BOTH}
    found: dict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if row.kind in kinds:
            found[row.connection].append(row)
    return found


def _walk_replication(
    name: str,
    rows: Sequence[Observation],
    groups: Groups,
    found: dict[tuple[str, str], MachineFinding],
    *,
    is_replica: bool,
) -> None:
    """Walk one side of one connection.

    Bytes that were lost in one direction may lie anywhere up to its next frame: until then, and at it,
    everything is possible.
    """
    walk = Walk(MACHINES[name], _release(rows, groups, is_replica=is_replica))
    lost = set(_SIDES)
    mixed = _is_mixed(rows)
    for row in rows:
        if row.kind == Kind.OPENED:
            lost.clear()
            walk.begin()
        elif row.kind == Kind.GAP:
            lost.add(row.direction)
        else:
            if lost or mixed:
                walk.forget()
            lost.discard(row.direction)
            sent = (row.kind in _FROM_REPLICA) is is_replica
            _step(walk, row, _replication_facts(row), found[row.group or "", name], sent=sent)


def _is_mixed(rows: Sequence[Observation]) -> bool:
    """True when one direction was taken for what the other one is: nothing rests on their order then."""
    sides = {(row.kind in _FROM_REPLICA, row.direction) for row in rows if row.kind in _FROM_BOTH}
    return len(sides) > len({is_replica for is_replica, _ in sides})


def _release(rows: Sequence[Observation], groups: Groups, *, is_replica: bool) -> tuple[int, ...] | None:
    """The release of one end of a connection, by the versions in its broker's remoting headers."""
    address = rows[0].address
    if not is_replica:
        return release_of(groups.version_at(address))
    for row in rows:
        if row.kind == Kind.HANDSHAKE:
            address = row.text or groups.address_of(groups.name_at(address), row.broker_id)
            return release_of(groups.version_at(address))
    return None


def _replication_facts(row: Observation) -> SimpleNamespace:
    """The fields of the frame; the epochs of an answer with a hole were not seen."""
    entries: Any = UNKNOWN
    if row.epochs is not None:
        entries = tuple(ha.HaEpochEntry(each["epoch"], each["start_offset"]) for each in row.epochs)
    return SimpleNamespace(
        sync_from_last_file=row.sync_from_last_file,
        async_learner=row.async_learner,
        broker_id=row.broker_id,
        max_offset=row.max_offset,
        entries=entries,
        offset=row.offset,
        body_size=row.body_size,
        epoch=row.epoch,
        epoch_start_offset=row.epoch_start_offset,
        confirm_offset=row.confirm_offset,
    )


def _step(
    walk: Walk, row: Observation, facts: SimpleNamespace, finding: MachineFinding, *, sent: bool
) -> None:
    """Step one row, if it is an event of the machine."""
    kind = walk.kind_of(row.message or "", facts, sent=sent)
    if kind is not None:
        judged = walk.step(kind, facts)
        finding.note(judged.verdict, judged.says, row)


# ---- registration --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Registration:
    """One broker's registration: on which connection it was last seen, and what it waits for."""

    walk: Walk
    connection: str
    asked: str = ""
    opaque: int | None = None


def _walk_registrations(rows: Sequence[Observation], found: dict[tuple[str, str], MachineFinding]) -> None:
    owners = {row.connection: row.address for row in rows if row.kind in _OWNING and row.address}
    brokers: dict[tuple[str, str], _Registration] = {}
    for row in rows:
        if row.kind != Kind.REGISTRATION:
            continue
        key = (row.group or "", owners.get(row.connection) or row.connection)
        broker = brokers.get(key)
        if broker is None:
            walk = Walk(MACHINES[REGISTRATION], release_of(row.version))
            broker = brokers[key] = _Registration(walk, row.connection)
        _register(broker, row, found[key[0], REGISTRATION])


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
    _step(broker.walk, row, facts, finding, sent=sent)


def _catch_up(broker: _Registration, row: Observation) -> None:
    """What may have happened since the request before: its answer was lost, the process began again."""
    if not row.from_start:
        broker.walk.forget()
    if broker.opaque is not None:
        broker.walk.perhaps(_ANSWERS_OF[broker.asked])
    if row.connection != broker.connection:
        broker.walk.perhaps(("restarted",))
        broker.connection = row.connection
