"""The streams that there is much of as columns: frames of replication, and acknowledged messages.

They hold the events that stream_events.py would make of the same rows, attribute by attribute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.columns import Coded, Codes, Counted, EventTable, Numbers, Rows, combined, split
from replispec.replay.events.observation import ObservationKind, capture_place
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.ha import HaEpochEntry

REPLICATION: Final = (
    ObservationKind.OPENED,
    ObservationKind.GAP,
    ObservationKind.HANDSHAKE,
    ObservationKind.ANSWER,
    ObservationKind.REPORT,
    ObservationKind.BATCH,
    ObservationKind.HEARTBEAT,
)
RUNS: Final = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_NUMBERS: Final = ("max_offset", "offset", "body_size", "confirm_offset", "epoch_start_offset")


@dataclass(slots=True)
class Tenure:
    """One master in one epoch: its name, its main address, and when the capture first told it."""

    master: str
    address: str | None
    order: int
    time_ns: int


Tenures = Mapping[str, Mapping[int, Tenure]]
"""By group and masterEpoch."""


@dataclass(slots=True)
class EpochSigns:
    """What parts of a capture tell of where epochs start; adds up in any order.

    `starts`: (group, epoch) -> where in the capture the first frame stands that tells it, and what it tells;
    `written`: (group, epoch) -> the least offset of an acknowledged message.
    """

    starts: dict[tuple[str, int], tuple[Any, int]] = field(default_factory=dict)
    written: dict[tuple[str, int], int] = field(default_factory=dict)

    def tell(self, group: str, epoch: int, place: Any, start: int) -> None:
        """A frame told the start of an epoch."""
        before = self.starts.get((group, epoch))
        if before is None or place < before[0]:
            self.starts[group, epoch] = (place, start)

    def write(self, group: str, epoch: int, offset: int) -> None:
        """A message was stored in an epoch."""
        self.written[group, epoch] = min(offset, self.written.get((group, epoch), offset))

    def add(self, other: EpochSigns) -> None:
        """What another part tells."""
        for (group, epoch), (place, start) in other.starts.items():
            self.tell(group, epoch, place, start)
        for (group, epoch), offset in other.written.items():
            self.write(group, epoch, offset)


def groups_of(events: CaptureEvents, places: Rows, groups: BrokerGroups) -> Coded:
    """The group that each of these events is about, as BrokerGroups.group says it."""
    names, addresses, controllers = (events.coded(each, places) for each in ("name", "address", "controller"))
    orders = events.numbers("order", places).numbers
    found: dict[str, int] = {}
    codes = np.zeros(len(places), dtype=np.int64)
    for _, rows in split(combined(names.codes, addresses.codes, controllers.codes)):
        first = rows[0]
        address = addresses.values[addresses.codes[first]]
        controller = controllers.values[controllers.codes[first]]
        name = names.values[names.codes[first]] or groups.name_at(address)
        if name is None:
            codes[rows] = found.setdefault(groups.nameless(address, controller), len(found))
            continue
        lives = np.searchsorted(
            np.array(groups.borders(name, controller), dtype=np.int64), orders[rows], "right"
        )
        for _, own in split(lives):
            group = groups.group_of(name, controller, int(orders[rows[own[0]]]))
            codes[rows[own]] = found.setdefault(group, len(found))
    return Coded(codes, list(found))


# ---- replication -----------------------------------------------------------------------------------


def replication_table(events: CaptureEvents, groups: BrokerGroups) -> EventTable:
    """The events of the stream `ha`. `message` and `entries` are for machines, which walk the same frames."""
    places = events.places(REPLICATION)
    kinds = events.kinds(places)
    numbers = {name: events.numbers(name, places) for name in _NUMBERS}
    epochs = events.numbers("epoch", places)
    told = _told(events, places, kinds)
    known = {name: events.coded(name, places) for name in ("connection", "message", "address")}
    known |= {name: events.coded(name, places) for name in ("sync_from_last_file", "async_learner")}
    known["group"] = groups_of(events, places, groups)
    known["epoch"] = _optional(epochs)
    known["broker_id"] = _optional(events.numbers("broker_id", places))
    known["direction"] = _optional(events.numbers("direction", places))
    entries = {row: tuple(_entry(each) for each in value) for row, value in told.items()}
    known["entries"] = _by_row(entries, len(places))
    table = EventTable("ha", kinds, known, numbers, places, events.row)
    return table.with_known("known_starts", _known_starts(table, told))


def _told(events: CaptureEvents, places: Rows, kinds: Coded) -> dict[int, list[dict[str, int]]]:
    """The epochs in answers, by row; not those of answers with a hole."""
    answers = np.flatnonzero(_is_one(kinds, (ObservationKind.ANSWER,)))
    values = events.values("epochs", places[answers])
    return {int(row): value for row, value in zip(answers, values, strict=True) if value is not None}


def _entry(told: Mapping[str, int]) -> HaEpochEntry:
    return HaEpochEntry(told["epoch"], told["start_offset"])


def _is_one(kinds: Coded, wanted: Sequence[str]) -> Any:
    return np.array([value in wanted for value in kinds.values], dtype=np.bool_)[kinds.codes]


def _optional(column: Counted) -> Coded:
    """Numbers of few values as codes."""
    values, codes = np.unique(column.numbers, return_inverse=True)
    if not column.missing.any():
        return Coded(codes.astype(np.int64), values.tolist())
    return Coded(np.where(column.missing, len(values), codes).astype(np.int64), [*values.tolist(), None])


def _by_row(told: Mapping[int, Any], count: int) -> Coded:
    """The values of a few rows; all others were not seen."""
    codes = np.zeros(count, dtype=np.int64)
    for code, row in enumerate(told, start=1):
        codes[row] = code
    return Coded(codes, [UNKNOWN, *told.values()])


def knows_epoch(table: EventTable) -> Any:
    """Which events carry an epoch and its start. A master that has no data yet tells offsets below 0."""
    offset, start = table.numbers["offset"], table.numbers["epoch_start_offset"]
    epochs = table.known["epoch"]
    told = np.array([value is not None for value in epochs.values], dtype=np.bool_)[epochs.codes]
    # What is absent counts as 0 here, as it does in the columns.
    return _is_one(table.names, RUNS) & told & ~start.missing & (offset.numbers >= 0) & (start.numbers >= 0)


def _known_starts(table: EventTable, told: Mapping[int, list[dict[str, int]]]) -> Coded:
    """The starts of epochs that each connection has told by then, ascending."""
    codes = np.zeros(len(table), dtype=np.int64)
    values: list[Any] = [[]]
    knows, starts = knows_epoch(table), table.numbers["epoch_start_offset"].numbers
    connections = table.known["connection"].codes
    inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, entries in told.items():
        inside[int(connections[row])] += [(row, entry["start_offset"]) for entry in entries]
    for code, rows in split(connections):
        firsts = _first_told(rows[knows[rows]], starts, inside[code])
        known: list[int] = []
        for at, (row, new) in enumerate(firsts):
            known = sorted((*known, *new))
            until = firsts[at + 1][0] if at + 1 < len(firsts) else len(table)
            codes[rows[np.searchsorted(rows, row) : np.searchsorted(rows, until)]] = len(values)
            values.append(known)
    return Coded(codes, values)


def _first_told(
    rows: Rows, starts: Numbers, inside: Sequence[tuple[int, int]]
) -> list[tuple[int, list[int]]]:
    """The rows of one connection that tell starts which it has not told before, each with them.

    `rows` have a start of their own, `inside` are rows and starts of answers.
    """
    values, first = np.unique(starts[rows], return_index=True)
    signs = [(int(rows[at]), int(value)) for value, at in zip(values, first, strict=True)]
    found: dict[int, list[int]] = defaultdict(list)
    seen: set[int] = set()
    for row, start in sorted((*signs, *inside)):
        if start not in seen:
            seen.add(start)
            found[row].append(start)
    return list(found.items())


# ---- sends -----------------------------------------------------------------------------------------


def sends_table(events: CaptureEvents, groups: BrokerGroups, tenures: Tenures) -> EventTable:
    """The events `acknowledged` of the stream `sends`."""
    places = events.places((ObservationKind.ACKNOWLEDGED,))
    names = Coded(np.zeros(len(places), dtype=np.int64), [ObservationKind.ACKNOWLEDGED.value])
    group = groups_of(events, places, groups)
    epochs = _epochs(events, places, group, tenures)
    numbers = {"offset": events.numbers("offset", places)}
    return EventTable("sends", names, {"group": group, "epoch": epochs}, numbers, places, events.row)


def _epochs(events: CaptureEvents, places: Rows, group: Coded, tenures: Tenures) -> Coded:
    """The masterEpoch under which each answering broker was master; unknown when no fact tells.

    The greatest that had been told by then; for answers before the first fact the smallest.
    """
    addresses, orders = events.coded("address", places), events.numbers("order", places).numbers
    found: dict[int | None, int] = {None: 0}
    codes: Codes = np.zeros(len(places), dtype=np.int64)
    for _, rows in split(combined(group.codes, addresses.codes)):
        address = addresses.values[addresses.codes[rows[0]]]
        own = tenures.get(group.values[group.codes[rows[0]]], {})
        held = sorted((tenure.order, epoch) for epoch, tenure in own.items() if tenure.address == address)
        if not held:
            continue
        greatest = np.maximum.accumulate(np.array([epoch for _, epoch in held], dtype=np.int64))
        at = np.searchsorted(np.array([order for order, _ in held], dtype=np.int64), orders[rows], "right")
        epochs = np.where(at > 0, greatest[at - 1], min(epoch for _, epoch in held))
        for epoch in np.unique(epochs).tolist():
            codes[rows[epochs == epoch]] = found.setdefault(epoch, len(found))
    return Coded(codes, [UNKNOWN if each is None else each for each in found])


def signs_of(replication: EventTable, sends: EventTable) -> EpochSigns:
    """What these events tell of where epochs start; the answers' own epochs are not among it."""
    signs = EpochSigns()
    rows = np.flatnonzero(knows_epoch(replication))
    _tell_starts(signs, replication.take(rows))
    offsets = sends.numbers["offset"].numbers
    groups, epochs = sends.known["group"], sends.known["epoch"]
    for _, own in split(combined(groups.codes, epochs.codes)):
        epoch = epochs.values[epochs.codes[own[0]]]
        if epoch is not UNKNOWN:
            signs.write(groups.values[groups.codes[own[0]]], epoch, int(offsets[own].min()))
    return signs


def _tell_starts(signs: EpochSigns, runs: EventTable) -> None:
    groups, epochs = runs.known["group"], runs.known["epoch"]
    starts = runs.numbers["epoch_start_offset"].numbers
    for _, own in split(combined(groups.codes, epochs.codes)):
        first = int(own[0])
        epoch = epochs.values[epochs.codes[first]]
        if epoch is not None:
            place = capture_place(runs.row_at(int(runs.places[first])))
            signs.tell(groups.values[groups.codes[first]], epoch, place, int(starts[first]))
