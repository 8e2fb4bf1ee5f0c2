"""Copies of the same bytes: which of them counts.

Copies that agree are one, at the place of the first. Of copies that differ, the one that a checksum
vouches for counts; where none is vouched for, or two that differ are, the bytes are ambiguous: as good as
missing. One byte alone may be made up by a keep-alive, and never contradicts a longer segment.

`settle` can be done for parts of a capture: what is disputed there is kept copy by copy, so that doing it
again for all parts together comes to what doing it once would. `resolve` ends it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.groups import running_maximum, sorted_in_groups
from replispec.replay.capture.records import CaptureBytes, Integers
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.packets import PROBE, VOUCHED
from replispec.replay.tcp.pieces import Intervals, Pieces, concatenate, merged, no_pieces


@dataclass(frozen=True, slots=True)
class Settled:
    """Disjoint pieces, ascending by (group, start), and all copies of disputed bytes in order of arrival.

    `torn`: rows whose bytes are not at hand (negative payload offset) and that others overlap.
    """

    group: Integers
    pieces: Pieces
    disputed_group: Integers
    disputed: Pieces
    torn: Integers


def settle(data: CaptureBytes, group: Integers, pieces: Pieces) -> Settled:
    """Settle copies. `group` numbers the direction of each row; in a group rows are in order of arrival."""
    order = sorted_in_groups(group, pieces.start)
    nobody = Settled(group[:0], no_pieces(), group[:0], no_pieces(), group[:0])
    sorted_group, ordered = group[order], pieces.take(order)
    count = len(group)
    if count < 2:
        return replace(nobody, group=sorted_group, pieces=ordered)
    reach = running_maximum(sorted_group, ordered.end)
    fresh = np.empty(count, np.bool_)
    fresh[0] = True
    fresh[1:] = (sorted_group[1:] != sorted_group[:-1]) | (ordered.start[1:] >= reach[:-1])
    if fresh.all():
        return replace(nobody, group=sorted_group, pieces=ordered)
    # Only clusters of overlapping rows need a look one by one.
    starts = np.flatnonzero(fresh)
    sizes = np.diff(np.append(starts, count))
    alone = np.repeat(sizes == 1, sizes)
    kept: list[tuple[int, int, int, int]] = []
    disputed: list[tuple[int, int, int]] = []
    torn: list[int] = []
    for first, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        cluster = _Cluster(data, pieces)
        rows = np.sort(order[first : first + size]).tolist()
        for row in rows:
            cluster.add(row)
        kept.extend(cluster.undisputed())
        disputed.extend(cluster.copies(rows))
        torn.extend(cluster.torn)
    rows = np.array([row for row, *_ in kept], np.int64)
    settled = _clipped(pieces, [(row, start, end) for row, start, end, _ in kept])
    settled = replace(settled, trust=np.array([trust for *_, trust in kept], np.int64))
    source = np.flatnonzero(alone)
    all_groups = np.concatenate([sorted_group[source], group[rows]])
    together = concatenate([ordered.take(source), settled])
    final = sorted_in_groups(all_groups, together.start)
    copies = sorted(disputed)
    return Settled(
        all_groups[final],
        together.take(final),
        group[np.array([row for row, _, _ in copies], np.int64)],
        _clipped(pieces, copies),
        np.array(sorted(set(torn)), np.int64),
    )


def _clipped(pieces: Pieces, rows: Sequence[tuple[int, int, int]]) -> Pieces:
    """Of each row (row, start, end) the bytes [start, end)."""
    row = np.array([row for row, _, _ in rows], np.int64)
    start = np.array([start for _, start, _ in rows], np.int64)
    end = np.array([end for _, _, end in rows], np.int64)
    own = pieces.take(row)
    offset = np.where(own.payload_offset < 0, -1, own.payload_offset + (start - own.start))
    return replace(own, start=start, end=end, payload_offset=offset)


@dataclass(slots=True)
class _Cluster:
    """Rows that overlap, taken in order of arrival.

    `starts`, `ends`, `rows`, `trusts`: the disjoint ascending stretches taken so far, of which rows, and
    what these bytes are worth as all copies together tell. `disputes`: where copies differ.
    """

    data: CaptureBytes
    pieces: Pieces
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    trusts: list[int] = field(default_factory=list)
    disputes: Intervals = field(default_factory=list)
    torn: list[int] = field(default_factory=list)

    def add(self, row: int) -> None:
        """Take what is new of a row, and compare what is not."""
        at, end = int(self.pieces.start[row]), int(self.pieces.end[row])
        trust = int(self.pieces.trust[row])
        index = max(0, bisect_right(self.starts, at) - 1)
        while at < end:
            if index == len(self.starts) or self.starts[index] >= end:
                self._insert(index, at, end, row, trust)
                return
            if self.ends[index] <= at:
                index += 1
                continue
            if at < self.starts[index]:
                self._insert(index, at, self.starts[index], row, trust)
                at = self.starts[index + 1]
                index += 1
            stop = min(end, self.ends[index])
            index = self._compare(index, at, stop, row, trust)
            at = stop

    def _insert(self, index: int, start: int, end: int, row: int, trust: int) -> None:
        self.starts.insert(index, start)
        self.ends.insert(index, end)
        self.rows.insert(index, row)
        self.trusts.insert(index, trust)

    def _compare(self, index: int, start: int, end: int, row: int, trust: int) -> int:
        """Compare [start, end) of a row with what was taken there; the index of what then ends at `end`."""
        other, known = self.rows[index], self.trusts[index]
        offsets = self.pieces.payload_offset
        if offsets[row] < 0 or offsets[other] < 0:
            self.torn.extend(each for each in (row, other) if offsets[each] < 0)
            return index
        own, taken = self._bytes(row, start, end), self._bytes(other, start, end)
        if own == taken:
            first = row if known == PROBE else other
            return self._cut(index, start, end, first, trust) if trust > known else index
        if trust == PROBE:
            return index
        if known == PROBE:
            return self._cut(index, start, end, row, trust)
        differs = np.frombuffer(own, np.uint8) != np.frombuffer(taken, np.uint8)
        self.disputes.extend((start + low, start + high) for low, high in _runs(differs))
        for low, high in _runs(~differs) if trust > known else []:
            while self.ends[index] <= start + low:
                index += 1
            index = self._cut(index, start + low, start + high, other, trust)
        return index

    def _cut(self, index: int, start: int, end: int, row: int, trust: int) -> int:
        """Give [start, end), which lies in one stretch, to a row; the index of that."""
        before, behind = self.starts[index], self.ends[index]
        other, known = self.rows[index], self.trusts[index]
        if before < start:
            self.ends[index] = start
            index += 1
            self._insert(index, start, end, row, trust)
        else:
            self.ends[index], self.rows[index], self.trusts[index] = end, row, trust
        if end < behind:
            self._insert(index + 1, end, behind, other, known)
        return index

    def _bytes(self, row: int, start: int, end: int) -> bytes:
        at = int(self.pieces.payload_offset[row]) + start - int(self.pieces.start[row])
        return self.data[at : at + end - start]

    def undisputed(self) -> Iterator[tuple[int, int, int, int]]:
        """(row, start, end, trust) of what was taken, without what is disputed."""
        disputes = merged(self.disputes)
        for row, start, end, trust in zip(self.rows, self.starts, self.ends, self.trusts, strict=True):
            at = start
            for low, high in _within(disputes, start, end):
                if at < low:
                    yield row, at, low, trust
                at = high
            if at < end:
                yield row, at, end, trust

    def copies(self, rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """(row, start, end) of all copies of what is disputed."""
        disputes = merged(self.disputes)
        if disputes:
            for row in rows:
                if self.pieces.trust[row] > PROBE and self.pieces.payload_offset[row] >= 0:
                    for low, high in _within(
                        disputes, int(self.pieces.start[row]), int(self.pieces.end[row])
                    ):
                        yield row, low, high


def _within(intervals: Intervals, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of disjoint ascending intervals lies in [start, end)."""
    index = max(0, bisect_right(intervals, (start, start)) - 1)
    for low, high in intervals[index:]:
        if low >= end:
            return
        if high > start:
            yield max(low, start), min(high, end)


