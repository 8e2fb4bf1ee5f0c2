"""From the decoded frames of whole connections to observations.

Works on any set of whole connections of one capture, so that one process may take a capture at once
and a cluster may take it in parts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.family import observed_families
from replispec.replay.events.tables import Events, joined_events, to_tables

# The kinds of streams that a report counts apart: commands, and replication.
REMOTING = "remoting"
REPLICATION = ("ha_replica", "ha_master")


def observe(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Events:
    """The observations of the connections whose rows (of FRAMES, HOLES, STREAMS) are given, sorted."""
    return gathered(
        look(frames, holes, streams) for family in observed_families() for look in family.observers
    )


def gathered(parts: Iterable[Observed]) -> Events:
    """What observers told of one capture, as tables."""
    found = [*parts]
    told = [observation for some, _ in found for observation in some]
    return joined_events([*to_tables(told).items(), *(table for _, tables in found for table in tables)])
