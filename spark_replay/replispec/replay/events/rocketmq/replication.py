"""From replication frames to observations: one HA connection, both directions in one order.

The master's replication address names the connection until the addresses are joined. A hole between
two frames is an observation of its own, as everything learnt before it is then in doubt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.events.columns import Observed, named, places, table_of
from replispec.replay.events.directions import Reasons
from replispec.replay.events.observation import (
    Answer,
    Gap,
    Handshake,
    Observation,
    ObservationKind,
    Opened,
    Place,
)
from replispec.replay.events.rocketmq.addresses import in_one_form
from replispec.replay.pairing.delivery import Delivered, Integers, encoded
from replispec.wire.rocketmq import ha

MASTER: Final = "ha_master"
ANSWERS: Final = (ha.HaHandshakeAnswer.__name__, ha.HaHandshakeAnswerPadded.__name__)
_HANDSHAKES: Final = (ha.HaHandshakeId.__name__, ha.HaHandshakeAddress.__name__)
_REPORT: Final = ha.HaReport.__name__
_TRANSFER: Final = ("offset", "body_size", "epoch", "epoch_start_offset", "confirm_offset", "body_digest")

Mask = npt.NDArray[np.bool_]


def observe_replication(
    frames: Delivered,
    whole: Collection[tuple[str, int]],
    cut_short: Collection[tuple[str, int]],
    reasons: Reasons,
) -> Observed:
    """Observations of replication frames (rows of FRAMES, all replication).

    `whole` names the directions (connection, direction) that were seen from their first byte, `cut_short`
    those in which bytes after the last frame were lost. A gap stands directly after the frame before
    it: whatever the other direction says after that moment may answer what was lost. Where a direction
    was not seen from its first byte, one stands before its first frame. `reasons`: why bytes are missing.
    """
    if not len(frames):
        return [], []
    found = _Replication(frames)
    told = [
        *found.opened(whole),
        *found.gaps(whole, cut_short, reasons),
        *found.handshakes(),
        *found.answers(),
    ]
    return told, [*found.transfers(), found.reports()]


def observe_stretch(frames: Delivered) -> Observed:
    """Observations of frames of one connection that were delivered one after the other, by what each says."""
    if not len(frames):
        return [], []
    found = _Replication(frames)
    return [*found.handshakes(), *found.answers()], [*found.transfers(), found.reports()]


def master_of(protocol: str, source: str, destination: str) -> str:
    """The replication address of the master on a direction of a connection."""
    return source if protocol == MASTER else destination


def gap_at(place: Place, end: int, master: str, ends: Sequence[tuple[int, str]], *, is_torn: bool) -> Gap:
    """The gap behind a frame that ends somewhere; `is_torn`: behind the half of an answer. `ends`: where
    holes of its direction end, and why."""
    # The missing end of an answer may have come at any time up to the next frame.
    text = _reason(ends, place.sequence if is_torn else end)
    return Gap(*place._replace(sequence=end), address=master, text=text)


class _Replication:
    """Replication frames by columns. `master`: the master's replication address of each side."""

    def __init__(self, frames: Delivered) -> None:
        self._frames = frames
        names, codes = encoded(frames.values("message"))
        self._names: list[str] = names.to_pylist()
        self._codes = codes
        self._side = frames.side
        self._sides, self._first = np.unique(self._side, return_index=True)
        columns = (frames.values(name, self._first) for name in ("protocol", "source", "destination"))
        self._masters: list[str] = [
            master_of(*each) for each in zip(*(each.to_pylist() for each in columns), strict=True)
        ]
        self._sequence = frames.integers("sequence")
        self._end = self._sequence + frames.integers("size")

    def _of(self, messages: Collection[str]) -> Mask:
        """Which frames are one of these messages."""
        return np.isin(self._codes, [at for at, name in enumerate(self._names) if name in messages])

    def _master(self, at: int) -> str:
        return self._masters[int(np.searchsorted(self._sides, self._side[at]))]

    def _place(self, at: int) -> Place:
        """Where one frame is."""
        one, frames = np.array([at]), self._frames
        numbers = (int(frames.integers(name, one)[0]) for name in ("time_ns", "sequence", "index"))
        time_ns, sequence, index = numbers
        connection, direction = frames.side_name(int(self._side[at]))
        order = int(frames.order[at])
        return Place(frames.capture, order, time_ns, connection, direction, sequence, index)

    def opened(self, whole: Collection[tuple[str, int]]) -> Iterator[Opened]:
        """The connections of which both directions were seen from their first byte."""
        _, firsts = np.unique(self._frames.connection, return_index=True)
        for at in firsts.tolist():
            connection, _ = self._frames.side_name(int(self._side[at]))
            if (connection, 0) in whole and (connection, 1) in whole:
                place = self._place(at)
                yield Opened(*place._replace(number=place.number - 1), address=self._master(at))

    def gaps(
        self, whole: Collection[tuple[str, int]], cut_short: Collection[tuple[str, int]], reasons: Reasons
    ) -> Iterator[Gap]:
        """Where bytes were lost: before the first frame of a direction, and after others."""
        for side, at in zip(self._sides.tolist(), self._first.tolist(), strict=True):
            if self._frames.side_name(side) not in whole:
                place = self._place(at)
                yield Gap(*place._replace(number=place.number - 1), address=self._master(at))
        complete = self._frames.integers("complete").astype(np.bool_)
        torn = self._of(ANSWERS) & ~complete
        for at in np.flatnonzero(torn | self._lost_after(cut_short)).tolist():
            why = reasons.get(self._frames.side_name(int(self._side[at])), ())
            end, is_torn = int(self._end[at]), bool(torn[at])
            yield gap_at(self._place(at), end, self._master(at), why, is_torn=is_torn)

    def _lost_after(self, cut_short: Collection[tuple[str, int]]) -> Mask:
        """For each frame: were bytes lost between it and the next one of its direction?"""
        order = np.argsort(self._side, kind="stable")
        side, end = self._side[order], self._end[order]
        lost = np.zeros(len(order), np.bool_)
        lost[order[:-1]] = (side[1:] == side[:-1]) & (self._sequence[order][1:] != end[:-1])
        lasts = order[np.append(side[1:] != side[:-1], True)]
        lost[lasts] = [self._frames.side_name(each) in cut_short for each in self._side[lasts].tolist()]
        return lost

    def handshakes(self) -> Iterator[Observation]:
        """What replicas begin with."""
        at = np.flatnonzero(self._of(_HANDSHAKES))
        names = ("message", "broker_id", "broker_address", "sync_from_last_file", "async_learner")
        columns = [self._frames.values(name, at).to_pylist() for name in names]
        for one, values in zip(at.tolist(), zip(*columns, strict=True), strict=True):
            yield in_one_form(Handshake(*self._place(one), None, self._master(one), *values))

    def answers(self) -> Iterator[Observation]:
        """What masters answer to that."""
        at = np.flatnonzero(self._of(ANSWERS))
        names = ("message", "max_offset", "epochs")
        columns = [self._frames.values(name, at).to_pylist() for name in names]
        for one, values in zip(at.tolist(), zip(*columns, strict=True), strict=True):
            yield Answer(*self._place(one), None, self._master(one), *values)

    def reports(self) -> tuple[ObservationKind, pa.Table]:
        """How far replicas are."""
        return self._table(ObservationKind.REPORT, np.flatnonzero(self._of((_REPORT,))), ("max_offset",))

    def transfers(self) -> Iterator[tuple[ObservationKind, pa.Table]]:
        """Transfer headers, with log bytes and without."""
        at = np.flatnonzero(~self._of((*_HANDSHAKES, *ANSWERS, _REPORT)))
        carries = self._frames.integers("body_size", at) > 0
        yield self._table(ObservationKind.BATCH, at[carries], (*_TRANSFER, "records"))
        yield self._table(ObservationKind.HEARTBEAT, at[~carries], _TRANSFER)

    def _table(
        self, kind: ObservationKind, at: Integers, names: Sequence[str]
    ) -> tuple[ObservationKind, pa.Table]:
        masters = pa.array(self._masters, pa.string())
        columns = {
            **places(self._frames, at),
            "address": named(masters, np.searchsorted(self._sides, self._side[at])),
            "message": named(pa.array(self._names, pa.string()), self._codes[at]),
            **{name: self._frames.values(name, at) for name in names},
        }
        return kind, table_of(kind, columns, len(at))


def _reason(ends: Sequence[tuple[int, str]], position: int) -> str | None:
    """Why bytes behind a position are missing; None when none is: they are no frame."""
    at = bisect_right(ends, (position, "~"))
    return ends[at][1] if at < len(ends) else None
