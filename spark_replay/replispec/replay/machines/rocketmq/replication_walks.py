"""Both sides of every replication connection, walked over columns of its frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from replispec.replay.events.event_tables import Coded, Codes, EventTable, Flags, Rows, Templates, split
from replispec.replay.events.observation import Observation, ObservationKind, capture_place
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.machines.columns import FORGOTTEN, Possibilities, WalkedConnection, WalkFold
from replispec.replay.machines.folds import ColumnFold, Folded
from replispec.replay.machines.rocketmq.releases import release_of, walk_of
from replispec.replay.machines.steps import MachineFinding
from replispec.replay.machines.walks import JudgedStep
from replispec.runtime.primitives.invariants import EVIDENCE_MAX, Verdict
from replispec.runtime.primitives.machines import Machine
from replispec.wire.rocketmq.machines import ha_master, ha_replica

_FROM_REPLICA: Final = (ObservationKind.HANDSHAKE, ObservationKind.REPORT)
_FROM_MASTER: Final = (ObservationKind.ANSWER, ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_DIRECTIONS: Final = (0, 1)


def walk_replication(frames: EventTable, groups: BrokerGroups) -> Iterator[WalkedConnection]:
    """Walk the machines of replica and master over each connection; `frames` are of the stream `ha`.

    Connections are walked each without the others.
    """
    if not len(frames):
        return
    connections = split(frames.known["connection"].codes)
    forgotten = np.zeros(len(frames), dtype=np.int64)
    for _, rows in connections:
        forgotten[rows] = _forgotten(frames.take(rows))
    table = frames.with_known(FORGOTTEN, Coded(forgotten, [False, True]))
    walker = _Walker(groups, table.templates())
    for _, rows in connections:
        place = capture_place(table.row_at(int(table.places[rows[0]])))
        yield WalkedConnection(place, walker.walk(table.take(rows), rows))


class _Walker:
    """Walks connections; machines of one release share what was found out about their steps."""

    def __init__(self, groups: BrokerGroups, templates: Templates) -> None:
        self._groups = groups
        self._templates = templates
        self._folds: dict[Any, tuple[WalkFold, ColumnFold[Possibilities, JudgedStep | None]]] = {}

    def walk(self, table: EventTable, rows: Rows) -> dict[tuple[str, str], MachineFinding]:
        """Both sides of one connection; `rows` are those of its frames in the table of all."""
        templates = self._templates.take(rows)
        address = table.known["address"].values[table.known["address"].codes[0]]
        replica, master = _versions(table, address, self._groups)
        found: dict[tuple[str, str], MachineFinding] = defaultdict(MachineFinding)
        for machine, version, sent in (
            (ha_replica.MACHINE, replica, _FROM_REPLICA),
            (ha_master.MACHINE, master, _FROM_MASTER),
        ):
            fold, columns = self._fold(machine, version, frozenset(sent))
            folded = columns.run(fold.anything, table, templates)
            for group, own in table.parts("group"):
                _note(found[group, machine.finding], table, folded, own)
        return {key: finding for key, finding in found.items() if finding.counts}

    def _fold(
        self, machine: Machine[Any, Any], version: int | None, sent: frozenset[str]
    ) -> tuple[WalkFold, ColumnFold[Possibilities, JudgedStep | None]]:
        key = machine.name, release_of(version)
        if key not in self._folds:
            fold = WalkFold(walk_of(machine, version), sent)
            self._folds[key] = fold, ColumnFold(fold)
        return self._folds[key]


def _note(
    finding: MachineFinding, table: EventTable, folded: Folded[Possibilities, JudgedStep | None], rows: Rows
) -> None:
    """Count the steps of some frames, and keep the first faults of each verdict."""
    codes = folded.codes[rows]
    counts = np.bincount(codes, minlength=len(folded.outcomes))
    faults: dict[Verdict, list[Codes]] = defaultdict(list)
    for code, step in enumerate(folded.outcomes):
        if step is None or not counts[code]:
            continue
        if step.verdict is Verdict.OK:
            finding.counts[step.verdict] += int(counts[code])
        else:
            faults[step.verdict].append(rows[codes == code])
    for verdict, parts in faults.items():
        every = np.sort(np.concatenate(parts))
        for row in every[:EVIDENCE_MAX].tolist():
            said = folded.outcomes[folded.codes[row]]
            assert said is not None
            finding.note(verdict, said.says, table.row_at(int(table.places[row])))
        finding.counts[verdict] += max(len(every) - EVIDENCE_MAX, 0)


def _forgotten(table: EventTable) -> Flags:
    """Before which frames of one connection anything may have happened.

    Bytes that were lost in one direction may lie anywhere up to its next frame: until then, and at it,
    everything is possible. So it is at all frames where one direction was taken for what the other one is:
    nothing rests on their order then.
    """
    kinds = np.array([str(each) for each in table.names.values])[table.names.codes]
    frames = np.isin(kinds, [*_FROM_REPLICA, *_FROM_MASTER])
    directions = np.array(table.known["direction"].values)[table.known["direction"].codes]
    from_replica = np.isin(kinds, _FROM_REPLICA)
    taken = {(bool(side), int(at)) for side, at in np.stack([from_replica, directions], axis=1)[frames]}
    if len(taken) > len({side for side, _ in taken}):
        return frames
    found = np.zeros(len(table), dtype=np.bool_)
    opened = np.flatnonzero(kinds == ObservationKind.OPENED)
    for direction in _DIRECTIONS:
        gaps = np.flatnonzero((kinds == ObservationKind.GAP) & (directions == direction))
        ends = np.sort(np.concatenate([opened, np.flatnonzero(frames & (directions == direction)) + 1]))
        for gap in (0, *gaps.tolist()):
            at = int(np.searchsorted(ends, gap, "right" if gap else "left"))
            found[gap : int(ends[at]) if at < len(ends) else len(found)] = True
    return found & frames


def _versions(table: EventTable, address: str | None, groups: BrokerGroups) -> tuple[int | None, int | None]:
    """The versions of replica and master in their brokers' remoting headers."""
    master = groups.version_at(address)
    kinds = np.array([name == ObservationKind.HANDSHAKE for name in table.names.values], dtype=np.bool_)
    handshakes = table.places[kinds[table.names.codes]].tolist()
    if not handshakes:
        return None, master
    row: Observation = table.row_at(handshakes[0])
    own = row.text or groups.address_of(groups.name_at(address), row.broker_id)
    return groups.version_at(own), master
