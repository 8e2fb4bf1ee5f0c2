"""Frames in sequence space: boundaries, holes, starts in the middle, what is foreign, what is hostile."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.frames.anchors import places
from replispec.replay.frames.hints import Hints
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq import ha, streams
from replispec.wire.rocketmq.codes import RequestCode
from tests.replay.pcap_writer import ACK, Conversation, Packet, pcap, with_times
from tests.replay.random_traffic import Harm, batch, command, random_capture

CLIENT, MASTER, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_912), ("10.0.0.3", 10_911)


def decode(
    packets: Iterable[Packet], hints: Hints | None = None, snap_length: int = 262_144
) -> DecodedCapture:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(pcap(packets, snap_length=snap_length))
        return decode_capture(path, hints)


def rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def kinds(decoded: DecodedCapture) -> list[str]:
    return [str(kind) for kind in decoded.streams["protocol"].to_pylist()]


def replication(mss: int = 1448) -> Conversation:
    """A handshake, three runs of 5000 log bytes, a heartbeat, and the reports."""
    talk = Conversation(CLIENT, MASTER, mss=mss).open()
    talk.send(ha.HaHandshakeId(broker_id=2, async_learner=True).encode(), from_client=True)
    entries = [ha.HaEpochEntry(epoch=1, start_offset=0), ha.HaEpochEntry(epoch=3, start_offset=900)]
    talk.send(
        ha.HaHandshakeAnswer(max_offset=1000, last_epoch=3, entries=entries).encode(), from_client=False
    )
    talk.send(ha.HaReport(max_offset=1000).encode(), from_client=True)
    for at in range(3):
        talk.send(batch(1000 + at * 5000, 5000, epoch=3, epoch_start=900), from_client=False)
        talk.send(ha.HaReport(max_offset=6000 + at * 5000).encode(), from_client=True)
    return talk.send(batch(16_000, 0, epoch=3, epoch_start=900), from_client=False)


def test_a_replication_connection_is_decoded_field_by_field() -> None:
    decoded = decode(replication().packets)
    assert kinds(decoded) == ["ha_master", "ha_replica"]
    frames = decoded.frames.to_pylist()
    answer, first = frames[0], frames[1]
    assert answer["message"] == "HaHandshakeAnswer"
    assert (answer["max_offset"], answer["last_epoch"], answer["body_size"]) == (1000, 3, 24)
    assert answer["epochs"] == [{"epoch": 1, "start_offset": 0}, {"epoch": 3, "start_offset": 900}]
    offsets = [first[name] for name in ("offset", "epoch", "epoch_start_offset", "confirm_offset")]
    assert offsets == [1000, 3, 900, 1000]
    assert (first["size"], first["body_size"], first["state"]) == (5036, 5000, 2)
    handshake = frames[5]
    flags = [handshake[name] for name in ("broker_id", "async_learner", "sync_from_last_file")]
    assert flags == [2, True, False]
    assert [frame["max_offset"] for frame in frames[6:]] == [1000, 6000, 11_000, 16_000]
    assert all(frame["complete"] and frame["from_start"] for frame in frames)
    assert [frame["index"] for frame in frames] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]


def test_commands_are_decoded_field_by_field() -> None:
    talk = Conversation(CLIENT, SERVER).open()
    code = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET
    talk.send(command(7, body=b'{"a":1}', code=code), from_client=True)
    talk.send(command(10, body=b"text", binary=True), from_client=True)
    talk.send(command(7, answer=True), from_client=False)
    decoded = decode(talk.packets)
    answer, first, second = decoded.frames.to_pylist()
    header = [first[name] for name in ("code", "flag", "opaque", "version", "language")]
    assert header == [RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, 0, 7, 493, "JAVA"]
    assert dict(first["ext_fields"]) == {"topic": "TopicA", "queueId": "7"}
    assert (first["json_body"], first["body_size"], first["serialize_type"]) == (b'{"a":1}', 7, 0)
    assert (second["json_body"], second["body_size"], second["serialize_type"]) == (None, 4, 1)
    assert (second["remark"], answer["flag"], answer["body"]) == ("a remark", 1, None)
    assert (answer["source"], answer["destination"]) == ("10.0.0.3:10911", "10.0.0.9:40000")


def test_bodies_are_kept_when_asked_for() -> None:
    talk = Conversation(CLIENT, SERVER).open().send(command(7, body=b"text" * 30_000), from_client=True)
    assert decode(talk.packets, Hints(keep_bodies=True)).frames["body"].to_pylist() == [b"text" * 30_000]
    decoded = decode(replication().packets, Hints(keep_bodies=True))
    assert decoded.frames["body"].to_pylist()[1] == bytes([7]) * 5000


def test_a_frame_carries_the_time_and_record_of_the_packet_that_completed_it() -> None:
    talk = Conversation(CLIENT, SERVER, mss=50).open().send(command(7, body=b"x" * 200), from_client=True)
    *head, before_last, last = talk.packets
    packets = with_times([*head, last, before_last])
    frame = decode(packets).frames.to_pylist()[0]
    assert frame["time_ns"] == packets[-1].time_ns
    before = sum(16 + 54 + len(packet.payload) for packet in packets[:-1])
    assert frame["record_offset"] == 24 + before


@pytest.mark.parametrize("mss", [1, 7, 36, 1448])
def test_frames_do_not_depend_on_how_the_bytes_are_cut(mss: int) -> None:
    names = ("sequence", "index", "message", "size", "offset", "max_offset", "complete")
    whole = decode(replication().packets).frames
    assert rows(decode(replication(mss).packets).frames, *names) == rows(whole, *names)


def without(talk: Conversation, *numbers: int) -> list[Packet]:
    """The packets of a conversation without some of those that carry the master's payload."""
    mine = [at for at, packet in enumerate(talk.packets) if packet.source == MASTER and packet.payload]
    gone = {mine[number] for number in numbers}
    return [packet for at, packet in enumerate(talk.packets) if at not in gone]


