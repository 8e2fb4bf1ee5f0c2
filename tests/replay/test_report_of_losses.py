"""What whoever is called at night asks of a loss: which messages, when, why, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.report.lost_file import SHOWN_MAXIMUM, write_lost
from replispec.replay.report.model import LostMessage, Overlap, Timeline
from replispec.replay.report.timeline import OVERLAPS, draw
from replispec.replay.report.wording import time_of_day, utc
from tests.house.tree import ROOT
from tests.replay.outline import Outline
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import failed_over, two_brokers

SECOND = 10**9
START = 1_795_206_775 * SECOND


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of the report of each capture that lost messages."""
    found = {}
    for name in ("failover_lost", "hung_master"):
        out = tmp_path_factory.mktemp(name)
        replay([ROOT / "spark_replay/captures" / f"{name}.pcap"], out, EngineName.LOCAL, Options())
        found[name] = " ".join(Outline((out / "report.html").read_text()).text.split())
    return found


def test_which_messages(told: dict[str, str]) -> None:
    assert "TopicA lab_producer LabDLedger/broker-a failover_lost.pcap 220" in told["failover_lost"]
    first = "TopicA 1 32 k130 FD000000000000000000000000000002380E4E0E2F2A673CF8F50050"
    assert first in told["failover_lost"]


def test_when_they_were_acknowledged(told: dict[str, str]) -> None:
    assert "2026-11-21 01:07:29.147855 UTC TopicA 1 32 k130" in told["failover_lost"]


def test_why_a_member_of_the_set_did_not_have_them(told: dict[str, str]) -> None:
    text = told["failover_lost"]
    assert "masterEpoch 2 starts at offset 122,390, where the log of broker 2 ended" in text
    assert "as a member of the SyncStateSet {1, 2}" in text
    assert "was offset 122,404" in text


@pytest.mark.parametrize(
    ("messages", "said"),
    [(1, "the lost message begins at offset "), (3, "the lost messages begin at offsets ")],
)
def test_what_was_acknowledged_beyond_the_start_of_an_epoch_is_told_by_its_places(
    messages: int, said: str, tmp_path: Path
) -> None:
    """How long the last of them is was not told by anybody, so that no number of bytes is missing."""
    world = two_brokers()
    world.send(messages)
    failed_over(world)
    (tmp_path / "a.pcap").write_bytes(pcap(world.traffic.packets()))
    summary = replay([tmp_path / "a.pcap"], tmp_path / "out", EngineName.LOCAL, Options())
    (loss,) = summary.losses
    text = " ".join(Outline((tmp_path / "out" / "report.html").read_text()).text.split())
    places = f"{loss.from_offset:,}" + (f" to {loss.to_offset:,}" if messages > 1 else "")
    assert f"what had been acknowledged reached further: {said}{places}." in text
    assert "0 bytes short" not in text


def test_what_would_have_kept_them(told: dict[str, str]) -> None:
    assert all("Run every broker with allAckInSyncStateSet=true" in text for text in told.values())


def test_that_the_old_master_went_on_when_there_was_a_new_one(told: dict[str, str]) -> None:
    """The processes of the capture tell the same: the first master answered one send too late."""
    text = told["hung_master"]
    assert "1 of them was acknowledged by the old master after broker 2 had become master" in text
    assert "Two masters at once: broker 1 (masterEpoch 1) acknowledged 1 message after broker 2" in text
    assert OVERLAPS in text
    assert OVERLAPS not in told["failover_lost"]


def test_two_masters_at_once_are_a_lane_from_the_election_to_the_last_act() -> None:
    timeline = Timeline("G/a", "f", START, START + 100 * SECOND)
    overlap = Overlap(
        "G/a", "f", START + 50 * SECOND, START + 75 * SECOND, "broker 1", "broker 2", 1, 2, 3, 0
    )
    picture = draw(timeline, (), (overlap,))
    (lane,) = [lane for lane in picture.lanes if lane.name == OVERLAPS]
    (box,) = lane.boxes
    assert box.width == pytest.approx((picture.right - picture.left) / 4, abs=1)
    assert "acknowledged 3 messages" in box.title
    assert "25.000 s later" in box.title


def test_the_axis_of_a_picture_tells_the_time_of_day(told: dict[str, str]) -> None:
    assert "10 s 01:07:02 20 s 01:07:12" in told["failover_lost"]


def test_a_time_of_day_has_the_digits_that_its_neighbours_need() -> None:
    moment = START + 562_123_999
    assert time_of_day(moment, 20 * SECOND) == "20:32:55"
    assert time_of_day(moment, SECOND // 2) == "20:32:55.5"
    assert time_of_day(moment, 500_000) == "20:32:55.5621"
    assert utc(moment) == "2026-11-20 20:32:55.562 UTC"


def test_a_million_lost_messages_are_all_written_and_a_few_are_shown(tmp_path: Path) -> None:
    many = (LostMessage("f", "G/a", 1, at, "b", START, "c", 0, at, topic=f"T{at % 2}") for at in range(2000))
    lost = write_lost(many, tmp_path / "lost.jsonl")
    assert len((tmp_path / "lost.jsonl").read_text().splitlines()) == 2000
    assert len(lost.messages) == SHOWN_MAXIMUM
    assert [(each.topic, each.count) for each in lost.counts] == [("T0", 1000), ("T1", 1000)]
