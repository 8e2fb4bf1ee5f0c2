"""Containers, byte orders, link types, cuts and damage: what the capture reader makes of them."""

from __future__ import annotations

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from replispec.replay.capture.files import map_split, open_capture, walk
from replispec.replay.capture.records import CaptureError
from replispec.replay.capture.whole_files import whole_file
from replispec.replay.tcp.checksums import HEADER_RIGHT, HEADER_WRONG
from replispec.replay.tcp.packets import Packets, read_packets
from replispec.replay.tcp.remarks import BETWEEN, OTHERS, TCP, UNOPENED, Remarks
from tests.replay.pcap_writer import Conversation, Packet, interface, pcap, pcapng, section

V4 = (("10.0.0.1", 1111), ("10.0.0.2", 2222))
V6 = (("fd00::1", 1111), ("fd00::2", 2222))


def talk(ends: tuple[tuple[str, int], tuple[str, int]] = V4) -> list[Packet]:
    return (
        Conversation(*ends)
        .open()
        .send(b"x" * 3000, from_client=True)
        .send(b"answer", from_client=False)
        .packets
    )


def read(tmp_path: Path, data: bytes, name: str = "some.pcap") -> tuple[Packets, list[str], bytes]:
    path = tmp_path / name
    path.write_bytes(data)
    with open_capture(path) as capture:
        packets = read_packets(capture.data, capture.records())
        return packets, [warning.reason for warning in capture.warnings], bytes(capture.data)


def payloads(packets: Packets, data: bytes) -> list[bytes]:
    rows = zip(packets.payload_offset.tolist(), packets.payload_captured.tolist(), strict=True)
    return [data[at : at + size] for at, size in rows]


@pytest.mark.parametrize("link_type", [0, 1, 101, 108, 113, 276])
@pytest.mark.parametrize("ends", [V4, V6], ids=["IPv4", "IPv6"])
def test_every_link_type_gives_the_same_packets(
    tmp_path: Path, link_type: int, ends: tuple[tuple[str, int], ...]
) -> None:
    source = talk((ends[0], ends[1]))
    packets, warnings, data = read(tmp_path, pcap(source, link_type=link_type))
    assert not warnings
    assert payloads(packets, data) == [packet.payload for packet in source]
    assert packets.sequence.tolist() == [packet.sequence for packet in source]
    assert packets.acknowledgment.tolist() == [packet.acknowledgment for packet in source]
    assert packets.flags.tolist() == [packet.flags for packet in source]
    assert packets.source_port.tolist() == [packet.source[1] for packet in source]
    assert packets.payload_wire.tolist() == [len(packet.payload) for packet in source]


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("container", ["us", "ns", "ng", "ng-us", "ng-2^-30", "ng-2^-33", "old"])
def test_containers_and_byte_orders_give_the_same_times(
    tmp_path: Path, container: str, byte_order: str
) -> None:
    source = [replace(packet, time_ns=packet.time_ns + 123_456_789) for packet in talk()]
    match container:
        case "us" | "ns":
            data = pcap(source, byte_order=byte_order, nanoseconds=container == "ns")
        case "old":
            data = pcapng(source, byte_order=byte_order, block="old")
        case _:
            resolution = {"ng": 9, "ng-us": None, "ng-2^-30": 128 + 30, "ng-2^-33": 128 + 33}[container]
            data = pcapng(source, byte_order=byte_order, resolution=resolution)
    packets, warnings, _ = read(tmp_path, data)
    exact = container in ("ns", "ng", "old")
    within = 0 if exact else 1000 if container in ("us", "ng-us") else 2
    assert not warnings
    assert np.abs(packets.time_ns - [packet.time_ns for packet in source]).max() <= within


def test_simple_blocks_have_payload_but_no_time(tmp_path: Path) -> None:
    packets, _, data = read(tmp_path, pcapng(talk(), block="simple", snap_length=1000))
    assert payloads(packets, data)[3] == b"x" * (1000 - 54)
    assert set(packets.time_ns.tolist()) == {0}


def test_tags_options_and_extension_headers_are_stepped_over(tmp_path: Path) -> None:
    source = [
        Packet(*V4, 1, b"tagged", vlans=(7, 8)),
        Packet(*V4, 7, b"options", options=b"\x01" * 12),
        Packet(*V6, 1, b"extended", extensions=bytes([60, 0]) + bytes(6) + bytes([6, 1]) + bytes(14)),
    ]
    packets, _, data = read(tmp_path, pcap(source))
    assert payloads(packets, data) == [b"tagged", b"options", b"extended"]


