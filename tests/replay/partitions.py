"""Captures of real brokers and what their clients were told, and edits of what was seen in them.

An edit is made of rows, as a broker, a controller or a store that errs would have had them seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.kafka.world import KINDS, is_taken
from replispec.replay.events.observation import Observation
from replispec.replay.events.observe import observe
from replispec.replay.events.partition_observations import Appended, EpochEnd, Fetched, Node, Ordered
from replispec.replay.judges.kafka.judge import Judgement, judge_rows

FOLDER = Path(__file__).parents[2] / "spark_replay" / "captures" / "kafka"
CAPTURES = {path.stem: path for path in sorted(FOLDER.glob("*.pcap"))}
STATE = "/brokers/topics/t/partitions/0/state"
Rows = list[Observation]
Edit = Callable[[Rows], Rows]


@cache
def decoded(name: str) -> DecodedCapture:
    """The frames of a shipped capture."""
    return decode_capture(CAPTURES[name])


@cache
def _seen(name: str) -> Sequence[Observation]:
    own = decoded(name)
    events = observe(own.frames, own.holes, own.streams)
    return CaptureEvents({kind: events[kind] for kind in KINDS}).few


def rows_of_capture(name: str) -> Rows:
    """What is judged of a shipped capture, in its order."""
    return [*_seen(name)]


def truth_of(name: str) -> dict[str, Any]:
    """What the clients were told, and found in the end."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.truth.json").read_text())
    return found


def judged_rows(rows: Rows) -> Judgement:
    """What these rows come to."""
    return judge_rows("capture", rows)


def verdicts_of(judgement: Judgement, *groups: str) -> dict[str, str]:
    """The verdict of each rule about some partitions, the worst where these are several."""
    own = [each for each in judgement.findings if each.group in (groups or {each.group})]
    found: dict[str, str] = {}
    for each in sorted(own, key=lambda each: each.verdict.rank):
        found[each.invariant] = each.verdict.value
    return found


@dataclass(frozen=True, slots=True)
class PartitionFault:
    """An edit of one capture, and the rules that it breaks beside those that the capture breaks."""

    capture: str
    edit: Edit
    breaks: frozenset[str]


def _fault(capture: str, edit: Edit, *breaks: str) -> PartitionFault:
    return PartitionFault(capture, edit, frozenset(breaks))


def _each(rows: Rows, kind: type[Observation], fits: Callable[[Any], bool]) -> Iterator[tuple[int, Any]]:
    return ((at, row) for at, row in enumerate(rows) if isinstance(row, kind) and fits(row))


def _first(rows: Rows, kind: type[Observation], fits: Callable[[Any], bool]) -> tuple[int, Any]:
    return next(_each(rows, kind, fits))


def _state(row: Any, version: int) -> bool:
    return row.path == STATE and row.version == version and row.data is not None


def _rewritten(rows: Rows, version: int, old: bytes, new: bytes, *, once: bool = False) -> Rows:
    """The record of a version with other bytes, wherever it was seen, or only there where it was last."""
    places = [at for at, _ in _each(rows, Node, lambda row: _state(row, version))]
    for at in places[-1:] if once else places:
        data = getattr(rows[at], "data", b"")
        assert old in data
        rows[at] = replace(rows[at], data=data.replace(old, new))  # type: ignore[call-arg]
    return rows


def _taken(rows: Rows) -> list[tuple[int, Any]]:
    return [*_each(rows, Ordered, is_taken)]


def two_leaders(rows: Rows) -> Rows:
    """A controller tells a broker of another leader in the epoch of the record."""
    at, row = _first(rows, Ordered, lambda row: row.epoch == 1 and row.leader == 2 and row.code != 0)
    rows[at] = replace(row, leader=1)
    return rows


def epoch_goes_back(rows: Rows) -> Rows:
    """Who joined the ISR did so in an epoch that was over."""
    return _rewritten(rows, 2, b'"leader_epoch":1', b'"leader_epoch":0')


def leader_is_outside(rows: Rows) -> Rows:
    """The ISR has the other one alone."""
    return _rewritten(rows, 1, b'"isr":[2]', b'"isr":[1]')


def stranger_in_sync(rows: Rows) -> Rows:
    """The ISR has a broker that is not assigned."""
    return _rewritten(rows, 2, b'"isr":[2,1]', b'"isr":[2,1,9]')


def another_record_of_a_version(rows: Rows) -> Rows:
    """The last one that reads the record reads another one."""
    return _rewritten(rows, 2, b'"isr":[2,1]', b'"isr":[2]', once=True)


