"""Captures of brokers give the same rows and verdicts on both engines, cut into splits on one of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from replispec.replay.engines.results import EVENTS_NAME, FRAMES_NAME, SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.partition_observations import Appended, EpochEnd, Fetched, Hidden, Node, Ordered
from replispec.replay.events.tables import SORTED_BY
from tests.replay.partitions import CAPTURES

SOME = ("kafka_acks_one", "kafka_truncation_hw", "kafka_recreated")
SPLIT_BYTES = 64 << 10
TABLES = (
    FRAMES_NAME,
    *(f"{EVENTS_NAME}/{each.kind}.parquet" for each in (Appended, EpochEnd, Fetched, Hidden, Node, Ordered)),
)


def test_both_engines_tell_the_same_of_partitions(tmp_path: Path) -> None:
    told = {}
    for engine in EngineName:
        out = tmp_path / engine.value
        replay([CAPTURES[name] for name in SOME], out, engine, Options(split_bytes=SPLIT_BYTES))
        order = [(name, "ascending") for name in SORTED_BY]
        tables = [pq.read_table(out / name).sort_by(order).to_pylist() for name in TABLES]
        assert tables[0]
        summary = json.loads((out / SUMMARY_NAME).read_text())
        assert summary.pop("engine") == engine.value
        assert sum(each["acknowledged"] for each in summary["losses"]) == 19
        assert summary["failovers"]
        told[engine] = tables, summary
    assert told[EngineName.LOCAL] == told[EngineName.SPARK]
