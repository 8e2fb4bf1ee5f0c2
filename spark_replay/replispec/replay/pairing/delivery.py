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
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]

# More than any position in a direction and any offset in a file: one axis holds all directions, side by side.
_APART = 2**42
_FAR = _APART // 4


@dataclass(frozen=True, slots=True)
class Delivered:
    """Frames of whole connections: first by connection, then as the accepting end saw them.

    `order` rises within each connection: the file offset of the packet that delivered the frame, or a little
    more. `received`: how many frames of the other direction its sender had received when it sent the frame.
    """

    frames: pa.Table
    order: Integers
    received: Integers


def delivered(frames: pa.Table, streams: pa.Table) -> Delivered:
    """Order the frames (rows of FRAMES) of one capture; all frames of each connection that occurs.

    `streams` (STREAMS) tells where the numbers of a direction begin, and who accepted the connection.
    """
    if frames.num_rows == 0:
        nothing = np.zeros(0, np.int64)
        return Delivered(frames, nothing, nothing)
    keys = ("connection", "direction", "sequence", "index")
    frames = frames.sort_by([(name, "ascending") for name in keys])
    sides = _Sides(frames, streams)
    received = sides.received(frames)
    rank = np.where(sides.accepting, 2 * received, 2 * sides.index + 1)
    positions = np.lexsort((sides.index, rank, sides.connection))
    arrivals = _integers(frames, "record_offset")[positions]
    order = _rising(arrivals, sides.connection[positions])
    return Delivered(frames.take(pa.array(positions)), order, received[positions])


class _Sides:
    """The directions of frames that are sorted by connection, direction and sequence.

    `side`: 2 * connection + direction of each row; `index`: its number in the direction; `accepting`: whether
    its sender accepted the connection; `borders`: the first row of each side, and the number of rows.
    """

    def __init__(self, frames: pa.Table, streams: pa.Table) -> None:
        names = pc.dictionary_encode(frames.column("connection").combine_chunks())
        self.connection: Integers = np.asarray(names.indices, np.int64)
        self.side: Integers = 2 * self.connection + _integers(frames, "direction")
        count = 2 * len(names.dictionary)
        self.borders = np.searchsorted(self.side, np.arange(count + 1))
        self.index: Integers = np.arange(len(self.side)) - self.borders[self.side]
        self._first_number, accepting = _begun(names.dictionary, streams)
        self.accepting = accepting[self.side]

    def received(self, frames: pa.Table) -> Integers:
        """How many frames of the peer the sender of each frame had received when it sent it."""
        peer = self.side ^ 1
        ends = _integers(frames, "sequence") + _integers(frames, "size")
        arrivals = _running_maximum(_integers(frames, "record_offset"), self.side)
        by_arrival = np.searchsorted(self.side * _APART + arrivals, peer * _APART + arrivals)
        arrived = np.where(by_arrival > self.borders[peer], ends[by_arrival - 1], 0)
        placed = self.side * _APART + ends
        least, most = self._acknowledged(frames, peer, arrived)
        low = np.searchsorted(placed, peer * _APART + least, "right")
        high = np.searchsorted(placed, peer * _APART + most, "right")
        found = np.clip(by_arrival, low, high)
        inside: Integers = np.clip(found, self.borders[peer], self.borders[peer + 1]) - self.borders[peer]
        return _running_maximum(inside, self.side)

    def _acknowledged(self, frames: pa.Table, peer: Integers, arrived: Integers) -> tuple[Integers, Integers]:
        """Positions in the peer's direction: each frame's sender had received it up to the first of them
        at least and up to the second at most.

        `arrived`: up to where the peer's frames had arrived here; the number of 32 bits is one near it.
        """
        numbers, packets = _integers(frames, "acknowledged"), _integers(frames, "record_offset")
        first = self._first_number[peer]
        upto = arrived + (numbers - first - arrived + 2**31) % 2**32 - 2**31
        known = (numbers >= 0) & (first >= 0)
        # What somebody acknowledged never falls: numbers that say so are believed neither way. What came
        # out of order may have been sent again: it makes no other number doubtful.
        firm = known & (packets <= self._least_from(packets, known))
        falls = (upto < self._most_until(upto, firm)) | (upto > self._least_from(upto, firm))
        known &= ~falls
        return self._most_until(upto, known), self._least_from(upto, known)

    def _most_until(self, values: Integers, known: npt.NDArray[np.bool_]) -> Integers:
        return _running_maximum(np.where(known, values, -_FAR), self.side)

    def _least_from(self, values: Integers, known: npt.NDArray[np.bool_]) -> Integers:
        backwards = np.where(known, -values, -_FAR)[::-1]
        return -_running_maximum(backwards, -self.side[::-1])[::-1]


def _begun(connections: pa.Array, streams: pa.Table) -> tuple[Integers, npt.NDArray[np.bool_]]:
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


def _integers(table: pa.Table, name: str) -> Integers:
    values: Integers = np.asarray(table.column(name)).astype(np.int64)
    return values


def _running_maximum(values: Integers, groups: Integers) -> Integers:
    """The running maximum within each run of ascending `groups`."""
    found: Integers = np.maximum.accumulate(values + groups * _APART) - groups * _APART
    return found


def _rising(values: Integers, groups: Integers) -> Integers:
    """The running maximum within each run of `groups`, one more at least from row to row."""
    count = np.arange(len(values))
    return _running_maximum(values - count, groups) + count


def column(table: pa.Table, name: str) -> list[Any]:
    """A column as Python values."""
    return list(table.column(name).to_pylist())
