"""Whoever has to send lost messages again finds each of them, with what its producer knew it by."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import FRAMES_NAME, LOST_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.report.lost_file import write_lost
from replispec.replay.report.model import LostMessage, LostSend
from replispec.replay.report.rocketmq.lost_messages import lost_messages, properties_in
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import broker, remoting
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from tests.house.tree import ROOT
from tests.replay.event_rows import from_tables
from tests.replay.pcap_writer import Conversation, pcap

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


@pytest.mark.parametrize("name", ["power_cut", "older_copy"])
def test_messages_that_a_master_lost_within_its_epoch_are_told_apart_from_those_in_their_place(
    name: str, tmp_path: Path
) -> None:
    """Their offsets were acknowledged again afterwards, for other messages, which are there."""
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    bodies = [base64.b64decode(each["body"]).decode() for each in _replayed(name, tmp_path)]
    assert sorted(body[: len("message 000000")] for body in bodies) == sorted(truth["lost"]["messages"])


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


CLIENT, BROKER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)


class Talk:
    """A producer and a broker on one connection, and what a judge would call lost of it."""

    def __init__(self) -> None:
        self._talk = Conversation(CLIENT, BROKER).open()

    def send(self, opaque: int, offsets: list[int], keys: list[str], *, batch: bool = False) -> None:
        """A request with messages, and the answer that they are stored at these offsets."""
        parts = [
            BatchMessage(flag=at, body=key.encode(), properties=f"KEYS\x01{key}\x02".encode())
            for at, key in enumerate(keys)
        ]
        header = broker.SendMessageV2Request(
            producer_group="group", topic="Orders", queue_id=3, properties=f"KEYS\x01{' '.join(keys)}\x02"
        )
        code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
        body = b"".join(part.encode() for part in parts) if batch else keys[0].encode()
        self._frame(code, opaque, header, 0, body, from_client=True)
        ids = ",".join(rules.message_id("10.0.0.2:10911", offset) for offset in offsets)
        unique = ",".join(f"U{key}" for key in keys)
        answer = broker.SendMessageResponse(msg_id=ids, queue_id=3, queue_offset=70, transaction_id=unique)
        self._frame(0, opaque, answer, int(RemotingFlag.RESPONSE), b"", from_client=False)

    def _frame(
        self, code: int, opaque: int, header: Header, flag: int, body: bytes, *, from_client: bool
    ) -> None:
        fields = header.to_ext_fields()
        head = remoting.RemotingHeader(code=code, opaque=opaque, flag=flag, version=493, ext_fields=fields)
        frame = remoting.RemotingFrame(serialize_type=0, header=head.encode_json(), body=body)
        self._talk.send(frame.encode(), from_client=from_client)

    def lost(self, out: Path, *, bodies: bool = True) -> list[LostMessage]:
        """Every message of it, as if all of them were lost."""
        path = out / "talk.pcap"
        path.write_bytes(pcap(self._talk.packets))
        replay([path], out, EngineName.LOCAL, Options(bodies=bodies))
        decoded = decode_capture(path)
        rows = from_tables(observe(decoded.frames, decoded.holes, decoded.streams))
        sends = [
            LostSend(
                (path.name, row.connection, row.direction, row.sequence),
                "G/a", 1, row.offset or 0, "b", row.time_ns, row.duration_ns,
            )
            for row in rows
            if row.kind == ObservationKind.ACKNOWLEDGED
        ]  # fmt: skip
        return list(lost_messages(out / FRAMES_NAME, sends))


def test_each_message_of_a_batch_is_told_with_its_own_body_and_keys(tmp_path: Path) -> None:
    talk = Talk()
    talk.send(7, [4096, 4196, 4296], ["k1", "k2", "k3"], batch=True)
    lost = sorted(talk.lost(tmp_path), key=lambda each: each.offset)
    assert [(each.part, each.keys, each.unique_key) for each in lost] == [
        (0, "k1", "Uk1"), (1, "k2", "Uk2"), (2, "k3", "Uk3"),
    ]  # fmt: skip
    assert [(each.offset, each.queue_offset) for each in lost] == [(4096, 70), (4196, 71), (4296, 72)]
    assert [base64.b64decode(each.body or "") for each in lost] == [b"k1", b"k2", b"k3"]
    assert [(each.topic, each.flag, each.body_size) for each in lost] == [
        ("Orders", 0, 2), ("Orders", 1, 2), ("Orders", 2, 2),
    ]  # fmt: skip


def test_an_empty_body_is_written_and_one_that_was_not_captured_is_not(tmp_path: Path) -> None:
    talk = Talk()
    for at, key in enumerate(["", "full"]):
        talk.send(7, [100 * at], [key])
    lost = [*talk.lost(tmp_path)]
    write_lost([*lost, replace(lost[0], body=None)], tmp_path / "lost.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "lost.jsonl").read_text().splitlines()]
    assert [each.get("body") for each in lines] == ["", base64.b64encode(b"full").decode(), None]


def test_a_number_that_is_used_again_leads_to_the_request_that_was_answered(tmp_path: Path) -> None:
    talk = Talk()
    for at, key in enumerate(["first", "second", "third"]):
        talk.send(7, [100 * at], [key])
    assert [each.keys for each in talk.lost(tmp_path)] == ["first", "second", "third"]
