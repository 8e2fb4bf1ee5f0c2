"""The commands of one connection, observed in shares: what each frame says is read where the frame is.

Nearly all of them are messages and what producers were told of them. What is rare is read by one share, as
names are told once. Who answers whom is told window by window: files hold what a connection has, and memory
what a share or a window has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.capture.long_columns import LongColumns
from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import cut_short, seen_whole, unseen
from replispec.replay.events.family import codes_of_guests
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.closings import closings
from replispec.replay.events.rocketmq.commands import interesting, pairings, read_commands
from replispec.replay.events.rocketmq.long_latencies import LATENCY_COLUMNS, LongLatencies
from replispec.replay.events.shares import Laid, Long, Share, SharedObserver
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.long_delivery import SIDES, LongConnection, columns_of, windows
from replispec.replay.pairing.long_pairs import LongPairs, Window
from replispec.replay.pairing.rocketmq.family import CORRELATION
from replispec.wire.rocketmq.codes import RemotingFlag

_NUMBERS: Final[Mapping[str, npt.DTypeLike]] = {
    "code": np.int32,
    "flag": np.int32,
    "opaque": np.int32,
    "from_start": np.int8,
}
_TEXTS: Final = ("remark",)
_NOTHING: Final = np.zeros(0, np.int64)


def _lay(long: Long) -> Iterator[Laid]:
    with LongColumns(long.folder) as store:
        frames = long.delivered(store, _NUMBERS, _TEXTS)
        ends = {(frames.connection, side): frames.end(side) for side in SIDES if frames.count(side)}
        lost = cut_short(ends, long.holes, long.streams)
        pairs = LongPairs(frames, store, CORRELATION, ("flag",), seen_whole(long.streams), lost)
        shares = _Shares(frames, pairs, -(-long.together // 2))
        for places in windows(len(frames)):
            yield from shares.add(pairs.with_requests(places, LATENCY_COLUMNS))
        yield from shares.rest()
        told = [*pairings(frames.capture, *pairs.evident(("sequence", "time_ns"))), *_unseen(frames, long)]
        yield shares.rare(told)


def _unseen(frames: LongConnection, long: Long) -> Iterator[Observation]:
    def time_before(connection: str, direction: int, position: int) -> int | None:
        return frames.time_before(direction, position) if connection == frames.connection else None

    return unseen(time_before, long.holes, long.streams, CORRELATION.kinds)


class _Shares:
    """Makes the shares of a connection: `half` answers each, as an answer comes with its request."""

    def __init__(self, frames: LongConnection, pairs: LongPairs, half: int) -> None:
        self._pairs = pairs
        self._half = half
        self._latencies = LongLatencies(frames, pairs)
        self._count = 0
        self._answers = self._stored = self._rare = _NOTHING

    def add(self, window: Window) -> Iterator[Laid]:
        """The shares that are full with the next window."""
        self._latencies.add(window)
        rare, stored = interesting(window.frames, window.request_of)
        rare = np.union1d(rare, _of_guests(window.frames))
        mine = window.own & (window.request_of >= 0)
        self._answers = np.concatenate([self._answers, window.places[mine]])
        self._stored = np.concatenate([self._stored, window.places[stored[window.own[stored]]]])
        self._rare = np.concatenate([self._rare, window.places[rare[window.own[rare]]]])
        while len(self._answers) >= self._half:
            yield self._share()

    def rest(self) -> Iterator[Laid]:
        """The last one that has answers."""
        if len(self._answers):
            yield self._share()

    def rare(self, told: list[Observation]) -> Laid:
        """The one that has what is rare, and what else was told."""
        share = self._share_of(self._rare, single=True)
        return Laid(0, share, (told, [(ObservationKind.LATENCY, self._latencies.rest())]))

    def _share(self) -> Laid:
        last = self._answers[: self._half][-1]
        self._answers = self._answers[self._half :]
        upto = int(np.searchsorted(self._stored, last, "right"))
        read, self._stored = self._stored[:upto], self._stored[upto:]
        self._count += 1
        full = ObservationKind.LATENCY, self._latencies.told()
        return Laid(self._count, self._share_of(read, single=False), ([], [full]))

    def _share_of(self, read: Integers, *, single: bool) -> Share:
        window = self._pairs.with_requests(read, ())
        places = np.searchsorted(window.places, read)
        return Share.of(window.frames, window.request_of, places, single=single)


def _of_guests(frames: Delivered) -> Integers:
    """Places of requests that are read by families without streams of their own."""
    codes = codes_of_guests()
    asks = (frames.integers("flag") & RemotingFlag.RESPONSE) == 0
    return np.flatnonzero(asks & np.isin(frames.integers("code"), codes)) if codes else _NOTHING


def _look(frames: pa.Table, streams: pa.Table, share: Share) -> Observed:
    single, answers = (share.read, _NOTHING) if share.single else (_NOTHING, share.read)
    told, stored = read_commands(share.delivered(frames), share.request_of, single, answers)
    return [*told, *closings(told, streams)], [(ObservationKind.ACKNOWLEDGED, stored)]


SHARED: Final = SharedObserver(CORRELATION.kinds, columns_of(_NUMBERS, _TEXTS), _lay, _look)
