"""Both sides of every replication connection, walked over columns of its frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_order import capture_place
from replispec.replay.events.event_tables import Coded, Codes, EventTable, Flags, Rows, Templates, split
from replispec.replay.events.observation import Observation, ObservationKind
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
        own = frames.take(rows)
        forgotten[rows] = _forgotten(
            own, Doubt(), is_mixed=are_mixed(sides_taken(own.names, own.known["direction"]))
        )
    table = frames.with_known(FORGOTTEN, Coded(forgotten, [False, True]))
    walker = _Walker(groups)
    templates = table.templates()
    for _, rows in connections:
        own = table.take(rows)
        walk = _Walk(_versions(own, _first_handshake(own), groups))
        walker.walk(walk, own, templates.take(rows))
        yield walk.walked(capture_place(table.row_at(int(table.places[rows[0]]))))


class StretchWalk:
    """Walks one connection stretch by stretch; `handshake`: its first one, `is_mixed`: as of all of them."""

    def __init__(self, groups: BrokerGroups, handshake: Observation | None, *, is_mixed: bool) -> None:
        self._groups = groups
        self._walker = _Walker(groups)
        self._handshake = handshake
        self._is_mixed = is_mixed
        self._doubt = Doubt()
        self._walk: _Walk | None = None
        self._place: tuple[Any, ...] = ()

    def add(self, frames: EventTable) -> None:
        """The next stretch, of the stream `ha`."""
        if not len(frames):
            return
        if self._walk is None:
            self._walk = _Walk(_versions(frames, self._handshake, self._groups))
            self._place = capture_place(frames.row_at(int(frames.places[0])))
        forgotten = _forgotten(frames, self._doubt, is_mixed=self._is_mixed).astype(np.int64)
        table = frames.with_known(FORGOTTEN, Coded(forgotten, [False, True]))
        self._walker.walk(self._walk, table, table.templates())

    def walked(self) -> Iterator[WalkedConnection]:
        """What it comes to, when all were added."""
        if self._walk is not None:
            yield self._walk.walked(self._place)


@dataclass(slots=True)
class Doubt:
    """In which directions bytes were lost that may lie behind what was seen so far."""

    of: list[bool] = field(default_factory=lambda: [True, True])


@dataclass(slots=True)
class _Walk:
    """How far one connection was walked: the versions of its replica and its master, where their machines may
    be, and what was found."""

    versions: tuple[int | None, int | None]
    states: dict[str, Possibilities] = field(default_factory=dict)
    found: dict[tuple[str, str], MachineFinding] = field(default_factory=lambda: defaultdict(MachineFinding))

    def walked(self, place: tuple[Any, ...]) -> WalkedConnection:
        """What it comes to; `place`: of its first frame."""
        return WalkedConnection(place, {key: each for key, each in self.found.items() if each.counts})


class _Walker:
    """Walks connections; machines of one release share what was found out about their steps."""

    def __init__(self, groups: BrokerGroups) -> None:
        self._groups = groups
        self._folds: dict[Any, tuple[WalkFold, ColumnFold[Possibilities, JudgedStep | None]]] = {}

    def walk(self, walk: _Walk, table: EventTable, templates: Templates) -> None:
        """Both sides of one connection, or of its next stretch."""
        replica, master = walk.versions
        for machine, version, sent in (
            (ha_replica.MACHINE, replica, _FROM_REPLICA),
            (ha_master.MACHINE, master, _FROM_MASTER),
        ):
            fold, columns = self._fold(machine, version, frozenset(sent))
            begun = walk.states.get(machine.name)
            folded = columns.run(fold.anything if begun is None else begun, table, templates)
            walk.states[machine.name] = folded.state
            for group, own in table.parts("group"):
                _note(walk.found[group, machine.finding], table, folded, own)

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


def sides_taken(kinds: Coded, direction: Coded) -> set[tuple[bool, int]]:
    """Which directions of a connection say what a replica says, and which what a master says."""
    texts, directions = _texts(kinds), np.array(direction.values)[direction.codes]
    frames = np.isin(texts, [*_FROM_REPLICA, *_FROM_MASTER])
    sides = np.stack([np.isin(texts, _FROM_REPLICA), directions], axis=1)[frames]
    return {(bool(side), int(at)) for side, at in sides}


def are_mixed(taken: Collection[tuple[bool, int]]) -> bool:
    """Whether one direction of a connection was taken for what the other one is."""
    return len(taken) > len({side for side, _ in taken})


def _texts(column: Coded) -> Any:
    return np.array([str(each) for each in column.values])[column.codes]


def _forgotten(table: EventTable, doubt: Doubt, *, is_mixed: bool) -> Flags:
    """Before which frames of one connection anything may have happened; `doubt` is what was in doubt before
    them, and becomes what is behind them.

    Bytes that were lost in one direction may lie anywhere up to its next frame: until then, and at it,
    everything is possible. So it is at all frames where one direction was taken for what the other one is:
    nothing rests on their order then.
    """
    direction_of = table.known["direction"]
    kinds, directions = _texts(table.names), np.array(direction_of.values)[direction_of.codes]
    frames: Flags = np.isin(kinds, [*_FROM_REPLICA, *_FROM_MASTER])
    if is_mixed:
        return frames
    found = np.zeros(len(table), dtype=np.bool_)
    opened = np.flatnonzero(kinds == ObservationKind.OPENED)
    for direction in _DIRECTIONS:
        gaps = np.flatnonzero((kinds == ObservationKind.GAP) & (directions == direction)).tolist()
        ends = np.sort(np.concatenate([opened, np.flatnonzero(frames & (directions == direction)) + 1]))
        begins = [(0, int(np.searchsorted(ends, 0)))] if doubt.of[direction] else []
        begins += [(gap, int(np.searchsorted(ends, gap, "right"))) for gap in gaps]
        for gap, at in begins:
            found[gap : int(ends[at]) if at < len(ends) else len(found)] = True
        doubt.of[direction] = any(at == len(ends) for _, at in begins)
    return found & frames


def _first_handshake(table: EventTable) -> Observation | None:
    kinds = np.array([name == ObservationKind.HANDSHAKE for name in table.names.values], dtype=np.bool_)
    handshakes = table.places[kinds[table.names.codes]].tolist()
    return table.row_at(handshakes[0]) if handshakes else None


def _versions(
    table: EventTable, handshake: Observation | None, groups: BrokerGroups
) -> tuple[int | None, int | None]:
    """The versions of replica and master in their brokers' remoting headers; `table` begins with the first
    frame of their connection, `handshake` is the first one on it."""
    address = table.known["address"].values[table.known["address"].codes[0]]
    master = groups.version_at(address)
    if handshake is None:
        return None, master
    row: Any = handshake
    own = row.text or groups.address_of(groups.name_at(address), row.broker_id)
    return groups.version_at(own), master
