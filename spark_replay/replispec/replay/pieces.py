"""Runs of payload bytes in the sequence space of one direction: first arrival wins, holes are named.

Positions are 64-bit and never wrap. A piece says where its bytes lie in the capture file; the bytes
themselves are not touched here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from replispec.replay.capture_records import Integers

LOST, LOST_AT_START, LOST_AT_END, TRUNCATED = "lost", "lost_at_start", "lost_at_end", "truncated"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Columns, one row a run of bytes [start, end).

    `payload_offset`: file offset of the byte at `start`; `record_offset`, `time_ns`: the packet that
    brought it; `acknowledged`: the number that packet acknowledges, 32 bits, -1 for none.
    """

    start: Integers
    end: Integers
    payload_offset: Integers
    record_offset: Integers
    time_ns: Integers
    acknowledged: Integers

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Integers | slice) -> Pieces:
        """The rows chosen by positions or a slice."""
        return Pieces(*(column[rows] for column in self.columns()))

    def columns(self) -> tuple[Integers, ...]:
        """The columns in the order of the fields."""
        return (
            self.start,
            self.end,
            self.payload_offset,
            self.record_offset,
            self.time_ns,
            self.acknowledged,
        )

    def shifted(self, by: int) -> Pieces:
        """The same bytes, `by` positions further on."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes [start, end) of a direction that were on the wire and are not in the capture.

    `kind`: lost (between bytes that were seen), lost_at_start (after a SYN that was seen),
    lost_at_end (the peer acknowledged them, or a FIN came after them), truncated (cut off by the
    capture's snap length).
    """

    start: int
    end: int
    kind: str


def no_pieces() -> Pieces:
    """Pieces without a row."""
    return Pieces(*(np.zeros(0, np.int64) for _ in fields(Pieces)))


def concatenate(parts: Sequence[Pieces]) -> Pieces:
    """All rows, in the order of the parts."""
    if not parts:
        return no_pieces()
    return Pieces(
        *(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True))
    )


def first_arrival_wins(group: Integers, pieces: Pieces) -> tuple[Integers, Pieces]:
    """Disjoint pieces, ascending by (group, start): of bytes that came twice the first copy stays.

    `group` numbers the direction of each row; within a group the rows stand in order of arrival.
    """
    order = np.lexsort((pieces.start, group))
    group, pieces = group[order], pieces.take(order)
    count = len(group)
    if count < 2:
        return group, pieces
    reach = _running_maximum(group, pieces.end)
    fresh = np.empty(count, np.bool_)
    fresh[0] = True
    fresh[1:] = (group[1:] != group[:-1]) | (pieces.start[1:] >= reach[:-1])
    if fresh.all():
        return group, pieces
    # Only clusters of overlapping rows need a look one by one.
    starts = np.flatnonzero(fresh)
    sizes = np.diff(np.append(starts, count))
    alone = np.repeat(sizes == 1, sizes)
    rows: list[tuple[int, int, int]] = []
    for first, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        members = np.sort(order[first : first + size])
        rank = {int(row): first + at for at, row in enumerate(order[first : first + size])}
        rows.extend(_settle([rank[int(row)] for row in members], pieces))
    kept = np.flatnonzero(alone)
    source = np.concatenate([kept, np.array([row for row, _, _ in rows], np.int64)])
    start = np.concatenate([pieces.start[kept], np.array([start for _, start, _ in rows], np.int64)])
    end = np.concatenate([pieces.end[kept], np.array([end for _, _, end in rows], np.int64)])
    moved = pieces.payload_offset[source] + (start - pieces.start[source])
    merged = replace(pieces.take(source), start=start, end=end, payload_offset=moved)
    group = group[source]
    order = np.lexsort((start, group))
    return group[order], merged.take(order)