@pytest.mark.parametrize("ends", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_length_of_zero_means_the_whole_record(tmp_path: Path, ends: tuple[tuple[str, int], ...]) -> None:
    packets, _, data = read(
        tmp_path, pcap([Packet(ends[0], ends[1], 1, b"y" * 70_000, total_length_zero=True)])
    )
    assert payloads(packets, data) == [b"y" * 70_000]


def test_a_snap_length_leaves_the_length_on_the_wire(tmp_path: Path) -> None:
    packets, warnings, data = read(tmp_path, pcap([Packet(*V4, 1, b"z" * 500)], snap_length=100))
    assert not warnings
    assert payloads(packets, data) == [b"z" * 46]
    assert packets.payload_wire.tolist() == [500]


def test_other_protocols_are_passed_over(tmp_path: Path) -> None:
    data = bytearray(pcap([Packet(*V4, 1, b"one"), Packet(*V4, 4, b"two")]))
    data[24 + 16 + 14 + 9] = 17
    packets, warnings, _ = read(tmp_path, bytes(data))
    assert not warnings
    assert packets.sequence.tolist() == [4]
    ends = "|".join(sorted(host for host, _ in V4))
    assert packets.remarks == Remarks({OTHERS: 1, TCP: 1, UNOPENED + "UDP": 1, f"{BETWEEN}UDP|{ends}": 1})


def test_the_checksum_of_an_ipv4_header_is_verified_where_there_is_one(tmp_path: Path) -> None:
    plain = pcap([Packet(*V4, 1, b"one")])
    sound, damaged = bytearray(plain), bytearray(plain)
    header = 24 + 16 + 14
    total = sum(struct.unpack_from("!10H", plain, header))
    for data, checksum in ((sound, 0xFFFF - total % 0xFFFF), (damaged, 0xFFFE - total % 0xFFFF)):
        struct.pack_into("!H", data, header + 10, checksum)
    found = [read(tmp_path, bytes(data))[0] for data in (plain, sound, damaged)]
    header_bits = HEADER_RIGHT | HEADER_WRONG
    checks = [packets.checks & header_bits for packets in found]
    assert [each.tolist() for each in checks] == [[0], [HEADER_RIGHT], [HEADER_WRONG]]
    assert [packets.sequence.tolist() for packets in found] == [[1], [1], [1]]


@pytest.mark.parametrize("container", ["pcap", "pcapng"])
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(tmp_path: Path, container: str) -> None:
    source = talk()
    data = pcap(source) if container == "pcap" else pcapng(source)
    begin = 24 if container == "pcap" else len(section()) + len(interface())
    complete = 0
    for end in range(begin + 1, len(data), 13):
        packets, warnings, _ = read(tmp_path, data[:end])
        assert len(packets) >= complete
        complete = len(packets)
        assert len(warnings) <= 1
    assert complete >= len(source) - 1


def test_a_packet_cut_by_the_end_of_the_file_keeps_its_first_bytes(tmp_path: Path) -> None:
    packets, warnings, data = read(tmp_path, pcap([Packet(*V4, 1, b"abcdef")])[:-2])
    assert warnings == ["the file ends inside a packet"]
    assert payloads(packets, data) == [b"abcd"]
    assert packets.payload_wire.tolist() == [6]


def test_a_record_that_claims_the_moon_stops_the_walk(tmp_path: Path) -> None:
    good = pcap([Packet(*V4, 1, b"abcdef")])
    packets, warnings, _ = read(tmp_path, good + bytes(8) + b"\xff\xff\xff\x7f" * 2 + bytes(100))
    assert len(packets) == 1
    assert warnings == ["a damaged record claims 2147483647 bytes"]


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"GET / HTTP/1.1\r\n", 0),
        (b"\xd4\xc3\xb2\xa1\x02\x00", 6),
        (b"\xd4\xc3\xb2\xa1\x09\x00" + bytes(18), 4),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), 8),
    ],
)
def test_what_is_no_capture_is_refused_with_file_and_offset(tmp_path: Path, data: bytes, offset: int) -> None:
    with pytest.raises(CaptureError) as caught:
        read(tmp_path, data)
    assert (caught.value.file, caught.value.offset) == ("some.pcap", offset)
    assert "some.pcap" in str(caught.value)


def test_a_compressed_capture_is_read_and_a_damaged_one_as_far_as_it_goes(tmp_path: Path) -> None:
    source = talk()
    packed = gzip.compress(pcap(source), mtime=0)
    packets, warnings, _ = read(tmp_path, packed, "some.pcap.gz")
    assert (len(packets), warnings) == (len(source), [])
    packets, warnings, _ = read(tmp_path, packed[:-9], "some.pcap.gz")
    assert len(warnings) >= 1


@pytest.mark.parametrize("container", ["pcap", "pcapng"])
@pytest.mark.parametrize("split_bytes", [1, 700, 4000, 10**9])
def test_splits_hold_every_packet_once_even_when_payloads_are_captures(
    tmp_path: Path, container: str, split_bytes: int
) -> None:
    nested = pcap(talk())
    source = Conversation(*V4).open().send(nested * 3, from_client=True).packets
    path = tmp_path / "nested.pcap"
    path.write_bytes(pcap(source) if container == "pcap" else pcapng(source, byte_order=">"))
    with open_capture(path) as capture:
        whole = capture.records()
        splits = capture.cuts(split_bytes)
    parts = [walk(map_split(split), split)[0] for split in splits]
    assert np.concatenate([part.record_offset for part in parts]).tolist() == whole.record_offset.tolist()
    assert np.concatenate([part.time_ns for part in parts]).tolist() == whole.time_ns.tolist()
    assert [split.number for split in splits] == list(range(len(splits)))


def test_sections_of_either_byte_order_follow_each_other(tmp_path: Path) -> None:
    source = talk()
    packets, warnings, data = read(tmp_path, pcapng(source) + pcapng(source, byte_order=">", link_type=101))
    assert not warnings
    assert payloads(packets, data) == [packet.payload for packet in source] * 2


def _half_written(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise OSError("no room")


def test_a_file_that_could_not_be_written_wholly_leaves_the_older_one(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcap"
    path.write_bytes(b"older")
    with pytest.raises(OSError, match="no room"):
        _half_written(path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("kept.pcap", b"older")]
    with whole_file(path) as file:
        file.write(b"newer")
    assert path.read_bytes() == b"newer"
