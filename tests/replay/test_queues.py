"""The rules of logical queues and static topics, asked of captures that were written for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.rocketmq.queues import about, judged_topics, topics_of
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.queue_seen import OF_TOPIC
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.rocketmq.queues import QUEUE_RULES
from tests.replay.faults import Frame, taken, written
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.queue_faults import STATIC_FAULTS, Fault, spoken
from tests.replay.queues import TOPIC, static_topic

ENDS = "segment-ends-stay"
"""Java never sets the end of an item."""


def judged(path: Path) -> list[FindingRow]:
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    topics = topics_of(events)
    return judged_topics(path.name, events, [about(topics, events)])


def judged_packets(packets: list[Packet], path: Path) -> list[FindingRow]:
    path.write_bytes(pcap(packets, nanoseconds=True))
    return judged(path)


def verdicts(findings: list[FindingRow]) -> dict[str, str]:
    assert {each.group for each in findings} == {OF_TOPIC + TOPIC}
    return {each.invariant: each.verdict.value for each in findings}


@cache
def clean(folder: Path) -> tuple[Frame, ...]:
    path = folder / "clean.pcap"
    path.write_bytes(pcap(static_topic().packets(), nanoseconds=True))
    return tuple(spoken(taken(path), "PYTHON"))


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[Frame]:
    return [*clean(tmp_path_factory.mktemp("clean"))]


def test_a_static_topic_that_moves_keeps_every_rule(frames: list[Frame], tmp_path: Path) -> None:
    found = judged_packets(written(frames), tmp_path / "same.pcap")
    assert verdicts(found) == dict.fromkeys(QUEUE_RULES, "ok") | {ENDS: "unknown"}


@pytest.mark.parametrize("fault", STATIC_FAULTS, ids=lambda fault: fault.edit.__name__)
def test_a_seeded_fault_is_found_and_nothing_else_is(
    fault: Fault, frames: list[Frame], tmp_path: Path
) -> None:
    before = verdicts(judged_packets(written(frames), tmp_path / "clean.pcap"))
    findings = judged_packets(written(fault.edit([*frames])), tmp_path / "fault.pcap")
    changed = {rule: each for rule, each in verdicts(findings).items() if each != before[rule]}
    expected = dict.fromkeys(fault.breaks, "violated") | dict.fromkeys(fault.doubts, "unknown")
    assert changed == expected | dict.fromkeys(fault.diverges, "diverged")
