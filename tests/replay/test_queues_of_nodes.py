"""Captures of the real nodes, simulated: brokers, name server and administrators that die, retention, old and
new clients, several groups. Their promises hold, and so does every rule: nobody is blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.judges.findings import FindingRow
from tests.replay.pcap_writer import pcap
from tests.replay.test_queues import judged
from tests.sim.logical_run import LogicalRun
from tests.sim.queue_run import StaticRun
from tests.sim.queue_world import drawn
from tests.sim.wiretap import Wiretap

RETENTION_STATIC, RACE_OF_ADMINISTRATORS, FORWARDED = 1, 12, 3
RETENTION_LOGICAL, EXPIRY = 1, 9


def findings_of(seed: int, folder: Path, *, logical: bool) -> list[FindingRow]:
    run = (LogicalRun if logical else StaticRun)(seed, drawn(seed, logical=logical))
    tap = Wiretap()
    run.world.network.tap = tap
    assert run.play().wrong == []
    path = folder / "nodes.pcap"
    path.write_bytes(pcap(tap.packets, link_type=101))
    return judged(path)


@pytest.mark.parametrize("seed", [RETENTION_STATIC, FORWARDED, RACE_OF_ADMINISTRATORS])
def test_a_static_topic_of_simulated_nodes_breaks_no_rule(seed: int, tmp_path: Path) -> None:
    _blames_nobody(findings_of(seed, tmp_path, logical=False))


@pytest.mark.parametrize("seed", [RETENTION_LOGICAL, EXPIRY])
def test_logical_queues_of_simulated_nodes_break_no_rule(seed: int, tmp_path: Path) -> None:
    _blames_nobody(findings_of(seed, tmp_path, logical=True))


def _blames_nobody(found: list[FindingRow]) -> None:
    assert [each for each in found if each.verdict in ("violated", "diverged")] == []
    asked = {each.invariant: each.evaluated for each in found}
    for rule in (
        "acknowledged-is-read",
        "removed-is-not-read",
        "ends-never-fall",
        "routes-tell-what-is-registered",
    ):
        assert asked[rule] > 0
