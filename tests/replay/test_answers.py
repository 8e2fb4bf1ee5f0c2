"""What requests were answered: counted by both codes, with the remark of the one who refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.tables import to_tables
from replispec.replay.report.model import Answers
from replispec.replay.report.rocketmq.answers import answers
from tests.house.tree import ROOT
from tests.replay.outline import Outline
from tests.replay.test_latencies import observed, talked

CAPTURES = ROOT / "spark_replay" / "captures"


def test_a_broker_that_is_refused_finds_the_reason_in_the_report(tmp_path: Path) -> None:
    """The registration that a broker of 5.1.0 tries with a controller of 5.4.0, six times over."""
    capture = CAPTURES / "k1_oldbroker_newcontroller.pcap"
    replay([capture], tmp_path, EngineName.LOCAL, Options())
    text = " ".join(Outline((tmp_path / "report.html").read_text()).text.split())
    assert "6 answers of 18 in k1_oldbroker_newcontroller.pcap are no success" in text
    assert "6 Broker-set: broker-a hasn't been registered in controller" in text


@pytest.mark.parametrize("capture", ["hung_master", "g_mqadmin"])
def test_every_answer_that_has_a_latency_is_counted_once(capture: str) -> None:
    rows = observed(CAPTURES / f"{capture}.pcap")
    found = answers(capture, CaptureEvents(to_tables(rows)))
    assert sum(each.count for each in found) == sum(len(row.durations_ns or ()) for row in rows) > 0
    refused = [each.success for each in found]
    assert refused == sorted(refused)


def test_answers_of_several_rows_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replispec.replay.events.rocketmq.durations.DURATIONS_MAXIMUM", 4)
    rows = to_tables(talked(tmp_path, list(range(1, 11))))
    expected = Answers("made.pcap", 310, "SEND_MESSAGE_V2", 0, "SUCCESS", 10, "a remark", success=True)
    assert answers("made.pcap", CaptureEvents(rows)) == [expected]


def test_a_request_that_nobody_answered_has_no_answer(tmp_path: Path) -> None:
    assert answers("made.pcap", CaptureEvents(to_tables(talked(tmp_path, [], unanswered=2)))) == []
