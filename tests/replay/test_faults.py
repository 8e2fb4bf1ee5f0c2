"""A fault in a real capture is found, and nothing else is found with it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from replispec.wire.rocketmq.invariants import INVARIANTS
from replispec.wire.rocketmq.machines import WATCHED
from tests.replay.expectations import CONFIRM_COVERS
from tests.replay.faults import LEARNER, SEEDED, SET, Fault, Frame, taken, written
from tests.replay.test_judgement import CAPTURES, replayed

Verdicts = dict[tuple[str, str], str]


@cache
def clean(name: str) -> list[Frame]:
    return taken(CAPTURES / f"{name}.pcap")


def verdicts(frames: list[Frame], path: Path) -> Verdicts:
    findings = replayed(written(frames), path).findings
    return {(finding.group, finding.invariant): finding.verdict.value for finding in findings}


def expected(name: str) -> Verdicts:
    document = json.loads((CAPTURES / "expected" / f"{name}.json").read_text("utf-8"))
    return {
        (group, name): row["verdict"]
        for group, rows in document["groups"].items()
        for name, row in rows.items()
    }


@pytest.mark.parametrize("name", [SET, LEARNER])
def test_a_capture_that_was_only_written_again_is_what_it_was(name: str, tmp_path: Path) -> None:
    assert verdicts(clean(name), tmp_path / "same.pcap") == expected(name)


@pytest.mark.parametrize("fault", SEEDED, ids=lambda fault: fault.edit.__name__)
def test_a_seeded_fault_is_found_and_nothing_else_is(fault: Fault, tmp_path: Path) -> None:
    before = expected(fault.capture)
    found = verdicts(fault.edit(clean(fault.capture)), tmp_path / "fault.pcap")
    changed = {key for key in found if found[key] != before[key]}
    assert {invariant for _, invariant in changed} == fault.breaks
    assert {found[key] for key in changed} == {"violated"}
    assert found.keys() == before.keys()


def test_every_rule_and_every_machine_has_a_fault() -> None:
    """The one that needs to be told how brokers are configured has its fault among the scenarios."""
    seeded = {invariant for fault in SEEDED for invariant in fault.breaks}
    assert seeded | {CONFIRM_COVERS} == {*INVARIANTS, *WATCHED}
