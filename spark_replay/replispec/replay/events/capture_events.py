"""All events of one capture in its order: what is rare as rows, what there is much of as columns.

Acknowledged messages and frames of replication are most of what a busy capture tells. They become rows only
where one of them is shown, or stands for all that are like it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.event_tables import Coded, Codes, Counted, Flags, Rows, combined, split
from replispec.replay.events.kinds import KINDS
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.tables import SCHEMAS, Events, rows_of

MANY: Final = frozenset(
    (
        ObservationKind.ACKNOWLEDGED,
        ObservationKind.REPORT,
        ObservationKind.BATCH,
        ObservationKind.HEARTBEAT,
        ObservationKind.LATENCY,
        ObservationKind.PAIRED,
        ObservationKind.PULLED,
        ObservationKind.POSITION,
        ObservationKind.LIMIT,
    )
)
"""Kinds that there is much of."""
_PLACED: Final = ("order", "direction", "sequence", "index")


@dataclass(frozen=True, slots=True)
class Columns:
    """Events of some kinds in the order of the capture. `joined` is what no table has: what `join` told."""

    table: pa.Table
    kinds: Coded
    places: Rows
    joined: Mapping[str, Coded] = field(default_factory=dict)
    _numbers: dict[str, Counted] = field(default_factory=dict)
    _coded: dict[str, Coded] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def numbers(self, name: str) -> Counted:
        """A column of numbers; what is absent is 0 there."""
        if name not in self._numbers:
            column = self.table.column(name)
            absent = np.asarray(pc.is_null(column)).astype(np.int64)
            self._numbers[name] = Counted(np.asarray(pc.fill_null(column, 0)).astype(np.int64), absent)
        return self._numbers[name]

    def coded(self, name: str) -> Coded:
        """A column of few values: text, flags, small numbers; or what `join` told."""
        if name in self.joined:
            return self.joined[name]
        if name not in self._coded:
            self._coded[name] = coded_column(self.table.column(name))
        return self._coded[name]

    def are(self, *kinds: ObservationKind) -> Flags:
        """Which events are of these kinds."""
        return self.kinds.where(*kinds)

    def take(self, rows: Rows) -> Columns:
        """Some of the events, ascending."""
        joined = {name: column.take(rows) for name, column in self.joined.items()}
        return Columns(
            self.table.take(pa.array(rows)),
            self.kinds.take(rows),
            self.places[rows],
            joined,
            {name: column.take(rows) for name, column in self._numbers.items()},
            {name: column.take(rows) for name, column in self._coded.items()},
        )

    def having(self, name: str, column: Coded) -> Columns:
        """The same events with something that `join` told of each."""
        joined = {**self.joined, name: column}
        return Columns(self.table, self.kinds, self.places, joined, self._numbers, self._coded)

    def rows(self, at: Rows) -> list[Observation]:
        """Some of the events as rows."""
        found: list[Any] = [None] * len(at)
        for code, own in split(self.kinds.codes[at]):
            rows = at[own]
            joined = {name: column.take(rows).listed() for name, column in self.joined.items()}
            made = rows_of(self.kinds.values[code], self.table.take(pa.array(rows)), joined)
            for place, row in zip(own.tolist(), made, strict=True):
                found[place] = row
        return found

    def row(self, at: int) -> Observation:
        """One event as a row."""
        return self.rows(np.array([at], np.int64))[0]

    def told_alike(self, codes: Codes, tell: Callable[[Observation], Any]) -> Coded:
        """What is told of each event, where all with one code are told the same: one of each is asked."""
        parts = split(codes)
        rows = self.rows(np.array([own[0] for _, own in parts], np.int64))
        values = {code: tell(row) for (code, _), row in zip(parts, rows, strict=True)}
        found = np.zeros(len(self), np.int64)
        known: dict[Any, int] = {}
        for code, own in parts:
            found[own] = known.setdefault(values[code], len(known))
        return Coded(found, list(known))

    def alike(self, *names: str) -> Codes:
        """One code for every combination of these columns."""
        return combined(*(self.coded(name).codes for name in names))


class CaptureEvents:
    """The events of one capture. Those of one frame stand in the order of kinds."""

    def __init__(self, events: Events) -> None:
        self._tables = {kind: events[kind] for kind in KINDS if kind in events and events[kind].num_rows}
        connections = coded_column(self._every("connection"))
        ranks = np.empty(len(connections.values), np.int64)
        ranks[sorted(range(len(ranks)), key=connections.values.__getitem__)] = np.arange(len(ranks))
        order, direction, sequence, index = (np.asarray(self._every(name)) for name in _PLACED)
        counts = [table.num_rows for table in self._tables.values()]
        # A connection is opened before its first frame, and a gap stands after the frame before it.
        sides = [(kind is ObservationKind.GAP) - (kind is ObservationKind.OPENED) for kind in self._tables]
        # numpy sorts by the last key first, and leaves equal ones as they are.
        keys = (index, sequence, direction, ranks[connections.codes], order)
        found = np.lexsort((np.repeat(np.array(sides, np.int64), counts), *keys))
        self._places = np.empty(len(found), np.int64)
        self._places[found] = np.arange(len(found))
        self._begins = dict(zip(self._tables, np.cumsum(counts) - counts, strict=True))

    @cached_property
    def few(self) -> list[Observation]:
        """The rows of all other kinds than MANY."""
        return self.rows(kind for kind in KINDS if kind not in MANY)

    def rows(self, kinds: Iterable[ObservationKind]) -> list[Observation]:
        """All events of some kinds as rows."""
        found: list[Observation] = []
        places: list[Rows] = []
        for kind in kinds:
            if kind in self._tables:
                found += rows_of(kind, self._tables[kind])
                places.append(self._of(kind))
        order = np.argsort(np.concatenate([np.zeros(0, np.int64), *places]))
        return [found[at] for at in order.tolist()]

    def columns(self, *kinds: ObservationKind) -> Columns:
        """All events of some kinds as columns; what a kind has not is null."""
        own = [kind for kind in kinds if kind in self._tables]
        tables = [*(SCHEMAS[kind].empty_table() for kind in kinds), *(self._tables[kind] for kind in own)]
        places = np.concatenate([np.zeros(0, np.int64), *(self._of(kind) for kind in own)])
        order = np.argsort(places)
        counts = [self._tables[kind].num_rows for kind in own]
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        codes = np.repeat(np.arange(len(own)), counts)[order]
        return Columns(table.take(pa.array(order)), Coded(codes, own), places[order])

    def _of(self, kind: ObservationKind) -> Rows:
        begin = self._begins[kind]
        return self._places[begin : begin + self._tables[kind].num_rows]

    def _every(self, name: str) -> pa.ChunkedArray:
        """A column of all events, kind by kind."""
        columns = [table.column(name) for table in self._tables.values()]
        kind = next(iter(SCHEMAS.values())).field(name).type
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks], kind)


def coded_column(column: pa.ChunkedArray) -> Coded:
    """A column of few values, absent ones None."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Coded(np.asarray(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist())
