"""Numbers for values, and outcomes by numbers: what was computed once is looked up by columns.

A state is a row of small numbers: one for each instance (the place of its value in `Values`), what is left of
each budget, and the messages on their way, descending, 0 for none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
_SHIFT = 32
_LOW = (1 << _SHIFT) - 1
# A table of pairs has as many places as it likes up to here (of four bytes), then so many for each pair met.
_TABLE_LEAST, _TABLE_PLACES = 1 << 18, 16
# Of classes that were asked for: there are as many as a system has.
_NAMES: dict[type[Any], tuple[str, ...]] = {}
# Most of what a value is made of: nothing that can be looked up is inside it.
_PLAIN = frozenset({bool, bytes, float, int, str, type(None)})


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """The names of what an instance of a class has; none where it is none of ours."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]


def frozen(value: Any) -> Hashable:
    """The value as something that can be looked up: mappings inside it by their entries."""
    if type(value) in _PLAIN:
        plain: Hashable = value
        return plain
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    names = names_of(type(value))
    if names:
        return (type(value), *(frozen(getattr(value, name)) for name in names))
    found: Hashable = value
    return found


class Values:
    """Values with a number each, from `first` on, in the order in which they were seen."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._numbers: dict[Hashable, int] = {}
        self._values: list[Any] = []
        self._keys: list[Hashable] = []
        # Of these very objects, which are kept, and of their fields: a turn leaves most of them as they were.
        self._kept: dict[int, int] = {}
        self._fields: dict[int, Hashable] = {}

    def __len__(self) -> int:
        return len(self._values)

    def number(self, value: Any) -> int:
        """The number of a value."""
        kept = self._kept.get(id(value))
        if kept is not None:
            return kept
        names = names_of(type(value))
        fields = [getattr(value, name) for name in names]
        parts = [self._fields[id(each)] if id(each) in self._fields else frozen(each) for each in fields]
        key = (type(value), *parts) if names else frozen(value)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._kept[id(value)] = len(self._values) + self._first
            self._values.append(value)
            self._keys.append(key)
            self._fields.update(zip(map(id, fields), parts, strict=True))
        return found

    def parts(self, number: int) -> Mapping[str, Hashable]:
        """The fields of a value with this number, each as something that can be looked up."""
        key = self._keys[number - self._first]
        assert isinstance(key, tuple), "only what has fields is asked for them"
        return dict(zip(names_of(type(self[number])), key[1:], strict=True))

    def __getitem__(self, number: int) -> Any:
        return self._values[number - self._first]


class _Pairs:
    """Pairs of numbers with a number each, looked up by columns.

    While the pairs that were met fill enough of it, a table has a place for each pair that could be; it is
    looked up many times faster than what then takes its place, all that were met in their order.
    """

    def __init__(self) -> None:
        self._table: Numbers | None = np.empty((0, 0), np.int32)
        self._count = 0
        self._keys: Keys = np.empty(0, np.int64)
        self._numbers: Numbers = np.empty(0, np.int32)

    def of(self, left: Numbers, right: Numbers) -> Numbers:
        """The number of each pair. The new ones are numbered in their order."""
        table = self._room_for(int(left.max(initial=0)) + 1, int(right.max(initial=0)) + 1)
        if table is None:
            return self._sought(left, right)
        found: Numbers = table[left, right]
        unmet = np.flatnonzero(found < 0)
        if len(unmet):
            fresh = np.unique((left[unmet].astype(np.int64) << _SHIFT) | right[unmet])
            begin, self._count = self._count, self._count + len(fresh)
            table[fresh >> _SHIFT, fresh & _LOW] = np.arange(begin, self._count, dtype=np.int32)
            found[unmet] = table[left[unmet], right[unmet]]
        return found

    def _room_for(self, rows: int, columns: int) -> Numbers | None:
        """The table with a place for pairs below these; None when it would be too empty, from then on."""
        table = self._table
        if table is None or (rows <= table.shape[0] and columns <= table.shape[1]):
            return table
        shape = tuple(
            old if new <= old else 1 << (new - 1).bit_length()
            for new, old in zip((rows, columns), table.shape, strict=True)
        )
        if shape[0] * shape[1] > max(_TABLE_LEAST, _TABLE_PLACES * self._count):
            lefts, rights = np.nonzero(table >= 0)
            self._keys = (lefts.astype(np.int64) << _SHIFT) | rights
            self._numbers = table[lefts, rights]
            self._table = None
            return None
        self._table = np.full(shape, -1, np.int32)
        self._table[: table.shape[0], : table.shape[1]] = table
        return self._table

    def _sought(self, left: Numbers, right: Numbers) -> Numbers:
        """The number of each pair, sought among all in their order."""
        keys = (left.astype(np.int64) << _SHIFT) | right
        places = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == keys[inside]
        if not known.all():
            fresh = np.unique(keys[~known])
            numbers = np.arange(len(self._keys), len(self._keys) + len(fresh), dtype=np.int32)
            where = np.searchsorted(self._keys, fresh)
            self._keys = np.insert(self._keys, where, fresh)
            self._numbers = np.insert(self._numbers, where, numbers)
            places = np.searchsorted(self._keys, keys)
        found: Numbers = self._numbers[places]
        return found


class Combinations:
    """Combinations of several columns with a number each, and which of them were not met before."""

    def __init__(self, width: int) -> None:
        self._pairs = [_Pairs() for _ in range(width - 1)]
        self._met = np.zeros(0, np.bool_)

    def of(self, columns: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
        """The number of each row's combination, and the rows in which new ones stand, one for each."""
        numbers: Numbers = columns[0] if columns else np.zeros(0, np.int32)
        for pairs, column in zip(self._pairs, columns[1:], strict=True):
            numbers = pairs.of(numbers, column)
        size = int(numbers.max(initial=-1)) + 1
        if size > len(self._met):
            grown = np.zeros(max(size, 2 * len(self._met)), np.bool_)
            grown[: len(self._met)] = self._met
            self._met = grown
        rows = np.flatnonzero(~self._met[numbers])
        if len(rows):
            _, first = np.unique(numbers[rows], return_index=True)
            rows = rows[first]
            self._met[numbers[rows]] = True
        return numbers, rows.astype(np.int32)


class Column:
    """One value for each number of a combination; rows are added as they are met, in any order."""

    def __init__(self, width: int, fill: int, kind: Any = np.int32) -> None:
        self._fill = fill
        self.values = np.full((0, width), fill, kind)

    def put(self, number: int, row: Sequence[int]) -> None:
        """Set the row of a number; a wider one widens all."""
        count, width = self.values.shape
        if number >= count or len(row) > width:
            shape = (max(number + 1, 2 * count) if number >= count else count, max(width, len(row)))
            grown = np.full(shape, self._fill, self.values.dtype)
            grown[:count, :width] = self.values
            self.values = grown
        self.values[number, : len(row)] = row
