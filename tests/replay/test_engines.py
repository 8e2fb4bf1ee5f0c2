"""Both engines give the same rows, findings and losses; one of them is real Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replispec.replay.engines.results import (
    EVENTS_NAME,
    FINDINGS_NAME,
    FRAMES_NAME,
    REPORT_NAME,
    SUMMARY_NAME,
    Options,
)
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.tables import SCHEMAS, SORTED_BY
from replispec.replay.frames.tables import FRAMES_ORDER

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
FILES = sorted(CAPTURES.glob("*.pcap"))
# So small that every capture is cut into several splits.
SPLIT_BYTES = 64 << 10


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[EngineName, Path]:
    """All shipped captures, and two files that are none, replayed by each engine."""
    folder = tmp_path_factory.mktemp("engines")
    broken = folder / "not-a-capture.pcap"
    broken.write_bytes(b"GET / HTTP/1.1\r\n\r\n")
    files = [*FILES[:2], broken, *FILES[2:], folder / "absent.pcap"]
    for engine in EngineName:
        summary = replay(files, _out(folder, engine), engine, Options(split_bytes=SPLIT_BYTES))
        assert summary.exit_code == 2
    return {engine: _out(folder, engine) for engine in EngineName}


def _out(folder: Path, engine: EngineName) -> Path:
    """A name that is a pattern for some."""
    return folder / f"{engine.value} [1]"


def summary_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / SUMMARY_NAME).read_text("utf-8"))
    return document


@pytest.mark.parametrize(
    ("name", "order"),
    [(FRAMES_NAME, FRAMES_ORDER), *((f"{EVENTS_NAME}/{kind}.parquet", SORTED_BY) for kind in SCHEMAS)],
)
def test_both_engines_write_the_same_rows(
    outputs: dict[EngineName, Path], name: str, order: tuple[str, ...]
) -> None:
    spark, local = (_sorted(pq.read_table(outputs[engine] / name), order) for engine in EngineName)
    assert spark.num_rows == local.num_rows
    assert spark.schema.names == local.schema.names
    for column in local.schema.names:
        assert spark.column(column).to_pylist() == local.column(column).to_pylist(), column


def _sorted(table: pa.Table, order: tuple[str, ...]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in order])


def test_both_engines_come_to_the_same(outputs: dict[EngineName, Path]) -> None:
    spark, local = (summary_of(outputs[engine]) for engine in EngineName)
    assert (spark.pop("engine"), local.pop("engine")) == ("spark", "local")
    assert spark == local
    findings = [pq.read_table(outputs[engine] / FINDINGS_NAME).to_pylist() for engine in EngineName]
    assert findings[0] == findings[1]


@pytest.mark.parametrize("engine", EngineName)
@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_every_capture_is_judged_as_written_by_hand(
    outputs: dict[EngineName, Path], engine: EngineName, name: str
) -> None:
    path = CAPTURES / f"{name}.pcap"
    summary = summary_of(outputs[engine])
    expected = json.loads((CAPTURES / "expected" / f"{path.stem}.json").read_text("utf-8"))
    found: dict[str, dict[str, Any]] = {}
    for finding in summary["findings"]:
        if finding["file"] == path.name:
            row = {"verdict": finding["verdict"], "evaluated": finding["evaluated"]}
            found.setdefault(finding["group"], {})[finding["invariant"]] = row
    assert found == expected["groups"]
    losses = [loss for loss in summary["losses"] if loss["file"] == path.name]
    assert all(loss.pop("places") for loss in losses)  # a digest, which nobody counts by hand
    assert losses == expected["losses"]
    capture = next(row for row in summary["captures"] if row["file"] == path.name)
    for figure in ("frames_remoting", "frames_ha", "bytes_undecoded"):
        assert capture[figure] == expected[figure]


@pytest.mark.parametrize("engine", EngineName)
def test_unusable_files_are_named_and_the_others_are_replayed(
    outputs: dict[EngineName, Path], engine: EngineName
) -> None:
    captures = {row["file"]: row for row in summary_of(outputs[engine])["captures"]}
    assert len(captures) == len(FILES) + 2
    assert "byte 0" in captures["not-a-capture.pcap"]["error"]
    assert captures["absent.pcap"]["error"] == "No such file or directory"
    assert all(not captures[path.name]["error"] for path in FILES)


@pytest.mark.parametrize("engine", EngineName)
def test_message_bodies_are_left_out_and_the_report_is_there(
    outputs: dict[EngineName, Path], engine: EngineName
) -> None:
    table = pq.read_table(outputs[engine] / FRAMES_NAME, columns=["body"])
    assert table.column("body").null_count == table.num_rows
    page = (outputs[engine] / REPORT_NAME).read_text("utf-8")
    assert "acknowledged messages" in page
    assert "<script" not in page
