"""Where one connection tells that the log of a master got shorter: its bytes give the order.

No master cuts its log while it runs in its masterEpoch, so this needs no word about runs. Offsets are bytes
of the commit log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import INT64_MAX, Numbers, split
from replispec.replay.events.observation import Observation

WITNESSES_MIN = 2
"""How many frames must say that a log was shorter before what it had held counts as lost."""

Log = tuple[str | None, str, int]
"""The log of a broker in a masterEpoch: group, main address, epoch."""
End = tuple[Observation, Log, int]


def fallen_ends(ends: Iterable[End], starts: Mapping[str, Mapping[int, int]]) -> Mapping[int, int]:
    """By the place in `ends` of a master's word that is smaller than one before it on its connection: the
    largest one before.

    A master that was deposed without a restart cuts its log where a later epoch starts, and may say so
    before it has bytes of that epoch; that is no fall. `starts`: of all epochs, by group.
    """
    longest: dict[tuple[Log, str, int], int] = {}
    fallen: dict[int, int] = {}
    for place, (row, log, end) in sorted(enumerate(ends), key=lambda each: each[1][0].sequence):
        at = log, row.connection, row.direction
        before = longest.setdefault(at, end)
        if end < before and end not in _later(starts.get(str(log[0]), {}), log[2]):
            fallen[place] = before
        longest[at] = max(end, before)
    return fallen


def _later(starts: Mapping[int, int], epoch: int) -> Collection[int]:
    return [start for later, start in starts.items() if later > epoch]


@dataclass(slots=True)
class Fall:
    """What one connection tells of the fall of a log: between which ends, and how many frames say so."""

    least: int
    most: int
    witnesses: int = 0

    @property
    def proven(self) -> bool:
        """One word alone may have been overtaken by the next one on its way to the connection."""
        return self.witnesses >= WITNESSES_MIN

    @property
    def ends(self) -> tuple[int, int]:
        """Between which places (first, behind the last one) nothing tells whether a message was cut off: it
        may have been acknowledged after the fall, or before it behind the largest end that was told."""
        return self.least, INT64_MAX if self.proven else self.most


def falls_of(ends: Sequence[End], fallen: Mapping[int, int]) -> Mapping[Log, Mapping[str, Fall]]:
    """By log and connection what `fallen` tells."""
    found: dict[Log, dict[str, Fall]] = defaultdict(dict)
    for place, before in fallen.items():
        row, log, end = ends[place]
        fall = found[log].setdefault(row.connection, Fall(end, before))
        fall.least, fall.most = min(fall.least, end), max(fall.most, before)
        fall.witnesses += 1
    return found


def least_places_behind(sends: Columns) -> tuple[Numbers, Numbers]:
    """For each acknowledged message the least place that a later one got, and the least but one.

    Later is what was requested on the same connection after the message had been acknowledged there: it was
    stored later, so the log had been cut when its place is smaller. INT64_MAX where nothing is later.
    """
    least, second = (np.full(len(sends), INT64_MAX) for _ in range(2))
    order, offset, asked = (sends.numbers(name) for name in ("order", "offset", "request_order"))
    logs = sends.alike("group", "address", "epoch", "connection", "direction")
    for _, rows in split(logs):
        told = rows[offset.absent[rows] == 0]
        by = told[np.argsort(order.numbers[told], kind="stable")]
        most = np.maximum.accumulate(np.concatenate([[-1], offset.numbers[by]]))
        own = told[asked.absent[told] == 0]
        before = most[np.searchsorted(order.numbers[by], asked.numbers[own], "left")]
        falling = own[offset.numbers[own] < before]
        if len(falling):
            one, two = _behind(asked.numbers[falling], offset.numbers[falling])
            at = np.searchsorted(np.unique(asked.numbers[falling]), order.numbers[rows], "right")
            least[rows], second[rows] = one[at], two[at]
    return least, second


def _behind(asked: Numbers, offset: Numbers) -> tuple[Numbers, Numbers]:
    """The least and the least but one of the places that were requested at or behind each of the different
    moments of `asked`, ascending, and behind all of them. Of one request (a batch) the least one counts."""
    moments, which = np.unique(asked, return_inverse=True)
    places = np.full(len(moments) + 1, INT64_MAX)
    np.minimum.at(places, which, offset)
    least, second = places.copy(), np.full(len(places), INT64_MAX)
    for at in range(len(moments) - 1, -1, -1):
        least[at], between = min(places[at], least[at + 1]), max(places[at], least[at + 1])
        second[at] = min(between, second[at + 1])
    return least, second