def test_a_hole_in_a_body_leaves_the_frame_incomplete_and_the_next_boundary_known() -> None:
    decoded = decode(without(replication(), 2))
    frames = [frame for frame in decoded.frames.to_pylist() if frame["protocol"] == "ha_master"]
    assert [frame["complete"] for frame in frames] == [True, False, True, True, True]
    assert [frame["from_start"] for frame in frames] == [True, True, False, False, False]
    assert rows(decoded.holes, "kind") == [("lost",)]
    assert decoded.streams["bytes_undecoded"].to_pylist() == [0, 0]


def test_a_hole_over_a_header_is_followed_by_the_next_frame_that_is_proved() -> None:
    decoded = decode(without(replication(), 1))
    frames = [frame for frame in decoded.frames.to_pylist() if frame["protocol"] == "ha_master"]
    assert [frame["offset"] for frame in frames] == [None, 6000, 11_000, 16_000]
    assert [frame["from_start"] for frame in frames] == [True, False, False, False]
    assert decoded.streams["bytes_undecoded"].to_pylist() == [5036 - 1448, 0]


@pytest.mark.parametrize("skipped", range(4, 30))
def test_a_stream_seen_from_the_middle_is_recognised(skipped: int) -> None:
    decoded = decode(replication().packets[skipped:])
    whole = set(rows(decode(replication().packets).frames, "message", "offset", "max_offset", "size"))
    told = dict(zip(decoded.streams["destination"].to_pylist(), kinds(decoded), strict=True))
    if len(decoded.streams) == 2:
        assert told == {"10.0.0.2:10912": "ha_replica", "10.0.0.9:40000": "ha_master"}
    assert set(rows(decoded.frames, "message", "offset", "max_offset", "size")) <= whole
    assert not any(decoded.frames["from_start"].to_pylist())


def test_commands_are_found_after_a_large_body_seen_from_the_middle() -> None:
    talk = Conversation(CLIENT, SERVER).open()
    talk.send(
        command(1, body=random.Random(1).randbytes(3_000_000)) + command(2) + command(4), from_client=True
    )
    decoded = decode(talk.packets[10:])
    assert decoded.frames["opaque"].to_pylist() == [2, 4]


def test_a_snap_length_keeps_what_the_headers_say() -> None:
    decoded = decode(replication().packets, snap_length=54 + 40)
    frames = [frame for frame in decoded.frames.to_pylist() if frame["protocol"] == "ha_master"]
    assert [frame["offset"] for frame in frames] == [None, 1000, 6000, 11_000, 16_000]
    assert frames[0]["epochs"] is None
    assert set(decoded.holes["kind"].to_pylist()) == {"truncated"}