def _runs(mask: Flags) -> Intervals:
    """Where a mask is set, as intervals."""
    borders = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return list(zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True))


@dataclass(slots=True)
class _Ruling:
    """What is ruled of disputed bytes: the copies that count, what is ambiguous, and the packets (by record)
    that are `doubtful`, or `denied` although their own checksum is right."""

    kept: list[tuple[int, int, int, int]] = field(default_factory=list)
    ambiguous: Intervals = field(default_factory=list)
    doubtful: set[int] = field(default_factory=set)
    denied: set[int] = field(default_factory=set)


def resolve(data: CaptureBytes, pieces: Pieces, disputed: Pieces) -> tuple[Pieces, Intervals]:
    """The pieces of one direction with the copies that count of what is disputed, and what is ambiguous.

    A packet with ambiguous bytes is not believed in its others either, where nothing else vouches for them:
    what is left of a damaged header must not be taken for another one.
    """
    if not len(disputed):
        return coalesced(pieces), []
    ruling = _ruling(data, disputed)
    kept = _clipped(disputed, [(row, start, end) for row, start, end, _ in ruling.kept])
    kept = replace(kept, trust=np.array([trust for *_, trust in ruling.kept], np.int64))
    every = concatenate([pieces, kept])
    every = every.take(np.argsort(every.start, kind="stable"))
    doubtful = np.isin(every.record_offset, list(ruling.doubtful)) & (every.trust < VOUCHED)
    out = doubtful | np.isin(every.record_offset, list(ruling.denied))
    lost = every.take(np.flatnonzero(out))
    intervals = zip(lost.start.tolist(), lost.end.tolist(), strict=True)
    return coalesced(every.take(np.flatnonzero(~out))), merged([*ruling.ambiguous, *intervals])


