"""A capture that is judged in parts, however it is cut, comes to what it comes to as a whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.event_tables import EventTable
from replispec.replay.events.observation import Batch, Observation, Report
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.stream_events import join
from replispec.replay.events.tables import to_tables
from replispec.replay.judges.machines import of_connections
from replispec.replay.judges.parts import PartFindings, add_up
from replispec.replay.judges.streams import StreamJudges
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS
from tests.replay.event_rows import from_tables

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
SURVIVAL = "acknowledged-send-survives"
CUTS = 4
TOGETHER = {"ha": "connection", "ranges": "epoch"}
"""What is judged together, by stream; of other streams every event is judged alone."""


def damaged(row: Observation, chance: random.Random) -> Observation:
    """Some offsets are others, so that rules are broken on every connection."""
    if chance.random() < 0.9:
        return row
    if isinstance(row, Batch):
        digest = None if row.body_digest is None else row.body_digest ^ 1
        return replace(row, offset=(row.offset or 0) + chance.choice((3, 7)), body_digest=digest)
    return replace(row, max_offset=10**9) if isinstance(row, Report) else row


def parts_of(table: EventTable, chance: random.Random) -> Iterator[EventTable]:
    """The table cut by what its invariants need together, and some of these parts joined again."""
    if table.stream not in TOGETHER:
        owner = [chance.randrange(CUTS) for _ in range(len(table))]
    else:
        column = table.known[TOGETHER[table.stream]]
        place = [chance.randrange(CUTS) for _ in column.values]
        owner = [place[code] for code in column.codes]
    for part in chance.sample(range(CUTS), CUTS):
        rows = np.flatnonzero(np.array(owner, dtype=np.int64) == part)
        if len(rows):
            yield table.take(rows)


def judged(streams: StreamJudges, groups: BrokerGroups, tables: list[EventTable]) -> list[PartFindings]:
    found = [streams.listed()]
    for table in tables:
        found.append(streams.of(table))
        if table.stream == "ha":
            found += of_connections(walk_replication(table, groups))
    return found


def plain(found: PartFindings) -> dict[tuple[str, str], Any]:
    return {
        key: (part.counts, part.kept, part.lost, part.messages, sorted(part.lost_at), sorted(part.in_doubt))
        for key, part in found.items()
    }


@pytest.mark.parametrize("name", ["failover_lost", "hung_master", "m_mtu1500"])
@pytest.mark.parametrize("seed", range(3))
def test_any_cut_comes_to_the_same(name: str, seed: int) -> None:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    chance = random.Random(seed)
    rows = from_tables(observe(decoded.frames, decoded.holes, decoded.streams))
    joined = join(to_tables([damaged(row, chance) for row in rows]), all_ack=True)
    streams = StreamJudges(INVARIANTS, joined.listed, rules, of_sends=SURVIVAL)
    whole = judged(streams, joined.groups, joined.tables)
    cut = [part for table in joined.tables for part in parts_of(table, chance)]
    parts = judged(streams, joined.groups, cut)
    chance.shuffle(parts)
    halves = [add_up(parts[: len(parts) // 2]), add_up(parts[len(parts) // 2 :])]
    assert len(parts) > len(whole)
    assert plain(add_up(halves)) == plain(add_up(whole))
    assert any(part.kept for part in add_up(whole).values())
