"""Deterministic packet captures for tests: any link type, container, byte order, flag and snap length.

Nothing here knows the code under test. Checksums are left at 0, as a capture with offloading has them.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16
START_NS = 1_700_000_000 * 10**9
Endpoint = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP packet. `payload_wire` > len(payload): only the first bytes were captured (snap length).

    `total_length_zero`: the IP length field is 0, as with segmentation offload. `vlans`: tags,
    outermost first. `time_ns`: UTC.
    """

    source: Endpoint
    destination: Endpoint
    sequence: int
    payload: bytes = b""
    flags: int = ACK | PUSH
    acknowledgment: int = 0
    time_ns: int = START_NS
    payload_wire: int | None = None
    total_length_zero: bool = False
    vlans: tuple[int, ...] = ()
    options: bytes = b""
    extensions: bytes = b""  # IPv6 extension headers, whole; the first one's number is 0 (hop by hop)


def frame(packet: Packet, link_type: int = 1) -> tuple[bytes, int]:
    """The captured bytes of a packet, link header included, and its length on the wire in bytes."""
    wire = len(packet.payload) if packet.payload_wire is None else packet.payload_wire
    version = ipaddress.ip_address(packet.source[0]).version
    tcp = _tcp(packet)
    network = _ipv4(packet, len(tcp) + wire) if version == 4 else _ipv6(packet, len(tcp) + wire)
    head = _link(packet, link_type, version) + network + tcp
    return head + packet.payload, len(head) + wire


