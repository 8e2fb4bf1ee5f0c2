"""Packets written anew: bare IP and TCP headers around a payload, checksums as right or wrong as they were.

Link layers, tunnels, options and fragments are left out. Source: RFC 791, RFC 8200, RFC 9293, RFC 1071.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from replispec.replay.capture.pcapng_writer import WrittenPacket
from replispec.replay.tcp.checksums import (
    HEADER_RIGHT,
    HEADER_WRONG,
    IP_TCP,
    IPV4_BYTES_MINIMUM,
    TCP_RIGHT,
    TCP_WRONG,
)
from replispec.replay.tcp.network import LINK_RAW

V4_PREFIX: Final = bytes(10) + b"\xff\xff"
V4_BYTES: Final = 4
TCP_BYTES: Final = 20
_HOPS: Final = 64
_DO_NOT_FRAGMENT: Final = 0x4000
_WINDOW: Final = 0xFFFF
# IPv4 and IPv6 hold no longer packets than this; a capture with offloading may.
_LENGTH_MAXIMUM: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP packet: addresses of 4 or 16 bytes, and `payload`, of which `payload_wire` bytes travelled.

    `checks`: what is to be said of its checksums (see `tcp.checksums`).
    """

    time_ns: int
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


def address_bytes(high: int, low: int) -> bytes:
    """The address whose halves these are: 4 bytes where it is IPv4, mapped into IPv6, else 16."""
    packed = (high << 64 | low).to_bytes(16, "big")
    return packed.removeprefix(V4_PREFIX) if packed.startswith(V4_PREFIX) else packed


def rewritten(segment: Segment) -> WrittenPacket:
    """The packet of a segment, of the link type that is IP alone.

    Two addresses of 4 bytes make it IPv4; else it is IPv6, and one of 4 bytes is mapped into it.
    """
    length = TCP_BYTES + segment.payload_wire
    addresses = segment.source + segment.destination
    four = len(addresses) == 2 * V4_BYTES
    if not four:
        addresses = _mapped(segment.source) + _mapped(segment.destination)
    tcp = struct.pack(
        ">HHIIBBHHH",
        *(segment.source_port, segment.destination_port, segment.sequence, segment.acknowledgment),
        *(TCP_BYTES // 4 << 4, segment.flags & 0xFF, _WINDOW, 0, 0),
    )
    if segment.checks & (TCP_RIGHT | TCP_WRONG):
        pseudo = addresses + struct.pack(">IHH", length, 0, IP_TCP)
        value = _checksum(pseudo + tcp + segment.payload)
        if segment.checks & TCP_WRONG:
            value = _other(value, _unfilled(pseudo), _unfilled(addresses + struct.pack(">H", IP_TCP)))
        tcp = tcp[:16] + struct.pack(">H", value) + tcp[18:]
    head = _four(addresses, length, segment.checks) if four else _six(addresses, length)
    return WrittenPacket(segment.time_ns, LINK_RAW, head + tcp + segment.payload, len(head) + length)


def _mapped(address: bytes) -> bytes:
    return V4_PREFIX + address if len(address) == V4_BYTES else address


def _four(addresses: bytes, length: int, checks: int) -> bytes:
    """An IPv4 header for so many bytes; a length that does not fit is 0, as with offloading."""
    total = IPV4_BYTES_MINIMUM + length
    size = total if total <= _LENGTH_MAXIMUM else 0
    head = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, _DO_NOT_FRAGMENT, _HOPS, IP_TCP, 0) + addresses
    if checks & (HEADER_RIGHT | HEADER_WRONG):
        right = _checksum(head)
        value = right if checks & HEADER_RIGHT else _other(right)
        head = head[:10] + struct.pack(">H", value) + head[12:]
    return head


def _six(addresses: bytes, length: int) -> bytes:
    size = length if length <= _LENGTH_MAXIMUM else 0
    return struct.pack(">IHBB", 6 << 28, size, IP_TCP, _HOPS) + addresses


def _checksum(data: bytes) -> int:
    """The checksum of bytes whose own field is 0; never 0, which would say that none was filled in."""
    return _unfilled(data) ^ _LENGTH_MAXIMUM or _LENGTH_MAXIMUM


def _unfilled(data: bytes) -> int:
    """The 16-bit ones' complement sum, which of a pseudo-header is what stands in a field left to others."""
    total = int(np.frombuffer(data + bytes(len(data) % 2), ">u2").sum(dtype=np.int64))
    while total > _LENGTH_MAXIMUM:
        total = (total & _LENGTH_MAXIMUM) + (total >> 16)
    return total


def _other(right: int, *unfilled: int) -> int:
    """A checksum that is wrong, and none that reads as not filled in."""
    wrong = (right ^ bit for bit in (1, 2, 4, 8))
    return next(value for value in wrong if value not in {0, *unfilled})
