"""Events of one stream as columns, for whoever judges many at once.

What is compared and added (offsets, sizes) is a column of numbers. What is one of few values (names, epochs,
flags) is a column of codes, each with its value. Any event is also there as an object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from replispec.runtime.primitives.unknown import UNKNOWN

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
ABSENT: Final = (0, None, UNKNOWN)
"""What stands for a number: itself, that there is none, or that it was not seen."""
INT64_MAX: Final = (1 << 63) - 1
TABLE_MIN: Final = 1 << 12
SHORT_MAX: Final = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class Coded:
    """One attribute of every event: `values[codes[row]]`."""

    codes: Codes
    values: Sequence[Any]

    def take(self, rows: Rows) -> Coded:
        """That of some events."""
        return Coded(self.codes[rows], self.values)

    def listed(self) -> list[Any]:
        """The value of each event."""
        return [self.values[code] for code in self.codes.tolist()]

    def where(self, *values: Any) -> Flags:
        """Which events have one of these values."""
        return np.array([value in values for value in self.values], np.bool_)[self.codes]


@dataclass(frozen=True, slots=True)
class Counted:
    """One number of every event; where it has none (`absent` is not 0), ABSENT[absent[row]] instead."""

    numbers: Numbers
    absent: Codes

    def take(self, rows: Rows) -> Counted:
        """Those of some events."""
        return Counted(self.numbers[rows], self.absent[rows])

    def plus(self, more: Numbers) -> Counted:
        """The sums; one that has no place in 64 bits is the largest number."""
        found = self.numbers + more
        return Counted(np.where((more > 0) & (found < self.numbers), INT64_MAX, found), self.absent)

    def value(self, row: int) -> Any:
        """What one event has."""
        return ABSENT[self.absent[row]] if self.absent[row] else int(self.numbers[row])


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
        numbers = {name: column.value(row) for name, column in self.numbers.items()}
        return SimpleNamespace(**known, **numbers)

    def shown(self, row: int) -> SimpleNamespace:
        """One event as an object, with its place, and its observation as `row`."""
        event = self.event(row)
        event.place = int(self.places[row])
        event.row = self.row_at(event.place)
        return event

    def parts(self, attribute: str) -> list[tuple[Any, Rows]]:
        """The rows of each value of an attribute that has codes, by the first row of each."""
        column = self.known[attribute]
        return [(column.values[code], rows) for code, rows in split(column.codes)]

    def templates(self) -> Templates:
        """What the events have in common, and which has what."""
        columns = [self.names.codes, *(column.codes for column in self.known.values())]
        codes = combined(*columns, *(column.absent for column in self.numbers.values()))
        firsts = np.unique(codes, return_index=True)[1]
        return Templates(codes, [self._template(int(row)) for row in firsts])

    def _template(self, row: int) -> Template:
        known = {name: column.values[column.codes[row]] for name, column in self.known.items()}
        absent = {name: column.value(row) for name, column in self.numbers.items() if column.absent[row]}
        return Template(self.name(row), {**known, **absent})


@dataclass(frozen=True, slots=True)
class Templates:
    """`each[codes[row]]` is what the event of a row has in common with others."""

    codes: Codes
    each: list[Template] = field(default_factory=list)

    def take(self, rows: Rows) -> Templates:
        """Those of some events alone."""
        own, codes = np.unique(self.codes[rows], return_inverse=True)
        return Templates(codes, [self.each[code] for code in own.tolist()])


def combined(*columns: Codes) -> Codes:
    """One code for every combination of codes (none of them below 0), from 0 on without a gap."""
    found, count = np.zeros(len(columns[0]), np.int64), 1
    for codes in columns:
        if len(codes) and (codes != codes[0]).any():
            own, size = numbered(codes, int(codes.max()) + 1)
            found, count = numbered(found * size + own, count * size)
    return found


def numbered(codes: Codes, size: int) -> tuple[Codes, int]:
    """The same codes in their order from 0 on without a gap, and how many there are; all are below `size`."""
    if size > max(len(codes), TABLE_MIN):
        # Sorted only where a table of all codes would be larger than what has them.
        values, found = np.unique(codes, return_inverse=True)
        return found, len(values)
    there = np.zeros(size, np.bool_)
    there[codes] = True
    return (np.cumsum(there) - 1)[codes], int(there.sum())


def split(codes: Codes) -> list[tuple[int, Rows]]:
    """The rows of each code, ascending; codes by their first row."""
    # Short numbers are sorted by their digits.
    short = len(codes) and codes.min() >= 0 and codes.max() <= SHORT_MAX
    order = np.argsort(codes.astype(np.uint16) if short else codes, kind="stable")
    ordered = codes[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    ends = [0, *borders.tolist(), len(order)]
    parts = [order[first:behind] for first, behind in pairwise(ends) if first < behind]
    return sorted(((int(codes[part[0]]), part) for part in parts), key=lambda part: int(part[1][0]))


_UNSEEN: Final = object()


class _Alone:
    """The key of a value that is like no other."""


def coded(values: Sequence[Any]) -> Coded:
    """Values of which there are few: texts, flags, sets, lists, small numbers."""
    known: dict[Any, int] = {}
    each: list[Any] = []
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        # What was not seen answers no question, not even whether it is the same as another one.
        key = _UNSEEN if value is UNKNOWN else tuple(value) if isinstance(value, list) else value
        try:
            code = known.setdefault(key, len(known))
        except TypeError:
            # What cannot be looked up is another value each time.
            code = known.setdefault(_Alone(), len(known))
        if code == len(each):
            each.append(value)
        codes[row] = code
    return Coded(codes, each)


def counted(values: Sequence[Any]) -> Counted | None:
    """Numbers, None and UNKNOWN; None when one has more than 64 bits."""
    numbers = [value if isinstance(value, int) else 0 for value in values]
    absent = [0 if isinstance(value, int) else 1 if value is None else 2 for value in values]
    try:
        return Counted(np.array(numbers, dtype=np.int64), np.array(absent, dtype=np.int64))
    except OverflowError:
        return None


def table_of(
    stream: str, events: Sequence[tuple[str, Any]], numbers: Collection[str], row_at: Callable[[int], Any]
) -> EventTable:
    """Events, each with its kind, as columns: the attributes `numbers` as such, all others as codes.

    What an event lacks is None; `row` is no attribute. Places are those in `events`.
    """
    names = coded([name for name, _ in events])
    plain = [event.__dict__ for _, event in events]
    found: set[str] = set()
    for each in plain:
        found |= each.keys()
    known, own_numbers = {}, {}
    for attribute in sorted(found - {"row"}):
        values = [each.get(attribute) for each in plain]
        column = counted(values) if attribute in numbers else None
        if column is None:
            known[attribute] = coded(values)
        else:
            own_numbers[attribute] = column
    places = np.arange(len(events), dtype=np.int64)
    return EventTable(stream, names, known, own_numbers, places, row_at)