def test_replication_outside_controller_mode_is_named_and_not_decoded() -> None:
    talk = (
        Conversation(CLIENT, MASTER).open().send(ha.HaLegacyReport(max_offset=0).encode(), from_client=True)
    )
    for at in range(3):
        talk.send(ha.HaLegacyTransferHeader(offset=at * 400, body=b"l" * 400).encode(), from_client=False)
        talk.send(ha.HaLegacyReport(max_offset=at * 400 + 400).encode(), from_client=True)
    decoded = decode(talk.packets)
    assert kinds(decoded) == ["ha_legacy_master", "ha_legacy_replica"]
    assert decoded.frames.num_rows == 0
    assert decoded.streams["bytes_undecoded"].to_pylist() == [0, 0]


def test_what_fits_nothing_is_foreign_and_not_undecoded() -> None:
    talk = Conversation(CLIENT, SERVER).open().send(b"GET / HTTP/1.1\r\n\r\n", from_client=True)
    talk.send(b"HTTP/1.1 200 OK\r\n\r\n", from_client=False)
    decoded = decode(talk.packets)
    assert kinds(decoded) == ["foreign", "foreign"]
    assert rows(decoded.streams, "bytes_payload", "bytes_undecoded") == [(19, 0), (18, 0)]


def test_the_caller_may_say_which_port_is_replication() -> None:
    talk = Conversation(CLIENT, MASTER).open().send(b"not what it should be", from_client=True)
    for hints in (Hints(ha_ports=frozenset({10_912})), Hints(ha_addresses=frozenset({"10.0.0.2:10912"}))):
        decoded = decode(talk.packets, hints)
        assert kinds(decoded) == ["ha_master", "ha_replica"]
        assert decoded.streams["bytes_undecoded"].to_pylist() == [0, 21]


def test_a_silent_side_is_named_after_its_peer() -> None:
    talk = Conversation(CLIENT, MASTER).open().send(ha.HaHandshakeId(broker_id=2).encode(), from_client=True)
    assert kinds(decode(talk.packets)) == ["ha_master", "ha_replica"]


def test_answers_of_5_0_0_are_read_when_the_caller_says_so() -> None:
    talk = (
        Conversation(CLIENT, MASTER)
        .open()
        .send(ha.HaHandshakeAddress(address="a:1").encode(), from_client=True)
    )
    entries = [ha.HaEpochEntry(epoch=1, start_offset=5)]
    padded = ha.HaHandshakeAnswerPadded(max_offset=9, last_epoch=1, entries=entries).encode()
    talk.send(padded + batch(9, 100), from_client=False)
    frames = decode(talk.packets, Hints(padded_answers=True)).frames.to_pylist()
    names = [frame["message"] for frame in frames]
    assert names == ["HaHandshakeAnswerPadded", "HaTransferHeader", "HaHandshakeAddress"]


@pytest.mark.parametrize(
    "entries", [[], [ha.HaEpochEntry(1, 0)], [ha.HaEpochEntry(1, 0), ha.HaEpochEntry(2, 9)]]
)
@pytest.mark.parametrize("answer", [ha.HaHandshakeAnswer, ha.HaHandshakeAnswerPadded])
def test_answers_of_5_0_0_are_known_by_their_unused_bytes(
    answer: type[ha.HaHandshakeAnswer | ha.HaHandshakeAnswerPadded], entries: list[ha.HaEpochEntry]
) -> None:
    """Masters of both releases may be in one capture: nobody has to say which is which."""
    said = answer(max_offset=9, last_epoch=len(entries), entries=entries).encode()
    talk = Conversation(CLIENT, MASTER).open()
    talk.send(ha.HaHandshakeAddress(address="a:1").encode(), from_client=True)
    talk.send(said, from_client=False)
    talk.send(said + batch(9, 100), from_client=False)
    decoded = decode(talk.packets)
    names = [frame["message"] for frame in decoded.frames.to_pylist()]
    assert names == [answer.__name__, answer.__name__, "HaTransferHeader", "HaHandshakeAddress"]
    assert decoded.streams["bytes_undecoded"].to_pylist() == [0, 0]


def test_a_proxy_header_before_the_first_frame_is_skipped() -> None:
    talk = Conversation(CLIENT, SERVER).open()
    talk.send(b"PROXY TCP4 10.0.0.9 10.0.0.3 40000 10911\r\n" + command(1) + command(2), from_client=True)
    decoded = decode(talk.packets)
    assert decoded.frames["opaque"].to_pylist() == [1, 2]


PROXY_1 = b"PROXY TCP4 10.0.0.9 10.0.0.3 40000 10911\r\n"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n" + bytes.fromhex("2111000c0a0000090a0000039c402a9f")


