"""What the tables of a capture tell of the directions of its connections: begun, cut short, with holes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.observation import Observation, Place, Unseen
from replispec.replay.events.partition_observations import Hidden
from replispec.replay.pairing.delivery import Delivered, delivered
from replispec.replay.tcp.pieces import UNREADABLE

Directions = frozenset[tuple[str, int]]
NOT_BEGUN = "not_begun"
"""Why bytes were not seen: the direction had begun before."""
TimeBefore = Callable[[str, int, int], int | None]
"""Of a connection and direction, when the last frame that begins before a position was complete; None without
one."""
# Where the holes of each direction (connection, direction) end, ascending, and of which kind they are.
Reasons = Mapping[tuple[str, int], Sequence[tuple[int, str]]]


def of_kinds(frames: pa.Table, streams: pa.Table, kinds: Collection[str]) -> Delivered:
    """The frames of streams of these kinds, in the order of their connections."""
    own = pc.is_in(frames.column("protocol"), pa.array(sorted(kinds)))
    return delivered(frames, streams, np.flatnonzero(own))


def seen_whole(streams: pa.Table) -> Directions:
    """Directions that were seen from their first byte."""
    rows = streams.filter(streams.column("from_start"))
    return frozenset(zip(*values(rows, "connection", "direction"), strict=True))


def begun(frames: Delivered, streams: pa.Table, kinds: Collection[str], cut_short: Directions) -> Directions:
    """Directions of these kinds that were seen from their first byte, which begins their first frame."""
    sides, places = np.unique(frames.side, return_index=True)
    starts = frames.integers("sequence", places).tolist()
    first = dict(zip(map(frames.side_name, sides.tolist()), starts, strict=True))
    return begun_by(first, streams, kinds, cut_short)


def begun_by(
    first: Mapping[tuple[str, int], int],
    streams: pa.Table,
    kinds: Collection[str],
    cut_short: Directions,
) -> Directions:
    """The same, by where the first frame of each direction begins that has any."""
    own = pc.is_in(streams.column("protocol"), pa.array(sorted(kinds)))
    found = seen_whole(streams.filter(own))
    return frozenset(key for key in found if (first[key] == 0 if key in first else key not in cut_short))


def ends_cut_short(frames: Delivered, holes: pa.Table, streams: pa.Table) -> Directions:
    """Directions in which bytes after the last frame were lost, or in which some are of no frame."""
    if not holes.num_rows:
        return cut_short({}, holes, streams)
    last = np.zeros(2 * len(frames.connections), np.int64)
    np.maximum.at(last, frames.side, frames.integers("sequence") + frames.integers("size"))
    return cut_short({frames.side_name(side): end for side, end in enumerate(last.tolist())}, holes, streams)


def cut_short(ends: Mapping[tuple[str, int], int], holes: pa.Table, streams: pa.Table) -> Directions:
    """The same, by where the last frame of each direction ends that has any."""
    undecoded = frozenset((connection, side) for _, connection, side, *_ in _undecoded(streams))
    rows = zip(*values(holes, "connection", "direction", "end"), strict=True)
    return undecoded | frozenset(
        (connection, side) for connection, side, end in rows if end > ends.get((connection, side), 0)
    )


def _undecoded(streams: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Capture, connection, direction, source and first time of directions with bytes that are of no frame."""
    rows = streams.filter(pc.greater(streams.column("bytes_undecoded"), 0))
    return zip(*values(rows, "capture", "connection", "direction", "source", "first_time_ns"), strict=True)


def values(table: pa.Table, *names: str) -> list[list[Any]]:
    """Columns as Python values."""
    return [table.column(name).to_pylist() for name in names]


