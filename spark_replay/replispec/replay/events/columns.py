"""Events of one stream as columns, for whoever judges many at once.

What is compared and added (offsets, sizes) is a column of numbers. What is one of few values (names, epochs,
flags) is a column of codes, each with its value. Any event is also there as an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coded:
    """One attribute of every event: `values[codes[row]]`."""

    codes: Codes
    values: Sequence[Any]

    def take(self, rows: Rows) -> Coded:
        """That of some events."""
        return Coded(self.codes[rows], self.values)


@dataclass(frozen=True, slots=True)
class Counted:
    """One number of every event; None where it is `missing`."""

    numbers: Numbers
    missing: Flags

    def take(self, rows: Rows) -> Counted:
        """Those of some events."""
        return Counted(self.numbers[rows], self.missing[rows])


@dataclass(frozen=True, slots=True)
class Template:
    """What events have in common: their kind, and every attribute that is no number of its own."""

    name: str
    known: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events of the stream `stream` in their order. `names` are their kinds there.

    `places[row]` says where an event stands among all events of its capture: `row_at` is given it and answers
    with the observation that shows the event.
    """

    stream: str
    names: Coded
    known: Mapping[str, Coded]
    numbers: Mapping[str, Counted]
    places: Rows
    row_at: Callable[[int], Any]

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Rows) -> EventTable:
        """Some of the events, in the order of `rows`."""
        return EventTable(
            self.stream,
            self.names.take(rows),
            {name: column.take(rows) for name, column in self.known.items()},
            {name: column.take(rows) for name, column in self.numbers.items()},
            self.places[rows],
            self.row_at,
        )

    def with_known(self, name: str, column: Coded) -> EventTable:
        """The same events with one more attribute."""
        known = {**self.known, name: column}
        return EventTable(self.stream, self.names, known, self.numbers, self.places, self.row_at)

    def name(self, row: int) -> str:
        """The kind of one event."""
        return str(self.names.values[self.names.codes[row]])

    def event(self, row: int) -> SimpleNamespace:
        """One event as an object, without its observation."""
        known = {name: column.values[column.codes[row]] for name, column in self.known.items()}
        numbers = {
            name: None if column.missing[row] else int(column.numbers[row])
            for name, column in self.numbers.items()
        }
        return SimpleNamespace(**known, **numbers)

    def shown(self, row: int) -> SimpleNamespace:
        """One event as an object, with its observation as `row`."""
        event = self.event(row)
        event.row = self.row_at(int(self.places[row]))
        return event

    def parts(self, attribute: str) -> list[tuple[Any, Rows]]:
        """The rows of each value of an attribute that has codes, by the first row of each."""
        column = self.known[attribute]
        return [(column.values[code], rows) for code, rows in split(column.codes)]

    def templates(self) -> Templates:
        """What the events have in common, and which has what."""
        columns = [self.names.codes, *(column.codes for column in self.known.values())]
        missing = [column.missing.astype(np.int64) for column in self.numbers.values()]
        codes = combined(*columns, *missing)
        firsts = np.unique(codes, return_index=True)[1]
        return Templates(codes, [self._template(int(row)) for row in firsts])

    def _template(self, row: int) -> Template:
        known = {name: column.values[column.codes[row]] for name, column in self.known.items()}
        absent = {name: None for name, column in self.numbers.items() if column.missing[row]}
        return Template(self.name(row), {**known, **absent})


@dataclass(frozen=True, slots=True)
class Templates:
    """`each[codes[row]]` is what the event of a row has in common with others."""

    codes: Codes
    each: list[Template] = field(default_factory=list)


def combined(*columns: Codes) -> Codes:
    """One code for every combination of codes, from 0 on without a gap."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        if len(codes) and (codes != codes[0]).any():
            # Renumbered each time, so that no product of numbers of codes overflows.
            values, low = np.unique(codes, return_inverse=True)
            found = np.unique(found * len(values) + low, return_inverse=True)[1]
    return found


def split(codes: Codes) -> list[tuple[int, Rows]]:
    """The rows of each code, ascending; codes by their first row."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    parts = [part for part in np.split(order, borders) if len(part)]
    return sorted(((int(codes[part[0]]), part) for part in parts), key=lambda part: int(part[1][0]))


def coded(values: Sequence[Any]) -> Coded:
    """Values that can be looked up, each once."""
    known: dict[Any, int] = {}
    codes = np.fromiter((known.setdefault(each, len(known)) for each in values), np.int64, len(values))
    return Coded(codes, list(known))


def alike(value: Any, count: int) -> Coded:
    """One value for all events."""
    return Coded(np.zeros(count, dtype=np.int64), [value])
