"""From the decoded frames of whole connections to observations.

Works on any set of whole connections of one capture, so that one process may take a capture at once
and a cluster may take it in parts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields

import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.observation import Alive, Closed, Observation, Unseen
from replispec.replay.events.rocketmq.commands import observe_commands
from replispec.replay.events.rocketmq.replication import Reasons, observe_replication
from replispec.replay.events.tables import Events, in_order, to_tables
from replispec.replay.pairing.delivery import column, delivered
from replispec.replay.pairing.pairs import pair

REMOTING = "remoting"
REPLICATION = ("ha_replica", "ha_master")
Directions = frozenset[tuple[str, int]]


def observe(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Events:
    """The observations of the connections whose rows (of FRAMES, HOLES, STREAMS) are given, sorted."""
    found = [*_remoting(frames, holes, streams), *_replication(frames, holes, streams)]
    return {kind: in_order(table) for kind, table in to_tables(found).items()}


def _remoting(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Iterator[Observation]:
    ordered = delivered(frames.filter(pc.field("protocol") == REMOTING), streams)
    pairs = pair(ordered, _whole(streams), _cut_short(ordered.frames, holes))
    alive: dict[str, Alive] = {}
    for observation in observe_commands(ordered, pairs):
        if isinstance(observation, Alive):
            alive[observation.connection] = observation
        yield observation
    yield from _closed(alive, streams)
    yield from _unseen(ordered.frames, holes, streams)


def _replication(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Iterator[Observation]:
    ordered = delivered(frames.filter(pc.field("protocol").isin(list(REPLICATION))), streams)
    cut_short = _cut_short(ordered.frames, holes)
    begun = _begun(ordered.frames, streams, cut_short)
    yield from observe_replication(ordered, begun, cut_short, _reasons(holes))


def _whole(streams: pa.Table) -> Directions:
    """Directions that were seen from their first byte."""
    rows = streams.filter(pc.field("from_start"))
    return frozenset(zip(column(rows, "connection"), column(rows, "direction"), strict=True))


def _begun(frames: pa.Table, streams: pa.Table, cut_short: Directions) -> Directions:
    """Directions of replication that were seen from their first byte, which begins their first frame."""
    first: dict[tuple[str, int], int] = {}
    names = ("connection", "direction", "sequence")
    for connection, direction, sequence in zip(*(column(frames, name) for name in names), strict=True):
        key = (connection, direction)
        first[key] = min(first.get(key, sequence), sequence)
    found = _whole(streams.filter(pc.field("protocol").isin(list(REPLICATION))))
    return frozenset(key for key in found if (first[key] == 0 if key in first else key not in cut_short))


def _cut_short(frames: pa.Table, holes: pa.Table) -> Directions:
    """Directions in which bytes after the last frame were lost."""
    ends: dict[tuple[str, int], int] = {}
    names = ("connection", "direction", "sequence", "size")
    for connection, direction, sequence, size in zip(*(column(frames, name) for name in names), strict=True):
        key = (connection, direction)
        ends[key] = max(ends.get(key, 0), sequence + size)
    rows = zip(*(column(holes, name) for name in ("connection", "direction", "end")), strict=True)
    return frozenset(
        (connection, side) for connection, side, end in rows if end > ends.get((connection, side), 0)
    )


def _reasons(holes: pa.Table) -> Reasons:
    """Where the holes of each direction end, ascending, and why bytes are missing there."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    names = ("connection", "direction", "end", "kind")
    for connection, direction, end, kind in zip(*(column(holes, name) for name in names), strict=True):
        found[connection, direction].append((end, kind))
    for ends in found.values():
        ends.sort()
    return found


def _closed(alive: Mapping[str, Alive], streams: pa.Table) -> Iterator[Observation]:
    """The end of each connection that carried heartbeats, as far as the capture shows it."""
    ended = streams.filter(pc.field("closed"))
    names = ("connection", "direction", "last_time_ns")
    for connection, direction, time_ns in zip(*(column(ended, name) for name in names), strict=True):
        last = alive.get(connection)
        if last is not None and time_ns is not None:
            told = {each.name: getattr(last, each.name) for each in fields(Closed)}
            yield Closed(**{**told, "direction": direction, "time_ns": time_ns})


def _unseen(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Iterator[Observation]:
    """One observation per hole in what a side sent: answers to clients may have been in it.

    Its time is that of the last frame before the hole, else of the first packet.
    """
    before: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    places_of_frames = ("connection", "direction", "sequence", "time_ns")
    if holes.num_rows:
        columns = [column(frames, name) for name in places_of_frames]
        for connection, direction, *place in zip(*columns, strict=True):
            before[connection, direction].append((place[0], place[1]))
        for places in before.values():
            places.sort()
    sources = {}
    names = ("connection", "direction", "protocol", "source", "first_time_ns")
    for connection, direction, protocol, source, time_ns in zip(
        *(column(streams, n) for n in names), strict=True
    ):
        if protocol == REMOTING:
            sources[connection, direction] = (source, time_ns)
    places_of_holes = ("capture", "connection", "direction", "start", "kind")
    rows = zip(*(column(holes, name) for name in places_of_holes), strict=True)
    for capture, connection, direction, start, kind in rows:
        if (connection, direction) in sources:
            source, first_ns = sources[connection, direction]
            known = before[connection, direction]
            at = bisect_left(known, (start, 0))
            time_ns = known[at - 1][1] if at else first_ns or 0
            yield Unseen(capture, 0, time_ns, connection, direction, start, 0, address=source, text=kind)
