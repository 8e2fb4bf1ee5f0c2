"""Packets written anew: bare IP and TCP headers around other bytes, checksums as right or wrong as they were.

Link layers, tunnels, options and fragments are left out. Source: RFC 791, RFC 8200, RFC 9293; pcap and
pcapng as in `capture`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Final

import numpy as np

from replispec.replay.tcp.checksums import HEADER_RIGHT, HEADER_WRONG, TCP_RIGHT, TCP_WRONG

LINK_IP: Final = 101
_PCAP_MAGIC: Final = 0xA1B23C4D
_SNAP_LENGTH: Final = 0x40000
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER: Final = 0x1A2B3C4D
_TIME_RESOLUTION: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
_V4_BYTES: Final = 4
_HOPS: Final = 64
_TCP: Final = 6
_TCP_BYTES: Final = 20
_V6_HEADER_BYTES: Final = 40
_LENGTH_MAXIMUM: Final = 0xFFFF
_WINDOW: Final = 0xFFFF
# A wrong checksum differs from the right one in these bits; neither is then one that is not filled in.
_WRONG: Final = 0x5A5A


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP packet: addresses of 4 or 16 bytes, and `payload`, of which `payload_wire` bytes travelled.

    `checks`: what is to be said of its checksums (see `tcp.checksums`).
    """

    time_ns: int
    interface: int
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    sequence: int
    acknowledgment: int
    flags: int
    payload: bytes
    payload_wire: int
    checks: int


def packet(segment: Segment) -> tuple[bytes, int]:
    """The captured bytes of a segment, and how many were on the wire."""
    length = _TCP_BYTES + segment.payload_wire
    tcp = struct.pack(
        ">HHIIBBHHH",
        *(segment.source_port, segment.destination_port, segment.sequence, segment.acknowledgment),
        *(_TCP_BYTES // 4 << 4, segment.flags & 0xFF, _WINDOW, 0, 0),
    )
    if segment.checks & (TCP_RIGHT | TCP_WRONG):
        pseudo = segment.source + segment.destination + struct.pack(">IHH", length, 0, _TCP)
        right = _checksum(pseudo + tcp + segment.payload)
        value = right if segment.checks & TCP_RIGHT else right ^ _WRONG
        tcp = tcp[:16] + struct.pack(">H", value) + tcp[18:]
    head = _four(segment, length) if len(segment.source) == _V4_BYTES else _six(segment, length)
    return head + tcp + segment.payload, len(head) + length


def _four(segment: Segment, length: int) -> bytes:
    total = 20 + length
    head = struct.pack(
        ">BBHHHBBH", 0x45, 0, total if total <= _LENGTH_MAXIMUM else 0, 0, 0x4000, _HOPS, _TCP, 0
    )
    head += segment.source + segment.destination
    if segment.checks & (HEADER_RIGHT | HEADER_WRONG):
        right = _checksum(head)
        value = right if segment.checks & HEADER_RIGHT else right ^ _WRONG
        head = head[:10] + struct.pack(">H", value) + head[12:]
    return head


def _six(segment: Segment, length: int) -> bytes:
    size = length if length <= _LENGTH_MAXIMUM else 0
    return struct.pack(">IHBB", 6 << 28, size, _TCP, _HOPS) + segment.source + segment.destination


def _checksum(data: bytes) -> int:
    """The checksum of RFC 1071; never 0, which would say that none was filled in."""
    total = int(np.frombuffer(data + bytes(len(data) % 2), ">u2").sum(dtype=np.int64))
    while total > _LENGTH_MAXIMUM:
        total = (total & _LENGTH_MAXIMUM) + (total >> 16)
    return total ^ _LENGTH_MAXIMUM or _LENGTH_MAXIMUM


def write_pcap(segments: Iterable[Segment], file: IO[bytes]) -> None:
    """Write a pcap capture with times in nanoseconds. Raises OSError."""
    file.write(struct.pack("<IHHiIII", _PCAP_MAGIC, 2, 4, 0, 0, _SNAP_LENGTH, LINK_IP))
    for segment in segments:
        data, wire = packet(segment)
        seconds, rest = divmod(max(segment.time_ns, 0), 10**9)
        file.write(struct.pack("<IIII", seconds, rest, len(data), wire) + data)


def write_pcapng(segments: Iterable[Segment], interfaces: int, file: IO[bytes]) -> None:
    """Write a pcapng capture with so many interfaces that tell nothing but their number. Raises OSError."""
    file.write(_block(_SECTION, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1)))
    for _ in range(interfaces):
        file.write(_block(_INTERFACE, struct.pack("<HHI", LINK_IP, 0, 0) + _TIME_RESOLUTION))
    for segment in segments:
        data, wire = packet(segment)
        time_ns = max(segment.time_ns, 0)
        head = struct.pack("<IIIII", segment.interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), wire)
        file.write(_block(_PACKET, head + data + bytes(-len(data) % 4)))


def _block(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)
