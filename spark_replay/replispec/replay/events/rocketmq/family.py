"""The observations of Apache RocketMQ's streams: commands with their answers, and replication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import (
    begun,
    ends_cut_short,
    of_kinds,
    reasons,
    seen_whole,
    unseen,
    values,
)
from replispec.replay.events.family import ObservedFamily
from replispec.replay.events.observation import Alive, Closed, Observation
from replispec.replay.events.rocketmq.commands import observe_commands
from replispec.replay.events.rocketmq.replication import observe_replication
from replispec.replay.frames.rocketmq.readers import HA_MASTER, HA_REPLICA
from replispec.replay.pairing.pairs import pair
from replispec.replay.pairing.rocketmq.family import CORRELATION

REPLICATION = (HA_REPLICA, HA_MASTER)


def _commands(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    own = of_kinds(frames, streams, CORRELATION.kinds)
    pairs = pair(own, CORRELATION, seen_whole(streams), ends_cut_short(own, holes, streams))
    told, tables = observe_commands(own, pairs)
    alive = {each.connection: each for each in told if isinstance(each, Alive)}
    return [*told, *_closed(alive, streams), *unseen(own, holes, streams, CORRELATION.kinds)], tables


def _replication(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    own = of_kinds(frames, streams, REPLICATION)
    cut_short = ends_cut_short(own, holes, streams)
    whole = begun(own, streams, REPLICATION, cut_short)
    return observe_replication(own, whole, cut_short, reasons(holes))


def _closed(alive: Mapping[str, Alive], streams: pa.Table) -> Iterator[Observation]:
    """The end of each connection that carried heartbeats, as far as the capture shows it."""
    ended = streams.filter(pc.field("closed"))
    columns = values(ended, "connection", "direction", "last_time_ns")
    for connection, direction, time_ns in zip(*columns, strict=True):
        last = alive.get(connection)
        if last is not None and time_ns is not None:
            told = {each.name: getattr(last, each.name) for each in fields(Closed)}
            yield Closed(**{**told, "direction": direction, "time_ns": time_ns})


FAMILY = ObservedFamily((_commands, _replication))
