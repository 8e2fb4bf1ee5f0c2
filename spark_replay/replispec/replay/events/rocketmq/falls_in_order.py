"""Where one connection tells that the log of a master got shorter: its bytes give the order.

No master cuts its log while it runs in its masterEpoch, so this needs no word about runs. Offsets are bytes
of the commit log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import INT64_MAX, Coded, Numbers, combined, split
from replispec.replay.events.observation import Observation, ends_of
from replispec.replay.events.rocketmq.wholeness import host_of

WITNESSES_MIN = 2
"""How many frames must say that a log was shorter before what it had held counts as lost."""

Log = tuple[str | None, str, int]
"""The log of a broker in a masterEpoch: group, main address, epoch."""
End = tuple[Observation, Log, int]
LogThere = tuple[Any, ...]
"""A log as one direction of a connection tells of it."""
_LOG_THERE: Final = ("group", "address", "epoch", "connection", "direction")


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


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """The least place, and the least but one, that a later message got, between the `moments` of the capture
    at which one was requested that got a smaller place than one before it: one more of each than moments."""

    moments: Numbers
    least: Numbers
    second: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Requested:
    """The acknowledged messages of some connections in short: of each its log on a connection, when it was
    acknowledged and requested (-1 where that was not seen), and its place."""

    logs: Coded
    order: Numbers
    asked: Numbers
    offset: Numbers


def requested(sends: Columns) -> Requested:
    """Those that have a place; messages have groups and epochs."""
    order, offset, asked = (sends.numbers(name) for name in ("order", "offset", "request_order"))
    told = np.flatnonzero(offset.absent == 0)
    moments = np.where(asked.absent == 0, asked.numbers, -1)
    return Requested(_logs(sends).take(told), order.numbers[told], moments[told], offset.numbers[told])


def together(parts: Sequence[Requested]) -> Requested:
    """The messages of several parts."""
    known: dict[Any, int] = {}
    codes = []
    for part in parts:
        own = [known.setdefault(each, len(known)) for each in part.logs.values]
        codes.append(np.array(own, np.int64)[part.logs.codes])
    logs = Coded(np.concatenate(codes), list(known))
    columns = (
        [each.order for each in parts],
        [each.asked for each in parts],
        [each.offset for each in parts],
    )
    return Requested(logs, *map(np.concatenate, columns))


def falls_behind(sends: Requested) -> dict[LogThere, Behind]:
    """By log and connection what later messages got, where any of them shows that the log was cut.

    Later is what was requested on the same connection after a message had been acknowledged there: it was
    stored later, so the log had been cut when its place is smaller. Where the epoch is not known the log may
    be another one's, but not on connections with the broker itself, which end when it does: those of a proxy
    do not.
    """
    found = {}
    for code, told in split(sends.logs.codes):
        _, address, epoch, connection, _ = sends.logs.values[code]
        if epoch is None and host_of(address or "") not in map(host_of, ends_of(connection)):
            continue
        by = told[np.argsort(sends.order[told], kind="stable")]
        most = np.maximum.accumulate(np.concatenate([[-1], sends.offset[by]]))
        own = told[sends.asked[told] >= 0]
        before = most[np.searchsorted(sends.order[by], sends.asked[own], "left")]
        falling = own[sends.offset[own] < before]
        if len(falling):
            found[sends.logs.values[code]] = _behind(sends.asked[falling], sends.offset[falling])
    return found


def least_places_behind(
    sends: Columns, falls: Mapping[LogThere, Behind] | None = None
) -> tuple[Numbers, Numbers]:
    """For each acknowledged message the least place that a later one got, and the least but one. INT64_MAX
    where nothing is later. `falls`: what is known of connections that are here in part."""
    least, second = (np.full(len(sends), INT64_MAX) for _ in range(2))
    order, logs = sends.numbers("order").numbers, _logs(sends)
    found = {**falls_behind(requested(sends)), **(falls or {})}
    for code, rows in split(logs.codes):
        behind = found.get(logs.values[code])
        if behind is not None:
            at = np.searchsorted(behind.moments, order[rows], "right")
            least[rows], second[rows] = behind.least[at], behind.second[at]
    return least, second


def _logs(sends: Columns) -> Coded:
    """The log and the connection of each message."""
    columns = [sends.coded(name) for name in _LOG_THERE]
    codes = combined(*(each.codes for each in columns))
    _, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    rows = [tuple(each.values[each.codes[at]] for each in columns) for at in firsts.tolist()]
    return Coded(which, rows)


def _behind(asked: Numbers, offset: Numbers) -> Behind:
    """The least and the least but one of the places that were requested at or behind each of the different
    moments of `asked`, ascending, and behind all of them. Of one request (a batch) the least one counts."""
    moments, which = np.unique(asked, return_inverse=True)
    places = np.full(len(moments) + 1, INT64_MAX)
    np.minimum.at(places, which, offset)
    least, second = places.copy(), np.full(len(places), INT64_MAX)
    for at in range(len(moments) - 1, -1, -1):
        least[at], between = min(places[at], least[at + 1]), max(places[at], least[at + 1])
        second[at] = min(between, second[at + 1])
    return Behind(moments, least, second)
