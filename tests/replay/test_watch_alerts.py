"""What was told is known by its frames, whatever else depends on how much was seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.results import CaptureResult
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import Proof
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import LostSend
from replispec.replay.report.summary import CaptureRow
from replispec.replay.watch import alerts
from replispec.replay.watch.alerts import Alerts
from replispec.replay.watch.checkpoint import CheckpointError
from replispec.runtime.primitives.invariants import Verdict

CONNECTION = "10.0.0.1:1<->10.0.0.2:2"


def lost(
    *times_ns: int, group: str = "g/b", number: int = 1, sequence: int = 0, offset: int = 0
) -> CaptureResult:
    """A loss of the messages that were acknowledged at these times, with other offsets at other ones."""
    sends = [
        LostSend(
            ("f", f"{CONNECTION}#{number}", 1, sequence + at),
            group,
            3,
            offset + time_ns,
            "10.0.0.2:2",
            time_ns,
            None,
        )
        for at, time_ns in enumerate(times_ns)
    ]
    row = LossRow(group, 3, 0, 100 * len(sends), len(sends), "f")
    return CaptureResult(CaptureRow("f"), losses=[row], lost=sends)


def violated(*times_ns: int, invariant: str = "a-rule", verdict: str = "") -> CaptureResult:
    proofs = tuple(Proof(time_ns, f"{CONNECTION}#1", 1, 5, "told so", verdict) for time_ns in times_ns)
    finding = FindingRow(invariant, Verdict.VIOLATED, "g/b", "f", 9, {}, proofs)
    return CaptureResult(CaptureRow("f"), findings=[finding])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def opened(folder: Path) -> Alerts:
    return Alerts(folder / "journal", folder / "alerts.jsonl")


def test_a_loss_is_not_told_again_under_another_name(folder: Path) -> None:
    (first,) = opened(folder).take(lost(10, 20))
    assert first.line["messages"] == 2
    for again in (lost(10, 20, number=2), lost(20, group="g/b#2"), lost(10, sequence=7_000), lost(20)):
        assert opened(folder).take(again) == []


def test_of_a_loss_that_grew_what_is_new_is_told(folder: Path) -> None:
    opened(folder).take(lost(10, 20))
    (more,) = opened(folder).take(lost(10, 15, 20, 30))
    assert (more.line["messages"], more.line["told_before"]) == (2, 2)
    assert "2 more acknowledged messages of masterEpoch 3 lost" in more.text
    assert opened(folder).take(lost(15, 30)) == []


def test_a_violation_is_told_once_a_frame_and_only_where_it_is_one(folder: Path) -> None:
    (first,) = opened(folder).take(violated(10, 20))
    assert (first.line["frames"], first.line["invariant"]) == (2, "a-rule")
    assert first.text.startswith("g/b: a-rule violated at 1970-01-01 00:00:00.000 UTC: told so")
    assert opened(folder).take(violated(20, 10)) == []
    assert [each.line["frames"] for each in opened(folder).take(violated(20, 30))] == [1]
    assert opened(folder).take(violated(40, verdict="unknown")) == []
    assert len(opened(folder).take(violated(10, invariant="another"))) == 1


def test_what_a_loss_is_about_is_no_violation_as_well(folder: Path) -> None:
    both = replace(lost(10, 20), findings=violated(10, 20).findings)
    assert [each.line["kind"] for each in opened(folder).take(both)] == ["loss"]
    other = replace(lost(10, 20), findings=violated(10, 99).findings)
    assert [each.line["kind"] for each in opened(folder).take(other)] == ["violation"]


def test_behind_too_many_alerts_one_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "ALERTS_MAXIMUM", 3)
    kinds = [each.line["kind"] for number in range(6) for each in opened(folder).take(violated(10 * number))]
    assert kinds == ["violation", "violation", "limit"]
    shown = [json.loads(line)["kind"] for line in (folder / "alerts.jsonl").read_text().splitlines()]
    assert shown == kinds


@pytest.mark.parametrize("content", [b"notes\n", b"[1]\n"])
def test_a_journal_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "journal").write_bytes(content)
    with pytest.raises(CheckpointError, match="no alerts of a watch"):
        opened(folder)


def test_text_of_a_capture_controls_no_terminal(folder: Path) -> None:
    bad = violated(10)
    proof = replace(bad.findings[0].proofs[0], text="a\x1b[2Jb\nALERT c")
    bad.findings[0] = replace(bad.findings[0], proofs=(proof,))
    (told,) = opened(folder).take(bad)
    assert "\x1b" not in told.text
    assert "\n" not in told.text


def test_a_journal_in_which_one_bit_turned_is_refused(folder: Path) -> None:
    opened(folder).take(lost(10, 20))
    path = folder / "journal"
    content = path.read_bytes()
    for at in range(len(content) - 1):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(CheckpointError):
            opened(folder)


def test_messages_that_one_packet_acknowledged_are_told_each(folder: Path) -> None:
    opened(folder).take(lost(10))
    (second,) = opened(folder).take(lost(10, offset=700))
    assert second.line["messages"] == 1
    assert opened(folder).take(lost(10)) == opened(folder).take(lost(10, offset=700)) == []


def test_what_was_taken_back_is_told_again_when_it_is_found_again(folder: Path) -> None:
    nothing = CaptureResult(CaptureRow("f"))
    kinds = []
    for result in (
        lost(10, 20),
        lost(10, 20),
        nothing,
        nothing,
        lost(10, 20),
        lost(10, 20),
        nothing,
        lost(10),
    ):
        kinds += [alert.line["kind"] for alert in opened(folder).settle(result)]
    assert kinds == ["loss", "withdrawn"] * 2 + ["loss"]
    shown = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines()]
    assert len({line["id"] for line in shown}) == len(shown) == len(kinds)
    assert [line["of"] for line in shown[1::2]] == [line["id"] for line in shown[:-1:2]]