def _ruling(data: CaptureBytes, disputed: Pieces) -> _Ruling:
    """Compare all copies of each disputed stretch; they are in order of arrival."""
    places = sorted({*disputed.start.tolist(), *disputed.end.tolist()})
    copies: list[list[int]] = [[] for _ in places]
    position = {place: at for at, place in enumerate(places)}
    for row, (start, end) in enumerate(zip(disputed.start.tolist(), disputed.end.tolist(), strict=True)):
        for at in range(position[start], position[end]):
            copies[at].append(row)
    ruling = _Ruling()
    for at, rows in enumerate(copies[:-1]):
        if not rows:
            continue
        start, size = places[at], places[at + 1] - places[at]
        offsets = [int(disputed.payload_offset[row]) + start - int(disputed.start[row]) for row in rows]
        contents = np.array([np.frombuffer(data[offset : offset + size], np.uint8) for offset in offsets])
        vouched = disputed.trust[rows] == VOUCHED
        best = contents[vouched] if vouched.any() else contents
        differs = (best != best[0]).any(axis=0)
        if differs.any():
            ruling.ambiguous.extend((start + low, start + high) for low, high in _runs(differs))
            suspects = ruling.denied if vouched.any() else ruling.doubtful
            told = _told(contents[:, differs], vouched)
            suspects.update(disputed.record_offset[[rows[number] for number in told]].tolist())
        # Of copies that have the byte that counts, the first tells when it came.
        first = np.where(differs, -1, (contents == best[0]).argmax(axis=0))
        for number in np.unique(first[~differs]).tolist():
            row = rows[number]
            trust = VOUCHED if vouched.any() else int(disputed.trust[row])
            ruling.kept.extend(
                (row, start + low, start + high, trust) for low, high in _runs(first == number)
            )
    return ruling


def _told(contents: npt.NDArray[np.uint8], vouched: Flags) -> list[int]:
    """The rows of bytes that first told one of the contents which contradict each other in some column.

    Where some rows are vouched for, only contents that one of them has contradict each other.
    """
    found = []
    for row, own in enumerate(contents):
        fresh = ~(contents[:row] == own).any(axis=0)
        backed = (contents[vouched] == own).any(axis=0) if vouched.any() else True
        if (fresh & backed).any():
            found.append(row)
    return found


def coalesced(pieces: Pieces) -> Pieces:
    """Neighbours of one packet that follow each other as one piece, as if nothing had ever cut them."""
    one_packet = pieces.record_offset[1:] == pieces.record_offset[:-1]
    if not one_packet.any():
        return pieces
    size = pieces.end - pieces.start
    goes_on = (
        one_packet
        & (pieces.start[1:] == pieces.end[:-1])
        & (pieces.payload_offset[1:] == pieces.payload_offset[:-1] + size[:-1])
        & (pieces.payload_offset[:-1] >= 0)
    )
    first = np.flatnonzero(np.append([True], ~goes_on))
    last = np.append(first[1:], len(pieces)) - 1
    return replace(pieces.take(first), end=pieces.end[last])
