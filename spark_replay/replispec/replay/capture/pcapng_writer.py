"""Writing packets as pcapng, each with a remark that Wireshark shows beside it.

Source: draft-ietf-opsawg-pcapng-02. Integers are written little endian, times in nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replispec.replay.capture.pcapng import (
    BLOCK_INTERFACE,
    BLOCK_PACKET,
    BLOCK_SECTION,
    BLOCK_STATISTICS,
    OPTION_DROPPED_BY_SYSTEM,
    OPTION_TIME_RESOLUTION,
)
from replispec.replay.capture.whole_files import whole_file

BYTE_ORDER_MARK = 0x1A2B3C4D
OPTION_COMMENT, OPTION_NAME = 1, 2
NANOSECONDS = 9
COUNT_MAXIMUM = 2**64 - 1
# A remark is for people; an option holds no more than 65,535 bytes.
REMARK_BYTES_MAXIMUM = 4_000


@dataclass(frozen=True, slots=True)
class WrittenPacket:
    """One packet: when it was captured (ns UTC), its link type, its bytes, how many it had on the wire."""

    time_ns: int
    link_type: int
    data: bytes
    wire_bytes: int
    remark: str = ""


def write_pcapng(packets: Sequence[WrittenPacket], path: Path) -> None:
    """Write the packets in the order given, one interface a link type. Raises OSError."""
    links = sorted({packet.link_type for packet in packets})
    with whole_file(path) as file:
        file.write(opening([(link, "") for link in links]))
        for packet in packets:
            file.write(packet_block(packet, links.index(packet.link_type)))


def opening(interfaces: Iterable[tuple[int, str]]) -> bytes:
    """What a file begins with: its section, and interfaces by link type and name."""
    parts = [_block(BLOCK_SECTION, struct.pack("<IHHq", BYTE_ORDER_MARK, 1, 0, -1))]
    for link, name in interfaces:
        named = [(OPTION_NAME, name.encode("utf-8", "replace")[:REMARK_BYTES_MAXIMUM])] if name else []
        options = _options([*named, (OPTION_TIME_RESOLUTION, bytes([NANOSECONDS]))])
        parts.append(_block(BLOCK_INTERFACE, struct.pack("<HHI", link, 0, 0) + options))
    return b"".join(parts)


def packet_block(packet: WrittenPacket, interface: int) -> bytes:
    """One packet, captured at the interface of this number."""
    time_ns = max(packet.time_ns, 0)
    head = struct.pack(
        "<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(packet.data), packet.wire_bytes
    )
    remark = packet.remark.encode("utf-8", "replace")[:REMARK_BYTES_MAXIMUM]
    options = _options([(OPTION_COMMENT, remark)] if remark else [])
    return _block(BLOCK_PACKET, head + _padded(packet.data) + options)


def dropped_block(count: int, interface: int) -> bytes:
    """Statistics at the end of a file: so many packets were dropped at the interface of this number. No time
    is told."""
    counted = [(OPTION_DROPPED_BY_SYSTEM, struct.pack("<Q", min(count, COUNT_MAXIMUM)))]
    return _block(BLOCK_STATISTICS, struct.pack("<III", interface, 0, 0) + _options(counted))


def _options(options: Iterable[tuple[int, bytes]]) -> bytes:
    written = b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    return written + struct.pack("<HH", 0, 0) if written else b""


def _block(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
