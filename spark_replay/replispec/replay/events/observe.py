"""From the decoded frames of whole connections to observations.

Works on any set of whole connections of one capture, so that one process may take a capture at once
and a cluster may take it in parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.columns import Observed
from replispec.replay.events.observation import Alive, Closed, Observation, Unseen
from replispec.replay.events.rocketmq.commands import observe_commands
from replispec.replay.events.rocketmq.replication import Reasons, observe_replication
from replispec.replay.events.tables import Events, joined_events, to_tables
from replispec.replay.pairing.delivery import Delivered, Integers, delivered
from replispec.replay.pairing.pairs import pair

REMOTING = "remoting"
REPLICATION = ("ha_replica", "ha_master")
Directions = frozenset[tuple[str, int]]


def observe(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Events:
    """The observations of the connections whose rows (of FRAMES, HOLES, STREAMS) are given, sorted."""
    remoting = delivered(frames, streams, _rows(frames, pc.field("protocol") == REMOTING))
    others = delivered(frames, streams, _rows(frames, pc.field("protocol").isin(REPLICATION)))
    told, tables = _remoting(remoting, holes, streams)
    more, moved = _replication(others, holes, streams)
    return joined_events([*to_tables([*told, *more]).items(), *tables, *moved])


def _rows(frames: pa.Table, condition: pc.Expression) -> Integers:
    """The rows of FRAMES that fulfil a condition on their protocol."""
    numbered = pa.table([frames.column("protocol"), np.arange(frames.num_rows)], ["protocol", "row"])
    return np.asarray(numbered.filter(condition).column("row"))


def _remoting(frames: Delivered, holes: pa.Table, streams: pa.Table) -> Observed:
    pairs = pair(frames, _whole(streams), _cut_short(frames, holes))
    told, tables = observe_commands(frames, pairs)
    alive = {each.connection: each for each in told if isinstance(each, Alive)}
    return [*told, *_closed(alive, streams), *_unseen(frames, holes, streams)], tables


def _replication(frames: Delivered, holes: pa.Table, streams: pa.Table) -> Observed:
    cut_short = _cut_short(frames, holes)
    return observe_replication(frames, _begun(frames, streams, cut_short), cut_short, _reasons(holes))


def _whole(streams: pa.Table) -> Directions:
    """Directions that were seen from their first byte."""
    rows = streams.filter(pc.field("from_start"))
    return frozenset(zip(*_columns(rows, "connection", "direction"), strict=True))


def _begun(frames: Delivered, streams: pa.Table, cut_short: Directions) -> Directions:
    """Directions of replication that were seen from their first byte, which begins their first frame."""
    sides, places = np.unique(frames.side, return_index=True)
    starts = frames.integers("sequence", places).tolist()
    first = dict(zip(map(frames.side_name, sides.tolist()), starts, strict=True))
    found = _whole(streams.filter(pc.field("protocol").isin(REPLICATION)))
    return frozenset(key for key in found if (first[key] == 0 if key in first else key not in cut_short))


def _cut_short(frames: Delivered, holes: pa.Table) -> Directions:
    """Directions in which bytes after the last frame were lost."""
    if not holes.num_rows:
        return frozenset()
    last = np.zeros(2 * len(frames.connections), np.int64)
    np.maximum.at(last, frames.side, frames.integers("sequence") + frames.integers("size"))
    ends = {frames.side_name(side): end for side, end in enumerate(last.tolist())}
    rows = zip(*_columns(holes, "connection", "direction", "end"), strict=True)
    return frozenset(
        (connection, side) for connection, side, end in rows if end > ends.get((connection, side), 0)
    )


def _columns(table: pa.Table, *names: str) -> list[list[Any]]:
    """Columns as Python values."""
    return [table.column(name).to_pylist() for name in names]


def _reasons(holes: pa.Table) -> Reasons:
    """Where the holes of each direction end, ascending, and why bytes are missing there."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    columns = _columns(holes, "connection", "direction", "end", "kind")
    for connection, direction, end, kind in zip(*columns, strict=True):
        found[connection, direction].append((end, kind))
    for ends in found.values():
        ends.sort()
    return found


def _closed(alive: Mapping[str, Alive], streams: pa.Table) -> Iterator[Observation]:
    """The end of each connection that carried heartbeats, as far as the capture shows it."""
    ended = streams.filter(pc.field("closed"))
    columns = _columns(ended, "connection", "direction", "last_time_ns")
    for connection, direction, time_ns in zip(*columns, strict=True):
        last = alive.get(connection)
        if last is not None and time_ns is not None:
            told = {each.name: getattr(last, each.name) for each in fields(Closed)}
            yield Closed(**{**told, "direction": direction, "time_ns": time_ns})


def _unseen(frames: Delivered, holes: pa.Table, streams: pa.Table) -> Iterator[Observation]:
    """One observation per hole in what a side sent: answers to clients may have been in it.

    Its time is that of the last frame before the hole, else of the first packet.
    """
    columns = _columns(streams, "connection", "direction", "protocol", "source", "first_time_ns")
    sources = {
        (connection, direction): (source, time_ns)
        for connection, direction, protocol, source, time_ns in zip(*columns, strict=True)
        if protocol == REMOTING
    }
    before = _Before(frames)
    columns = _columns(holes, "capture", "connection", "direction", "start", "kind")
    for capture, connection, direction, start, kind in zip(*columns, strict=True):
        if (connection, direction) in sources:
            source, first_ns = sources[connection, direction]
            time_ns = before.time_ns(connection, direction, start)
            time_ns = (first_ns or 0) if time_ns is None else time_ns
            yield Unseen(capture, 0, time_ns, connection, direction, start, 0, address=source, text=kind)


class _Before:
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
