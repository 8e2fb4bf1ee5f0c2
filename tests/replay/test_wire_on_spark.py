"""Both engines read tunnels, fragments and damaged copies alike, also where splits cut them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from tests.replay.envelopes import ENVELOPES, Seen, filled, in_fragments, put_into, read, with_copies, written
from tests.replay.test_envelopes import CAPTURES, SEALED, SMALL

SPLIT_BYTES = 4000


def made() -> dict[str, bytes]:
    """Captures by name: the same traffic in several clothes, and one of which nothing can be opened."""
    frames = read(CAPTURES / f"{SMALL}.pcap")
    sound = put_into(frames, filled)
    sealed = [Seen(at, SEALED["ESP"], len(SEALED["ESP"])) for at in range(5)]
    everything = {
        "clean": frames,
        "tunnels": put_into(frames, *ENVELOPES["tunnels in tunnels"]),
        "fragments": in_fragments(sound, 64, lambda parts: parts[::-1]),
        "copies": with_copies(sound, 5, 0.3, ["before", "after"]),
        "doubtful": with_copies(frames, 5, 0.3, ["before", "after"]),
        "corrupt": with_copies(sound, 5, 0.1, ["instead"]),
        "sealed": sealed,
    }
    return {name: written(own) for name, own in everything.items()}


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("wire")
    files = []
    for name, data in made().items():
        files.append(folder / f"{name}.pcap")
        files[-1].write_bytes(data)
    found = {}
    for engine in EngineName:
        summary = replay(files, folder / engine.value, engine, Options(split_bytes=SPLIT_BYTES))
        assert summary.exit_code == 2
        found[engine.value] = json.loads(Path(folder / engine.value / SUMMARY_NAME).read_text("utf-8"))
    return found


def test_both_engines_come_to_the_same(summaries: dict[str, dict[str, Any]]) -> None:
    spark, local = (dict(summaries[engine.value], engine="") for engine in EngineName)
    assert spark == local


@pytest.mark.parametrize("name", ["tunnels", "fragments", "copies"])
def test_what_is_found_is_that_of_the_clean_capture(summaries: dict[str, dict[str, Any]], name: str) -> None:
    def findings(file: str) -> list[tuple[Any, ...]]:
        rows = [row for row in summaries["spark"]["findings"] if row["file"] == f"{file}.pcap"]
        return [(row["group"], row["invariant"], row["verdict"], row["evaluated"]) for row in rows]

    assert findings(name) == findings("clean")


def test_the_summary_says_what_the_packets_are(summaries: dict[str, dict[str, Any]]) -> None:
    rows = {row["file"].removesuffix(".pcap"): row for row in summaries["spark"]["captures"]}
    assert rows["clean"]["senders_offloaded"] == ["127.0.0.1"]
    assert rows["tunnels"]["opened"].keys() >= {"VXLAN", "GRE", "Geneve", "ERSPAN II", "MPLS", "IPv4 in IP"}
    assert rows["fragments"]["datagrams_joined"] > 20
    assert rows["fragments"]["packets_vouched"] == rows["copies"]["packets_vouched"] > 20
    assert rows["copies"]["packets_corrupt"] > 5
    assert rows["copies"]["holes"] == 0
    assert rows["doubtful"]["holes_by_reason"].keys() == {"ambiguous"}
    assert "corrupt" in rows["corrupt"]["holes_by_reason"]
    assert rows["sealed"]["error"] == "nothing was decoded; seen: 5 ESP"
