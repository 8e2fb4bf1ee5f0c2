"""The rules of an agreement, asked of what the members of a real group said to each other."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.raft.streams import agreement_events
from replispec.replay.events.tables import Events, rows_of
from replispec.replay.frames.digests import crc_of
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.raft.judge import judge_members
from replispec.wire.raft.invariants import INVARIANTS
from tests.replay.agreement import CAPTURE, FAULTS, TRUTH, Fault, clean
from tests.replay.faults import written
from tests.replay.pcap_writer import Packet, pcap

SOME = ("two_leaders_of_one_term", "other_bytes_of_an_entry", "more_is_accepted_than_was_sent")
EVALUATED = {
    "accepted-was-sent": 120,
    "agreed-entry-stays": 7,
    "logs-match": 12,
    "one-leader-per-term": 4,
    "one-vote-per-term": 4,
    "terms-grow": 260,
}
"""How often each rule is asked of the capture."""


def observed(path: Path) -> Events:
    decoded = decode_capture(path)
    return observe(decoded.frames, decoded.holes, decoded.streams)


def judged(packets: list[Packet], path: Path) -> list[FindingRow]:
    path.write_bytes(pcap(packets, nanoseconds=True))
    return judge_members(path.name, observed(path))


def verdicts(findings: list[FindingRow]) -> dict[str, str]:
    assert {each.group for each in findings} == {TRUTH["group"]}
    return {each.invariant: each.verdict.value for each in findings}


def test_a_real_group_keeps_every_rule() -> None:
    findings = judge_members(CAPTURE.name, observed(CAPTURE))
    assert verdicts(findings) == dict.fromkeys(INVARIANTS, "ok")
    assert {each.invariant: each.evaluated for each in findings} == EVALUATED


def test_what_is_seen_is_what_the_members_logged_and_have_on_their_disks() -> None:
    rows = rows_of(ObservationKind.MEMBER, observed(CAPTURE)[ObservationKind.MEMBER])
    events = [*agreement_events(rows)]
    numbers = {number: name for name, number in TRUTH["members"].items()}
    led = {(each.event.term, numbers[each.event.leader]) for each in events if each.name == "led"}
    assert sorted(led) == [tuple(each) for each in TRUTH["leaders"]]
    entries = {
        (each.event.index, each.event.term, crc_of(each.event.digest))
        for each in events
        if each.name == "entry"
    }
    assert sorted(entries) == [tuple(each) for each in TRUTH["log"]]


def test_a_capture_that_was_only_written_again_is_what_it_was(tmp_path: Path) -> None:
    assert verdicts(judged(written(clean()), tmp_path / "same.pcap")) == dict.fromkeys(INVARIANTS, "ok")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.edit.__name__)
def test_a_seeded_fault_is_found_and_nothing_else_is(fault: Fault, tmp_path: Path) -> None:
    findings = judged(written(fault.edit([*clean()])), tmp_path / "fault.pcap")
    expected = dict.fromkeys(fault.breaks, "violated") | dict.fromkeys(fault.doubts, "unknown")
    assert {rule: verdict for rule, verdict in verdicts(findings).items() if verdict != "ok"} == expected
    for each in findings:
        assert bool(each.proofs) == (each.verdict.value != "ok")


def test_every_rule_has_a_fault_that_breaks_it() -> None:
    assert {rule for fault in FAULTS for rule in fault.breaks} == {*INVARIANTS}


@pytest.mark.parametrize("seed", range(40))
def test_packets_that_were_not_captured_break_no_rule(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    packets = written(clean())
    begin = chance.choice((0, chance.randrange(len(packets))))
    rate = chance.choice((0.02, 0.2, 0.6))
    left = [each for each in packets[begin:] if chance.random() > rate]
    found = judged(left, tmp_path / "holes.pcap")
    assert {each.verdict.value for each in found} <= {"ok", "unknown"}


@pytest.mark.parametrize("together", [1, Options().events_together], ids=["spread", "small"])
def test_both_engines_find_faults_by_their_names(together: int, tmp_path: Path) -> None:
    """Also where the judging of what else a capture holds is spread over its parts."""
    faults = [each for each in FAULTS if "REPLISPEC_FAULTS" in os.environ or each.edit.__name__ in SOME]
    captures = [CAPTURE]
    for fault in faults:
        captures.append(tmp_path / f"{fault.edit.__name__}.pcap")
        captures[-1].write_bytes(pcap(written(fault.edit([*clean()])), nanoseconds=True))
    found: dict[EngineName, list[Any]] = {}
    for engine in EngineName:
        replay(captures, tmp_path / engine.value, engine, Options(events_together=together))
        found[engine] = json.loads((tmp_path / engine.value / SUMMARY_NAME).read_text("utf-8"))["findings"]
    assert found[EngineName.SPARK] == found[EngineName.LOCAL]
    for fault in faults:
        rows = [row for row in found[EngineName.SPARK] if row["file"] == f"{fault.edit.__name__}.pcap"]
        broken = {row["invariant"] for row in rows if row["verdict"] == "violated"}
        assert broken & {*INVARIANTS} == fault.breaks
