"""How long requests waited, of one connection that has more frames than a process should hold.

The observations of `durations.latencies_of`. They are counted first, so that each has its number, and are
told as soon as they are full.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from replispec.replay.events.columns import named, repeated, table_of
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.durations import (
    DURATIONS_MAXIMUM,
    durations,
    is_asked,
    lists,
    observations_for,
    shown,
)
from replispec.replay.pairing.delivery import Integers
from replispec.replay.pairing.long_delivery import LongConnection, windows
from replispec.replay.pairing.long_pairs import LongPairs, Window

LATENCY_COLUMNS = ("code", "flag", "time_ns")


@dataclass(frozen=True, slots=True)
class _Row:
    """One observation: whose it is, and its answers; `remarks` by their codes."""

    direction: int
    index: int
    code: int
    unanswered: int
    durations: Integers
    answer_codes: Integers
    remarks: Sequence[str]


@dataclass(slots=True)
class _Asked:
    """The requests of one direction with one code: `index` of the next observation, and its answers so far
    (columns: durations, codes, places)."""

    index: int
    unanswered: int
    is_new: bool = True
    waiting: Integers = field(default_factory=lambda: np.zeros((0, 3), np.int64))


class LongLatencies:
    """The latencies of a connection; windows are added in their order."""

    def __init__(self, frames: LongConnection, pairs: LongPairs) -> None:
        self._frames = frames
        asked: Counter[int] = Counter()
        answered: Counter[int] = Counter()
        for places in windows(len(frames)):
            window = pairs.with_requests(places, ("code", "flag"))
            keys = _keys(window)
            asked.update(_counted(keys[window.own & is_asked(window.frames)]))
            answered.update(_counted(keys[window.request_of[_answers(window)]]))
        self._asked: dict[int, _Asked] = {}
        index: dict[int, int] = defaultdict(int)
        for key, count in sorted(asked.items()):
            direction, _ = _told_by(key)
            self._asked[key] = _Asked(index[direction], count - answered[key])
            index[direction] += int(observations_for(np.array([answered[key]]))[0])
        self._rows: list[_Row] = []

    def add(self, window: Window) -> None:
        """What a window tells: LATENCY_COLUMNS of it are needed."""
        answers = _answers(window)
        keys = _keys(window)[window.request_of[answers]]
        waited = durations(window.frames, window.request_of)[answers]
        codes = window.frames.integers("code", answers)
        told = np.column_stack([waited, codes, window.places[answers]])
        for key in np.unique(keys).tolist():
            own = self._asked[key]
            own.waiting = np.concatenate([own.waiting, told[keys == key]])
            while len(own.waiting) >= DURATIONS_MAXIMUM:
                self._tell(key, own)

    def told(self) -> pa.Table:
        """The observations that are full, each once."""
        rows, self._rows = self._rows, []
        sizes, remarks = (
            np.array([len(told) for told in each], np.int64)
            for each in ([row.durations for row in rows], [row.remarks for row in rows])
        )
        nothing = np.zeros(len(rows), np.int64)
        columns = {
            "capture": repeated(self._frames.capture, len(rows)),
            "order": nothing,
            "time_ns": nothing,
            "connection": named(pa.array([self._frames.connection], pa.string()), nothing),
            "direction": [row.direction for row in rows],
            "sequence": nothing,
            "index": [row.index for row in rows],
            "code": [row.code for row in rows],
            "unanswered": [row.unanswered for row in rows],
            "durations_ns": lists(_joined([row.durations for row in rows]), pa.int64(), sizes),
            "answer_codes": lists(_joined([row.answer_codes for row in rows]), pa.int32(), sizes),
            "remarks": lists([text for row in rows for text in row.remarks], pa.string(), remarks),
        }
        return table_of(ObservationKind.LATENCY, columns, len(rows))

    def rest(self) -> pa.Table:
        """All that were not told, at the end."""
        for key, own in self._asked.items():
            # The first one counts the unanswered requests, also without any answer.
            if len(own.waiting) or own.is_new:
                self._tell(key, own)
        return self.told()

    def _tell(self, key: int, own: _Asked) -> None:
        """The next observation of a direction and code."""
        waited, codes, places = own.waiting[:DURATIONS_MAXIMUM].T
        own.waiting = own.waiting[DURATIONS_MAXIMUM:].copy()
        direction, code = _told_by(key)
        _, firsts = np.unique(codes, return_index=True)
        remarks = shown(pa.array(self._frames.texts(places[firsts], "remark"), pa.string())).to_pylist()
        unanswered = own.unanswered if own.is_new else 0
        self._rows.append(_Row(direction, own.index, code, unanswered, waited, codes, remarks))
        own.index, own.is_new = own.index + 1, False


def _answers(window: Window) -> Integers:
    return np.flatnonzero(window.own & (window.request_of >= 0))


def _keys(window: Window) -> Integers:
    """One number for the direction and the code of each frame; it ascends as these do."""
    keys: Integers = (window.frames.direction << 33) + window.frames.integers("code") + (1 << 31)
    return keys


def _told_by(key: int) -> tuple[int, int]:
    """The direction and the code that a number stands for."""
    return key >> 33, (key & ((1 << 33) - 1)) - (1 << 31)


def _counted(keys: Integers) -> dict[int, int]:
    found, counts = np.unique(keys, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *parts])
