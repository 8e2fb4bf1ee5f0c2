"""A seeded fault comes to the same on both engines; one of them is real Spark.

`make test` replays one fault of each kind, `make test-full` all of them.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from tests.replay.faults import written
from tests.replay.pcap_writer import pcap
from tests.replay.seeded import SEEDED, Fault
from tests.replay.test_faults import clean

# Of remoting and of replication, that lose messages and that do not.
SOME = (
    "two_messages_at_one_place",
    "log_falls_within_the_epoch",
    "epoch_of_the_future",
    "handshake_moves_an_epoch",
    "bit_of_a_body",
)
FAULTS = [fault for fault in SEEDED if "REPLISPEC_FAULTS" in os.environ or fault.edit.__name__ in SOME]


def name_of(fault: Fault) -> str:
    return f"{fault.edit.__name__}-{fault.capture}.pcap"


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> dict[EngineName, dict[str, Any]]:
    """What each engine says of all faults; nothing is told to the judge."""
    folder = tmp_path_factory.mktemp("faults")
    for fault in FAULTS:
        packets = written(fault.edit(clean(fault.capture)))
        (folder / name_of(fault)).write_bytes(pcap(packets, nanoseconds=True))
    captures = [folder / name_of(fault) for fault in FAULTS]
    found = {}
    for engine in EngineName:
        replay(captures, folder / engine.value, engine, Options())
        found[engine] = json.loads((folder / engine.value / SUMMARY_NAME).read_text("utf-8"))
    return found


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_fault_has_the_same_name_on_both_engines(
    fault: Fault, summaries: dict[EngineName, dict[str, Any]]
) -> None:
    spark, local = (
        {
            key: [row for row in summaries[engine][key] if row["file"] == name_of(fault)]
            for key in ("findings", "losses", "sends")
        }
        for engine in EngineName
    )
    assert spark == local
    if not fault.all_ack:
        violated = {row["invariant"] for row in spark["findings"] if row["verdict"] == "violated"}
        assert violated == fault.breaks
        assert sum(row["acknowledged"] for row in spark["losses"]) == fault.lost


def test_both_engines_open_with_the_same_sentence(summaries: dict[EngineName, dict[str, Any]]) -> None:
    spark, local = (summaries[engine]["headline"] for engine in EngineName)
    assert spark == local
    assert spark["tone"] == "lost"