@pytest.mark.parametrize(
    ("preface", "undecoded"), [(PROXY_1, 0), (PROXY_2, 0), (PROXY_1 + b"?", 43), (PROXY_2 + b"?", 29)]
)
def test_a_proxy_header_hides_nothing_and_other_bytes_before_a_frame_may(
    preface: bytes, undecoded: int
) -> None:
    talk = Conversation(CLIENT, SERVER).open()
    talk.send(preface + command(1) + command(2), from_client=True)
    decoded = decode(talk.packets)
    assert decoded.frames["opaque"].to_pylist() == [1, 2]
    assert sum(decoded.streams["bytes_undecoded"].to_pylist()) == undecoded


def test_a_length_out_of_bounds_ends_nothing_but_that_frame() -> None:
    talk = Conversation(CLIENT, SERVER).open()
    bad = b"\x7f\xff\xff\xff\x00\x00\x00\x02{}"
    talk.send(command(1) + command(2) + bad + command(4) + command(5), from_client=True)
    decoded = decode(talk.packets)
    assert decoded.frames["opaque"].to_pylist() == [1, 2, 4, 5]
    assert decoded.streams["bytes_undecoded"].to_pylist() == [0, len(bad)]
    assert decoded.frames["from_start"].to_pylist() == [True, True, False, False]


def test_without_harm_every_byte_of_known_protocols_is_decoded() -> None:
    for seed in range(20):
        decoded = decode(random_capture(seed))
        known = [kind in ("remoting", "ha_master", "ha_replica") for kind in kinds(decoded)]
        assert any(known) or seed
        assert sum(decoded.streams["bytes_undecoded"].to_pylist()) == 0
        assert all(decoded.frames["complete"].to_pylist())
        assert decoded.holes.num_rows == 0


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=400), st.booleans(), st.integers(1, 100))
def test_garbage_is_counted_and_never_a_crash(first: bytes, second: bytes, whole: bool, mss: int) -> None:
    talk = Conversation(CLIENT, SERVER, mss=mss).open()
    talk.send(first, from_client=True).send(second, from_client=False).send(
        command(1) + first, from_client=True
    )
    decoded = decode(talk.packets if whole else talk.packets[3:])
    for kind, payload, read, missed in rows(
        decoded.streams, "protocol", "bytes_payload", "bytes_decoded", "bytes_undecoded"
    ):
        if kind in ("remoting", "ha_master", "ha_replica"):
            assert read + missed == payload
        else:
            assert (read, missed) == (0, 0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.2]))
def test_a_bad_capture_point_yields_only_frames_that_were_sent(seed: int, rate: float) -> None:
    harm = Harm(lost=rate, repeated=rate, reordered=rate, headless=0.3)
    decoded = decode(random_capture(seed, harm, talks=4))
    for _, start, end in rows(decoded.holes, "connection", "start", "end"):
        assert 0 <= start < end
    places_ = rows(decoded.frames, "connection", "direction", "sequence", "size")
    for (name, side, at, size), (other, other_side, following, _) in pairwise(places_):
        assert (name, side) != (other, other_side) or following >= at + size


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(streams.STREAMS), st.binary(max_size=200), st.integers(0, 20))
def test_places_are_those_where_a_form_fits(stream: Stream, noise: bytes, at: int) -> None:
    buffer = noise + b"\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00" + noise[::-1] + bytes(40)
    expected = []
    for place in range(at, len(buffer)):
        for form in stream.forms:
            need = max([form.length_end, *(test.end for test in form.tests)])
            alone = Stream(name="x", sender="", forms=(form,))
            try:
                fits = len(buffer) - place >= need and alone.measure(buffer, place, len(buffer)) is not None
            except RemoteProtocolError:
                fits = False
            if fits:
                expected.append(place)
                break
    border = max(at, len(buffer) // 2)
    parts = [places(stream, buffer, at, border), places(stream, buffer, border, len(buffer))]
    assert [place for part in parts for place in part.tolist()] == expected


def test_an_acknowledged_end_that_was_not_captured_is_a_hole() -> None:
    talk = replication()
    packets = [
        *talk.packets[:-1],
        Packet(
            CLIENT,
            MASTER,
            talk.packets[-1].acknowledgment,
            flags=ACK,
            acknowledgment=talk.packets[-1].sequence + 36,
        ),
    ]
    assert rows(decode(with_times(packets)).holes, "kind") == [("lost_at_end",)]
