"""Requests and answers of one connection that has more frames than a process should hold.

No number says anything of another: so frames are dealt out by their numbers, and paired some numbers at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.long_columns import LongColumn, LongColumns
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.long_delivery import SIDES, LongConnection, windows
from replispec.replay.pairing.pairs import Correlation, Numbered, Pairs, lies_within, pair_numbers

# So many frames are paired at a time, where numbers are as different as counters make them.
TOGETHER = 1 << 18
# Numbers next to each other are of frames near to each other: so many are dealt to one place.
NUMBERS_IN_A_ROW = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Some frames of a connection and the requests that they answer, by their `places` in its order, which
    ascend; `request_of`: which of them each one answers, -1 for none; `own`: which were asked for."""

    places: Integers
    frames: Delivered
    request_of: Integers
    own: npt.NDArray[np.bool_]


class LongPairs:
    """The pairs of a connection. `pairs` has what is counted, and evidence by places; `columns`: those which
    the correlation reads."""

    def __init__(
        self,
        frames: LongConnection,
        store: LongColumns,
        correlation: Correlation,
        columns: Sequence[str],
        whole: Collection[tuple[str, int]],
        cut_short: Collection[tuple[str, int]],
    ) -> None:
        self._frames = frames
        self._whole = whole
        self._cut_short = cut_short
        # The place of each request and 1 more: 0 is none.
        self._requests = store.column("requests")
        self.pairs = Pairs(np.zeros(0, np.int64))
        if len(frames):
            self._requests.write(len(frames) - 1, np.zeros(1, np.int64))
        names = (frames.connection,)
        for numbered in self._dealt(store, correlation, columns):
            answers, requests = pair_numbers(numbered, names, correlation, self._around, self.pairs)
            self._requests.put(answers, requests + 1)

    def with_requests(self, places: Integers, columns: Sequence[str]) -> Window:
        """The frames at places, which ascend, with some columns."""
        requests = self._requests.at(places) - 1
        every = np.sort(np.concatenate([places, requests[requests >= 0]]), kind="stable")
        at = every[np.append(True, np.diff(every) != 0)[: len(every)]]
        request_of = np.full(len(at), -1, np.int64)
        own = np.searchsorted(at, places)
        request_of[own] = np.where(requests >= 0, np.searchsorted(at, requests), -1)
        asked_for = np.zeros(len(at), np.bool_)
        asked_for[own] = True
        return Window(at, self._frames.at(at, columns), request_of, asked_for)

    def evident(self, columns: Sequence[str]) -> tuple[Delivered, Pairs]:
        """The frames of which there is evidence, and the pairs, whose evidence counts these."""
        rows = np.array([row for row, _ in self.pairs.evidence], np.int64)
        evidence = [(at, each) for at, (_, each) in enumerate(self.pairs.evidence)]
        return self._frames.at(rows, columns), replace(self.pairs, evidence=evidence)

    def _dealt(
        self, store: LongColumns, correlation: Correlation, columns: Sequence[str]
    ) -> Iterator[Numbered]:
        """All frames, those with one number together."""
        count = -(-len(self._frames) // TOGETHER)
        dealt = [store.column(f"numbered-{at}") for at in range(count)]
        for places in windows(len(self._frames)):
            frames = self._frames.at(places, (*columns, correlation.number))
            numbers = frames.integers(correlation.number)
            told = frames.direction, frames.index, frames.received, frames.sure
            rows = np.column_stack([places, *told, correlation.roles(frames), numbers])
            bucket = numbers // NUMBERS_IN_A_ROW % max(count, 1)
            for at in np.unique(bucket).tolist():
                dealt[at].write(len(dealt[at]), rows[bucket == at].ravel())
        for each in dealt:
            yield _numbered(each)

    def _from_start(self, side: int) -> Callable[[Integers], npt.NDArray[np.bool_]]:
        """Of frames of a direction whether it was seen from its first byte and without a hole before each."""
        column = self._frames.column(side, "from_start")
        return lambda at: column.at(at) != 0

    def _around(self, answers: Numbered) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(answers), np.bool_)
        for side in SIDES:
            rows = np.flatnonzero(answers.direction == side)
            asked = side ^ 1
            name = self._frames.connection, asked
            found[rows] = lies_within(
                answers.received[rows],
                np.zeros(len(rows), np.int64),
                np.full(len(rows), self._frames.count(asked)),
                self._from_start(asked),
                np.full(len(rows), name in self._whole),
                np.full(len(rows), name not in self._cut_short),
            )
        return found


def _numbered(column: LongColumn) -> Numbered:
    place, direction, index, received, sure, role, number = column.read(0, len(column)).reshape(-1, 7).T
    nothing = np.zeros(len(place), np.int64)
    return Numbered(place, nothing, direction, index, received, sure != 0, role, number)