def pcap(
    packets: Iterable[Packet],
    *,
    link_type: int = 1,
    byte_order: str = "<",
    nanoseconds: bool = False,
    snap_length: int = 262_144,
) -> bytes:
    """A classic pcap file; packets longer than `snap_length` bytes are cut."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    unit = 1 if nanoseconds else 1000
    parts = [struct.pack(byte_order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link_type)]
    for packet in packets:
        data, wire = frame(packet, link_type)
        data = data[:snap_length]
        second, rest = divmod(packet.time_ns, 10**9)
        parts.append(struct.pack(byte_order + "IIII", second, rest // unit, len(data), wire) + data)
    return b"".join(parts)


def pcapng(
    packets: Iterable[Packet],
    *,
    link_type: int = 1,
    byte_order: str = "<",
    resolution: int | None = 9,
    snap_length: int = 0,
    block: str = "packet",
) -> bytes:
    """A pcapng file of one section and one interface.

    `resolution`: the time resolution byte of the interface (None: left out, microseconds).
    `block`: packet, simple (without times) or old.
    """
    parts = [section(byte_order), interface(link_type, byte_order, resolution, snap_length)]
    for packet in packets:
        data, wire = frame(packet, link_type)
        if snap_length:
            data = data[:snap_length]
        parts.append(_packet_block(data, wire, packet.time_ns, byte_order, resolution, block))
    return b"".join(parts)


def section(byte_order: str = "<") -> bytes:
    """A pcapng section header block."""
    return _block(0x0A0D0D0A, struct.pack(byte_order + "IHHq", 0x1A2B3C4D, 1, 0, -1), byte_order)


def interface(
    link_type: int = 1, byte_order: str = "<", resolution: int | None = 9, snap_length: int = 0
) -> bytes:
    """A pcapng interface description block."""
    body = struct.pack(byte_order + "HHI", link_type, 0, snap_length)
    if resolution is not None:
        body += struct.pack(byte_order + "HHB3xHH", 9, 1, resolution, 0, 0)
    return _block(1, body, byte_order)


def _packet_block(
    data: bytes, wire: int, time_ns: int, byte_order: str, resolution: int | None, block: str
) -> bytes:
    if block == "simple":
        return _block(3, struct.pack(byte_order + "I", wire) + data, byte_order)
    byte = 6 if resolution is None else resolution
    rate = 2 ** (byte & 127) if byte & 128 else 10**byte
    ticks = time_ns * rate // 10**9
    numbers = struct.pack(byte_order + "IIII", ticks >> 32, ticks & 0xFFFFFFFF, len(data), wire)
    if block == "old":
        return _block(2, struct.pack(byte_order + "HH", 0, 0xFFFF) + numbers + data, byte_order)
    return _block(6, struct.pack(byte_order + "I", 0) + numbers + data, byte_order)


def _block(kind: int, body: bytes, byte_order: str) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(byte_order + "I", len(body) + 12)
    return struct.pack(byte_order + "I", kind) + length + body + length


def _link(packet: Packet, link_type: int, version: int) -> bytes:
    ether = 0x0800 if version == 4 else 0x86DD
    if link_type == 1:
        tags = b"".join(struct.pack("!HH", 0x8100, tag) for tag in packet.vlans)
        return bytes(12) + tags + struct.pack("!H", ether)
    if link_type in (0, 108):
        return struct.pack("<I" if link_type == 0 else ">I", 2 if version == 4 else 30)
    if link_type == 113:
        return struct.pack("!HHH8sH", 0, 1, 6, bytes(8), ether)
    if link_type == 276:
        return struct.pack("!HHIHBB8s", ether, 0, 1, 1, 0, 6, bytes(8))
    if link_type in (101, 228, 229):
        return b""
    raise ValueError(f"no link header for type {link_type}")


def _ipv4(packet: Packet, length: int) -> bytes:
    total = 0 if packet.total_length_zero else 20 + length
    addresses = b"".join(ipaddress.ip_address(end[0]).packed for end in (packet.source, packet.destination))
    return struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + addresses


def _ipv6(packet: Packet, length: int) -> bytes:
    total = 0 if packet.total_length_zero else length + len(packet.extensions)
    addresses = b"".join(ipaddress.ip_address(end[0]).packed for end in (packet.source, packet.destination))
    following = 0 if packet.extensions else 6
    return struct.pack("!IHBB", 6 << 28, total, following, 64) + addresses + packet.extensions


def _tcp(packet: Packet) -> bytes:
    options = packet.options + bytes(-len(packet.options) % 4)
    words = 5 + len(options) // 4
    ports = (packet.source[1], packet.destination[1])
    numbers = (packet.sequence % 2**32, packet.acknowledgment % 2**32)
    return struct.pack("!HHIIBBHHH", *ports, *numbers, words << 4, packet.flags, 65535, 0, 0) + options


@dataclass(slots=True)
class Conversation:
    """Builds the packets of one connection in order; `client` opens it. Time moves 1 ms a packet."""

    client: Endpoint
    server: Endpoint
    client_initial: int = 1000
    server_initial: int = 5000
    mss: int = 1448
    time_ns: int = START_NS
    packets: list[Packet] = field(default_factory=list)
    _sent: dict[bool, int] = field(default_factory=dict)

    def open(self) -> Conversation:
        """The three-way handshake."""
        self._add(from_client=True, flags=SYN, sequence=self.client_initial, acknowledgment=0)
        self._add(
            from_client=False,
            flags=SYN | ACK,
            sequence=self.server_initial,
            acknowledgment=self.client_initial + 1,
        )
        return self.acknowledge(from_client=True)

    def send(self, data: bytes, *, from_client: bool, mss: int | None = None) -> Conversation:
        """The data in segments of at most `mss` bytes."""
        size = mss or self.mss
        for at in range(0, len(data), size):
            self._add(from_client=from_client, payload=data[at : at + size])
        return self

    def acknowledge(self, *, from_client: bool) -> Conversation:
        """A packet without payload that confirms all the peer sent."""
        return self._add(from_client=from_client, flags=ACK)

    def close(self) -> Conversation:
        """A FIN from each side, and the last acknowledgment."""
        self._add(from_client=True, flags=FIN | ACK)
        self._add(from_client=False, flags=FIN | ACK)
        return self._add(from_client=True, flags=ACK)

    def _add(
        self,
        *,
        from_client: bool,
        payload: bytes = b"",
        flags: int = ACK | PUSH,
        sequence: int | None = None,
        acknowledgment: int | None = None,
    ) -> Conversation:
        at = self._next(from_client=from_client) if sequence is None else sequence
        confirmed = self._next(from_client=not from_client) if acknowledgment is None else acknowledgment
        ends = (self.client, self.server) if from_client else (self.server, self.client)
        self.packets.append(Packet(*ends, at, payload, flags, confirmed, self.time_ns))
        self._sent[from_client] = at + len(payload) + bool(flags & SYN) + bool(flags & FIN)
        self.time_ns += 10**6
        return self

    def _next(self, *, from_client: bool) -> int:
        initial = self.client_initial if from_client else self.server_initial
        return self._sent.get(from_client, initial + 1)


def in_time_order(conversations: Iterable[Conversation]) -> list[Packet]:
    """The packets of several conversations as one capture would have them."""
    return sorted(
        (packet for talk in conversations for packet in talk.packets), key=lambda item: item.time_ns
    )


def with_times(packets: Sequence[Packet], start_ns: int = START_NS, step_ns: int = 10**6) -> list[Packet]:
    """The packets in the given order with new, evenly spaced times."""
    return [replace(packet, time_ns=start_ns + at * step_ns) for at, packet in enumerate(packets)]
