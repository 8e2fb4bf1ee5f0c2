"""One truth: what is changed in the specification changes in every consumer, with no second place to edit.

A copy of the specification gets another key, another edge and another guard. Everything is generated
from it into a folder of its own, and a process that imports that folder shows what has become of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate, write
from tests.compiler.specification import ROOT, SPEC, changed

CAPTURE = ROOT / "spark_replay/captures/c_syncstateset.pcap"
# What a consumer sees: the encoded header, the transition of a machine, the finding about a real capture.
WITNESS = """
import json, pathlib, sys
from replispec.replay.run import EngineName, Options, replay
from replispec.runtime import rules
from replispec.runtime.primitives.errors import ProtocolError
from replispec.runtime.primitives.machines import step
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest
from replispec.wire.rocketmq.ha import HaReport
from replispec.wire.rocketmq.machines import ha_replica

try:
    event = ha_replica.ReportSent(HaReport(max_offset=1))
    start = ha_replica.State.TRANSFER
    taken = step(ha_replica.MACHINE, start, ha_replica.Variables(), event, rules).state.name
except ProtocolError as refusal:
    taken = f"{type(refusal).__name__}: {refusal}"
summary = replay([pathlib.Path(sys.argv[1])], pathlib.Path(sys.argv[2]), EngineName.LOCAL, Options())
found = {finding.invariant: finding for finding in summary.findings}
chain, machine = found["offset-chain"], found["ha-replica-machine"]
fields = AlterSyncStateSetRequest(broker_name="b", master_epoch=7).to_ext_fields()
seen = {"fields": fields, "transition": taken}
says = {"says": chain.says, "machine_says": [proof.text for proof in machine.proofs]}
print(json.dumps({**seen, "chain": chain.verdict, "machine": machine.verdict, **says}))
"""


def witness(generated: Path, out: Path) -> dict[str, Any]:
    """What a process sees that imports the generated code of this folder."""
    environment = {**os.environ, "PYTHONPATH": str(generated)}
    command = [sys.executable, "-c", WITNESS, str(CAPTURE), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated code of the specification as it is, below `true`, and of the changed one, below `other`."""
    target = tmp_path_factory.mktemp("one-truth")
    write(generate(SPEC), target / "true")
    changed(
        target,
        "proto/replispec/rocketmq/v1/controller.proto",
        "  int32  master_epoch     = 4;\n  int64  invoke_time      = 5",
        '  int32  master_epoch     = 4 [(wire) = {key: "epochOfMaster"}];\n  int64  invoke_time      = 5',
    )
    replica = "statemachines/rocketmq/ha_replica.yaml"
    for edge in (
        "- from: TRANSFER\n    event: report_sent\n    if: silent",
        "{from: TRANSFER, event: report_sent, else: true, to: TRANSFER, clause: RIP44-REPORT-1}",
    ):
        changed(target, replica, edge, edge.replace("from: TRANSFER", "from: HANDSHAKE"))
    copy = changed(
        target, replica, "if: event.offset == log_end or log_end == 0", "if: event.offset == log_end + 1"
    )
    write(generate(copy), target / "other")
    return target


def test_a_key_an_edge_and_a_guard_change_codec_machine_and_finding(folder: Path) -> None:
    before, after = (witness(folder / name, folder / f"out-{name}") for name in ("true", "other"))

    assert before["fields"] == {"brokerName": "b", "masterEpoch": "7"}
    assert after["fields"] == {"brokerName": "b", "epochOfMaster": "7"}

    assert before["transition"] == "TRANSFER"
    assert after["transition"].startswith("LocalProtocolError: ")
    assert (before["machine"], before["machine_says"]) == ("ok", [])
    assert after["machine"] == "violated"
    assert any("report_sent is no step from" in text for text in after["machine_says"])

    assert (before["chain"], before["says"]) == ("ok", "")
    assert after["chain"] == "violated"
    assert "but the replica's log ends at" in after["says"]


def _pages(folder: Path) -> dict[str, str]:
    return {page.name: page.read_text("utf-8") for page in folder.rglob("*.md")}


def test_they_change_the_documents_too(folder: Path) -> None:
    pages = {
        name: {page.name: page.read_text("utf-8") for page in (folder / name).rglob("*.md")}
        for name in ("true", "other")
    }
    told = {
        "controller.md": ("| `masterEpoch` | master_epoch |", "| `epochOfMaster` | master_epoch |"),
        "ha_replica.md": ("| `TRANSFER` | `report_sent` |", "| `HANDSHAKE` | `report_sent` |"),
    }
    for page, (old, new) in told.items():
        assert old in pages["true"][page]
        assert new in pages["other"][page]
        assert new not in pages["true"][page]
    guard = [line for line in pages["other"]["ha_replica.md"].splitlines() if "log_end + 1" in line]
    assert guard
    assert not [line for line in pages["true"]["ha_replica.md"].splitlines() if "log_end + 1" in line]
