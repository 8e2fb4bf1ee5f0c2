"""The story that a report tells of real fail-overs: who became master, since when nobody was, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.replay.report.model import Switch, Timeline, TimelineEventKind
from replispec.replay.report.rocketmq.story import switches, timelines

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
OLD, NEW = "broker 1 (127.0.0.1:30910)", "broker 2 (127.0.0.1:30920)"
MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


def told(name: str, folder: Path = CAPTURES) -> tuple[list[Switch], list[Timeline]]:
    decoded = decode_capture(folder / f"{name}.pcap")
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    judgement = judge_capture(f"{name}.pcap", events)
    joined = judgement.own
    lost = joined.sends.take(judgement.lost.each)
    lived = timelines(joined, (0, 1), f"{name}.pcap", judgement.findings, judgement.losses, lost)
    return switches(f"{name}.pcap", judgement.own), lived


@pytest.mark.parametrize(
    ("name", "cause", "gap_ms"),
    [
        ("failover_lost", "connection to the controller was closed 0.026 s before", 26),
        ("d_async_learner", "connection to the controller was closed 0.014 s before", 13),
        ("hung_master", "last heartbeat was 10.071 s before", 10_071),
        ("g_mqadmin", "an administrator asked for it", None),
    ],
)
def test_a_switch_says_who_why_and_since_when_nobody_was_master(
    name: str, cause: str, gap_ms: int | None
) -> None:
    (switch,) = told(name)[0]
    assert (switch.from_master, switch.to_master, switch.epoch) == (OLD, NEW, 2)
    assert cause in switch.cause
    assert (switch.gap_ns // MILLISECOND if switch.gap_ns is not None else None) == gap_ms


def test_a_switch_says_how_long_producers_waited() -> None:
    assert told("failover_lost")[0][0].text.endswith("13.212 s.")
    # The deposed master answered again when it was woken; what counts is its last answer before the switch.
    assert told("hung_master")[0][0].text.endswith("10.562 s.")
    assert told("t_binary_header")[0][0].text == ""


@pytest.mark.parametrize("name", ["a_first_start", "c_syncstateset", "k1_oldbroker_newcontroller"])
def test_without_another_master_there_is_no_switch(name: str) -> None:
    assert told(name)[0] == []


def test_lost_bytes_are_marked_where_they_were_lost(tmp_path: Path) -> None:
    """A stretch of all connections is taken out of the capture."""
    path = CAPTURES / "failover_lost.pcap"
    with open_capture(path) as capture:
        records = capture.records()
    begin, end = int(records.record_offset[1000]), int(records.record_offset[1100])
    data = path.read_bytes()
    (tmp_path / path.name).write_bytes(data[:begin] + data[end:])
    (timeline,) = told("failover_lost", tmp_path)[1]
    holes = [event for event in timeline.events if event.kind is TimelineEventKind.HOLE]
    assert holes
    lost_from, lost_to = (int(records.time_ns[row]) for row in (1000, 1100))
    for hole in holes:
        assert lost_from - 15 * SECOND < hole.time_ns <= lost_to
        assert hole.detail.startswith("bytes are missing at byte ")
    (whole,) = told("failover_lost")[1]
    assert not any(event.kind is TimelineEventKind.HOLE for event in whole.events)


def test_a_timeline_marks_masters_sets_losses_and_violations() -> None:
    (timeline,) = told("failover_lost")[1]
    assert [(band.master, band.epoch, band.to_ns is None) for band in timeline.bands] == [
        ("broker 1", 1, False),
        ("broker 2", 2, True),
    ]
    marks = [(event.kind, event.label) for event in timeline.events]
    sets = [label for kind, label in marks if kind is TimelineEventKind.SYNC_STATE_SET]
    assert sets == ["{}", "{1}", "{1, 2}", "{2}", "{1, 2}"]
    assert (TimelineEventKind.LOSS, "220 lost") in marks
    assert (TimelineEventKind.VIOLATION, "acknowledged-send-survives") in marks
    assert (TimelineEventKind.SWITCH, "epoch 2") in marks
