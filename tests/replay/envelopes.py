"""Real captures in other clothes: tags, labels, tunnels, fragments, checksums filled in, damaged copies.

Works on the bytes of Ethernet frames with IPv4 or IPv6 in them. Nothing here knows the code under test.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MACS = bytes.fromhex("020000000001020000000002")
OUTER = ("192.0.2.1", "192.0.2.2")
OUTER_6 = ("2001:db8::1", "2001:db8::2")
TCP, UDP, GRE = 6, 17, 47


@dataclass(frozen=True, slots=True)
class Seen:
    """One captured Ethernet frame; times are whole microseconds. `wire`: its length on the wire."""

    time_us: int
    frame: bytes
    wire: int

    def framed(self, frame: bytes) -> Seen:
        """Another frame at the same moment."""
        return Seen(self.time_us, frame, len(frame))


Envelope = Callable[[bytes], bytes]


def read(path: Path) -> list[Seen]:
    """The frames of a little-endian pcap file with microseconds and Ethernet."""
    data = path.read_bytes()
    found, at = [], 24
    while at < len(data):
        second, rest, captured, wire = struct.unpack_from("<IIII", data, at)
        found.append(Seen(second * 10**6 + rest, data[at + 16 : at + 16 + captured], wire))
        at += 16 + captured
    return found


def written(frames: Iterable[Seen]) -> bytes:
    """A pcap file of these frames."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)]
    for each in frames:
        second, rest = divmod(each.time_us, 10**6)
        parts.append(struct.pack("<IIII", second, rest, len(each.frame), each.wire) + each.frame)
    return b"".join(parts)


def put_into(frames: Iterable[Seen], *envelopes: Envelope) -> list[Seen]:
    """The frames in an envelope, and that in the next one."""
    found = []
    for each in frames:
        frame = each.frame
        for envelope in envelopes:
            frame = envelope(frame)
        found.append(each.framed(frame))
    return found


