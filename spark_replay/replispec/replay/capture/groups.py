"""Columns whose rows fall into groups: numbered, sorted and folded without a loop over rows or groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.capture.records import Integers

IntT = TypeVar("IntT", np.int64, np.uint64)
# Sums up to here are within 64 bits with room to spare.
_FAR = 1 << 62


def numbered(values: npt.NDArray[IntT]) -> tuple[npt.NDArray[IntT], Integers]:
    """The distinct values, ascending, and which of them each row has: many rows, few values."""
    coded = pa.array(values).dictionary_encode()
    distinct: npt.NDArray[IntT] = coded.dictionary.to_numpy()
    order = np.argsort(distinct)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[coded.indices.to_numpy()]


def runs(values: Integers) -> Iterator[tuple[int, int, int]]:
    """(value, first row, row after the last) for each run of equal values."""
    if len(values):
        first = np.flatnonzero(np.append([True], values[1:] != values[:-1]))
        upto = np.append(first[1:], len(values))
        yield from zip(values[first].tolist(), first.tolist(), upto.tolist(), strict=True)


def stable_order(numbers: Integers) -> Integers:
    """The rows in ascending order of their numbers (not negative), equal ones as they are.

    Numbers of 16 bits are sorted without comparing them.
    """
    small = not len(numbers) or int(numbers.max()) < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if small else numbers, kind="stable")


def sorted_in_groups(group: Integers, values: Integers) -> Integers:
    """The rows by their groups (numbers that are not negative), in each by value, equal ones as they are."""
    order = stable_order(group)
    raised = _raised(group[order], values[order])
    return order[np.argsort(raised, kind="stable")] if raised is not None else np.lexsort((values, group))


def running_maximum(group: Integers, values: Integers) -> Integers:
    """The greatest value so far in each group; the rows of a group are next to each other."""
    raised = _raised(group, values)
    if raised is None:
        borders = np.flatnonzero(group[1:] != group[:-1]) + 1
        return np.concatenate([np.maximum.accumulate(part) for part in np.split(values, borders)])
    by: Integers = raised - values
    return np.maximum.accumulate(raised) - by


def ranks(
    borders: Integers, group: Integers, values: Integers, asked: Integers, side: Literal["left", "right"]
) -> Integers:
    """Where what is asked for stands among all `values`, looked for in a group of them, one for each row.

    The values of group n are those from borders[n] on, up to borders[n + 1]; they ascend, from 0 or more. The
    groups stand on one axis, each behind the last value of the one before: no value is too large.
    """
    spans = np.ones(len(borders) - 1, np.int64)
    filled = np.flatnonzero(borders[1:] > borders[:-1])
    spans[filled] += values[borders[1:][filled] - 1] + 1
    begins = np.cumsum(spans) - spans
    placed = values + np.repeat(begins, np.diff(borders))
    found: Integers = np.searchsorted(placed, begins[group] + np.clip(asked, -1, spans[group] - 1), side)
    return found


def _raised(group: Integers, values: Integers) -> Integers | None:
    """Values raised so far that those of each group (rows next to each other) are above those of all groups
    before it; None when they get too large for that."""
    if not len(values):
        return values
    low = int(values.min())
    span = int(values.max()) - low + 1
    ordinal = np.zeros(len(group), np.int64)
    np.cumsum(group[1:] != group[:-1], out=ordinal[1:])
    if (int(ordinal[-1]) + 1) * span >= _FAR:
        return None
    raised: Integers = values - low + ordinal * span
    return raised
