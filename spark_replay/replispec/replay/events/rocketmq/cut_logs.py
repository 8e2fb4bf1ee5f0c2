"""The log of one masterEpoch in blocks of offsets, each of which is compared without the others.

A block is a fixed range of offsets of the commit log. What replication connections carried in it, and
messages that were acknowledged there, meet in one place; a run of log bytes that lies in several blocks goes
to each of them. A range that two connections have in common may begin in one block and end behind it: what is
open at the end of a block is told, and joined to what the blocks behind it have (`joined_ranges`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import INT64_MAX, EventTable, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.ranges import Carried, Epoch, RangesFound, carried, pairs_of
from replispec.replay.frames.digests import joined

BLOCKS_OF_A_RUN: Final = 1 << 10
"""A run that lies in more is none that a master sends: its epoch is not cut."""


# ---- how far the log of an epoch was carried -------------------------------------------------------


class CarriedStretch(NamedTuple):
    """What one connection carried of an epoch, or a stretch of that: from the first to the last offset, and
    where in the capture its first run without missing bytes stands, None without one. `is_plain`: its runs
    follow each other, each once, at places that a log has."""

    connection: str
    first: int
    behind: int
    begun: tuple[int, int, int] | None
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the log of one epoch was carried; `order`: by which connections, by their first runs;
    `is_cut`: it is compared in blocks."""

    first: int
    behind: int
    order: Sequence[str]
    is_cut: bool


def stretches_of(frames: Columns, block: int) -> dict[Epoch, list[CarriedStretch]]:
    """What the frames of replication, with their groups, carried of each epoch; `block`: its bytes."""
    found: dict[Epoch, list[CarriedStretch]] = defaultdict(list)
    own = {(key, each.connection): each for key, every in carried(frames).items() for each in every}
    rows = np.flatnonzero(frames.are(ObservationKind.BATCH))
    columns = [frames.coded(name).take(rows) for name in ("group", "epoch", "connection")]
    offsets, sizes = (frames.numbers(name).numbers[rows] for name in ("offset", "body_size"))
    order, index, direction = (frames.numbers(name).numbers for name in ("order", "index", "direction"))
    for _, part in split(frames.alike("group", "epoch", "connection")[rows]):
        group, epoch, connection = (column.values[column.codes[part[0]]] for column in columns)
        first, size = offsets[part], sizes[part]
        is_log = bool(((first >= 0) & (size > 0) & (first <= INT64_MAX - size)).all())
        runs = own.get(((group, epoch), connection))
        begun = None
        if runs is not None:
            at = int(runs.rows.min())
            begun = int(order[at]), int(direction[at]), int(index[at])
        found[group, epoch].append(
            CarriedStretch(
                connection,
                int(first.min()),
                int((first + size).max()) if is_log else INT64_MAX,
                begun,
                is_log and bool((size <= block * (BLOCKS_OF_A_RUN - 1)).all()) and _is_plain(runs),
            )
        )
    return dict(found)


def _is_plain(runs: Carried | None) -> bool:
    return runs is None or bool((runs.starts[1:] >= runs.ends[:-1]).all())


def extents_of(parts: Iterable[Mapping[Epoch, Sequence[CarriedStretch]]], block: int) -> dict[Epoch, Extent]:
    """The same of all parts together, by epoch."""
    every: dict[Epoch, list[CarriedStretch]] = defaultdict(list)
    for part in parts:
        for key, told in part.items():
            every[key] += told
    return {key: _extent(own, block) for key, own in every.items()}


def _extent(every: Sequence[CarriedStretch], block: int) -> Extent:
    first, behind = min(each.first for each in every), max(each.behind for each in every)
    firsts: dict[str, tuple[int, str, int, int]] = {}
    for each in every:
        if each.begun is not None:
            at, direction, index = each.begun
            # As all events of a capture stand in order.
            place = at, each.connection, direction, index
            firsts[each.connection] = min(place, firsts.get(each.connection, place))
    is_cut = (
        first // block != (behind - 1) // block and all(each.is_plain for each in every) and _are_apart(every)
    )
    return Extent(first, behind, sorted(firsts, key=firsts.__getitem__), is_cut)