def checksum(data: bytes) -> int:
    """The Internet checksum of some bytes, written down plainly."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def ethernet(ether_type: int, content: bytes) -> bytes:
    return MACS + struct.pack("!H", ether_type) + content


def ether_type(frame: bytes) -> int:
    return int.from_bytes(frame[12:14], "big")


def ipv4(protocol: int, content: bytes, *, identification: int = 7, place: int = 0) -> bytes:
    """An IPv4 packet with its checksum; `place`: the fragment field."""
    ends = b"".join(ipaddress.ip_address(end).packed for end in OUTER)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(content), identification, place, 64, protocol, 0)
    head += ends
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + content


def ipv6(protocol: int, content: bytes) -> bytes:
    ends = b"".join(ipaddress.ip_address(end).packed for end in OUTER_6)
    return struct.pack("!IHBB", 6 << 28, len(content), protocol, 64) + ends + content


def udp(port: int, content: bytes) -> bytes:
    return struct.pack("!HHHH", 50_000, port, 8 + len(content), 0) + content


def tag(kind: int) -> Envelope:
    """A VLAN tag of this ether type."""
    return lambda frame: frame[:12] + struct.pack("!HH", kind, 7) + frame[12:]


def labels(count: int, *, multicast: bool = False) -> Envelope:
    """An MPLS label stack over IP."""
    stack = b"".join(struct.pack("!I", (16 + at) << 12 | (at == count - 1) << 8 | 64) for at in range(count))
    return lambda frame: ethernet(0x8848 if multicast else 0x8847, stack + frame[14:])


def pseudo_wire(*, control_word: bool) -> Envelope:
    """An MPLS label over an Ethernet frame."""
    head = struct.pack("!I", 99 << 12 | 1 << 8 | 64) + bytes(4) * control_word
    return lambda frame: ethernet(0x8847, head + frame)


def ppp_type(frame: bytes) -> bytes:
    return b"\x00\x21" if ether_type(frame) == 0x0800 else b"\x00\x57"


def pppoe(frame: bytes) -> bytes:
    content = ppp_type(frame) + frame[14:]
    return ethernet(0x8864, struct.pack("!BBHH", 0x11, 0, 1, len(content)) + content)


def gre(flags: int, *, bridged: bool = False) -> Envelope:
    """GRE with the options of the flags: 8 checksum, 4 routing, 2 key, 1 sequence number."""

    def put(frame: bytes) -> bytes:
        head = struct.pack("!HH", flags << 12, 0x6558 if bridged else ether_type(frame))
        head += bytes(4) if flags & 0b1100 else b""
        head += b"\x00\x00\x00\x09" if flags & 0b0010 else b""
        head += b"\x00\x00\x00\x05" if flags & 0b0001 else b""
        if flags & 0b0100:
            head += struct.pack("!HBB", 0x0800, 0, 8) + bytes(8) + bytes(4)
        return ethernet(0x0800, ipv4(GRE, head + (frame if bridged else frame[14:])))

    return put


def pptp(frame: bytes) -> bytes:
    content = b"\xff\x03" + ppp_type(frame) + frame[14:]
    head = struct.pack("!HHHHII", 0x3081, 0x880B, len(content), 1, 2, 3)
    return ethernet(0x0800, ipv4(GRE, head + content))


def ip_in_ip(outer: int) -> Envelope:
    """IP of either version directly in IP of the outer version."""

    def put(frame: bytes) -> bytes:
        protocol = 4 if ether_type(frame) == 0x0800 else 41
        packet = ipv4(protocol, frame[14:]) if outer == 4 else ipv6(protocol, frame[14:])
        return ethernet(0x0800 if outer == 4 else 0x86DD, packet)

    return put


def vxlan(port: int = 4789) -> Envelope:
    return lambda frame: ethernet(0x0800, ipv4(UDP, udp(port, b"\x08" + bytes(3) + b"\0\0\x07\0" + frame)))


def vxlan_extended(frame: bytes) -> bytes:
    content = b"\x0c\0\0\x01" + b"\0\0\x07\0" + frame[14:]
    return ethernet(0x0800, ipv4(UDP, udp(4790, content)))


def geneve(words: int) -> Envelope:
    """Geneve with so many 4-byte words of options."""
    head = struct.pack("!BBH", words, 0, 0x6558) + b"\0\0\x03\0" + bytes(4 * words)
    return lambda frame: ethernet(0x86DD, ipv6(UDP, udp(6081, head + frame)))


def erspan_1(frame: bytes) -> bytes:
    return ethernet(0x0800, ipv4(GRE, struct.pack("!HH", 0, 0x88BE) + frame))


def erspan_2(frame: bytes) -> bytes:
    head = struct.pack("!HHI", 0x1000, 0x88BE, 5) + struct.pack("!II", 0x1064_0001, 0)
    return ethernet(0x0800, ipv4(GRE, head + frame))


def erspan_3(*, platform: bool) -> Envelope:
    """ERSPAN III with or without its platform specific part."""
    head = struct.pack("!HHI", 0x1000, 0x22EB, 5) + struct.pack("!III", 0x2064_0001, 0, int(platform))
    return lambda frame: ethernet(0x0800, ipv4(GRE, head + bytes(8) * platform + frame))


def authenticated(frame: bytes) -> bytes:
    """The transport mode of IPsec AH."""
    ip = frame[14:]
    head = struct.pack("!BBHII", ip[9], 4, 0, 1, 1) + bytes(12)
    packet = bytearray(ip[:20] + head + ip[20:])
    packet[9] = 51
    struct.pack_into("!H", packet, 2, len(packet))
    struct.pack_into("!H", packet, 10, 0)
    struct.pack_into("!H", packet, 10, checksum(bytes(packet[:20])))
    return frame[:14] + bytes(packet)


def as_ipv6(frame: bytes) -> bytes:
    """The IPv4 packet of a frame as an IPv6 packet; its addresses are the last 32 bits of the new ones."""
    ip = frame[14:]
    size = (ip[0] & 15) * 4
    total = int.from_bytes(ip[2:4], "big")
    ends = b"".join(bytes.fromhex("fd") + bytes(11) + ip[at : at + 4] for at in (12, 16))
    head = struct.pack("!IHBB", 6 << 28, total - size, ip[9], 64) + ends
    return ethernet(0x86DD, head + ip[size:total])


ENVELOPES: dict[str, tuple[Envelope, ...]] = {
    **{f"tag 0x{kind:04x}": (tag(kind),) for kind in (0x8100, 0x88A8, 0x9100, 0x9200)},
    "two tags": (tag(0x8100), tag(0x88A8)),
    "three tags": (tag(0x8100), tag(0x9100), tag(0x88A8)),
    "one label": (labels(1),),
    "five labels": (labels(5, multicast=True),),
    "pseudo wire": (pseudo_wire(control_word=True),),
    "pseudo wire without control word": (pseudo_wire(control_word=False),),
    "PPPoE": (pppoe,),
    "PPPoE in a tag": (pppoe, tag(0x8100)),
    **{f"GRE {flags:04b}": (gre(flags),) for flags in range(16)},
    "GRE bridged": (gre(0b0011, bridged=True),),
    "PPTP": (pptp,),
    "4 in 4": (ip_in_ip(4),),
    "4 in 6": (ip_in_ip(6),),
    "VXLAN": (vxlan(),),
    "VXLAN of Linux": (vxlan(8472),),
    "VXLAN extended": (vxlan_extended,),
    "Geneve": (geneve(0),),
    "Geneve with options": (geneve(9),),
    "ERSPAN I": (erspan_1,),
    "ERSPAN II": (erspan_2,),
    "ERSPAN III": (erspan_3(platform=False),),
    "ERSPAN III, platform": (erspan_3(platform=True),),
    "AH": (authenticated,),
    "tunnels in tunnels": (tag(0x8100), vxlan(), gre(0b1010), ip_in_ip(6), geneve(2), erspan_2, labels(2)),
}
ENVELOPES_6: dict[str, tuple[Envelope, ...]] = {
    "6 in 4": (as_ipv6, ip_in_ip(4)),
    "6 in 6": (as_ipv6, ip_in_ip(6)),
    "6 in GRE": (as_ipv6, gre(0b0010)),
    "6 under labels": (as_ipv6, labels(2)),
    "6 in PPPoE": (as_ipv6, pppoe),
    "6 in VXLAN": (as_ipv6, vxlan()),
}


def filled(frame: bytes) -> bytes:
    """The frame (Ethernet, IPv4 or IPv6, TCP) with the checksums that a network card would fill in."""
    data = bytearray(frame)
    if ether_type(frame) == 0x0800:
        size = (data[14] & 15) * 4
        end = 14 + int.from_bytes(data[16:18], "big")
        ends, tcp = data[26:34], 14 + size
        struct.pack_into("!H", data, 24, 0)
        struct.pack_into("!H", data, 24, checksum(bytes(data[14:tcp])))
    else:
        ends, tcp, end = data[22:54], 54, 54 + int.from_bytes(data[18:20], "big")
    struct.pack_into("!H", data, tcp + 16, 0)
    pseudo = bytes(ends) + struct.pack("!II", end - tcp, TCP)
    struct.pack_into("!H", data, tcp + 16, checksum(pseudo + bytes(data[tcp:end])))
    return bytes(data)


def payload_at(frame: bytes) -> int:
    """Where the TCP payload of an Ethernet frame with IPv4 starts."""
    tcp = 14 + (frame[14] & 15) * 4
    return tcp + (frame[tcp + 12] >> 4) * 4


def turned(frame: bytes, seed: int, *, count: int = 3) -> bytes:
    """The frame with some bits of its TCP payload turned, so that a checksum tells."""
    chance = random.Random(seed)
    data = bytearray(frame)
    start = payload_at(frame)
    for _ in range(count):
        data[chance.randrange(start, len(data))] ^= 1 << chance.randrange(8)
    # Turned bits may cancel out in the sum.
    told = checksum(bytes(data[start & ~1 :])) != checksum(frame[start & ~1 :])
    return bytes(data) if told else turned(frame, seed + 1, count=count)


def torn(frame: bytes, size: int, identification: int) -> list[bytes]:
    """The IPv4 packet of a frame in fragments of at most `size` (a multiple of 8) bytes."""
    ip = frame[14:]
    head, total = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
    content = ip[head:total]
    parts = []
    for at in range(0, len(content), size):
        part = content[at : at + size]
        own = bytearray(ip[:head])
        more = at + size < len(content)
        struct.pack_into("!HHH", own, 2, head + len(part), identification & 0xFFFF, more << 13 | at // 8)
        struct.pack_into("!H", own, 10, 0)
        struct.pack_into("!H", own, 10, checksum(bytes(own)))
        parts.append(frame[:14] + bytes(own) + part)
    return parts


def torn_6(frame: bytes, size: int, identification: int) -> list[bytes]:
    """As `torn`, of an IPv6 packet."""
    head, content = frame[14:54], frame[54 : 54 + int.from_bytes(frame[18:20], "big")]
    parts = []
    for at in range(0, len(content), size):
        part = content[at : at + size]
        more = at + size < len(content)
        own = struct.pack("!BBHI", head[6], 0, at | more, identification) + part
        fixed = head[:4] + struct.pack("!HB", len(own), 44) + head[7:]
        parts.append(frame[:14] + fixed + own)
    return parts


def in_fragments(
    frames: Sequence[Seen],
    size: int,
    order: Callable[[list[bytes]], list[bytes]] = list,
    *,
    six: bool = False,
) -> list[Seen]:
    """Every packet in fragments, those of one packet in the given order."""
    found: list[Seen] = []
    tear = torn_6 if six else torn
    for number, each in enumerate(frames):
        content = len(each.frame) - (54 if six else 34)
        parts = tear(each.frame, size, number + 1) if content > size else [each.frame]
        found.extend(each.framed(part) for part in order(parts))
    return found


def with_copies(frames: Sequence[Seen], seed: int, share: float, places: Sequence[str]) -> list[Seen]:
    """Packets with payload of which some get a damaged copy: `before`, `after`, or `instead`."""
    chance = random.Random(seed)
    found = []
    for number, each in enumerate(frames):
        if len(each.frame) > payload_at(each.frame) and chance.random() < share:
            bad = replace(each, frame=turned(each.frame, seed + number))
            place = chance.choice(places)
            found.extend([bad] if place == "instead" else [bad, each] if place == "before" else [each, bad])
        else:
            found.append(each)
    return found
