"""A capture that is judged in parts, however it is cut, comes to what it comes to as a whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.columns import EventTable
from replispec.replay.events.observation import Observation, ObservationKind, from_table
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.stream_events import Judged, join
from replispec.replay.judges.machines import of_connections
from replispec.replay.judges.parts import PartFindings, add_up
from replispec.replay.judges.streams import StreamJudges
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
SURVIVAL = "acknowledged-send-survives"
CUTS = 4


def damaged(observations: list[Observation], seed: int) -> list[Observation]:
    """Some offsets are others, so that rules are broken on every connection."""
    chance = random.Random(seed)
    for row in observations:
        if row.kind in (ObservationKind.BATCH, ObservationKind.REPORT) and chance.random() < 0.1:
            row.offset = None if row.offset is None else row.offset + chance.choice((-3, 7))
            row.max_offset = None if row.max_offset is None else row.max_offset + 10**9
            row.body_digest = None if row.body_digest is None else row.body_digest ^ 1
    return observations


def parts_of(table: EventTable, chance: random.Random) -> Iterator[EventTable]:
    """The table cut by what its invariants need together, and some of these parts joined again."""
    if table.stream == "sends":
        owner = [chance.randrange(CUTS) for _ in range(len(table))]
    else:
        column = table.known["connection" if table.stream == "ha" else "epoch"]
        place = [chance.randrange(CUTS) for _ in column.values]
        owner = [place[code] for code in column.codes]
    for part in chance.sample(range(CUTS), CUTS):
        yield table.take(np.flatnonzero(np.array(owner, dtype=np.int64) == part))


def judged(joined: Judged, tables: list[EventTable]) -> list[PartFindings]:
    streams = StreamJudges(INVARIANTS, joined.listed, rules, losing=SURVIVAL)
    found = [streams.listed(), *(streams.of(table) for table in tables if len(table))]
    for table in tables:
        if table.stream == "ha" and len(table):
            found += of_connections(walk_replication(table, joined.groups))
    return found


def plain(found: PartFindings) -> dict[tuple[str, str], Any]:
    return {key: (part.counts, part.kept, part.lost) for key, part in found.items()}


@pytest.mark.parametrize("name", ["failover_lost", "hung_master", "m_mtu1500"])
@pytest.mark.parametrize("seed", range(3))
def test_any_cut_comes_to_the_same(name: str, seed: int) -> None:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    rows = from_table(observe(decoded.frames, decoded.holes, decoded.streams))
    joined = join(CaptureEvents.of(damaged(rows, seed)), all_ack=True)
    whole = judged(joined, list(joined.tables.values()))
    chance = random.Random(seed)
    parts = judged(joined, [part for table in joined.tables.values() for part in parts_of(table, chance)])
    chance.shuffle(parts)
    halves = [add_up(parts[: len(parts) // 2]), add_up(parts[len(parts) // 2 :])]
    assert len(parts) > len(whole)
    assert plain(add_up(halves)) == plain(add_up(whole))
    assert any(part.kept for part in add_up(whole).values())
