"""The streams that there is much of as columns: frames of replication, and acknowledged messages.

Which attributes an event has is declared in spec/invariants/rocketmq/streams.yaml; an attribute that its kind
has not is None. `message`, `entries` and others are for machines, which walk the same frames.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_events import MANY, Columns
from replispec.replay.events.event_tables import (
    INT64_MAX,
    Coded,
    Codes,
    EventTable,
    Flags,
    Numbers,
    Rows,
    coded,
    combined,
    split,
)
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.epoch_starts import WITNESSES_MIN, ToldStarts, knows_epoch
from replispec.replay.events.rocketmq.falls_in_order import Behind, LogThere, least_places_behind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.recounts import Recounts
from replispec.replay.events.rocketmq.tenures import Offices
from replispec.replay.events.rocketmq.told_falls import ToldFalls
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.ha import HaEpochEntry

FRAMES: Final = (
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
_CODED: Final = ("connection", "direction", "group", "address", "message", "broker_id", "epoch")
_FLAGS: Final = ("sync_from_last_file", "async_learner")
_TOLD: Final = ("known_starts", "epoch_at_offset", "start_before", "lower_start", "upper_start")

Starts = Mapping[str, Mapping[int, int]]


def with_groups(events: Columns, groups: BrokerGroups) -> Columns:
    """The events, each with its group, which its connection, its address and its place among the ends of
    lives tell."""
    lives = groups.lives
    borders = np.unique(np.array([*chain(*lives.ends.values(), *lives.moved.values())], np.int64))
    life = np.searchsorted(borders, events.numbers("order").numbers, "right")
    codes = combined(events.alike("connection", "address"), life)
    return events.having("group", events.told_alike(codes, groups.group))


def with_epochs(sends: Columns, offices: Mapping[str, Offices]) -> Columns:
    """Acknowledged messages, each with the masterEpoch that it was stored under; None where it is not known.

    It is asked of one message of each connection between the borders that it may depend on.
    """
    nothing = Offices()

    def told(row: Observation) -> int | None:
        epoch = offices.get(str(row.group), nothing).epoch_of(row)
        return None if epoch is UNKNOWN else epoch

    return sends.having("epoch", sends.told_alike(between_borders(sends, offices), told))


def told_epochs(sends: Columns, offices: Mapping[str, Offices], rows: Iterable[Observation]) -> Columns:
    """Acknowledged messages with their epochs, where they are all there are, or those alone that tell as much
    as all (telling.py). None was only passed on; `rows`: what is rare."""
    places = places_by_address(sends)
    torn = {row.address for row in rows if row.kind == ObservationKind.UNSEEN}
    for group, each in offices.items():
        each.hear(places.get(group, {}), torn)
    return with_epochs(sends, offices)


def between_borders(sends: Columns, offices: Mapping[str, Offices]) -> Codes:
    """One code for all messages of a connection that are of one epoch whatever else was acknowledged."""
    codes = np.zeros(len(sends), np.int64)
    group, address = sends.coded("group"), sends.coded("address")
    nothing = Offices()
    for _, rows in split(combined(group.codes, address.codes)):
        own = offices.get(group.values[group.codes[rows[0]]], nothing)
        between = [
            np.searchsorted(_apart(places), sends.numbers(name).numbers[rows], "right")
            for name, places in own.borders(address.values[address.codes[rows[0]]]).items()
        ]
        codes[rows] = combined(*between)
    return combined(codes, sends.alike("group", "connection", "address"))


def _apart(places: Iterable[int]) -> Numbers:
    """Borders between what lies before, at and behind each of the places."""
    found = np.unique(np.array([*places], np.int64))
    return np.unique(np.concatenate([found, found + 1]))


def witnesses_of(frames: Columns) -> list[Observation]:
    """Of the transfer headers that tell the same start of an epoch so many as are needed to believe it."""
    return frames.rows(witnesses(frames))


def witnesses(frames: Columns) -> Rows:
    """Where these are among the frames."""
    rows = np.flatnonzero(frames.are(*RUNS))
    starts, offsets = (frames.numbers(name) for name in ("epoch_start_offset", "offset"))
    codes = combined(
        frames.alike("group", "connection", "epoch")[rows],
        starts.absent[rows],
        np.unique(starts.numbers[rows], return_inverse=True)[1],
        (offsets.numbers[rows] < 0).astype(np.int64),
    )
    return rows[first_of_each(codes, WITNESSES_MIN)]


def first_of_each(codes: Codes, count: int) -> Rows:
    """The places of the first ones with each code, ascending."""
    return np.sort(np.concatenate([np.zeros(0, np.int64), *(own[:count] for _, own in split(codes))]))


# ---- replication -----------------------------------------------------------------------------------


@dataclass(slots=True)
class ToldOn:
    """The starts of epochs that a connection has told so far."""

    told: ToldStarts = field(default_factory=ToldStarts)
    starts: set[int] = field(default_factory=set)


def replication_table(
    frames: Columns, recounts: Recounts, earlier: Mapping[str, ToldOn] | None = None
) -> EventTable:
    """The events of the stream `ha`; `frames` are of FRAMES, with their groups. Of connections of which they
    are a stretch `earlier` has what was told before it, and gets what is told in it."""
    known = {name: frames.coded(name) for name in (*_CODED, *_FLAGS)}
    known["by_id"] = _of(frames, (ObservationKind.HANDSHAKE,), ~known["broker_id"].where(None))
    known["recounted"] = _of(frames, RUNS, recounts.explained())
    answers = np.flatnonzero(frames.are(ObservationKind.ANSWER))
    told = dict(zip(answers.tolist(), frames.take(answers).table.column("epochs").to_pylist(), strict=True))
    entries = {row: tuple(map(_entry, each)) for row, each in told.items() if each is not None}
    known["entries"] = _by_row(entries, len(frames))
    known |= _told_before(frames, told, earlier or {})
    numbers = {name: frames.numbers(name) for name in _NUMBERS} | {"log_end": recounts.log_ends()}
    return EventTable("ha", frames.kinds, known, numbers, np.arange(len(frames)), frames.row)


def _entry(told: Mapping[str, int]) -> HaEpochEntry:
    return HaEpochEntry(told["epoch"], told["start_offset"])


def _of(frames: Columns, kinds: Sequence[ObservationKind], flags: Flags) -> Coded:
    """A flag of some kinds; others have none."""
    return Coded(np.where(frames.are(*kinds), flags.astype(np.int64), 2), [False, True, None])


def _by_row(told: Mapping[int, Any], count: int) -> Coded:
    """The values of a few rows; all others were not seen."""
    codes = np.zeros(count, np.int64)
    codes[list(told)] = np.arange(1, len(told) + 1)
    return Coded(codes, [UNKNOWN, *told.values()])


def _told_before(
    frames: Columns, answered: Mapping[int, Any], earlier: Mapping[str, ToldOn]
) -> dict[str, Coded]:
    """What each header is compared with: the starts of epochs that its connection had told."""
    codes = np.zeros(len(frames), np.int64)
    values: list[dict[str, Any]] = [{}]
    headers = _Headers(frames)
    connection = frames.coded("connection")
    for code, rows in split(connection.codes):
        before = earlier.get(connection.values[code]) or ToldOn()
        for own, told in headers.told(rows, answered, before):
            codes[own] = len(values)
            values.append(told)
    found = {}
    for name in _TOLD:
        each = coded([value.get(name) for value in values])
        found[name] = Coded(each.codes[codes], each.values)
    return found


class _Headers:
    """The transfer headers of all connections, told one of each kind that `ToldStarts` can tell apart."""

    def __init__(self, frames: Columns) -> None:
        self._batch, self._run = frames.are(ObservationKind.BATCH), frames.are(*RUNS)
        self._epoch = frames.coded("epoch")
        self._start, self._offset = (frames.numbers(name) for name in ("epoch_start_offset", "offset"))
        negative = (self._offset.numbers < 0).astype(np.int64)
        starts = np.unique(self._start.numbers, return_inverse=True)[1]
        self._alike = combined(
            self._run.astype(np.int64), self._epoch.codes, self._start.absent, starts, negative
        )

    def told(
        self, rows: Rows, answered: Mapping[int, Any], before: ToldOn
    ) -> Iterator[tuple[Rows, dict[str, Any]]]:
        """Headers of one connection, and what was told before them, beginning with what was told `before`.

        `rows` are its frames. Only the first header of its kind after a handshake's answer can tell anything
        new: what it does not fit into then it never fits into.
        """
        told, starts = before.told, before.starts
        is_answer = np.isin(rows, list(answered))
        part = combined(self._alike[rows], np.cumsum(is_answer))
        new = np.sort(np.unique(part, return_index=True)[1])
        news = np.union1d(new, np.flatnonzero(is_answer))
        borders = np.union1d(np.concatenate([news, news + 1]), [0, len(rows)])
        for first, behind in pairwise(borders[borders <= len(rows)].tolist()):
            if is_answer[first]:
                entries = answered[int(rows[first])]
                told.answered(_any(epochs=entries))
                starts.update(each["start_offset"] for each in entries or ())
                continue
            own = rows[first:behind]
            for alike in self._told_apart(own[self._run[own]], told):
                header = self._header(int(alike[0]))
                found = told.header(header)
                if knows_epoch(header):
                    starts.add(header.epoch_start_offset)
                yield alike, {**found, "known_starts": sorted(starts)}

    def _told_apart(self, rows: Rows, told: ToldStarts) -> Iterable[Rows]:
        """Headers by all that what was told makes of them."""
        borders = np.sort(np.array(list(told.starts.values()), np.int64))
        place = np.searchsorted(borders, self._offset.numbers[rows], "right")
        return [rows[own] for _, own in split(combined(self._alike[rows], place))]

    def _header(self, row: int) -> Any:
        return _any(
            epoch=self._epoch.values[self._epoch.codes[row]],
            epoch_start_offset=self._start.value(row),
            offset=self._offset.value(row),
        )


def _any(**told: Any) -> Any:
    """What of a row is asked."""
    return SimpleNamespace(**told)


# ---- sends -----------------------------------------------------------------------------------------


class GivenAgain:
    """Acknowledged messages that another one keeps the place of; with each whether it may be the one that
    keeps it."""

    def __init__(self, told: Iterable[tuple[Observation, bool]]) -> None:
        rows = [*told]
        self._messages = Counter(row for row, _ in rows)
        self._in_doubt = {row for row, in_doubt in rows if in_doubt}
        self._offsets = np.unique(np.array([row.offset or 0 for row in self._messages], np.int64))

    def among(self, sends: Columns) -> tuple[Rows, Rows]:
        """Which of these messages, and of which of them that is in doubt."""
        perhaps = np.flatnonzero(np.isin(sends.numbers("offset").numbers, self._offsets))
        left = self._messages.copy()
        found, in_doubt = [], []
        # Of messages that nothing tells apart the first one keeps the place.
        for at, row in zip(perhaps[::-1].tolist(), reversed(sends.rows(perhaps)), strict=True):
            if left[row]:
                left[row] -= 1
                found.append(at)
                if row in self._in_doubt:
                    in_doubt.append(at)
        return np.array(found, np.int64), np.array(in_doubt, np.int64)


def sends_table(
    sends: Columns,
    falls: ToldFalls,
    again: GivenAgain,
    starts: Starts,
    compared: Callable[[str, int], bool],
    short: Flags,
    behind: Mapping[LogThere, Behind],
) -> EventTable:
    """The events `acknowledged` of the stream `sends`; `compared`: whether messages of this group and epoch
    are compared with all later logs; `short`: messages that lie below where the log of a later master begins;
    `behind`: what later messages got on connections that are here in part."""
    offsets = sends.numbers("offset")
    owners = combined(sends.alike("group", "address", "epoch", "connection"))
    left = sends.told_alike(owners, falls.left_of)
    ends = [*(each.surely for each in left.values), None, UNKNOWN]
    cut = np.full(len(sends), len(ends) - 2)
    fallen = sends.told_alike(owners, falls.fallen_between)
    for code, between in enumerate(fallen.values):
        if between is not None:
            inside = (offsets.numbers >= between[0]) & (offsets.numbers < between[1])
            cut[(fallen.codes == code) & inside] = len(ends) - 1
    least, second = least_places_behind(sends, behind)
    cut[least < offsets.numbers] = len(ends) - 1
    for code, each in enumerate(left.values):
        for end, code_of in ((each.perhaps, len(ends) - 1), (each.surely, code)):
            if end is not None:
                cut[(left.codes == code) & (offsets.numbers >= end)] = code_of
    later = np.flatnonzero(second < offsets.numbers)
    places, which = np.unique(least[later], return_inverse=True)
    cut[later] = len(ends) + which
    ends += places.tolist()
    epoch, group = sends.coded("epoch"), sends.coded("group")
    given, in_doubt = (np.zeros(len(sends), np.int64) for _ in range(2))
    replaced, perhaps = again.among(sends)
    given[replaced] = 1
    # What was cut off is lost, whatever got its place.
    is_cut = np.array([end is not None and end is not UNKNOWN for end in ends], np.bool_)[cut]
    in_doubt[perhaps] = 1
    in_doubt[is_cut | _behind_their_epochs(sends, starts)] = 0

    def followed(row: Observation) -> bool:
        group = str(row.group)
        return row.epoch is not None and row.epoch < max(starts[group]) and compared(group, row.epoch)

    told = sends.told_alike(sends.alike("group", "epoch"), followed)
    known = {
        "group": group,
        "epoch": Coded(epoch.codes, [UNKNOWN if value is None else value for value in epoch.values]),
        "cut_to": Coded(cut, ends),
        "given_again": Coded(given, [False, True]),
        "in_doubt": Coded(in_doubt, [False, True]),
        "is_message": Coded(np.zeros(len(sends), np.int64), [True]),
        "followed": Coded(np.where(short, len(told.values), told.codes), [*told.values, False]),
    }
    return EventTable("sends", sends.kinds, known, {"offset": offsets}, np.arange(len(sends)), sends.row)


def _behind_their_epochs(sends: Columns, starts: Starts) -> Flags:
    """Which messages lie behind the start of a later epoch."""

    def end(row: Observation) -> int:
        later = [
            start
            for epoch, start in starts.get(str(row.group), {}).items()
            if row.epoch is not None and epoch > row.epoch
        ]
        return min(later, default=INT64_MAX)

    ends = sends.told_alike(sends.alike("group", "epoch"), end)
    found: Flags = np.array(ends.values, np.int64)[ends.codes] <= sends.numbers("offset").numbers
    return found


@dataclass(frozen=True, slots=True)
class Steps:
    """The messages of one stretch of a connection, in their order: when the first one was acknowledged, the
    places of the first and the last one, and the largest step from one to the next."""

    order: int
    first: int
    last: int
    largest: int


def record_steps(sends: Columns) -> dict[str, Steps]:
    """By connection how its messages follow each other."""
    found: dict[str, Steps] = {}
    connection, order, offset = sends.coded("connection"), sends.numbers("order"), sends.numbers("offset")
    for code, rows in split(connection.codes):
        told = rows[offset.absent[rows] == 0]
        told = told[np.argsort(order.numbers[told], kind="stable")]
        if len(told):
            places = offset.numbers[told]
            begun, first, last = (int(each) for each in (order.numbers[told[0]], places[0], places[-1]))
            largest = int(np.diff(places).max(initial=0))
            found[str(connection.values[code])] = Steps(begun, first, last, largest)
    return found


def longest_of(parts: Iterable[Mapping[str, Steps]]) -> dict[str, int]:
    """By connection how long the longest record may be: the largest step from one message to the next one.
    `parts` have stretches of connections."""
    stretches: dict[str, list[Steps]] = defaultdict(list)
    for part in parts:
        for name, steps in part.items():
            stretches[name].append(steps)
    found = {}
    for name, own in stretches.items():
        own.sort(key=lambda each: each.order)
        between = (behind.first - before.last for before, behind in pairwise(own))
        found[name] = max(*(each.largest for each in own), *between, 0)
    return {name: step for name, step in found.items() if step > 0}


def longest_records(sends: Columns) -> dict[str, int]:
    """The same of whole connections."""
    return longest_of([record_steps(sends)])


def places_by_address(sends: Columns) -> dict[str | None, dict[str | None, Numbers]]:
    """By group and address the places of the messages that were acknowledged there."""
    found: dict[str | None, dict[str | None, Numbers]] = {}
    group, address, offset = sends.coded("group"), sends.coded("address"), sends.numbers("offset")
    for _, rows in split(combined(group.codes, address.codes)):
        name, where = (each.values[each.codes[rows[0]]] for each in (group, address))
        found.setdefault(name, {})[where] = offset.numbers[rows[offset.absent[rows] == 0]]
    return found


def repeated(sends: Columns) -> Rows:
    """The messages that share their place in a log with another one."""
    places = np.unique(sends.numbers("offset").numbers, return_inverse=True)[1]
    codes = combined(sends.alike("group", "epoch"), places)
    return np.flatnonzero(np.bincount(codes)[codes] > 1)


def telling_of_logs(sends: Columns, frames: Columns) -> tuple[list[Observation], list[Observation]]:
    """Of the messages, and of the frames of MANY, those that tell as much of runs and logs as all do, and the
    messages of `repeated`.

    Of every connection the first and the last in each direction, of its messages of one epoch the least and
    the largest places.
    """
    many = np.flatnonzero(frames.are(*MANY))
    places = sends.numbers("offset").numbers
    ends = ends_of_each(sends.alike("connection", "address"), sends.places)
    logs = ends_of_each(sends.alike("group", "address", "epoch", "connection"), places)
    again = repeated(sends)
    every = np.union1d(np.union1d(ends, logs), again)
    rows = sends.rows(every)
    known = dict(zip(every.tolist(), rows, strict=True))
    ends = ends_of_each(frames.alike("connection", "address", "direction")[many], many)
    return [*rows, *frames.rows(many[ends])], [known[at] for at in again.tolist()]


def ends_of_each(codes: Codes, values: Numbers) -> Rows:
    """Of what has each code those with the least values, so many as must agree, and the largest."""
    order = np.lexsort((values, codes))
    parts = split(codes[order])
    ends = [np.concatenate([own[:WITNESSES_MIN], own[-1:]]) for _, own in parts]
    return np.unique(order[np.concatenate([np.zeros(0, np.int64), *ends])])


def written(sends: Columns) -> dict[str, dict[int, int]]:
    """The least place of an acknowledged message of each epoch, by group."""
    found: dict[str, dict[int, int]] = {}
    group, epoch = sends.coded("group"), sends.coded("epoch")
    offsets = sends.numbers("offset").numbers
    for _, rows in split(sends.alike("group", "epoch")):
        value = epoch.values[epoch.codes[rows[0]]]
        if value is not None:
            own = found.setdefault(group.values[group.codes[rows[0]]], {})
            own[value] = int(offsets[rows].min())
    return found
