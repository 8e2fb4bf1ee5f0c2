"""What was captured and cannot be read is a hole of knowledge: nothing is promised over it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq import broker as to_broker
from replispec.wire.rocketmq import controller as to_controller
from replispec.wire.rocketmq.codes import RequestCode
from tests.replay.expectations import SEND_SURVIVES
from tests.replay.faults import Frame, commands, taken, written
from tests.replay.pcap_writer import Conversation, Packet, pcap
from tests.replay.random_traffic import command
from tests.replay.scenarios import failed_over, two_brokers
from tests.replay.test_all_clear import headline_of, told
from tests.replay.world import ADMIN, CLUSTER, OPEN_END


class Told(Header):
    """An answer with just these fields."""

    CODES = ()

    def __init__(self, fields: Mapping[str, str | None]) -> None:
        self._fields = dict(fields)

    def to_ext_fields(self, *, binary: bool = False) -> dict[str, str | None]:  # noqa: ARG002 (as a header)
        """The fields."""
        return self._fields


def acknowledged_so(answer: Callable[[str], Header]) -> list[Packet]:
    """A message that the later master lacks, acknowledged by an answer of one's own."""
    world = two_brokers()
    master = world.brokers[1]
    place, message = master.store()
    world._exchange(world._to(master), world._sent(), answer(master.message_id(place)), asked=message)
    return failed_over(world).traffic.packets()


ODD_ANSWERS: dict[str, Callable[[str], Header]] = {
    "no id": lambda _: to_broker.SendMessageResponse(None, 0, 0),
    "an empty id": lambda _: to_broker.SendMessageResponse("", 0, 0),
    "a short id": lambda _: to_broker.SendMessageResponse("0A0001010000", 0, 0),
    "a space": lambda one: to_broker.SendMessageResponse(f" {one}", 0, 0),
    "no number": lambda one: Told({"msgId": one, "queueId": "0", "queueOffset": "x"}),
    "a large number": lambda one: Told({"msgId": one, "queueId": "4294967296", "queueOffset": "1"}),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_an_acknowledgement_whose_fields_are_odd_is_no_promise(name: str, tmp_path: Path) -> None:
    summary = told(pcap(acknowledged_so(ODD_ANSWERS[name])), tmp_path / "odd.pcap")
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    assert summary.captures[0].commands_unread == 1
    assert any("odd.pcap holds 1 command with fields" in line for line in found.lines)
    sends = next(each for each in summary.findings if each.invariant == SEND_SURVIVES)
    assert sends.verdict is Verdict.UNKNOWN


ODD_HEADERS: dict[str, Callable[[bytes], bytes]] = {
    "single quotes": lambda header: header.replace(b'"', b"'"),
    "a comma": lambda header: header[:-1] + b",}",
    "no text": lambda header: header[:-1] + b',"remark":"\xe9t\xe9"}',
    "no number": lambda header: re.sub(rb'"opaque":([0-9]+)', rb'"opaque":\1.0', header),
    "garbage": lambda header: b"{" + bytes(len(header) - 1),
}


def with_header(frame: Frame, made: Callable[[bytes], bytes]) -> Frame:
    """A command with another header."""
    size = int.from_bytes(frame.data[5:8], "big")
    header, body = made(frame.data[8 : 8 + size]), frame.data[8 + size :]
    head = (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
    return replace(frame, data=head + header + body)


@pytest.mark.parametrize("name", ODD_HEADERS)
def test_bytes_that_are_no_frame_are_no_promise(name: str, tmp_path: Path) -> None:
    world = two_brokers()
    world.send(3)
    path = tmp_path / "odd.pcap"
    path.write_bytes(pcap(failed_over(world).traffic.packets()))
    frames = taken(path)
    for at in commands(frames, RequestCode.SEND_MESSAGE_V2, answers=True)[-3:]:
        frames[at] = with_header(frames[at], ODD_HEADERS[name])
    summary = told(pcap(written(frames)), path)
    found = headline_of(summary)
    assert (found.tone, summary.exit_code) == ("unjudged", 0)
    undecoded = summary.captures[0].bytes_undecoded
    assert f"Not read: odd.pcap holds {undecoded:,} bytes in which no frame was found." in found.lines
    sends = next(each for each in summary.findings if each.invariant == SEND_SURVIVES)
    assert sends.verdict is Verdict.UNKNOWN


def test_an_answer_to_a_request_that_is_too_long_to_be_read_is_not_blamed(tmp_path: Path) -> None:
    world = two_brokers()
    master = world.brokers[1]
    place, _ = master.store()
    answer = to_broker.SendMessageResponse(master.message_id(place), 0, 0)
    world._exchange(world._to(master), world._sent(), answer, asked=bytes(17 << 20))
    summary = told(pcap(failed_over(world).traffic.packets()), tmp_path / "long.pcap")
    assert (headline_of(summary).tone, summary.exit_code) == ("unjudged", 0)


def later_start_told(lead: bytes, padding: int = 0) -> list[Packet]:
    """A broker tells of an epoch that starts before messages that were acknowledged."""
    world = failed_over(two_brokers())
    broker = world.brokers[2]
    entries = [to_controller.EpochEntry(500, 1, 0), to_controller.EpochEntry(OPEN_END, 3, 500)]
    body = to_controller.EpochEntryCache(0, world.name, CLUSTER, entries, 500).encode()
    link = world.traffic.connect(ADMIN, broker.endpoint)
    asked = to_controller.GetBrokerEpochCacheRequest()
    world._exchange(link, asked, None, body=lead + body[:-1] + b" " * padding + body[-1:])
    return world.traffic.packets()


@pytest.mark.parametrize("lead", [b"", b" ", b"\n", b"\r\n\t "])
def test_json_that_begins_with_white_space_is_json(lead: bytes, tmp_path: Path) -> None:
    summary = told(pcap(later_start_told(lead)), tmp_path / "spaces.pcap")
    assert [each.acknowledged for each in summary.losses] == [7]


def test_json_above_64_kib_is_read(tmp_path: Path) -> None:
    summary = told(pcap(later_start_told(b"", 128 * 1024)), tmp_path / "long.pcap")
    assert [each.acknowledged for each in summary.losses] == [7]


@pytest.mark.parametrize(("lead", "padding"), [(b"\xef\xbb\xbf", 0), (b"/**/", 0), (b"", 1024 * 1024)])
def test_a_body_that_is_not_read_is_no_promise(lead: bytes, padding: int, tmp_path: Path) -> None:
    summary = told(pcap(later_start_told(lead, padding)), tmp_path / "unread.pcap")
    assert (headline_of(summary).tone, summary.losses) == ("unjudged", [])
    assert summary.captures[0].commands_unread == 1


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b" "])
@pytest.mark.parametrize("size", [8, 16, 24, 64])
def test_who_answers_what_could_not_be_read_is_not_blamed(size: int, fill: bytes, tmp_path: Path) -> None:
    """Zeros look like frames of a kind that has no mark; what the peer speaks tells more."""
    talk = Conversation(("10.0.0.9", 40000), ("10.0.0.2", 10911)).open()
    for number in range(6):
        data = command(number)
        talk.send(data if number else fill * size + data[size:], from_client=True)
        talk.send(command(number, answer=True), from_client=False)
    summary = told(pcap(talk.packets), tmp_path / "zeros.pcap")
    row = summary.captures[0]
    assert (row.frames_remoting, row.bytes_foreign) == (11, 0)
    assert row.bytes_undecoded == len(command(0))
    assert summary.exit_code == 0
