"""One replication connection, observed in stretches: what each frame says is read where the frame is.

Where the connection was opened and where bytes were lost is told by few columns of all its frames, window by
window; a stretch has the frames that were delivered one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.capture.long_columns import LongColumns
from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import begun_by, cut_short, reasons
from replispec.replay.events.observation import Gap, Observation, Opened, Place
from replispec.replay.events.rocketmq.replication import (
    ANSWERS,
    gap_at,
    master_of,
    observe_stretch,
)
from replispec.replay.events.shares import NOWHERE, Laid, Long, Share, SharedObserver
from replispec.replay.frames.rocketmq.readers import HA_MASTER, HA_REPLICA
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.long_delivery import SIDES, LongConnection, columns_of, windows

KINDS: Final = (HA_REPLICA, HA_MASTER)
_NUMBERS: Final[Mapping[str, npt.DTypeLike]] = {"complete": np.int8}
_TEXTS: Final = ("message",)
_NOTHING: Final = np.zeros(0, np.int64)


def _lay(long: Long) -> Iterator[Laid]:
    with LongColumns(long.folder) as store:
        frames = long.delivered(store, _NUMBERS, _TEXTS)
        for number, first in enumerate(range(0, len(frames), long.together), 1):
            places = np.arange(first, min(first + long.together, len(frames)))
            yield Laid(number, _share(frames, places), ([], []))
        yield Laid(0, _share(frames, _NOTHING), ([*_Lost(frames, long).told()], []))


def _share(frames: LongConnection, places: Integers) -> Share:
    own = frames.at(places, ())
    return Share.of(own, np.full(len(places), NOWHERE), np.arange(len(places)), single=False)


def _look(frames: pa.Table, _: pa.Table, share: Share) -> Observed:
    return observe_stretch(share.delivered(frames))


@dataclass(frozen=True, slots=True)
class _Last:
    """The last frame of a direction so far: its place, where it ends, and whether it is half an answer."""

    place: Place
    end: int
    is_torn: bool


class _Lost:
    """Where a connection was opened, and where bytes of it were lost."""

    def __init__(self, frames: LongConnection, long: Long) -> None:
        self._frames = frames
        self._reasons = reasons(long.holes)
        name = frames.connection
        sides = [side for side in SIDES if frames.count(side)]
        self._cut_short = cut_short(
            {(name, side): frames.end(side) for side in sides}, long.holes, long.streams
        )
        first = {(name, side): int(frames.column(side, "sequence").read(0, 1)[0]) for side in sides}
        self._whole = begun_by(first, long.streams, KINDS, self._cut_short)
        names = ("direction", "protocol", "source", "destination")
        rows = zip(*(long.streams.column(each).to_pylist() for each in names), strict=True)
        self._masters = {side: master_of(*each) for side, *each in rows}
        self._last: dict[int, _Last] = {}

    def told(self) -> Iterator[Observation]:
        """All of it."""
        name = self._frames.connection
        for places in windows(len(self._frames)):
            frames = self._frames.at(places, ("sequence", "size", "time_ns", "complete"))
            if places[0] == 0 and all((name, side) in self._whole for side in SIDES):
                place = _place(frames, 0)
                address = self._masters[place.direction]
                yield Opened(*place._replace(number=place.number - 1), address=address)
            for side in SIDES:
                yield from self._of_side(side, places, frames, np.flatnonzero(frames.direction == side))
        for side, last in self._last.items():
            if last.is_torn or (name, side) in self._cut_short:
                yield self._gap(last)

    def _of_side(
        self, side: int, places: Integers, frames: Delivered, rows: Integers
    ) -> Iterator[Observation]:
        if not len(rows):
            return
        begins, ends = frames.integers("sequence", rows), frames.integers("sequence", rows)
        ends = ends + frames.integers("size", rows)
        if side not in self._last:
            if (self._frames.connection, side) not in self._whole:
                place = _place(frames, int(rows[0]))
                yield Gap(*place._replace(number=place.number - 1), address=self._masters[side])
        else:
            before = self._last[side]
            if before.is_torn or before.end != begins[0]:
                yield self._gap(before)
        partial = rows[frames.integers("complete", rows) == 0]
        texts = self._frames.texts(places[partial], "message")
        torn = partial[np.array([text in ANSWERS for text in texts], np.bool_)]
        is_torn = np.isin(rows, torn)
        lost = np.append(ends[:-1] != begins[1:], False)
        lost[:-1] |= is_torn[:-1]
        for at in np.flatnonzero(lost).tolist():
            yield self._gap(_Last(_place(frames, int(rows[at])), int(ends[at]), bool(is_torn[at])))
        self._last[side] = _Last(_place(frames, int(rows[-1])), int(ends[-1]), bool(is_torn[-1]))

    def _gap(self, last: _Last) -> Gap:
        side = last.place.direction
        why = self._reasons.get((last.place.connection, side), ())
        return gap_at(last.place, last.end, self._masters[side], why, is_torn=last.is_torn)


def _place(frames: Delivered, at: int) -> Place:
    """Where one frame is."""
    one = np.array([at])
    time_ns, sequence, index = (
        int(frames.integers(name, one)[0]) for name in ("time_ns", "sequence", "index")
    )
    direction = int(frames.direction[at])
    return Place(
        frames.capture, int(frames.order[at]), time_ns, frames.connections[0], direction, sequence, index
    )


SHARED: Final = SharedObserver(KINDS, columns_of(_NUMBERS, _TEXTS), _lay, _look)
