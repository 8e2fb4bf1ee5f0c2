"""The order of the frames of a connection, from the bytes themselves.

Every packet says how far its sender had received the peer: a frame that it carries was sent after all it
acknowledges, and before all it does not. So the frames of both directions stand in the order in which the end
that accepted the connection sent and received them, whatever the capture did to the order of packets.
Source: RFC 9293, section 3.4 (SND.NXT, RCV.NXT).

What a sender acknowledges never falls. Where it does in the order of the bytes (a copy that was sent again
acknowledges more than the first one did, a damaged number anything), or where nothing is acknowledged, the
order of arrival decides, within the bounds that the other packets set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.capture.groups import ranks, running_maximum
from replispec.replay.tcp.numbers import apart

Integers = npt.NDArray[np.int64]

FAR = 2**62
"""More than any position and any offset, however much the numbers of a connection lie."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Frames of whole connections: first by connection, then as the accepting end saw them.

    `rows`: where each is in `frames` (FRAMES), of which others may be none of these. `connection` counts
    `connections`, `index` the frames of a direction. `order` rises within each connection: the file offset of
    the packet that delivered the frame, or a little more. `received`: how many frames of the other direction
    its sender had received when it sent the frame; `sure`: acknowledgments tell that, not what arrived here.
    """

    frames: pa.Table
    rows: Integers
    connections: tuple[str, ...]
    connection: Integers
    direction: Integers
    index: Integers
    order: Integers
    received: Integers
    sure: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def capture(self) -> str:
        """The capture that they are of; empty without a frame."""
        return str(self.frames.column("capture")[int(self.rows[0])]) if len(self.rows) else ""

    @property
    def side(self) -> Integers:
        """A number for the direction of each frame: 2 * connection + direction."""
        return 2 * self.connection + self.direction

    def side_name(self, side: int) -> tuple[str, int]:
        """The connection and the direction that a number stands for."""
        return self.connections[side >> 1], side & 1

    def integers(self, name: str, at: Integers | None = None) -> Integers:
        """A column of numbers (or flags) that no row lacks, or the places `at` of it."""
        return _integers(self.frames, name, self.rows if at is None else self.rows[at])

    def values(self, name: str, at: Integers | None = None) -> pa.ChunkedArray:
        """A column, or the places `at` of it."""
        return self.frames.column(name).take(pa.array(self.rows if at is None else self.rows[at]))

    def names(self, at: Integers | None = None) -> list[str]:
        """The name of the connection of each frame, or of those at the places `at`."""
        known = self.connections
        return [known[each] for each in (self.connection if at is None else self.connection[at]).tolist()]


def delivered(frames: pa.Table, streams: pa.Table, rows: Integers | None = None) -> Delivered:
    """Order the frames (rows of FRAMES) of one capture, or those in `rows`; of each connection all.

    `streams` (STREAMS) tells where the numbers of a direction begin, and who accepted the connection.
    """
    if rows is None:
        rows = np.arange(frames.num_rows)
    nothing = np.zeros(0, np.int64)
    if not len(rows):
        return Delivered(frames, nothing, (), nothing, nothing, nothing, nothing, nothing, nothing != 0)
    sides = _Sides(frames, rows, streams)
    received, sure = sides.received()
    rank = np.where(sides.accepting, 2 * received, 2 * sides.index + 1)
    positions = np.lexsort((sides.index, rank, sides.connection))
    order = _rising(sides.arrivals[positions], sides.connection[positions])
    return Delivered(
        frames,
        sides.rows[positions],
        sides.connections,
        sides.connection[positions],
        sides.side[positions] & 1,
        sides.index[positions],
        order,
        received[positions],
        sure[positions],
    )


class _Sides:
    """The directions of some frames, sorted by connection, direction and sequence.

    `side`: 2 * connection + direction of each row; `index`: its number in the direction; `accepting`: whether
    its sender accepted the connection; `borders`: the first row of each side, and the number of rows.
    """

    def __init__(self, frames: pa.Table, rows: Integers, streams: pa.Table) -> None:
        names, connection = encoded(frames.column("connection").take(pa.array(rows)))
        self.connections: tuple[str, ...] = tuple(names.to_pylist())
        side = 2 * connection + _integers(frames, "direction", rows)
        sequence = _integers(frames, "sequence", rows)
        order = np.lexsort((_integers(frames, "index", rows), sequence, side))
        self.rows = rows[order]
        self.connection, self.side = connection[order], side[order]
        count = 2 * len(names)
        self.borders = np.searchsorted(self.side, np.arange(count + 1))
        self.index: Integers = np.arange(len(self.side)) - self.borders[self.side]
        self.arrivals = _integers(frames, "record_offset", self.rows)
        self._ends = sequence[order] + _integers(frames, "size", self.rows)
        self._numbers = _integers(frames, "acknowledged", self.rows)
        self._first_number, accepting = begun_at(names, streams)
        self.accepting = accepting[self.side]

    def received(self) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """How many frames of the peer the sender of each frame had received when it sent it, and whether
        acknowledgments tell it."""
        peer = self.side ^ 1
        ends = self._ends
        arrivals = running_maximum(self.side, self.arrivals)
        by_arrival = ranks(self.borders, peer, arrivals, arrivals, "left")
        arrived = np.where(by_arrival > self.borders[peer], ends[by_arrival - 1], 0)
        least, most = self._acknowledged(peer, arrived)
        low, high = (ranks(self.borders, peer, ends, each, "right") for each in (least, most))
        found = np.clip(by_arrival, low, high)
        inside: Integers = np.clip(found, self.borders[peer], self.borders[peer + 1]) - self.borders[peer]
        # Without a number from here on more may have been received than was captured.
        return running_maximum(self.side, inside), (low >= high) & (most < FAR)

    def _acknowledged(self, peer: Integers, arrived: Integers) -> tuple[Integers, Integers]:
        """Positions in the peer's direction: each frame's sender had received it up to the first of them
        at least and up to the second at most.

        `arrived`: up to where the peer's frames had arrived here; the number of 32 bits is one near it.
        """
        numbers, packets = self._numbers, self.arrivals
        upto, known = positions_told(numbers, self._first_number[peer], arrived)
        # What somebody acknowledged never falls: numbers that say so are believed neither way. What came
        # out of order may have been sent again: it makes no other number doubtful.
        firm = known & (packets <= self._least_from(packets, known))
        falls = (upto < self._most_until(upto, firm)) | (upto > self._least_from(upto, firm))
        known &= ~falls
        return self._most_until(upto, known), self._least_from(upto, known)

    def _most_until(self, values: Integers, known: npt.NDArray[np.bool_]) -> Integers:
        return running_maximum(self.side, np.where(known, values, -FAR))

    def _least_from(self, values: Integers, known: npt.NDArray[np.bool_]) -> Integers:
        backwards = np.where(known, -values, -FAR)[::-1]
        return -running_maximum(self.side[::-1], backwards)[::-1]


def positions_told(
    numbers: Integers, first: Integers | int, arrived: Integers
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The positions that numbers of 32 bits acknowledge, each near to what had `arrived`, and which of them
    are known; `first`: the number of position 0."""
    upto = arrived + apart(numbers - first - arrived)
    # Nobody acknowledges what lies before the first byte, or before the least one that anybody mentions.
    return upto, (numbers >= 0) & (first >= 0) & (upto >= 0)


