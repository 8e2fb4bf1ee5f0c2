"""A packet written anew reads as what it was: addresses, numbers, payload, and what its checksums say."""

import io
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.capture.pcap_writer import write_pcap
from replispec.replay.tcp.checksums import (
    HEADER_RIGHT,
    HEADER_WRONG,
    TCP_RIGHT,
    TCP_UNFILLED,
    TCP_WRONG,
)
from replispec.replay.tcp.flows import address_text
from replispec.replay.tcp.network import LINK_RAW
from replispec.replay.tcp.packets import Packets, read_packets
from replispec.replay.tcp.rewritten import Segment, rewritten

FOUR = ("10.1.2.3", "10.4.5.6")
SIX = ("fd00::1", "2001:db8::ff:1")
MIXED = ("fd00::1", "10.4.5.6")


def segment(ends: tuple[str, str], checks: int, payload: bytes = b"abc") -> Segment:
    """A segment between two addresses."""
    source, destination = (ip_address(each).packed for each in ends)
    return Segment(5, source, destination, 80, 9876, 2**32 - 2, 77, 0x18, payload, len(payload), checks)


def read(tmp_path: Path, *segments: Segment) -> Packets:
    """The rows of packets that are written and read again."""
    path = tmp_path / "written.pcap"
    file = io.BytesIO()
    write_pcap((rewritten(each) for each in segments), LINK_RAW, file)
    path.write_bytes(file.getvalue())
    with open_capture(path) as capture:
        return read_packets(capture.data, capture.records())


@pytest.mark.parametrize("ends", [FOUR, SIX, MIXED], ids=["IPv4", "IPv6", "one of each"])
def test_what_is_written_is_read_again(ends: tuple[str, str], tmp_path: Path) -> None:
    packets = read(tmp_path, segment(ends, TCP_RIGHT))
    assert len(packets) == 1
    found = (
        address_text(int(packets.source_high[0]), int(packets.source_low[0])),
        address_text(int(packets.destination_high[0]), int(packets.destination_low[0])),
    )
    assert found == ends
    assert (packets.source_port[0], packets.destination_port[0]) == (80, 9876)
    assert (packets.sequence[0], packets.acknowledgment[0], packets.flags[0]) == (2**32 - 2, 77, 0x18)
    assert (packets.time_ns[0], packets.payload_wire[0], packets.payload_captured[0]) == (5, 3, 3)


@pytest.mark.parametrize("header", [HEADER_RIGHT, HEADER_WRONG, 0])
@pytest.mark.parametrize("tcp", [TCP_RIGHT, TCP_WRONG, TCP_UNFILLED])
def test_checksums_stay_right_wrong_or_not_filled_in(tcp: int, header: int, tmp_path: Path) -> None:
    assert read(tmp_path, segment(FOUR, tcp | header)).checks.tolist() == [tcp | header]
    assert read(tmp_path, segment(SIX, tcp | header)).checks.tolist() == [tcp]


@pytest.mark.parametrize("right", [1, 2, 3, 5, 9, 0xFFFE])
def test_a_wrong_checksum_never_reads_as_one_that_is_not_filled_in(right: int, tmp_path: Path) -> None:
    first = segment(FOUR, TCP_RIGHT)
    field = int.from_bytes(rewritten(first).data[36:38], "big")
    moved = replace(first, acknowledgment=(first.acknowledgment + field - right) % 0xFFFF)
    assert int.from_bytes(rewritten(moved).data[36:38], "big") == right
    assert read(tmp_path, replace(moved, checks=TCP_WRONG)).checks.tolist() == [TCP_WRONG]
