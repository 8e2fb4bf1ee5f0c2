"""The ends of connections that carried heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

import pyarrow as pa

from replispec.replay.events.directions import values
from replispec.replay.events.observation import Alive, Closed, Observation


def closings(told: Iterable[Observation], streams: pa.Table) -> Iterator[Observation]:
    """The end of each connection that carried heartbeats, as far as the capture shows it."""
    alive = {each.connection: each for each in told if isinstance(each, Alive)}
    ended = streams.filter(streams.column("closed"))
    columns = values(ended, "connection", "direction", "last_time_ns")
    for connection, direction, time_ns in zip(*columns, strict=True):
        last = alive.get(connection)
        if last is not None and time_ns is not None:
            said = {each.name: getattr(last, each.name) for each in fields(Closed)}
            yield Closed(**{**said, "direction": direction, "time_ns": time_ns})
