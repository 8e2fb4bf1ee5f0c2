"""Other leaders of the controllers, and whose heartbeats reach them.

By cause alone: what a broker was told and what it sent then stand on one connection. How connections lie
against each other decides nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind, ends_of
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.wholeness import Met, host_of
from replispec.wire.rocketmq.constants import HEARTBEAT_INTERVAL_MS, HEARTBEAT_TIMEOUT_MS


@dataclass(slots=True)
class _Told:
    """The leader that one connection names now, and how many heartbeats each broker has sent to another
    controller there since; `ignored_by`: who sent as many as a timeout has."""

    leader: str
    sent: Counter[str] = field(default_factory=Counter)
    ignored_by: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Signs:
    """What the connections of one capture tell of leaders and heartbeats.

    `changes`: by controller group and leader the first answer that named it behind another one on its
    connection; `brokers`: addresses by group; `beats`: the controllers that a broker sends heartbeats to, and
    `hosts`: from where; `reached`: brokers with a heartbeat to a leader behind its own word that it leads;
    `ignored`: brokers that were told a leader again behind a timeout's heartbeats to another controller.
    """

    changes: dict[tuple[str, str], Observation] = field(default_factory=dict)
    brokers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    beats: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    hosts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    reached: set[tuple[str, str]] = field(default_factory=set)
    ignored: set[tuple[str, str]] = field(default_factory=set)


def leader_changes(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[SimpleNamespace]:
    """The events of the stream `leaders`."""
    signs = _signs(rows, groups)
    met = Met.of(rows if signs.changes else ())
    for (controller_group, leader), row in signs.changes.items():
        for group in sorted(signs.brokers):
            brokers = signs.brokers[group]
            live = {each for each in brokers if _speaks_with(groups, signs.beats[each], controller_group)}
            ignoring = {each for each in live if (each, leader) in signs.ignored}
            silent = {
                each
                for each in ignoring
                if leader not in signs.beats[each] and met.whole(signs.hosts[each], leader)
            }
            if live:
                yield SimpleNamespace(
                    row=row,
                    group=group,
                    leader=leader,
                    live=frozenset(live),
                    reached=frozenset(each for each in live if (each, leader) in signs.reached),
                    silent=frozenset(silent),
                )


def _speaks_with(groups: BrokerGroups, controllers: Iterable[str], controller_group: str) -> bool:
    """True when one of these controllers is of this group."""
    return any(groups.controllers.get(each) == controller_group for each in controllers)


def _signs(rows: Sequence[Observation], groups: BrokerGroups) -> _Signs:
    found = _Signs()
    told: dict[str, _Told] = {}
    for row in rows:
        if row.controller is None or row.address is None:
            continue
        if row.kind == ObservationKind.LEADER and row.name is not None:
            now = told.get(row.connection)
            if now is None or now.leader != row.controller:
                told[row.connection] = _Told(row.controller)
            if now is not None:
                _told_again(found, now, row, groups.controllers.get(row.address, row.name))
        elif row.kind == ObservationKind.ALIVE and row.group is not None:
            _beat(found, told.get(row.connection), row)
    return found


def _told_again(found: _Signs, before: _Told, row: Observation, controller_group: str) -> None:
    """A leader is named where one had been named before."""
    assert row.controller is not None
    if before.leader != row.controller:
        found.changes.setdefault((controller_group, row.controller), row)
    else:
        found.ignored.update((each, row.controller) for each in before.ignored_by)


def _beat(found: _Signs, told: _Told | None, row: Observation) -> None:
    """A broker sends a controller a heartbeat."""
    assert row.group is not None
    assert row.address is not None
    assert row.controller is not None
    found.brokers[row.group].add(row.address)
    found.beats[row.address].add(row.controller)
    found.hosts[row.address].add(host_of(ends_of(row.connection)[row.direction]))
    if told is None:
        return
    if told.leader == row.controller:
        found.reached.add((row.address, told.leader))
        return
    told.sent[row.address] += 1
    timeout_ms = HEARTBEAT_TIMEOUT_MS if row.timeout_ms is None else row.timeout_ms
    if told.sent[row.address] * HEARTBEAT_INTERVAL_MS >= timeout_ms:
        told.ignored_by.add(row.address)