def reasons(holes: pa.Table) -> Reasons:
    """Where the holes of each direction end, ascending, and why bytes are missing there."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    columns = values(holes, "connection", "direction", "end", "kind")
    for connection, direction, end, kind in zip(*columns, strict=True):
        found[connection, direction].append((end, kind))
    for ends in found.values():
        ends.sort()
    return found


def unseen(
    time_before: TimeBefore, holes: pa.Table, streams: pa.Table, kinds: Collection[str]
) -> Iterator[Observation]:
    """One observation per hole in what a side of these kinds sent: answers to clients may have been in it.
    A side without holes, of which bytes are of no frame, has one at its beginning.

    Its time is that of the last frame before the hole, else of the first packet.
    """
    columns = values(streams, "connection", "direction", "protocol", "source", "first_time_ns")
    sources = {
        (connection, direction): (source, time_ns)
        for connection, direction, protocol, source, time_ns in zip(*columns, strict=True)
        if protocol in kinds
    }
    columns = values(holes, "capture", "connection", "direction", "start", "kind")
    for capture, connection, direction, start, kind in zip(*columns, strict=True):
        if (connection, direction) in sources:
            source, first_ns = sources[connection, direction]
            time_ns = time_before(connection, direction, start)
            time_ns = (first_ns or 0) if time_ns is None else time_ns
            yield Unseen(capture, 0, time_ns, connection, direction, start, 0, address=source, text=kind)
    holed = set(zip(*values(holes, "connection", "direction"), strict=True))
    for capture, connection, direction, source, time_ns in _undecoded(streams):
        side = connection, direction
        if side in sources and side not in holed:
            yield Unseen(capture, 0, time_ns or 0, *side, 0, 0, address=source, text=UNREADABLE)


def hidden(holes: pa.Table, streams: pa.Table, kinds: Collection[str]) -> Iterator[Observation]:
    """One observation for each hole in a direction of these kinds, for each that was not seen from its first
    byte, and for each with bytes that are of no frame. It names who accepted the connection."""
    names = ("capture", "connection", "direction", "protocol", "source", "destination", "accepted")
    columns = values(streams, *names, "from_start", "bytes_undecoded", "first_time_ns")
    listeners: dict[tuple[str, int], tuple[str, int]] = {}
    for capture, connection, direction, protocol, source, destination, accepted, begun_, lost, time_ns in zip(
        *columns, strict=True
    ):
        if protocol in kinds:
            listener = source if accepted else destination
            listeners[connection, direction] = listener, time_ns or 0
            if lost or not begun_:
                text = UNREADABLE if lost else NOT_BEGUN
                yield Hidden(
                    capture, 0, time_ns or 0, connection, direction, 0, 0, address=listener, text=text
                )
    columns = values(holes, "capture", "connection", "direction", "start", "kind")
    for capture, connection, direction, start, kind in zip(*columns, strict=True):
        if (found := listeners.get((connection, direction))) is not None:
            yield Hidden(capture, 0, found[1], connection, direction, start, 0, address=found[0], text=kind)


class Before:
    """Finds the frame before a place of a direction."""

    def __init__(self, frames: Delivered) -> None:
        self._numbers = {name: number for number, name in enumerate(frames.connections)}
        self._order = np.argsort(frames.side, kind="stable")
        self._side = frames.side[self._order]
        self._sequence = frames.integers("sequence", self._order)
        self._time_ns = frames.integers("time_ns", self._order)

    def time_ns(self, connection: str, direction: int, position: int) -> int | None:
        """When the last frame that begins before a position was complete; None without one."""
        if connection not in self._numbers:
            return None
        side = 2 * self._numbers[connection] + direction
        first, behind = np.searchsorted(self._side, [side, side + 1])
        at = first + int(np.searchsorted(self._sequence[first:behind], position))
        return int(self._time_ns[at - 1]) if at > first else None


class FoundFrame(NamedTuple):
    """A frame, and where it is. `said`: its columns by name."""

    place: Place
    said: Mapping[str, Any]


def frames_of(own: Delivered, columns: Sequence[str]) -> list[FoundFrame]:
    """Frames with these of their columns, which have time_ns, sequence and index."""
    found = {name: own.values(name).to_pylist() for name in columns}
    said = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    where = zip(own.order.tolist(), own.names(), own.direction.tolist(), strict=True)
    return [
        FoundFrame(
            Place(own.capture, order, each["time_ns"], name, side, each["sequence"], each["index"]), each
        )
        for each, (order, name, side) in zip(said, where, strict=True)
    ]
