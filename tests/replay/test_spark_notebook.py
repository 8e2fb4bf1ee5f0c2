"""The notebook runs as it is shipped, and what its cells say is what a replay counts otherwise."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pyarrow.compute as pc
import pytest
from nbclient import NotebookClient

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.decoding import decode_capture

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
CAPTURE = ROOT / "spark_replay" / "captures" / "failover_lost.pcap"
CELL_S_MAXIMUM = 300
# The library has no types for it.
read: Any = nbformat.read


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    """What each cell printed and answered, by its id."""
    notebook = read(NOTEBOOKS / "captures.ipynb", as_version=4)
    place = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=CELL_S_MAXIMUM, resources=place).execute()
    return {cell["id"]: "".join(map(_text, cell.get("outputs", ()))) for cell in notebook.cells}


def _text(output: dict[str, Any]) -> str:
    """The text of one output; what went to standard error is none."""
    if output["output_type"] == "stream":
        return str(output["text"]) if output["name"] == "stdout" else ""
    return str(output["data"]["text/plain"])


def test_notebooks_are_shipped_without_outputs() -> None:
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert paths
    for path in paths:
        notebook = read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert [cell["id"] for cell in code if cell.outputs or cell.execution_count] == []


def test_frames_are_counted_as_they_are(cells: dict[str, str]) -> None:
    frames = decode_capture(CAPTURE).frames
    counts = Counter(frames["protocol"].to_pylist())
    for protocol, count in counts.items():
        size = pc.sum(frames.filter(pc.field("protocol") == protocol)["size"]).as_py()
        assert f"{protocol}|    true|{size:>9}|{count:>8}|" in cells["frames"]


def test_a_filter_reads_fewer_splits(cells: dict[str, str]) -> None:
    with open_capture(CAPTURE) as capture:
        times = capture.records().time_ns
        splits = len(capture.cuts(200_000))
    first = int((times < times.min() + 10**9).sum())
    assert cells["filters"].splitlines() == [
        f"splits of the capture: {splits}",
        "splits of its first second: 1",
        f"packets of its first second: {first}",
    ]
    assert splits > 1


def test_verdicts_and_losses_are_those_that_were_counted(cells: dict[str, str]) -> None:
    expected = json.loads((CAPTURE.parent / "expected" / "failover_lost.json").read_text("utf-8"))
    lost = sum(loss["acknowledged"] for loss in expected["losses"])
    assert f"{lost} of 370 acknowledged messages were lost" in cells["lost"]
    assert "370 messages were acknowledged" in cells["events"]
    assert "SEND_MESSAGE_V2" in cells["pandas"]
    assert "acknowledged-send-survives ┆ violated" in cells["verdicts"]