def begun_at(connections: pa.Array, streams: pa.Table) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """For 2 * connection + direction: the number of position 0 (-1 unknown), and whether it is accepting."""
    rows = pc.index_in(streams.column("connection"), value_set=connections).to_numpy(zero_copy_only=False)
    known = np.flatnonzero(~np.isnan(rows.astype(np.float64)))
    side = 2 * rows[known].astype(np.int64) + _integers(streams, "direction")[known]
    numbers = np.full(2 * len(connections), -1, np.int64)
    numbers[side] = _integers(streams, "first_number")[known]
    # Each end tells for both: exactly one of them accepted.
    accepting = np.zeros(2 * len(connections), np.bool_)
    told = streams.column("accepted").to_numpy(zero_copy_only=False)[known].astype(np.bool_)
    accepting[side], accepting[side ^ 1] = told, ~told
    return numbers, accepting


def encoded(texts: pa.ChunkedArray) -> tuple[pa.Array, Integers]:
    """The different texts in ascending order, and which of them each one is."""
    found = pc.dictionary_encode(texts.combine_chunks())
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    ascending = np.asarray(pc.array_sort_indices(found.dictionary), np.int64)
    rank = np.empty_like(ascending)
    rank[ascending] = np.arange(len(ascending))
    codes: Integers = rank[np.asarray(found.indices, np.int64)]
    return found.dictionary.take(pa.array(ascending)), codes


def _integers(table: pa.Table, name: str, rows: Integers | None = None) -> Integers:
    column = table.column(name)
    if rows is not None and column.null_count:
        column = column.take(pa.array(rows))
        rows = None
    values: Integers = np.asarray(column).astype(np.int64)
    return values if rows is None else values[rows]


def _rising(values: Integers, groups: Integers) -> Integers:
    """The running maximum within each run of `groups`, one more at least from row to row."""
    count = np.arange(len(values))
    return running_maximum(groups, values - count) + count
