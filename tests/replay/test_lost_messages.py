"""Whoever has to send lost messages again finds each of them, with what its producer knew it by."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines.results import LOST_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.report.rocketmq.lost_messages import properties_in
from tests.house.tree import ROOT

CAPTURES = ROOT / "spark_replay" / "captures"


def _replayed(name: str, out: Path, engine: EngineName = EngineName.LOCAL) -> list[dict[str, Any]]:
    replay([CAPTURES / f"{name}.pcap"], out, engine, Options(bodies=True))
    return [json.loads(line) for line in (out / LOST_NAME).read_text().splitlines()]


@pytest.mark.parametrize("name", ["failover_lost", "hung_master"])
def test_the_messages_are_those_that_the_clients_missed(name: str, tmp_path: Path) -> None:
    """The producer and the consumer of the capture wrote down what they saw: the difference was lost."""
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    sent = {each["message"]: each for each in truth["producer"]["messages"]}
    lost = _replayed(name, tmp_path)
    bodies = [base64.b64decode(each["body"]).decode() for each in lost]
    assert sorted(body[: len("msg-0000000000")] for body in bodies) == sorted(truth["lost"]["messages"])
    for each, body in zip(lost, bodies, strict=True):
        said = sent[body[: len("msg-0000000000")]]
        assert each["message_id"] == said["msg_id"]
        assert (each["offset"], each["queue"]) == (said["offset"], said["queue"])
        assert each["queue_offset"] == said["queue_offset"]
        assert each["body_size"] == len(body)


def test_each_message_says_by_what_its_producer_knows_it(tmp_path: Path) -> None:
    lost = _replayed("failover_lost", tmp_path)
    first = lost[0]
    assert (first["topic"], first["keys"], first["tags"]) == ("TopicA", "k130", "lab")
    assert first["unique_key"] == "FD000000000000000000000000000002380E4E0E2F2A673CF8F50050"
    assert (first["producer_group"], first["producer"]) == ("lab_producer", "127.0.0.1:38302")
    assert (first["broker"], first["acknowledged"]) == ("127.0.0.1:30910", "2026-11-21 01:07:29.147855 UTC")
    assert first["properties"]["WAIT"] == "true"
    assert len({each["unique_key"] for each in lost}) == 220


def test_bodies_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    replay([CAPTURES / "hung_master.pcap"], tmp_path, EngineName.LOCAL, Options())
    lost = [json.loads(line) for line in (tmp_path / LOST_NAME).read_text().splitlines()]
    assert len(lost) == 2
    assert not any("body" in each for each in lost)


def test_a_replay_without_a_loss_leaves_no_file_of_an_earlier_one(tmp_path: Path) -> None:
    _replayed("hung_master", tmp_path)
    replay([CAPTURES / "a_first_start.pcap"], tmp_path, EngineName.LOCAL, Options())
    assert not (tmp_path / LOST_NAME).exists()


def test_what_is_no_pair_is_no_property() -> None:
    assert properties_in("KEYS\x01k1 k2\x02broken\x02TAGS\x01t\x02") == {"KEYS": "k1 k2", "TAGS": "t"}
    assert properties_in("") == {}