def version_goes_back(rows: Rows) -> Rows:
    """A later change has an earlier version."""
    for at, row in _each(rows, Node, lambda row: _state(row, 2)):
        rows[at] = replace(row, version=0, data=row.data.replace(b'"leader_epoch":1', b'"leader_epoch":2'))
    return rows


def old_command_is_taken(rows: Rows) -> Rows:
    """A broker carries out a command of an epoch before the one that it follows."""
    at, row = _taken(rows)[-1]
    rows.insert(at + 1, replace(row, epoch=0, leader=1, isr=[1, 2]))
    return rows


def old_controller_is_heard(rows: Rows) -> Rows:
    """A broker carries out what a former controller says."""
    at, row = _taken(rows)[-1]
    rows.insert(at + 1, replace(row, controller_epoch=row.controller_epoch - 1))
    return rows


def mark_falls(rows: Rows) -> Rows:
    """A leader says that less is committed than before."""
    told = [*_each(rows, Fetched, lambda row: row.epoch in (None, -1) and (row.high_watermark or 0) > 20)]
    at, row = told[5]
    rows[at] = replace(row, high_watermark=row.high_watermark - 9)
    return rows


def mark_beyond_the_isr(rows: Rows) -> Rows:
    """A leader calls committed what no follower has asked beyond."""
    told = [*_each(rows, Fetched, lambda row: (row.high_watermark or 0) > 20 and row.batches)]
    at, row = told[5]
    rows[at] = replace(row, high_watermark=row.high_watermark + 1)
    return rows


def follower_leaves_out(rows: Rows) -> Rows:
    """A follower asks for what follows a record that it was not given."""
    asked = [*_each(rows, Fetched, lambda row: row.member == 2 and row.batches)]
    at, row = asked[7]
    rows[at] = replace(row, batches=[])
    return rows


def other_records(rows: Rows) -> Rows:
    """Two followers are given different records of one epoch at one offset."""
    given = [*_each(rows, Fetched, lambda row: row.batches)]
    at, row = given[-1]
    batches = [dict(each) for each in row.batches]
    batches[0]["crc"] ^= 1
    rows[at] = replace(row, batches=batches)
    return rows


def joins_behind(rows: Rows) -> Rows:
    """A follower joins the ISR and has asked for nothing but the begin of the log."""
    for at, row in _each(rows, Fetched, lambda row: row.member == 1):
        rows[at] = replace(row, asked=0, batches=[])
    return rows


def cut_before_the_acknowledged(rows: Rows) -> Rows:
    """The next leader says that the epoch before ended earlier than what was acknowledged in it."""
    at, row = _first(rows, EpochEnd, lambda row: row.end_offset is not None)
    rows[at] = replace(row, end_offset=row.end_offset - 1)
    return rows


def acknowledged_again(rows: Rows) -> Rows:
    """A later leader gives the place of an acknowledged record to another one."""
    at, row = [*_each(rows, Appended, lambda row: row.code == 0)][-1]
    moved = [{**each, "base": 39, "last": 39} for each in row.batches][:1]
    rows[at] = replace(row, offset=39, batches=moved)
    return rows


FAULTS: dict[str, PartitionFault] = {
    each.edit.__name__: each
    for each in (
        _fault("kafka_failover", two_leaders, "one-leader-an-epoch"),
        _fault("kafka_failover", epoch_goes_back, "epochs-grow", "one-leader-an-epoch"),
        _fault("kafka_failover", leader_is_outside, "leader-in-sync"),
        _fault("kafka_failover", stranger_in_sync, "isr-is-assigned"),
        _fault("kafka_failover", another_record_of_a_version, "one-record-a-version", "versions-rise"),
        _fault("kafka_failover", version_goes_back, "versions-rise", "one-record-a-version"),
        _fault("kafka_failover", old_command_is_taken, "older-epoch-changes-nothing"),
        _fault("kafka_controller", old_controller_is_heard, "older-epoch-changes-nothing"),
        _fault("kafka_failover", mark_falls, "watermark-never-falls"),
        _fault("kafka_failover", mark_beyond_the_isr, "watermark-within-isr"),
        _fault("kafka_failover", follower_leaves_out, "fetches-are-contiguous"),
        _fault("kafka_failover", other_records, "same-records", "committed-stays"),
        _fault("kafka_failover", joins_behind, "joins-caught-up"),
        _fault("kafka_failover", cut_before_the_acknowledged, "acknowledged-by-all-survives"),
        _fault(
            "kafka_failover", acknowledged_again, "acknowledged-by-all-survives", "committed-stays"
        ),
    )
}  # fmt: skip
