"""Captures that Spark judges in parts come to what the local engine comes to, row by row.

Every third capture; all of them with REPLISPEC_SPREAD=all, as in `make test-full`.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from replispec.replay.engines import spark_cuts, spark_parts
from replispec.replay.engines.results import (
    EVENTS_NAME,
    FINDINGS_NAME,
    LOST_NAME,
    REPORT_NAME,
    SUMMARY_NAME,
    Options,
)
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.tables import SCHEMAS, SORTED_BY

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
FILES = sorted(CAPTURES.glob("*.pcap"))[:: 1 if os.environ.get("REPLISPEC_SPREAD") == "all" else 3]
SPLIT_BYTES = 64 << 10
# Such that every capture has several parts.
FRAMES_OF_A_PART = 32
# Such that connections of replication are cut, whatever the capture has beside them.
PARTS_A_CORE = 16
# Such that logs have several blocks.
LOG_OF_A_BLOCK = 1 << 14


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[EngineName, Path]:
    folder = tmp_path_factory.mktemp("spread")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FRAMES_MINIMUM", "FRAMES_OF_ONE"):
            patch.setattr(spark_parts, name, FRAMES_OF_A_PART)
        patch.setattr(spark_parts, "PARTS_A_CORE", PARTS_A_CORE)
        patch.setattr(spark_cuts, "SPREAD_BYTES_MINIMUM", 0)
        for engine in EngineName:
            options = Options(split_bytes=SPLIT_BYTES, events_together=0, log_together_bytes=LOG_OF_A_BLOCK)
            replay(FILES, folder / engine.value, engine, options)
    return {engine: folder / engine.value for engine in EngineName}


def test_every_capture_was_judged_in_parts(outputs: dict[EngineName, Path]) -> None:
    names = {path.name for path in outputs[EngineName.SPARK].rglob("acknowledged.parquet/part-0*")}
    several = {name.split("-")[1] for name in names if not name.endswith("-00000.parquet")}
    assert len(several) > len(FILES) // 2


@pytest.mark.parametrize("kind", ["acknowledged", "report", "heartbeat"])
def test_events_of_one_connection_were_in_several_parts(outputs: dict[EngineName, Path], kind: str) -> None:
    parts: dict[str, int] = defaultdict(int)
    for path in outputs[EngineName.SPARK].rglob(f"{kind}.parquet/part-0*"):
        for name in set(pq.read_table(path).column("connection").to_pylist()):
            parts[f"{path.name.split('-')[1]} {name}"] += 1
    assert max(parts.values()) > 1


def test_summaries_findings_and_losses_are_the_same(outputs: dict[EngineName, Path]) -> None:
    spark, local = (read(outputs[engine] / SUMMARY_NAME) for engine in EngineName)
    assert (spark.pop("engine"), local.pop("engine")) == ("spark", "local")
    assert spark == local
    findings = [pq.read_table(outputs[engine] / FINDINGS_NAME).to_pylist() for engine in EngineName]
    assert findings[0] == findings[1]
    lost = [(outputs[engine] / LOST_NAME).read_bytes() for engine in EngineName]
    assert lost[0] == lost[1]


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def test_reports_are_the_same(outputs: dict[EngineName, Path]) -> None:
    spark, local = ((outputs[engine] / REPORT_NAME).read_text("utf-8") for engine in EngineName)
    assert spark.replace("spark", "local") == local.replace("spark", "local")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_events_are_the_same(outputs: dict[EngineName, Path], kind: str) -> None:
    name = f"{EVENTS_NAME}/{kind}.parquet"
    order = [(column, "ascending") for column in SORTED_BY]
    spark, local = (pq.read_table(outputs[engine] / name).sort_by(order) for engine in EngineName)
    assert spark.to_pylist() == local.to_pylist()
