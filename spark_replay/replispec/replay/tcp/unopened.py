"""Between which addresses packets went that nobody opens, or whose headers are malformed.

Whether something of the protocols that are read may have been in them only the whole capture tells: who
speaks these. So they are counted by what they are and by the two addresses, as remarks on the packets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.checksums import HEADER_WRONG
from replispec.replay.tcp.layers import ETHER_IPV4, ETHER_IPV6, ETHERNET, IP, IP_PACKET, BigEndian, Layer
from replispec.replay.tcp.remarks import BETWEEN, Remarks
from replispec.replay.tcp.tunnels import ETHER_TYPES_FROM

# Known to carry no stream of TCP, by EtherType: ARP and its kin, what bridges, ports and clocks tell each
# other, Wake-on-LAN, PPPoE's discovery, storage.
_PLAIN_ETHER = (
    *(0x0806, 0x8035, 0x0842, 0x22F0, 0x22F4, 0x8808, 0x8809, 0x8863, 0x888E, 0x8899, 0x88A2, 0x88CA, 0x88CC),
    *(0x88E1, 0x88E3, 0x88F5, 0x88F7, 0x88FB, 0x8902, 0x8906, 0x890D, 0x8912, 0x8914, 0x893A),
)
# By number of IP: ICMP, IGMP, RSVP, ICMPv6, nothing, EIGRP, OSPF, PIM, VRRP, SCTP, UDP-Lite and others.
_PLAIN_IP = (1, 2, 3, 8, 9, 33, 46, 58, 59, 88, 89, 103, 112, 113, 124, 132, 133, 135, 136, 138, 139, 140)
PLAIN = frozenset((*_PLAIN_ETHER, *(IP + number for number in _PLAIN_IP)))
MALFORMED = "malformed "
_NUMBERED = ("ether type", "others")
# So many pairs of addresses are told apart in a part of a capture for each kind; others count as no address.
PAIRS_MAXIMUM = 4096
_SIGN = "|"


@dataclass(frozen=True, slots=True)
class Between:
    """What packets were that were not read, between which two addresses: without any (`ends` is empty) where
    their headers tell none."""

    name: str
    ends: tuple[str, ...]


def told_between(view: BigEndian, layer: Layer, name: str) -> Iterator[tuple[str, int]]:
    """Names and counts for remarks on rows of a layer of one kind that are not read, but for those of which a
    checksum says that they were damaged."""
    layer = layer.keep(layer.header != HEADER_WRONG)
    bare = layer.family == 0
    if bare.any():
        yield _named(name, ()), int(bare.sum())
    for family, size, parts in ((4, 4, (4,)), (6, 16, (8, 8))):
        own = layer.keep(layer.family == family)
        if not len(own):
            continue
        columns = [
            view.unsigned(own.addresses + side * size + 8 * at, part)
            for side in (0, 1)
            for at, part in enumerate(parts)
        ]
        pairs, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
        for pair, count in zip(pairs[:PAIRS_MAXIMUM].tolist(), counts.tolist(), strict=False):
            half = len(parts)
            yield _named(name, (_address(pair[:half]), _address(pair[half:]))), count
        if len(pairs) > PAIRS_MAXIMUM:
            yield _named(name, ()), int(counts[PAIRS_MAXIMUM:].sum())


def malformed(layer: Layer, rest: Integers) -> Layer:
    """The rows of a layer that are not among the rest, though they were captured whole."""
    return layer.keep((layer.end >= layer.wire_end) & ~np.isin(layer.row, rest))


def is_plain(kind: int) -> bool:
    """Whether what is of this kind cannot hold TCP; by lengths bridges tell each other something."""
    return kind in PLAIN or kind < ETHER_TYPES_FROM


def needs_several(name: str) -> bool:
    """Whether a few such packets may be others that were damaged."""
    return name.startswith((MALFORMED, *_NUMBERED))


def kind_name(kind: int, names: Mapping[int, str]) -> str:
    """What malformed rows of a kind are called."""
    if kind in (ETHER_IPV4, ETHER_IPV6, IP_PACKET, ETHERNET):
        return f"{MALFORMED}{'frames' if kind == ETHERNET else 'IP'}"
    return f"{MALFORMED}{names.get(kind) or 'headers'}"


def between(remarks: Remarks) -> Iterator[tuple[Between, int]]:
    """What told_between told, as it was counted."""
    for told, count in remarks.named(BETWEEN).items():
        name, *ends = told.split(_SIGN)
        yield Between(name, tuple(ends)), count


def _named(name: str, ends: tuple[str, ...]) -> str:
    return BETWEEN + _SIGN.join((name, *sorted(ends)))


def _address(parts: list[int]) -> str:
    if len(parts) == 1:
        return str(ipaddress.IPv4Address(parts[0]))
    address = ipaddress.IPv6Address(parts[0] << 64 | parts[1])
    return str(address.ipv4_mapped or address)
