"""Conditions over whole populations: each is asked once for each combination of what it reads.

A broker is a log, several machines and what it keeps; whether it is master is asked of one of them. Brokers
that are alike in what an expression names are one to it, however many there are of them.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Final

import numpy as np

from replispec.explorer.tables import Column, Combinations, Mask, Numbers, Rows, Values, names_of
from replispec.runtime.primitives.systems import Read

_UNMET: Final = np.empty(0, np.int32)


def fields_read(reads: Sequence[Read]) -> frozenset[str] | None:
    """What these expressions may read of an instance, and maybe more; None when nobody knows.

    `run.state`: of the field `run` no more than its `state`.
    """
    found: set[str] = set()
    for read in reads:
        code = getattr(read.of, "__code__", None)
        if code is None and read.names:
            return None
        if code is not None:
            found.update(_names_in(code))
    return frozenset(found)


def _names_in(code: CodeType) -> Iterator[str]:
    """All names in a compiled expression, those of the loops inside it, too; with what is read of each."""
    chain: list[str] = []
    for each in dis.get_instructions(code):
        if each.opname == "LOAD_ATTR":
            chain.append(each.argval)
            continue
        yield from _ends_of(chain)
        chain.clear()
        # Of what is named otherwise, as by a call, all may be read.
        if each.argval in code.co_names:
            yield each.argval
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _ends_of(chain: Sequence[str]) -> Iterator[str]:
    """Of a.b.c also b.c and c: whatever one of them is read of may be an instance."""
    for begin in range(len(chain)):
        yield ".".join(chain[begin:])


def _part_of(value: Hashable, path: Sequence[str]) -> Hashable:
    """What a path leads to in a value of `Values.parts`; all of the value where it is no field of it."""
    for name in path:
        if not (isinstance(value, tuple) and value and isinstance(value[0], type)):
            return value
        names = names_of(value[0])
        if name not in names:
            return value
        value = value[1 + names.index(name)]
    return value


class _Kinds:
    """The values of a place by the fields that are read of them: the number of the kind of each."""

    def __init__(self, values: Values, fields: frozenset[str] | None) -> None:
        self._values = values
        self._fields = fields
        self._paths: dict[str, list[list[str]]] = {}
        for each in sorted(fields or ()):
            name, *path = each.split(".")
            self._paths.setdefault(name, []).append(path)
        self._known: dict[Hashable, int] = {}
        self._kinds: Numbers = _UNMET

    def of(self, numbers: Numbers) -> Numbers:
        """The kinds of values with these numbers."""
        if self._fields is None:
            return numbers
        if len(self._kinds) < len(self._values):
            fresh = [self._kind(number) for number in range(len(self._kinds), len(self._values))]
            self._kinds = np.concatenate([self._kinds, np.array(fresh, np.int32)])
        found: Numbers = self._kinds[numbers]
        return found

    def _kind(self, number: int) -> int:
        parts = self._values.parts(number)
        read = tuple(
            _part_of(part, path) for name, part in parts.items() for path in self._paths.get(name, ())
        )
        return self._known.setdefault(read, len(self._known))


class Condition:
    """A question about the values in some places, of which these fields are read (None: any)."""

    def __init__(
        self,
        places: Sequence[int],
        fields: frozenset[str] | None,
        values: Sequence[Values],
        asks: Callable[[Mapping[int, Any]], bool],
    ) -> None:
        self._places = places
        self._values = values
        self._asks = asks
        self._kinds = [_Kinds(values[place], fields) for place in places]
        self._combinations = Combinations(max(1, len(places)))
        self._answers = Column(1, 0, np.int8)

    def of(self, rows: Rows) -> Mask:
        """In which of these states the answer is yes."""
        if not self._places:
            return np.full(len(rows), self._asks({}), np.bool_)
        pairs = zip(self._kinds, self._places, strict=True)
        numbers, fresh = self._combinations.of([kinds.of(rows[:, place]) for kinds, place in pairs])
        for index in fresh:
            read = {place: self._values[place][int(rows[index, place])] for place in self._places}
            self._answers.put(int(numbers[index]), [int(self._asks(read))])
        found: Mask = self._answers.values[numbers, 0] > 0
        return found
