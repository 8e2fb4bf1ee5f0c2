"""The observations of Apache RocketMQ's streams: commands with their answers, and replication."""

from __future__ import annotations

import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import (
    Before,
    begun,
    ends_cut_short,
    of_kinds,
    reasons,
    seen_whole,
    unseen,
)
from replispec.replay.events.family import ObservedFamily
from replispec.replay.events.rocketmq import shared_commands, shared_replication
from replispec.replay.events.rocketmq.closings import closings
from replispec.replay.events.rocketmq.commands import observe_commands
from replispec.replay.events.rocketmq.replication import observe_replication
from replispec.replay.pairing.pairs import pair
from replispec.replay.pairing.rocketmq.family import CORRELATION

REPLICATION = shared_replication.KINDS


def _commands(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    own = of_kinds(frames, streams, CORRELATION.kinds)
    pairs = pair(own, CORRELATION, seen_whole(streams), ends_cut_short(own, holes, streams))
    told, tables = observe_commands(own, pairs)
    return [
        *told,
        *closings(told, streams),
        *unseen(Before(own).time_ns, holes, streams, CORRELATION.kinds),
    ], tables


def _replication(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    own = of_kinds(frames, streams, REPLICATION)
    cut_short = ends_cut_short(own, holes, streams)
    whole = begun(own, streams, REPLICATION, cut_short)
    return observe_replication(own, whole, cut_short, reasons(holes))


FAMILY = ObservedFamily((_commands, _replication), (shared_commands.SHARED, shared_replication.SHARED))
