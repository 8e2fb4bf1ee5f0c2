"""Changes of the controllers' leader, and whose heartbeats reached the new one in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.wire.rocketmq.constants import HEARTBEAT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class _Change:
    """An answer that named another leader than the same controller had before."""

    row: Observation
    controller_group: str
    leader: str


def leader_changes(
    rows: Sequence[Observation], groups: BrokerGroups, end_ns: int
) -> Iterator[SimpleNamespace]:
    """The events of the stream `leaders`; `end_ns`: the last event of the capture."""
    signs: dict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if row.kind in (ObservationKind.ALIVE, ObservationKind.CLOSED) and row.group is not None:
            signs[row.group].append(row)
    whole = all(row.from_start for row in rows if row.kind == ObservationKind.ALIVE)
    for change in _changes(rows, groups):
        for group in sorted(signs):
            own = [row for row in signs[group] if _speaks_with(groups, row, change.controller_group)]
            if own:
                yield _event(group, change, own, end_ns, whole=whole)


def _speaks_with(groups: BrokerGroups, row: Observation, controller_group: str) -> bool:
    """True when the heartbeat went to a controller of this group."""
    return groups.controllers.get(row.controller or "") == controller_group


def _changes(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[_Change]:
    said: dict[tuple[str, str], str] = {}
    current: dict[str, str] = {}
    for row in rows:
        if row.kind != ObservationKind.LEADER or row.name is None or row.controller is None:
            continue
        group = groups.controllers.get(row.address or "", row.name)
        key = (group, row.address or "")
        before = said.get(key)
        said[key] = row.controller
        first = group not in current
        if first or (before not in (None, row.controller) and current[group] != row.controller):
            current[group] = row.controller
            if not first:
                yield _Change(row, group, row.controller)


def _event(
    group: str, change: _Change, signs: Sequence[Observation], end: int, *, whole: bool
) -> SimpleNamespace:
    moment = change.row.time_ns
    live: dict[str, Observation] = {}
    for row in signs:
        if row.time_ns > moment or row.address is None:
            continue
        if row.kind == ObservationKind.CLOSED:
            if row.address in live and live[row.address].connection == row.connection:
                del live[row.address]
        else:
            live[row.address] = row
    live = {address: row for address, row in live.items() if moment - row.time_ns <= _timeout(row)}
    reached = {
        row.address
        for row in signs
        if row.address in live
        and (row.kind == ObservationKind.CLOSED or row.controller == change.leader)
        and -_timeout(live[row.address]) <= row.time_ns - moment <= _timeout(live[row.address])
        and (row.kind == ObservationKind.ALIVE or row.time_ns > moment)
    }
    longest = max((_timeout(row) for row in live.values()), default=0)
    return SimpleNamespace(
        row=change.row,
        group=group,
        leader=change.leader,
        live=frozenset(live),
        reached=frozenset(reached),
        whole=whole and end - moment >= longest,
    )


def _timeout(row: Observation) -> int:
    """How long this broker's heartbeats may stay away, in ns."""
    return (HEARTBEAT_TIMEOUT_MS if row.timeout_ms is None else row.timeout_ms) * 10**6
