"""How the clocks of the captures' hosts differ: offset and drift, from packets that two of them saw.

A packet is seen later further along its way. So the clock of another host is ahead by at most the least
difference of packets that went there, and by at least the greatest of those that came from there (NTP's
estimate, RFC 5905 section 8, over many packets). The drift is the median slope between stretches of time
(Theil and Sen), so that single late packets move nothing. Whichever direction goes there is told by the
packets themselves: it has the greater difference. No verdict rests on any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers
from replispec.replay.hosts.copies import Story
from replispec.replay.hosts.sightings import Sightings

Numbers = npt.NDArray[np.float64]
# A drift is told from so many stretches, that have packets both ways, over so long a time.
STRETCHES, STRETCHES_MINIMUM = 32, 4
DRIFT_SPAN_NS_MINIMUM = 10**9
# What drifts faster was set while the capture ran; crystals stay well below.
DRIFT_MAXIMUM = 1e-3


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one capture compared with that of another one, `reference` (numbers of the files).

    At `origin_ns` of the reference it was `offset_ns` ahead, plus or minus `uncertainty_ns`, and gained
    `drift` (seconds a second; None where that was not to be told). `copies`: packets that both saw;
    `both_ways`: packets of both directions, else the way is part of the offset. A capture without common
    packets has no reference: its times stay as they are.
    """

    file: int
    reference: int | None = None
    origin_ns: int = 0
    offset_ns: int = 0
    drift: float | None = None
    uncertainty_ns: int = 0
    copies: int = 0
    both_ways: bool = False

    def told(self, time_ns: Integers) -> Integers:
        """Times of this clock as the reference tells them."""
        if self.reference is None:
            return time_ns
        near = time_ns - self.offset_ns
        gained = np.rint((near - self.origin_ns) * (self.drift or 0.0)).astype(np.int64)
        found: Integers = near - gained
        return found


def clocks_of(rows: Sightings, story: Story, files: int) -> list[Clock]:
    """The clock of every file; files are compared along the most common packets, from the first one on."""
    pairs = _common(rows, story)
    found = {0: Clock(0)}
    while len(found) < files:
        reach = [(len(own[0]), ends) for ends, own in pairs.items() if len(found.keys() & {*ends}) == 1]
        if not reach:
            # What has no packet in common with those before begins a story of its own.
            alone = min({*range(files)} - found.keys())
            found[alone] = Clock(alone)
            continue
        _, ends = max(reach, key=lambda item: (item[0], -item[1][0], -item[1][1]))
        known, other = ends if ends[0] in found else ends[::-1]
        found[other] = _compared(rows, story, known, other, _turned(pairs[ends], known, ends))
    return [found[number] for number in range(files)]


def on_one_clock(clocks: Sequence[Clock], file: int, time_ns: Integers) -> Integers:
    """Times of a file on the clock that its own was compared with at last: mostly that of the first file."""
    clock = clocks[file]
    while clock.reference is not None:
        time_ns = clock.told(time_ns)
        clock = clocks[clock.reference]
    return time_ns


Common = tuple[Integers, Integers]


def _common(rows: Sightings, story: Story) -> dict[tuple[int, int], Common]:
    """For each two files the rows of packets that both saw once: those of the lower file, of the other."""
    mine = np.flatnonzero(story.alone & (rows.trust > 0))
    mine = mine[np.lexsort((rows.time_ns[mine], rows.file[mine], story.packet[mine]))]
    packet, file = story.packet[mine], rows.file[mine]
    first = np.ones(len(mine), np.bool_)
    first[1:] = (np.diff(packet) != 0) | (np.diff(file) != 0)
    mine = mine[first]
    packet, file = story.packet[mine], rows.file[mine]
    follows = np.flatnonzero(np.diff(packet) == 0)
    low, high = mine[follows], mine[follows + 1]
    ends = np.column_stack([rows.file[low], rows.file[high]])
    kinds = np.unique(ends, axis=0).tolist()
    return {
        (one, other): (low[chosen], high[chosen])
        for one, other in kinds
        for chosen in [(ends[:, 0] == one) & (ends[:, 1] == other)]
    }


def _turned(common: Common, known: int, ends: tuple[int, int]) -> Common:
    return common if ends[0] == known else (common[1], common[0])


def _compared(rows: Sightings, story: Story, known: int, other: int, common: Common) -> Clock:
    """The clock of `other`, from packets that `known` saw too."""
    low, high = common
    at, later = rows.time_ns[low], rows.time_ns[high] - rows.time_ns[low]
    origin, middle = int(at.min()), int(np.median(later))
    since, ahead = (at - origin).astype(np.float64), (later - middle).astype(np.float64)
    there = _there(story, low, since, ahead)
    if there is None:
        return Clock(other, known, origin, middle, copies=len(low))
    drift = _drift(since, ahead, there)
    level = ahead - since * (drift or 0.0)
    most, least = float(level[there].min()), float(level[~there].max())
    offset = middle + round((most + least) / 2)
    return Clock(other, known, origin, offset, drift, round(abs(most - least) / 2), len(low), both_ways=True)


def _there(story: Story, rows: Integers, since: Numbers, ahead: Numbers) -> npt.NDArray[np.bool_] | None:
    """Which packets went from the known host to the other one; None where there is one direction only.

    Of each connection the direction whose packets were seen later than their neighbours of the other one.
    """
    found = np.zeros(len(rows), np.bool_)
    used = np.zeros(len(rows), np.bool_)
    order = np.argsort(story.connection[rows], kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(story.connection[rows][order])) + 1):
        members = members[np.argsort(since[members], kind="stable")]
        side = story.side[rows[members]]
        turns = np.flatnonzero(np.diff(side))
        if not len(turns):
            continue
        change = (ahead[members[turns + 1]] - ahead[members[turns]]) * np.where(side[turns + 1] == 0, 1, -1)
        lower_goes = float(np.median(change)) >= 0
        found[members] = (side == 0) == lower_goes
        used[members] = True
    if not used.all():
        # Connections of one direction tell nothing beside others of both.
        if not used.any():
            return None
        ahead[~used], found[~used] = np.inf, True
    return found


def _drift(since: Numbers, ahead: Numbers, there: npt.NDArray[np.bool_]) -> float | None:
    """How much the other clock gains, in seconds a second; None where too little tells it."""
    span = float(since.max())
    if span < DRIFT_SPAN_NS_MINIMUM:
        return None
    stretch = np.minimum((since * STRETCHES / span).astype(np.int64), STRETCHES - 1)
    most, least = np.full(STRETCHES, np.inf), np.full(STRETCHES, -np.inf)
    np.minimum.at(most, stretch[there], ahead[there])
    np.maximum.at(least, stretch[~there], ahead[~there])
    sound = np.flatnonzero(np.isfinite(most) & np.isfinite(least))
    if len(sound) < STRETCHES_MINIMUM:
        return None
    middle, width = (most[sound] + least[sound]) / 2, span / STRETCHES
    slopes = [
        (middle[two] - middle[one]) / ((sound[two] - sound[one]) * width)
        for one, two in combinations(range(len(sound)), 2)
    ]
    slope = float(np.median(slopes))
    return slope if abs(slope) <= DRIFT_MAXIMUM else None
