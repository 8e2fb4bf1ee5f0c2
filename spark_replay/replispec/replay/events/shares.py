"""One connection with many frames, observed in shares.

Who answers whom, and in which order frames were delivered, is told by few columns of all frames of a
connection (`lay`). What the frames say besides is then read share by share (`look`): of a share nobody needs
to know more than the places of its own frames.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.capture.long_columns import LongColumn, LongColumns
from replispec.replay.events.columns import Observed
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.long_delivery import Ends, LongConnection

NOWHERE = -1
NUMBER_KIND = np.dtype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Some frames of a connection in the order of their delivery: `direction` and `index` say which ones,
    `order` as in Delivered. `request_of`: the place among them of the request that each one answers, -1 for
    none. `read`: the places of those that are read, for which the others are asked; `single`: one by one."""

    connection: str
    direction: Integers
    index: Integers
    order: Integers
    request_of: Integers
    read: Integers
    single: bool

    @classmethod
    def of(cls, frames: Delivered, request_of: Integers, read: Integers, *, single: bool) -> Share:
        """The frames at the places `read` of those of one connection, with the requests that they answer."""
        requests = request_of[read]
        at = np.unique(np.concatenate([read, requests[requests >= 0]]))
        request = request_of[at]
        inside = np.isin(request, at)
        return cls(
            frames.connections[0],
            frames.direction[at],
            frames.integers("index", at),
            frames.order[at],
            np.where(inside, np.searchsorted(at, request), NOWHERE),
            np.searchsorted(at, read),
            single,
        )

    def __len__(self) -> int:
        return len(self.order)

    def delivered(self, frames: pa.Table) -> Delivered:
        """Its frames; `frames` (of FRAMES) are these, in any order."""
        known = _keys(*(np.asarray(frames.column(name)).astype(np.int64) for name in ("direction", "index")))
        rows = np.argsort(known)
        rows = rows[np.searchsorted(known[rows], _keys(self.direction, self.index))]
        nothing, unsure = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        names = (self.connection,) if len(self) else ()
        return Delivered(
            frames, rows, names, nothing, self.direction, self.index, self.order, nothing, unsure
        )


def _keys(direction: Integers, index: Integers) -> Integers:
    return direction << 32 | index


@dataclass(frozen=True, slots=True)
class Laid:
    """A share by its number, and what few columns of its connection told that goes with it."""

    number: int
    share: Share
    told: Observed


@dataclass(frozen=True, slots=True)
class Long:
    """A connection that is observed in shares of about `together` frames each.

    `pieces` are its frames, some columns and some rows at a time, in any order; `holes` and `streams` its
    rows of these tables; `folder`: where files may lie meanwhile.
    """

    pieces: Iterable[pa.Table]
    holes: pa.Table
    streams: pa.Table
    together: int
    folder: Path

    @property
    def connection(self) -> str:
        """Its name."""
        return str(self.streams.column("connection")[0])

    def delivered(
        self, store: LongColumns, numbers: Mapping[str, npt.DTypeLike], texts: Sequence[str]
    ) -> LongConnection:
        """Its frames in the order of their delivery, with some columns."""
        capture = str(self.streams.column("capture")[0])
        frames = LongConnection(capture, self.connection, store, numbers, texts)
        for piece in self.pieces:
            frames.take(piece)
        frames.deliver(Ends.of(self.connection, self.streams))
        return frames


@dataclass(frozen=True, slots=True, eq=False)
class SharedObserver:
    """How a connection is observed in shares.

    `kinds`: of the streams of which it may be; `columns`: of FRAMES, which `lay` is given. Share 0 comes
    last; of N frames there are at most N / `together` others. `look` is given the frames of a share, and
    STREAMS with share 0. All that both tell together is what the observers of whole connections tell.
    """

    kinds: Collection[str]
    columns: Sequence[str]
    lay: Callable[[Long], Iterator[Laid]]
    look: Callable[[pa.Table, pa.Table, Share], Observed]


def note_share(laid: Laid, numbers: Sequence[Path]) -> None:
    """Write 1 more than the number of a share for each of its frames: into a file for each direction, by
    their indexes, of NUMBER_KIND. What is in no share has 0, or nothing at the end."""
    for direction, path in enumerate(numbers):
        index = np.sort(laid.share.index[laid.share.direction == direction])
        column = LongColumn(path, NUMBER_KIND)
        try:
            column.spread(index, np.full(len(index), laid.number + 1))
        finally:
            column.close()
