"""Runs of payload bytes in the sequence space of one direction, and the holes between them, with reasons.

Positions are 64-bit and never wrap. A piece says where its bytes lie in the capture file; the bytes
themselves are not touched here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from replispec.replay.capture.records import Integers

LOST, LOST_AT_START, LOST_AT_END, TRUNCATED = "lost", "lost_at_start", "lost_at_end", "truncated"
CORRUPT_ONLY, AMBIGUOUS = "corrupt", "ambiguous"
# No hole: captured, and not what the protocol has there.
UNREADABLE = "unreadable"
# Which reason is told of bytes that are missing for several.
REASONS = (AMBIGUOUS, TRUNCATED, CORRUPT_ONLY)
# What people are told of a hole of each kind.
WORDS = {
    LOST: "not captured",
    LOST_AT_START: "not captured, at the start of the connection",
    LOST_AT_END: "not captured, at the end of the connection",
    TRUNCATED: "cut off by the snap length",
    UNREADABLE: "not readable",
    CORRUPT_ONLY: "captured with a wrong checksum only",
    AMBIGUOUS: "captured in copies that differ",
}
Intervals = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Columns, one row a run of bytes [start, end).

    `payload_offset`: file offset of the byte at `start`; `record_offset`, `time_ns`: the packet that
    brought it; `acknowledged`: the number that packet acknowledges, 32 bits, -1 for none; `trust`: what
    its bytes are worth (see `packets`).
    """

    start: Integers
    end: Integers
    payload_offset: Integers
    record_offset: Integers
    time_ns: Integers
    acknowledged: Integers
    trust: Integers

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
            self.trust,
        )

    def shifted(self, by: int) -> Pieces:
        """The same bytes, `by` positions further on."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes [start, end) of a direction that were on the wire and are not in the capture.

    `kind`: lost (between bytes that were seen), lost_at_start (after a SYN that was seen),
    lost_at_end (the peer acknowledged them, or a FIN came after them), truncated (cut off by the
    capture's snap length), corrupt (captured only with a checksum that is wrong), ambiguous (captured more
    than once, and nothing tells which copy is right).
    """

    start: int
    end: int
    kind: str


def no_numbers() -> Integers:
    """No number at all; the same array for everybody."""
    return _NO_NUMBERS


def no_pieces() -> Pieces:
    """Pieces without a row."""
    return _NO_PIECES


_NO_NUMBERS: Integers = np.zeros(0, np.int64)
_NO_PIECES = Pieces(*(_NO_NUMBERS for _ in fields(Pieces)))


def concatenate(parts: Sequence[Pieces]) -> Pieces:
    """All rows, in the order of the parts."""
    if not parts:
        return no_pieces()
    return Pieces(
        *(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True))
    )


def find_holes(
    pieces: Pieces,
    reasons: Mapping[str, Intervals],
    low: int,
    high: int,
    seen_end: int,
    *,
    starts_known: bool,
) -> list[Hole]:
    """What is missing of [low, high) between disjoint ascending pieces, in ascending order.

    `reasons`: where bytes may be missing for one of REASONS; up to `seen_end` bytes were
    seen on the wire, after it they are known from acknowledgments only. `starts_known`: `low` is
    the first byte after a SYN, so what is missing there was lost.
    """
    starts = np.append(pieces.start, high)
    ends = np.maximum.accumulate(np.concatenate([[low], pieces.end]))
    gaps = np.flatnonzero(starts > ends)
    if not len(gaps):
        return []
    known = labelled(reasons)
    holes: list[Hole] = []
    at_cut = 0
    for start, end in zip(ends[gaps].tolist(), starts[gaps].tolist(), strict=True):
        while at_cut < len(known) and known[at_cut].end <= start:
            at_cut += 1
        place, index = start, at_cut
        while place < end:
            if index == len(known) or known[index].start >= end:
                holes.extend(_lost(place, end, low, seen_end, starts_known=starts_known))
                break
            cut = known[index]
            if cut.start > place:
                holes.extend(_lost(place, cut.start, low, seen_end, starts_known=starts_known))
            holes.append(Hole(max(place, cut.start), min(end, cut.end), cut.kind))
            place = cut.end
            index += 1
    return holes


def labelled(reasons: Mapping[str, Intervals]) -> list[Hole]:
    """Disjoint ascending stretches, each with the first of REASONS that is told of it."""
    found: list[Hole] = []
    for kind in REASONS:
        fresh = _without(merged(reasons.get(kind, [])), found)
        found = sorted([*found, *(Hole(start, end, kind) for start, end in fresh)], key=_start)
    return found


def _without(intervals: Intervals, taken: Sequence[Hole]) -> Iterator[tuple[int, int]]:
    """What of disjoint ascending intervals lies in no disjoint ascending stretch."""
    at = 0
    for start, end in intervals:
        place = start
        while at < len(taken) and taken[at].end <= place:
            at += 1
        index = at
        while index < len(taken) and taken[index].start < end:
            if taken[index].start > place:
                yield place, taken[index].start
            place = max(place, taken[index].end)
            index += 1
        if place < end:
            yield place, end


def _start(hole: Hole) -> int:
    return hole.start


def unbroken(pieces: Pieces, low: int, high: int) -> bool:
    """Whether ascending pieces hold every byte of [low, high): as most directions do."""
    if not len(pieces) or int(pieces.start[0]) > low or int(pieces.end[-1]) < high:
        return False
    return bool((pieces.start[1:] <= pieces.end[:-1]).all())


def merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    """Intervals as a disjoint ascending list."""
    found: Intervals = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        elif first < last:
            found.append((first, last))
    return found


def _lost(start: int, end: int, low: int, seen_end: int, *, starts_known: bool) -> list[Hole]:
    """A gap without data as lost holes, cut where the bytes seen on the wire end."""
    holes = []
    if start < min(end, seen_end):
        kind = LOST_AT_START if starts_known and start == low else LOST
        holes.append(Hole(start, min(end, seen_end), kind))
    if end > max(start, seen_end):
        holes.append(Hole(max(start, seen_end), end, LOST_AT_END))
    return holes
