"""Which of many events tell as much as all: what a part of a capture hands on to what is known of the whole.

A part is any whole connections. What it hands on grows with the number of connections, groups, epochs and
moments that are drawn, and with what is out of the order, not with the number of events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from replispec.replay.events.capture_events import MANY, CaptureEvents, Columns, coded_column
from replispec.replay.events.event_tables import Coded, Codes, Numbers, Rows, combined, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.relays import told_once
from replispec.replay.events.rocketmq.stream_tables import RUNS, between_borders, ends_of_each, witnesses
from replispec.replay.events.rocketmq.tenures import Offices, Tenure
from replispec.replay.events.tables import SCHEMAS, Events

AT: Final = "at"
"""A column that tells every event of the capture from all others."""
PART_SHIFT: Final = 40
HANDED_ON: Final = tuple(kind for kind in MANY if kind is not ObservationKind.PAIRED)
Tables = dict[ObservationKind, pa.Table]
Borders = Mapping[str | None, Numbers]
"""By group the moments between which nothing changes, ascending."""
_NOTHING: Final = np.zeros(0, np.int64)
_NONE: Final = Coded(_NOTHING, [])
_COMPARED: Final = ("connection", "order", "direction", "sequence", "index", "offset", "body_crc")
_TOLD: Final = {"group": pa.string(), "epoch": pa.int64()}


def numbered(number: int, events: Events) -> Events:
    """The events of the part with this number, the frequent ones with the column AT."""
    found = dict(events)
    for kind in HANDED_ON:
        rows = np.arange(events[kind].num_rows) + (number << PART_SHIFT)
        found[kind] = events[kind].append_column(AT, pa.array(rows, pa.int64()))
    return found


def numbers_of(events: Columns) -> Numbers:
    """The column AT of events of a frequent kind."""
    # What has no events has no such column either.
    return np.asarray(events.table.column(AT)) if len(events) else _NOTHING


def handed_on(events: Columns, rows: Rows) -> Tables:
    """Some of the events, of the frequent kinds alone, each kind as a table."""
    rows = rows[events.are(*HANDED_ON)[rows]]
    kinds = events.kinds
    found = {}
    for code, own in split(kinds.codes[rows]):
        kind = kinds.values[code]
        table = events.table.take(pa.array(np.sort(rows[own])))
        found[kind] = table.select([*SCHEMAS[kind].names, AT])
    return found


def gathered(parts: Iterable[Tables]) -> Tables:
    """All that parts handed on, each event once."""
    tables: dict[ObservationKind, list[pa.Table]] = defaultdict(list)
    for part in parts:
        for kind, table in part.items():
            tables[kind].append(table)
    found = {}
    for kind, own in tables.items():
        table = pa.concat_tables(own)
        at = np.asarray(table.column(AT))
        found[kind] = table.take(pa.array(np.unique(at, return_index=True)[1]))
    return found


# ---- what tells the history ------------------------------------------------------------------------


def of_history(frames: Columns) -> Rows:
    """Of the frames of replication, with their groups, those that tell where epochs start, who was in which
    run of its broker, what was confirmed, and where logs begin."""
    many = np.flatnonzero(frames.are(*MANY))
    reports, runs, batches = (
        np.flatnonzero(frames.are(*kinds))
        for kinds in ((ObservationKind.REPORT,), RUNS, (ObservationKind.BATCH,))
    )
    connection = frames.alike("connection")
    offsets, confirms = frames.numbers("offset").numbers, frames.numbers("confirm_offset")
    confirming = runs[(offsets[runs] >= 0) & (confirms.absent[runs] == 0)]
    offices = frames.alike("group", "epoch", "address", "connection")
    return _union(
        witnesses(frames),
        many[ends_of_each(frames.alike("connection", "address", "direction")[many], many)],
        _least(connection, frames.numbers("max_offset").numbers, reports),
        _least(connection, offsets, batches),
        _least(offices, ~confirms.numbers, confirming),
    )


def of_logs(sends: Columns, offices: Mapping[str, Offices]) -> Rows:
    """Of acknowledged messages, with their groups, those that tell runs, ends of logs, where epochs start at
    the latest, and between which starts a broker wrote."""
    places = sends.numbers("offset").numbers
    return _union(
        ends_of_each(sends.alike("connection", "address"), sends.places),
        ends_of_each(between_borders(sends, offices), places),
    )


def in_short(sends: Columns, rows: Rows) -> pa.Table:
    """Of some acknowledged messages, with groups and epochs, what log bytes are compared with."""
    found = sends.table.select(list(_COMPARED)).take(pa.array(rows))
    for name, kind in _TOLD.items():
        told = sends.coded(name)
        found = found.append_column(name, pa.array(told.values, kind).take(pa.array(told.codes[rows])))
    return found


def from_short(tables: Sequence[pa.Table]) -> Columns:
    """The messages of which `in_short` told that, in the order of the capture."""
    kind = ObservationKind.ACKNOWLEDGED
    columns = CaptureEvents({kind: pa.concat_tables(tables)}).columns(kind)
    for name in _TOLD:
        there = name in columns.table.column_names
        columns = columns.having(name, coded_column(columns.table.column(name)) if there else _NONE)
    return columns


def alike_elsewhere(sends: Columns) -> tuple[Rows, Rows]:
    """Of acknowledged messages that have some places of logs, of all connections: which were only passed on,
    and which others share their place in the logs of a group."""
    kept = told_once(sends)
    at, own = numbers_of(sends), numbers_of(kept)
    dropped = np.flatnonzero(~np.isin(at, own))
    left = np.setdiff1d(np.arange(len(sends)), dropped)
    places = np.unique(sends.numbers("offset").numbers[left], return_inverse=True)[1]
    codes = combined(sends.alike("group")[left], places)
    return dropped, left[np.bincount(codes)[codes] > 1] if len(left) else left


def without(sends: Columns, dropped: Numbers) -> Columns:
    """The messages but those with these numbers in the column AT."""
    gone = np.isin(numbers_of(sends), dropped)
    return sends.take(np.flatnonzero(~gone)) if gone.any() else sends


# ---- what the story is told by ---------------------------------------------------------------------


def borders_of(
    rows: Iterable[Observation], tenures: Mapping[str, Mapping[int, Tenure]]
) -> dict[str | None, Numbers]:
    """The moments that the story of each group asks for: of offices, and of handshakes."""
    found: dict[str | None, set[int]] = defaultdict(set)
    for group, own in tenures.items():
        found[group].update(tenure.time_ns for tenure in own.values())
    for row in rows:
        if row.kind == ObservationKind.HANDSHAKE:
            found[row.group].add(row.time_ns)
    return {group: _apart(times) for group, times in found.items()}


def _apart(times: Iterable[int]) -> Numbers:
    found = np.array(sorted(times), np.int64)
    return np.unique(np.concatenate([found, found + 1]))


def of_story(frames: Columns, borders: Borders, moments: Numbers) -> Rows:
    """Of the frames of replication those by which the story is told; `moments`: which moment of the pictures
    each one is of."""
    many = np.flatnonzero(frames.are(*MANY))
    signs = [
        code
        for name in ("offset", "confirm_offset", "max_offset")
        for each in [frames.numbers(name)]
        for code in (each.absent, (each.numbers < 0).astype(np.int64))
    ]
    owners = combined(frames.alike("group", "address", "connection"), frames.kinds.codes, *signs)
    times = frames.numbers("time_ns").numbers
    between = combined(owners, _between(frames, borders))
    ends = frames.numbers("offset").plus(frames.numbers("body_size").numbers).numbers
    return _union(
        *_ends(combined(owners, moments), frames.places, many),
        *_ends(between, frames.places, many),
        *_ends(between, times, many),
        _least(between, ~ends, many),
    )


def of_stored(sends: Columns, borders: Borders, moments: Numbers) -> Rows:
    """The same of acknowledged messages."""
    every = np.arange(len(sends))
    offsets = sends.numbers("offset")
    owners = combined(sends.alike("group", "address"), offsets.absent)
    between = combined(owners, _between(sends, borders))
    return _union(
        *_ends(combined(owners, moments), sends.places, every),
        *_ends(between, sends.numbers("time_ns").numbers, every),
        _least(between, ~offsets.numbers, every),
    )


def _between(events: Columns, borders: Borders) -> Codes:
    """Between which borders of its group each event is."""
    found = np.zeros(len(events), np.int64)
    times, group = events.numbers("time_ns").numbers, events.coded("group")
    for code, rows in split(group.codes):
        found[rows] = np.searchsorted(borders.get(group.values[code], _NOTHING), times[rows], "right")
    return found


def _least(codes: Codes, values: Numbers, rows: Rows) -> Rows:
    """Of some rows of each code the first one with the least value. Numbers come from peers: who asks for the
    largest turns them round by `~`, as the least of all has no negative in 64 bits."""
    order = rows[np.lexsort((rows, values[rows], codes[rows]))]
    own = codes[order]
    return order[np.append(True, own[1:] != own[:-1])] if len(order) else order


def _ends(codes: Codes, values: Numbers, rows: Rows) -> Iterator[Rows]:
    yield _least(codes, values, rows)
    yield _least(codes, ~values, rows)


def _union(*rows: Rows) -> Rows:
    return np.unique(np.concatenate([_NOTHING, *rows]))
