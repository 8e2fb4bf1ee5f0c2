"""Ranges of the commit log that two replication connections carried, cut at their common borders.

Masters cut the log into runs as the load of each connection has it. Between two borders that both
connections have, each has carried the same range in whole runs, whose digests are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import (
    INT64_MAX,
    Coded,
    Counted,
    EventTable,
    Numbers,
    Rows,
    coded,
    combined,
    split,
)
from replispec.replay.events.observation import ObservationKind
from replispec.replay.frames.digests import joined

RANGE: Final = "range"
_NUMBERS: Final = ("offset", "size", "digest", "first_digest")
RANK, WITHIN = "rank", "within"
"""Where a range stands among those of its group and epoch: which pair of connections it is of, and where in
the log it starts."""
AnyT = TypeVar("AnyT")
Epoch = tuple[str, int]
"""A group, and one of its masterEpochs."""
Known = tuple[str, str, str, int]
"""Group, connection, other connection and epoch."""


@dataclass(frozen=True)
class Carried:
    """The runs of one epoch that one connection carried, by their starts. First copies count.

    `rows` are the runs' rows in the table of frames.
    """

    connection: str
    starts: Numbers
    ends: Numbers
    digests: Numbers
    rows: Rows

    @cached_property
    def runs(self) -> Mapping[int, tuple[int, int]]:
        """End and digest of the run that starts somewhere."""
        runs = zip(self.ends.tolist(), self.digests.tolist(), strict=True)
        return dict(zip(self.starts.tolist(), runs, strict=True))

    def beginning(self, first: int, behind: int) -> Carried:
        """Those of the runs that start in a stretch of the log."""
        own = np.flatnonzero((self.starts >= first) & (self.starts < behind))
        return Carried(self.connection, self.starts[own], self.ends[own], self.digests[own], self.rows[own])


@dataclass(slots=True)
class RangesFound:
    """Ranges, in their order: `rows` show them, `ranks` say which pair of connections they are of."""

    rows: list[Any] = field(default_factory=list)
    known: list[tuple[Known, int]] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    numbers: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NUMBERS})

    def add(self, known: Known, rank: int, rows: Any, *numbers: Any) -> None:
        """Ranges of two connections."""
        self.known.append((known, len(rows)))
        self.ranks.append(rank)
        self.rows.append(rows)
        for name, values in zip(_NUMBERS, numbers, strict=True):
            self.numbers[name].append(np.asarray(values, dtype=np.int64))

    def table(self, row_at: Callable[[int], Any]) -> EventTable:
        """The events of the stream `ranges`; `row_at` is given one of `rows`."""
        nothing = np.zeros(0, np.int64)
        rows = np.concatenate([nothing, *self.rows])
        every = {name: np.concatenate([nothing, *each]) for name, each in self.numbers.items()}
        every[RANK] = np.repeat(np.array(self.ranks, np.int64), self._counts())
        every[WITHIN] = every["offset"]
        numbers = {name: Counted(each, np.zeros(len(rows), np.int64)) for name, each in every.items()}
        names = Coded(np.zeros(len(rows), np.int64), [RANGE])
        known = {name: self._column(at) for at, name in enumerate(("group", "connection", "other", "epoch"))}
        return EventTable("ranges", names, known, numbers, rows, row_at)

    def _counts(self) -> list[int]:
        return [count for _, count in self.known]

    def _column(self, at: int) -> Coded:
        """One of what is known, for every range."""
        values = coded([each[at] for each, _ in self.known])
        return Coded(np.repeat(values.codes, self._counts()), values.values)


def ranges(frames: Columns) -> EventTable:
    """The events of the stream `ranges`; `frames` are those of replication, with their groups.

    Runs of which bytes are missing are in none.
    """
    found = RangesFound()
    for (group, epoch), every in sorted(carried(frames).items()):
        for rank, other, one in pairs_of(every):
            _add_common(found, (group, one.connection, other.connection, epoch), rank, other, one)
    return found.table(frames.row)


def pairs_of(every: Sequence[AnyT]) -> Iterator[tuple[int, AnyT, AnyT]]:
    """All pairs of what stands in an order, each with its number, the earlier one first."""
    both = ((other, one) for at, one in enumerate(every) for other in every[:at])
    yield from ((rank, *each) for rank, each in enumerate(both))


def carried(frames: Columns) -> dict[Epoch, list[Carried]]:
    """What was carried of each group and epoch, connections by their first runs."""
    digests = frames.numbers("body_digest")
    offsets, sizes = (frames.numbers(name).numbers for name in ("offset", "body_size"))
    # What ends before it starts, or beyond every log, is no run of one.
    sound = (sizes > 0) & (offsets <= INT64_MAX - sizes)
    rows = np.flatnonzero(frames.are(ObservationKind.BATCH) & (digests.absent == 0) & sound)
    columns = [frames.coded(name).take(rows) for name in ("group", "epoch", "connection")]
    found: dict[Epoch, list[Carried]] = {}
    for _, part in split(combined(*(column.codes for column in columns))):
        group, epoch, connection = (column.values[column.codes[part[0]]] for column in columns)
        own = rows[part]
        starts, first = np.unique(offsets[own], return_index=True)
        own = own[first]
        each = Carried(connection, starts, starts + sizes[own], digests.numbers[own], own)
        found.setdefault((group, epoch), []).append(each)
    return found


def _add_common(found: RangesFound, known: Known, rank: int, first: Carried, second: Carried) -> None:
    """The ranges between common borders of two connections."""
    starts, one, two = np.intersect1d(first.starts, second.starts, assume_unique=True, return_indices=True)
    ends = first.ends[one]
    if (ends == second.ends[two]).all() and (starts[1:] >= ends[:-1]).all() and (starts >= 0).all():
        # Cut alike: every run of one is a run of the other.
        digests = (second.digests[two], first.digests[one])
        found.add(known, rank, second.rows[two], starts, ends - starts, *digests)
        return
    each = list(_common(first, second, starts.tolist()))
    rows = np.array([row for row, *_ in each], dtype=np.int64)
    numbers = [[row[at] for row in each] for at in range(1, 1 + len(_NUMBERS))]
    found.add(known, rank, rows, *numbers)


def _common(first: Carried, second: Carried, starts: list[int]) -> Iterator[tuple[int, int, int, int, int]]:
    """Row, start, size and both digests of each range, when the log was cut differently."""
    done = -1
    for start in starts:
        if start < done:
            continue
        end = _common_end(first, second, start)
        if end is None:
            continue
        done = end
        row = int(second.rows[np.searchsorted(second.starts, start)])
        yield row, start, end - start, _digest(second, start, end), _digest(first, start, end)


def _common_end(first: Carried, second: Carried, start: int) -> int | None:
    """Where both connections next have a border, in runs without a gap; None when one breaks off before."""
    one, other = first.runs[start][0], second.runs[start][0]
    while one != other:
        lower, at = (first, one) if one < other else (second, other)
        if at not in lower.runs:
            return None
        if lower is first:
            one = first.runs[at][0]
        else:
            other = second.runs[at][0]
    return one


def _digest(carried: Carried, start: int, end: int) -> int:
    """The digest of the bytes of a range that consists of whole runs."""
    until, digest = carried.runs[start]
    while until < end:
        following, own = carried.runs[until]
        digest = joined(digest, own, following - until)
        until = following
    return digest