def _running_maximum(group: Integers, end: Integers) -> Integers:
    """The greatest `end` so far within each group; the groups are contiguous and ascending."""
    low = int(end.min())
    span = int(end.max()) - low + 1
    change = np.empty(len(group), np.int64)
    change[0] = 0
    change[1:] = group[1:] != group[:-1]
    ordinal = np.cumsum(change)
    if (int(ordinal[-1]) + 1) * span < 2**62:
        lifted: Integers = np.maximum.accumulate(end - low + ordinal * span) - ordinal * span + low
        return lifted
    borders = np.flatnonzero(change).tolist()
    parts = np.split(end, borders)
    return np.concatenate([np.maximum.accumulate(part) for part in parts])


def _settle(rows: list[int], pieces: Pieces) -> list[tuple[int, int, int]]:
    """(row, start, end) of what stays of overlapping rows given in order of arrival."""
    taken_starts: list[int] = []
    taken_ends: list[int] = []
    kept: list[tuple[int, int, int]] = []
    for row in rows:
        at, end = int(pieces.start[row]), int(pieces.end[row])
        index = bisect_right(taken_starts, at)
        if index and taken_ends[index - 1] > at:
            at = taken_ends[index - 1]
        while at < end:
            upto = min(end, taken_starts[index]) if index < len(taken_starts) else end
            if upto > at:
                kept.append((row, at, upto))
                taken_starts.insert(index, at)
                taken_ends.insert(index, upto)
                index += 1
            if index == len(taken_starts):
                break
            at = max(at, taken_ends[index])
            index += 1
    return kept


def find_holes(
    pieces: Pieces,
    cut_start: Integers,
    cut_end: Integers,
    low: int,
    high: int,
    seen_end: int,
    *,
    starts_known: bool,
) -> list[Hole]:
    """What is missing of [low, high) between disjoint ascending pieces, in ascending order.

    [cut_start, cut_end) are the tails that the snap length cut off; up to `seen_end` bytes were
    seen on the wire, after it they are known from acknowledgments only. `starts_known`: `low` is
    the first byte after a SYN, so what is missing there was lost.
    """
    if _unbroken(pieces, low, high):
        return []
    starts = np.append(pieces.start, high)
    ends = np.maximum.accumulate(np.concatenate([[low], pieces.end]))
    gaps = np.flatnonzero(starts > ends)
    if not len(gaps):
        return []
    cuts = _merged(cut_start, cut_end)
    holes: list[Hole] = []
    at_cut = 0
    for start, end in zip(ends[gaps].tolist(), starts[gaps].tolist(), strict=True):
        while at_cut < len(cuts) and cuts[at_cut][1] <= start:
            at_cut += 1
        place, index = start, at_cut
        while place < end:
            if index == len(cuts) or cuts[index][0] >= end:
                holes.extend(_lost(place, end, low, seen_end, starts_known=starts_known))
                break
            cut_from, cut_to = cuts[index]
            if cut_from > place:
                holes.extend(_lost(place, cut_from, low, seen_end, starts_known=starts_known))
            holes.append(Hole(max(place, cut_from), min(end, cut_to), TRUNCATED))
            place = cut_to
            index += 1
    return holes


def _unbroken(pieces: Pieces, low: int, high: int) -> bool:
    """Whether ascending pieces hold every byte of [low, high): as most directions do."""
    if not len(pieces) or int(pieces.start[0]) > low or int(pieces.end[-1]) < high:
        return False
    return bool((pieces.start[1:] <= pieces.end[:-1]).all())


def _merged(start: Integers, end: Integers) -> list[tuple[int, int]]:
    """Intervals as a disjoint ascending list."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _lost(start: int, end: int, low: int, seen_end: int, *, starts_known: bool) -> list[Hole]:
    """A gap without data as lost holes, cut where the bytes seen on the wire end."""
    holes = []
    if start < min(end, seen_end):
        kind = LOST_AT_START if starts_known and start == low else LOST
        holes.append(Hole(start, min(end, seen_end), kind))
    if end > max(start, seen_end):
        holes.append(Hole(max(start, seen_end), end, LOST_AT_END))
    return holes