def _are_apart(every: Sequence[CarriedStretch]) -> bool:
    """Whether no two stretches of one connection carried the same place."""
    stretches: dict[str, list[CarriedStretch]] = defaultdict(list)
    for each in every:
        stretches[each.connection].append(each)
    for own in stretches.values():
        own.sort(key=lambda each: each.first)
        if any(one.behind > other.first for one, other in pairwise(own)):
            return False
    return True


# ---- what lies in a block --------------------------------------------------------------------------


def runs_by_block(frames: Columns, rows: Rows, block: int) -> Iterator[tuple[int, Rows]]:
    """Of the runs in `rows` those that lie in each block, or partly."""
    offsets, sizes = (frames.numbers(name).numbers[rows] for name in ("offset", "body_size"))
    firsts, lasts = offsets // block, (offsets + sizes - 1) // block
    counts = lasts - firsts + 1
    which = np.repeat(np.arange(len(rows)), counts)
    begins = np.repeat(np.cumsum(counts) - counts, counts)
    blocks = firsts[which] + np.arange(len(which)) - begins
    yield from _by_block(rows[which], blocks)


def messages_by_block(sends: Columns, rows: Rows, extent: Extent, block: int) -> Iterator[tuple[int, Rows]]:
    """Of the messages in `rows` those of each block of what was carried."""
    places = sends.numbers("offset").numbers[rows]
    inside = (places >= extent.first) & (places < extent.behind)
    yield from _by_block(rows[inside], places[inside] // block)


def _by_block(rows: Rows, blocks: Rows) -> Iterator[tuple[int, Rows]]:
    values, codes = np.unique(blocks, return_inverse=True)
    for code, own in split(codes):
        yield int(values[code]), rows[own]


# ---- ranges that two connections have in common ----------------------------------------------------


class Point(NamedTuple):
    """How far a connection carried a range: where its last run ends, and the digest of all; None of none."""

    place: int
    digest: int | None = None


Points = tuple[Point, Point]
"""Of the connection that comes first, and of the other one."""


class Open(NamedTuple):
    """A range that is open at the end of a block: where it starts, the run of the second connection there (a
    number of `numbers`), and how far both got."""

    start: int
    row: int
    points: Points


@dataclass(frozen=True, slots=True)
class Edge:
    """What two connections have at the borders of a block: `entry`, where their runs from before it end, and
    `after`, what becomes of a range that is open there, None where it breaks off; `tail`: what is open at the
    end of the block."""

    block: int
    known: tuple[str, str, str, int]
    rank: int
    entry: tuple[int, int]
    after: Points | None
    tail: Open | None


def ranges_in_block(
    frames: Columns, epoch: Epoch, number: int, order: Sequence[str], block: int, numbers: Rows
) -> tuple[EventTable, list[Edge]]:
    """The ranges of an epoch that start and end in a block, and what is open at its borders; `frames` are
    those that lie there, or partly, `order` as in Extent, `numbers` tell each of them from all others."""
    found = RangesFound()
    edges = []
    first, behind = number * block, (number + 1) * block
    own = {each.connection: each for each in carried(frames).get(epoch, ())}
    for rank, other, one in pairs_of(order):
        if other in own and one in own:
            known = epoch[0], one, other, epoch[1]
            sides = _Side.of(own[other], first, behind), _Side.of(own[one], first, behind)
            tail = _inside(found, known, rank, sides, behind, numbers)
            entry = sides[0].entry, sides[1].entry
            after = _walk(sides, (Point(entry[0]), Point(entry[1])), behind) if entry[0] != entry[1] else None
            if after is not None or tail is not None:
                edges.append(Edge(number, known, rank, entry, after, tail))
    return found.table(frames.row), edges


class _Side(NamedTuple):
    """What one connection carried in a block: the runs that start there, and where the one before ends."""

    runs: Carried
    entry: int

    @classmethod
    def of(cls, every: Carried, first: int, behind: int) -> _Side:
        before = every.ends[every.starts < first]
        return cls(every.beginning(first, behind), int(max(before.max(initial=first), first)))


def _inside(
    found: RangesFound,
    known: tuple[str, str, str, int],
    rank: int,
    sides: tuple[_Side, _Side],
    behind: int,
    numbers: Rows,
) -> Open | None:
    """Find the ranges that start in a block, and give the one that is open at its end."""
    first, second = (each.runs for each in sides)
    starts, one, two = np.intersect1d(first.starts, second.starts, assume_unique=True, return_indices=True)
    ends = first.ends[one]
    numbered = [ends, second.digests[two], first.digests[one]]
    ended = ends == second.ends[two]
    tail = None
    for at in np.flatnonzero(~ended).tolist():
        start = int(starts[at])
        points = _walk(sides, (Point(start), Point(start)), behind)
        if points is None:
            continue
        if points[0].place == points[1].place:
            ended[at] = True
            told = points[0].place, points[1].digest, points[0].digest
            for column, value in zip(numbered, told, strict=True):
                assert value is not None, "a range has bytes"
                column[at] = value
        else:
            assert tail is None, "where runs do not overlap one range is open at a border"
            tail = Open(start, int(numbers[second.rows[two[at]]]), points)
    ends, digest, first_digest = (column[ended] for column in numbered)
    found.add(known, rank, second.rows[two[ended]], starts[ended], ends - starts[ended], digest, first_digest)
    return tail


def _walk(sides: tuple[_Side, _Side], points: Points, behind: int) -> Points | None:
    """Go on in runs without a gap until both connections have a border, or both are behind the block; None
    when one breaks off before."""
    one, other = points
    is_first = True
    while is_first or one.place != other.place:
        is_lower = one.place <= other.place
        lower = one if is_lower else other
        if lower.place >= behind:
            break
        run = sides[0 if is_lower else 1].runs.runs.get(lower.place)
        if run is None:
            return None
        on = _joined(lower, *run)
        one, other = (on, other) if is_lower else (one, on)
        is_first = False
    return one, other


def _joined(point: Point, end: int, digest: int) -> Point:
    """A range, and the run behind it."""
    whole = digest if point.digest is None else joined(point.digest, digest, end - point.place)
    return Point(end, whole)


def joined_ranges(edges: Iterable[Edge], frames: Columns, numbers: Rows) -> EventTable:
    """The ranges that end in another block than they start in; `frames` with `numbers` have their first runs
    of second connections."""
    rows = dict(zip(numbers.tolist(), range(len(numbers)), strict=True))
    by_pair: dict[tuple[str, str, str, int], list[Edge]] = defaultdict(list)
    for edge in edges:
        by_pair[edge.known].append(edge)
    found = RangesFound()
    for known, own in by_pair.items():
        for start, row, points in _closed(sorted(own, key=lambda edge: edge.block)):
            one, other = points
            told = [[start], [one.place - start], [other.digest], [one.digest]]
            found.add(known, own[0].rank, np.array([rows[row]], np.int64), *told)
    return found.table(frames.row)


def _closed(edges: Sequence[Edge]) -> Iterator[Open]:
    """The ranges of two connections that begin in one block and end in another."""
    going: Open | None = None
    for edge in edges:
        if going is not None:
            going = _further(going, edge)
            if going is not None and going.points[0].place == going.points[1].place:
                yield going
                going = None
        if edge.tail is not None:
            going = edge.tail


def _further(going: Open, edge: Edge) -> Open | None:
    """An open range behind the next block that both connections came to; None when it broke off."""
    places = going.points[0].place, going.points[1].place
    if edge.entry != places or edge.after is None:
        return None
    one, other = (
        point if after.digest is None else _joined(point, after.place, after.digest)
        for point, after in zip(going.points, edge.after, strict=True)
    )
    return going._replace(points=(one, other))
