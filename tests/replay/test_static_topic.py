"""The rules of static topics, asked of a capture of Java's brokers, and on both engines."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.rocketmq.queues import about, topics_of
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.kinds import KINDS
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.queue_streams import queue_events
from replispec.replay.judges.rocketmq.queues import QUEUE_RULES
from tests.replay.faults import taken, written
from tests.replay.logical_queue_faults import LOGICAL_FAULTS
from tests.replay.logical_queues import logical_queues
from tests.replay.pcap_writer import pcap
from tests.replay.queue_faults import STATIC_FAULTS, spoken
from tests.replay.queues import static_topic
from tests.replay.test_queues import ENDS, clean, judged, judged_packets

CAPTURE = Path(__file__).parent / "data" / "static_topic.pcap"
TRUTH: dict[str, Any] = json.loads(CAPTURE.with_suffix(".truth.json").read_text())
EVALUATED = {
    "acknowledged-is-read": 336,
    "answers-are-translated": 24,
    "decided-segments-stay": 102,
    "ends-hold-what-is-read": 43,
    "ends-never-fall": 50,
    "logical-offset-is-one-message": 728,
    "mapping-epochs-grow": 131,
    "mappings-are-for-their-broker": 19,
    "message-has-one-logical-offset": 728,
    "message-lies-in-its-segment": 728,
    "offsets-are-translated": 31,
    "one-writable-segment": 175,
    "positions-never-fall": 3,
    "reads-are-contiguous": 43,
    "routes-are-registered": 94,
    "removed-is-not-read": 43,
    "routes-are-the-newest": 78,
    "routes-tell-what-is-registered": 78,
    "segment-ends-stay": 0,
    "segments-follow": 31,
}
"""How often each rule is asked of the capture."""
SECOND_NS = 10**9
SOME = (
    *("a_message_below_the_border", "a_hole_in_a_read", "two_leaders_of_one_epoch"),
    *("what_is_gone_is_read", "an_end_that_is_not_translated", "an_end_beyond_all_messages"),
    *("a_route_of_an_epoch_that_nobody_registered", "an_expired_segment_is_read"),
    *("a_route_with_a_segment_that_nobody_registered", "a_redirect_too_early"),
)


def test_a_static_topic_of_java_brokers_keeps_every_rule() -> None:
    findings = judged(CAPTURE)
    assert {each.invariant: each.evaluated for each in findings} == EVALUATED
    assert {each.invariant: each.verdict.value for each in findings} == dict.fromkeys(QUEUE_RULES, "ok") | {
        ENDS: "unknown"
    }


def test_what_is_seen_is_what_the_clients_printed() -> None:
    decoded = decode_capture(CAPTURE)
    seen = observe(decoded.frames, decoded.holes, decoded.streams)
    told = {**seen, **about(topics_of(seen), seen)}
    events = [*queue_events(CaptureEvents(told).rows(KINDS))]
    acknowledged: dict[str, list[int]] = defaultdict(list)
    for each in events:
        if each.name == "placed" and each.event.how == "acknowledged":
            acknowledged[str(each.event.index)].append(each.event.offset)
    assert {index: sorted(own) for index, own in acknowledged.items()} == TRUTH["acknowledged"]
    readers: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for each in events:
        if each.name == "passed":
            assert each.event.read
            readers[each.event.reader][str(each.event.index)].append(each.event.offset)
    assert [dict(own) for own in readers.values()] == [TRUTH["read_by_java"], TRUTH["read_by_ours"]]


@pytest.mark.parametrize("seed", range(30))
def test_packets_that_were_not_captured_break_no_rule(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    packets = written(spoken(taken(_written(tmp_path)), "PYTHON")) if seed % 2 else written(taken(CAPTURE))
    begin = chance.choice((0, chance.randrange(len(packets))))
    rate = chance.choice((0.02, 0.2, 0.6))
    left = [each for each in packets[begin:] if chance.random() > rate]
    found = judged_packets(left, tmp_path / "holes.pcap") if left else []
    assert {each.verdict.value for each in found} <= {"ok", "unknown"}


def _written(folder: Path) -> Path:
    path = folder / "clean.pcap"
    path.write_bytes(pcap(static_topic().packets(), nanoseconds=True))
    return path


@pytest.mark.parametrize("seed", range(10))
def test_connections_that_are_captured_late_break_no_rule(seed: int, tmp_path: Path) -> None:
    """Between connections only causes order."""
    chance = random.Random(seed)
    frames = spoken(taken(_written(tmp_path)), "PYTHON") if seed % 2 else taken(CAPTURE)
    late_ns = {each.connection: chance.choice((0, chance.randrange(10 * SECOND_NS))) for each in frames}
    moved = [replace(each, time_ns=each.time_ns + late_ns[each.connection]) for each in frames]
    found = judged_packets(written(sorted(moved, key=lambda each: each.time_ns)), tmp_path / "late.pcap")
    assert {each.verdict.value for each in found} <= {"ok", "unknown", "diverged"}
    assert {each.invariant for each in found if each.verdict.value == "diverged"} <= {"routes-are-the-newest"}


@pytest.mark.parametrize("together", [1, Options().events_together], ids=["spread", "small"])
def test_both_engines_find_faults_by_their_names(together: int, tmp_path: Path) -> None:
    """Also where the judging of what else a capture holds is spread over its parts."""
    stories = [(fault, static_topic) for fault in STATIC_FAULTS]
    stories += [(fault, logical_queues) for fault in LOGICAL_FAULTS]
    named = [each for each in stories if each[0].edit.__name__ in SOME or "REPLISPEC_FAULTS" in os.environ]
    captures = [CAPTURE]
    for fault, story in named:
        captures.append(tmp_path / f"{fault.edit.__name__}.pcap")
        captures[-1].write_bytes(pcap(written(fault.edit([*clean(story, tmp_path)])), nanoseconds=True))
    found: dict[EngineName, list[Any]] = {}
    for engine in EngineName:
        replay(captures, tmp_path / engine.value, engine, Options(events_together=together))
        found[engine] = json.loads((tmp_path / engine.value / SUMMARY_NAME).read_text("utf-8"))["findings"]
    assert found[EngineName.SPARK] == found[EngineName.LOCAL]
    for fault, _ in named:
        rows = [row for row in found[EngineName.SPARK] if row["file"] == f"{fault.edit.__name__}.pcap"]
        broken = {row["invariant"] for row in rows if row["verdict"] == "violated"}
        assert broken & {*QUEUE_RULES} == fault.breaks
