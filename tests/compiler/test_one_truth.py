"""One truth: what is changed in the specification changes in every consumer, with no second place to edit.

A copy of the specification gets another key, another edge and another guard. Everything is generated
from it into a folder of its own; a process that imports that folder, and tshark with that folder's
dissector, show what has become of them. `SHOWN` is the table of what each of the five consumers shows.
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
from tests.wireshark.tshark_run import run_tshark

CAPTURE = ROOT / "spark_replay/captures/c_syncstateset.pcap"
FILTER = "rocketmq.ext.alter_sync_state_set_request.master_epoch"
# What a consumer sees: the encoded header, transitions of a machine, findings about a real capture.
WITNESS = """
import json, pathlib, sys
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.runtime.rocketmq import rules
from replispec.runtime.primitives.errors import ProtocolError
from replispec.runtime.primitives.machines import step
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest
from replispec.wire.rocketmq.ha import HaReport, HaTransferHeader
from replispec.wire.rocketmq.machines import ha_replica

def taken(event):
    variables = ha_replica.Variables(log_end=64)
    try:
        after = step(ha_replica.MACHINE, ha_replica.State.TRANSFER, variables, event, rules)
        return after.state.name
    except ProtocolError as refusal:
        return type(refusal).__name__

summary = replay([pathlib.Path(sys.argv[1])], pathlib.Path(sys.argv[2]), EngineName.LOCAL, Options())
findings = {finding.invariant: [] for finding in summary.findings}
for finding in summary.findings:
    findings[finding.invariant].append(finding)
def verdict(name):
    found = max(findings[name], key=lambda finding: finding.evaluated)
    return [found.verdict, bool(found.evaluated), [proof.text for proof in found.proofs]]
batch = HaTransferHeader(offset=64, epoch=1, body=b"log")
print(json.dumps({
    "key codec": sorted(AlterSyncStateSetRequest(broker_name="b", master_epoch=7).to_ext_fields()),
    "edge machine": taken(ha_replica.ReportSent(HaReport(max_offset=1))),
    "guard machine": taken(ha_replica.BatchReceived(batch)),
    "key verdict": verdict("only-master-alters"),
    "edge verdict": verdict("ha-replica-machine"),
    "guard verdict": verdict("offset-chain"),
}))
"""
# Change and consumer -> what it shows by the specification as it is, and by the changed one. The codecs
# and Wireshark read messages alone: they know no edge and no guard, and a machine knows no key.
SHOWN: dict[str, tuple[object, object]] = {
    "key codec": (["brokerName", "masterEpoch"], ["brokerName", "epochOfMaster"]),
    "key verdict": (["ok", True], ["unknown", True, "was not seen"]),
    "key markdown": ("| `masterEpoch` | master_epoch |", "| `epochOfMaster` | master_epoch |"),
    "key tshark": (True, False),
    "edge machine": ("TRANSFER", "LocalProtocolError"),
    "edge verdict": (["ok", True], ["violated", True, "report_sent is not allowed in state"]),
    "edge markdown": ("| `TRANSFER` | `report_sent` |", "| `HANDSHAKE` | `report_sent` |"),
    "guard machine": ("TRANSFER", "READY"),
    "guard verdict": (["ok", True], ["violated", True, "but the replica's log ends at"]),
    "guard markdown": ("event.offset == log_end or log_end == 0", "event.offset == log_end + 1"),
}
PAGES = {"key": "controller.md", "edge": "ha_replica.md", "guard": "ha_replica.md"}


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
    # No edge of TRANSFER takes it then, where the timer runs that it would restart.
    changed(target, replica, "    restarts: report_sent\n", "")
    copy = changed(
        target, replica, "if: event.offset == log_end or log_end == 0", "if: event.offset == log_end + 1"
    )
    write(generate(copy), target / "other")
    return target


@pytest.fixture(scope="module")
def seen(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the processes that import the two folders see."""
    return witness(folder / "true", folder / "out-true"), witness(folder / "other", folder / "out-other")


def pages(folder: Path) -> dict[str, str]:
    return {page.name: page.read_text("utf-8") for page in folder.rglob("*.md")}


@pytest.mark.parametrize("what", [what for what in SHOWN if what.split()[1] in ("codec", "machine")])
def test_a_change_arrives_in_codecs_and_machines(
    seen: tuple[dict[str, Any], dict[str, Any]], what: str
) -> None:
    assert (seen[0][what], seen[1][what]) == SHOWN[what]


@pytest.mark.parametrize("what", [what for what in SHOWN if what.endswith("verdict")])
def test_a_change_arrives_in_the_verdict_on_a_real_capture(
    seen: tuple[dict[str, Any], dict[str, Any]], what: str
) -> None:
    for (verdict, evaluated, texts), shown in zip((seen[0][what], seen[1][what]), SHOWN[what], strict=True):
        assert isinstance(shown, list)
        assert [verdict, evaluated] == shown[:2]
        assert all(any(said in text for text in texts) for said in shown[2:])


@pytest.mark.parametrize("what", [what for what in SHOWN if what.endswith("markdown")])
def test_a_change_arrives_in_the_documents(folder: Path, what: str) -> None:
    page = PAGES[what.split(maxsplit=1)[0]]
    old, new = SHOWN[what]
    before, after = (pages(folder / name)[page] for name in ("true", "other"))
    assert str(old) in before
    assert str(new) not in before
    assert str(new) in after


def test_another_key_arrives_in_what_tshark_shows(folder: Path, tshark_home: Path) -> None:
    shown = [
        run_tshark(
            CAPTURE,
            tshark_home,
            *("-T", "fields", "-e", FILTER, "-Y", FILTER),
            dissector=folder / name / "wireshark/rocketmq.lua",
        )
        for name in ("true", "other")
    ]
    assert tuple(bool(output.split()) for output in shown) == SHOWN["key tshark"]
