"""A fault in a real capture is found, and nothing else is found with it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.judges.rocketmq.judge import RULES, Judgement, judge_capture
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq.machines import WATCHED
from tests.replay import expectations as rule
from tests.replay.faults import Edit, Frame, taken, written
from tests.replay.seeded import LEARNER, PERMITTED, SEEDED, SET, Fault
from tests.replay.test_judgement import CAPTURES, replayed

Verdicts = dict[tuple[str, str], str]


@cache
def clean(name: str) -> list[Frame]:
    return taken(CAPTURES / f"{name}.pcap")


def verdicts(frames: list[Frame], path: Path, *, all_ack: bool = False) -> Verdicts:
    return verdicts_of(replayed(written(frames), path, all_ack=all_ack))


def verdicts_of(judgement: Judgement) -> Verdicts:
    findings = judgement.findings
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


@pytest.mark.parametrize("fault", SEEDED, ids=lambda fault: f"{fault.edit.__name__}-{fault.capture}")
def test_a_seeded_fault_is_found_and_nothing_else_is(fault: Fault, tmp_path: Path) -> None:
    before = expected(fault.capture)
    if fault.all_ack:
        before = verdicts(clean(fault.capture), tmp_path / "clean.pcap", all_ack=True)
        assert "violated" not in before.values()
    packets = written(fault.edit(clean(fault.capture)))
    judgement = replayed(packets, tmp_path / "fault.pcap", all_ack=fault.all_ack)
    found = verdicts_of(judgement)
    assert found.keys() == before.keys()
    changed = {
        invariant: found[group, invariant]
        for group, invariant in found
        if found[group, invariant] != before[group, invariant]
    }
    assert changed == dict.fromkeys(fault.breaks, "violated") | dict.fromkeys(fault.doubts, "unknown")
    assert sum(loss.acknowledged for loss in judgement.losses) == fault.lost


@pytest.mark.parametrize(("name", "edit"), PERMITTED, ids=lambda each: getattr(each, "__name__", each))
def test_what_the_protocol_permits_alters_no_verdict(name: str, edit: Edit, tmp_path: Path) -> None:
    assert verdicts(edit(clean(name)), tmp_path / "permitted.pcap") == expected(name)


def test_at_least_fifty_faults_are_seeded() -> None:
    assert len({(fault.edit, fault.capture) for fault in SEEDED}) >= 50


def test_what_apache_is_known_to_do_is_diverged_once_the_learner_is_known() -> None:
    """No frame says that the broker which starts first is a learner; whoever ran it knows."""
    decoded = decode_capture(CAPTURES / "n_learner_alone.pcap")
    observations = observe(decoded.frames, decoded.holes, decoded.streams)
    findings = judge_capture("n_learner_alone.pcap", observations, ["1"]).findings
    told = {each.invariant: each for each in findings if each.verdict is Verdict.DIVERGED}
    assert told.keys() == {rule.LEARNER, rule.LEARNER_OUTSIDE}
    assert "a learner that starts first in its set becomes master" in told[rule.LEARNER].says
    before = expected("n_learner_alone")
    others = {(each.group, each.invariant): each.verdict.value for each in findings}
    changed = {name for (group, name), verdict in others.items() if before[group, name] != verdict}
    assert changed == told.keys()


def test_every_rule_and_every_machine_has_a_fault() -> None:
    seeded = {invariant for fault in SEEDED for invariant in fault.breaks}
    assert seeded == {*RULES, *WATCHED}
