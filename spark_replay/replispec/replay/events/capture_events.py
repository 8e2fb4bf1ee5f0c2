"""All events of one capture in its order: what is rare as rows, what there is much of as columns.

Acknowledged messages and frames of replication are most of what a busy capture tells. They become rows only
where one of them is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.columns import Coded, Counted, Rows
from replispec.replay.events.observation import Observation, ObservationKind, from_table, to_table

MANY: Final = (
    ObservationKind.ACKNOWLEDGED,
    ObservationKind.REPORT,
    ObservationKind.BATCH,
    ObservationKind.HEARTBEAT,
)
"""Kinds that there is much of."""
_FIRST: Final = ("capture", "order", "connection", "direction", "sequence", "index")
_PAGE_ROWS: Final = 64


class CaptureEvents:
    """The events of one capture (rows of SCHEMA, in any order). Places are those in the capture's order."""

    def __init__(self, table: pa.Table) -> None:
        kinds = table.column("kind")
        sides = pc.subtract(
            pc.cast(pc.equal(kinds, ObservationKind.GAP), pa.int8()),
            pc.cast(pc.equal(kinds, ObservationKind.OPENED), pa.int8()),
        )
        # numpy sorts by the last key first, and leaves equal ones as they are.
        keys = [_ranks(table.column(name)) for name in _FIRST]
        order = np.lexsort([np.asarray(sides), *reversed(keys)])
        self._table = table
        self._order: Rows = order.astype(np.int64)
        self._kinds = coded_strings(kinds).take(self._order)
        self._pages: dict[int, list[Observation]] = {}
        few = np.flatnonzero(~self._is(MANY))
        self.few = from_table(table.take(self._order[few]))
        """The rows of all other kinds than MANY, in the order of the capture."""
        self._few_at = few

    @classmethod
    def of(cls, observations: Sequence[Observation]) -> CaptureEvents:
        """The same of rows."""
        return cls(to_table(observations))

    def __len__(self) -> int:
        return len(self._order)

    @property
    def end_ns(self) -> int:
        """The time of the last event; 0 without one."""
        return int(pc.max(self._table.column("time_ns")).as_py() or 0)

    def places(self, kinds: Collection[str]) -> Rows:
        """The places of all events of some kinds, ascending."""
        return np.flatnonzero(self._is(kinds))

    def kinds(self, places: Rows) -> Coded:
        """The kind of each of these events."""
        return self._kinds.take(places)

    def coded(self, name: str, places: Rows) -> Coded:
        """A column of text, flags or lists of these events."""
        return coded_strings(self._column(name, places))

    def numbers(self, name: str, places: Rows) -> Counted:
        """A column of numbers of these events."""
        column = self._column(name, places)
        missing = np.asarray(pc.is_null(column))
        return Counted(np.asarray(pc.fill_null(column, 0)).astype(np.int64), missing)

    def values(self, name: str, places: Rows) -> list[Any]:
        """A column of these events, one by one."""
        found: list[Any] = self._column(name, places).to_pylist()
        return found

    def row(self, place: int) -> Observation:
        """One event as a row."""
        page, at = divmod(place, _PAGE_ROWS)
        if page not in self._pages:
            first = page * _PAGE_ROWS
            self._pages[page] = from_table(self._table.take(self._order[first : first + _PAGE_ROWS]))
        return self._pages[page][at]

    def rows(self, kinds: Collection[str]) -> list[Observation]:
        """All events of some kinds as rows."""
        return from_table(self._table.take(self._order[self.places(kinds)]))

    def many(self) -> tuple[Rows, list[Observation]]:
        """The places of the events of MANY, and all of them as rows: for who must see each."""
        places = self.places(MANY)
        return places, from_table(self._table.take(self._order[places]))

    def merged(self, places: Rows, rows: Sequence[Observation]) -> list[Observation]:
        """These rows and the few others, in the order of the capture."""
        found: list[Any] = [None] * len(self)
        for at, row in zip((*self._few_at.tolist(), *places.tolist()), (*self.few, *rows), strict=True):
            found[at] = row
        return found

    def _is(self, kinds: Collection[str]) -> npt.NDArray[np.bool_]:
        wanted = np.array([value in kinds for value in self._kinds.values], dtype=np.bool_)
        return wanted[self._kinds.codes] if len(self) else np.zeros(0, dtype=np.bool_)

    def _column(self, name: str, places: Rows) -> pa.ChunkedArray:
        return self._table.column(name).take(pa.array(self._order[places]))


def _ranks(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers that are ordered as the values are."""
    if not pa.types.is_string(column.type):
        return np.asarray(column).astype(np.int64)
    codes = coded_strings(column)
    ranks = np.empty(len(codes.values), dtype=np.int64)
    ranks[sorted(range(len(codes.values)), key=lambda at: str(codes.values[at]))] = np.arange(len(ranks))
    return ranks[codes.codes]


def coded_strings(column: pa.ChunkedArray) -> Coded:
    """A column of few values, absent ones None."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Coded(np.asarray(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist())
