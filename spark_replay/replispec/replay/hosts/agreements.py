"""What two connections have in common, and what several such pairs say together of two clocks.

A segment is seen later further along its way. So of two views of one connection one direction is late by
the offset of the clocks and some more, the other one by the offset and some less, all the time. Two runs of a
program say the same words, but nothing keeps their times in step; and even where it seems so once, another
connection says another offset. So only several pairs that say the same of two clocks are believed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# One differing segment in so many may be damage.
AGREEING_A_DIFFERENCE = 16
# A pair that says something of two clocks has so many segments each way; so many pairs and segments do.
SEGMENTS_A_WAY, PAIRS_BELIEVED, SEGMENTS_BELIEVED = 2, 2, 16
# No two clocks of computers drift apart faster while nobody sets them.
DRIFT_MAXIMUM = 2e-4

Offsets = dict[tuple[int, int], int]


class Agreement(NamedTuple):
    """What two connections have in common: segments, bytes, sides that have some, segments that also
    acknowledge alike, segments that differ; and, in order of time, of each segment when the first one saw it,
    its side (of the first) and how much later the second one saw it."""

    segments: int
    bytes: int
    sides: frozenset[int]
    acknowledging: int
    differing: int
    later: list[tuple[int, int, int]]

    @property
    def contradicts(self) -> bool:
        """Whether more of it differs than damage explains."""
        return self.differing > self.segments // AGREEING_A_DIFFERENCE

    @property
    def nested(self) -> bool:
        """Whether one saw all that one side sent first, and the other all that the other side sent: as by one
        clock both halves of a translation do, and two programs side by side do not."""
        ways = [[late for _, side, late in self.later if side == own] for own in (0, 1)]
        if not all(ways):
            return False
        return max(ways[0]) < 0 < min(ways[1]) or max(ways[1]) < 0 < min(ways[0])


class Said(NamedTuple):
    """A pair of connections, and what they have in common."""

    one: int
    another: int
    agreement: Agreement


class _Bounds(NamedTuple):
    """Between what a pair says that two clocks differ (ns), at a moment of the first."""

    at_ns: int
    least: float
    most: float


def vouched(said: Sequence[Said]) -> int | None:
    """How much one clock is ahead of another one (ns), where several pairs of connections say the same."""
    told = [(each, bounds) for each in said for bounds in [_bounds(each.agreement)] if bounds is not None]
    best: list[tuple[Said, _Bounds]] = []
    for _, middle in told:
        alike = [(each, own) for each, own in told if _agree(own, middle)]
        if sum(each.agreement.segments for each, _ in alike) > sum(
            each.agreement.segments for each, _ in best
        ):
            best = alike
    # A connection that fits several others says nothing twice.
    ends = min(len({each.one for each, _ in best}), len({each.another for each, _ in best}))
    segments = sum(each.agreement.segments for each, _ in best)
    if ends < PAIRS_BELIEVED or segments < SEGMENTS_BELIEVED:
        return None
    return round(float(np.median([late for each, _ in best for _, _, late in each.agreement.later])))


def _bounds(agreement: Agreement) -> _Bounds | None:
    """What a pair says of two clocks; None where it is not as two views of one connection are."""
    times = np.array([at for at, _, _ in agreement.later], np.float64)
    late = np.array([late for _, _, late in agreement.later], np.float64)
    up = np.array([side == 0 for _, side, _ in agreement.later], np.bool_)
    if min(int(up.sum()), int((~up).sum())) < SEGMENTS_A_WAY:
        return None
    # Differences of times are small numbers, of moments they are not.
    since = times - times[0]
    level = late - late[0]
    slopes: list[float] = []
    for way in (up, ~up):
        half = int(way.sum()) // 2
        gained, span = level[way][half:] - level[way][:-half], since[way][half:] - since[way][:-half]
        slopes += (gained[span > 0] / span[span > 0]).tolist()
    drift = float(np.median(slopes)) if slopes else 0.0
    level = level - since * min(max(drift, -DRIFT_MAXIMUM), DRIFT_MAXIMUM)
    first, second = level[up], level[~up]
    for lower, higher in ((first, second), (second, first)):
        if lower.max() < higher.min():
            return _Bounds(
                round(float(times[0])), float(lower.max() + late[0]), float(higher.min() + late[0])
            )
    return None


def _agree(one: _Bounds, another: _Bounds) -> bool:
    """Whether two pairs may say the same of two clocks, which drift apart in the time between them."""
    gained = DRIFT_MAXIMUM * abs(one.at_ns - another.at_ns)
    return one.least - gained <= another.most and another.least - gained <= one.most


def joined(offsets: Offsets) -> Offsets:
    """The offsets between all files that some way of known offsets joins."""
    ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (one, other), offset in offsets.items():
        ways[one].append((other, offset))
        ways[other].append((one, -offset))
    found = dict(offsets)
    for start in ways:
        waiting = [(start, 0)]
        seen = {start}
        while waiting:
            at, offset = waiting.pop()
            found.setdefault((start, at), offset)
            fresh = [(other, offset + more) for other, more in ways[at] if other not in seen]
            seen |= {other for other, _ in fresh}
            waiting += fresh
    return found
