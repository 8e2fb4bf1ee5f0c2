"""Encrypted connections are named as such, in streams, summary and report, and never searched for frames."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest

from replispec.replay.engines import results, run
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.frames.hints import Hints
from replispec.replay.report.model import CaptureInfo
from replispec.replay.report.wording import tls_line
from tests.replay.pcap_writer import Conversation, Packet, in_time_order, pcap
from tests.replay.random_traffic import command

CLIENT, BROKER, MASTER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911), ("10.0.0.2", 10_912)
# A record with a ServerHello of TLS 1.2 without extensions; its random bytes hold what looks like a frame.
SERVER_HELLO = bytes([22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3]) + command(1)[:32] + bytes([0, 0x13, 1, 0])
APPLICATION_DATA = bytes([23, 3, 3, 0x10, 0]) + command(7) * 40 + bytes(4096)


def client_hello() -> bytes:
    """What a real client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="broker")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def encrypted(server: tuple[str, int] = BROKER, port: int = 40_000) -> Conversation:
    talk = Conversation((CLIENT[0], port), server).open()
    talk.send(client_hello(), from_client=True).send(SERVER_HELLO, from_client=False)
    return talk.send(APPLICATION_DATA, from_client=True).send(APPLICATION_DATA, from_client=False)


def decode(folder: Path, packets: list[Packet], hints: Hints | None = None) -> DecodedCapture:
    path = folder / "made.pcap"
    path.write_bytes(pcap(packets))
    decoded = decode_capture(path, hints)
    for split_bytes in (1, 3000, 20_000):
        parts = decode_by_splits(path, split_bytes, hints)
        assert parts.streams.to_pylist() == decoded.streams.to_pylist()
        assert parts.frames.to_pylist() == decoded.frames.to_pylist()
    return decoded


@pytest.mark.parametrize("hints", [Hints(), Hints(ha_ports=frozenset((10_912,)))])
@pytest.mark.parametrize("server", [BROKER, MASTER])
def test_a_stream_that_begins_with_a_hello_is_tls(
    tmp_path: Path, server: tuple[str, int], hints: Hints
) -> None:
    decoded = decode(tmp_path, encrypted(server).packets, hints)
    assert decoded.streams["protocol"].to_pylist() == ["tls", "tls"]
    assert decoded.streams["bytes_undecoded"].to_pylist() == [0, 0]
    assert decoded.frames.num_rows == decoded.holes.num_rows == 0


@pytest.mark.parametrize("from_client", [True, False])
def test_the_hello_of_one_side_tells_of_both(tmp_path: Path, from_client: bool) -> None:
    """The other side's first segment was not captured, and after it lies what looks like a frame."""
    packets = encrypted().packets
    lost = next(
        packet for packet in packets if packet.payload and (packet.source == CLIENT) is not from_client
    )
    decoded = decode(tmp_path, [packet for packet in packets if packet is not lost])
    assert decoded.streams["protocol"].to_pylist() == ["tls", "tls"]


def test_a_hello_without_its_handshake_is_tls_too(tmp_path: Path) -> None:
    assert decode(tmp_path, encrypted().packets[3:]).streams["protocol"].to_pylist() == ["tls", "tls"]


@pytest.mark.parametrize(("at", "value"), [(0, 21), (1, 4), (2, 9), (3, 0x7F), (5, 9)])
def test_what_only_resembles_a_hello_is_foreign(tmp_path: Path, at: int, value: int) -> None:
    data = bytearray(SERVER_HELLO + bytes(3000))
    data[at] = value
    talk = Conversation(CLIENT, BROKER).open().send(bytes(data), from_client=True)
    assert decode(tmp_path, talk.packets).streams["protocol"].to_pylist() == ["foreign", "foreign"]


@pytest.mark.parametrize("engine", run.EngineName)
def test_encrypted_connections_are_counted_and_said_first(tmp_path: Path, engine: run.EngineName) -> None:
    path = tmp_path / "made.pcap"
    plain = (
        Conversation(("10.0.0.8", 40_000), BROKER).open().send(b"GET / HTTP/1.1\r\n\r\n", from_client=True)
    )
    path.write_bytes(pcap(in_time_order([encrypted(), encrypted(port=40_001), encrypted(MASTER), plain])))
    run.replay([path], tmp_path / "out", engine, results.Options())
    (row,) = json.loads((tmp_path / "out" / results.SUMMARY_NAME).read_text())["captures"]
    assert row["connections_tls"] == 3
    assert row["tls_at"] == ["10.0.0.2:10911", "10.0.0.2:10912"]
    assert row["bytes_tls"] == 3 * sum(len(packet.payload) for packet in encrypted().packets)
    assert row["bytes_foreign"] == 18
    page = (tmp_path / "out" / results.REPORT_NAME).read_text()
    sentence = "Not read: 3 connections to 10.0.0.2:10911, 10.0.0.2:10912 were encrypted by TLS (made.pcap)"
    assert page.index(sentence) < page.index('<ul class="tiles"')


def test_many_listeners_are_counted() -> None:
    at = tuple(f"10.0.0.{number}:10911" for number in range(7))
    assert tls_line(CaptureInfo("a.pcap", connections_tls=1, tls_at=at[:1])) == (
        "Not read: 1 connection to 10.0.0.0:10911 was encrypted by TLS (a.pcap)"
    )
    assert "10.0.0.4:10911 and 2 other addresses were" in tls_line(
        CaptureInfo("a.pcap", connections_tls=9, tls_at=at)
    )
