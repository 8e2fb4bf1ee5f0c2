"""Tags, labels and tunnels around IP packets, opened one header at a time for all packets at once.

Each opener gets the rows of a layer of its kind and gives what is inside of them; rows that make no sense
stay behind. Tunnels that are encrypted, or that nobody opens here, are known by name only.

Sources: IEEE 802.1Q and 802.1ad; RFC 3032 (MPLS), 4448 (its control word), 7510 (over UDP); RFC 2516
(PPPoE), 1661 (PPP), 2637 (PPTP); RFC 1701, 2784 and 2890 (GRE); RFC 2003, 2473, 4213 (IP in IP);
RFC 7348 (VXLAN), 8926 (Geneve); draft-ietf-nvo3-vxlan-gpe-12; draft-foschiano-erspan-03; RFC 4302, 4303.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.layers import (
    ETHER_IPV4,
    ETHER_IPV6,
    ETHERNET,
    IP,
    IP_PACKET,
    NOTHING,
    PPP,
    UDP,
    BigEndian,
    Flags,
    Layer,
)

ETHER_TAGS = {0x8100: "802.1Q", 0x88A8: "802.1ad", 0x9100: "QinQ 0x9100", 0x9200: "QinQ 0x9200"}
ETHER_MPLS, ETHER_MPLS_MULTICAST, ETHER_PPPOE, ETHER_BRIDGED, ETHER_PPP = (
    0x8847,
    0x8848,
    0x8864,
    0x6558,
    0x880B,
)
ETHER_ERSPAN_2, ETHER_ERSPAN_3 = 0x88BE, 0x22EB
IP_IPV4, IP_IPV6, IP_GRE, IP_AUTHENTICATION, IP_MPLS = IP + 4, IP + 41, IP + 47, IP + 51, IP + 137
# Kinds told from UDP ports, and ERSPAN behind a GRE header with a sequence number.
VXLAN, VXLAN_GPE, GENEVE, MPLS_UDP, ERSPAN_2, ERSPAN_3 = range(0x3_0000, 0x3_0006)
UDP_PORTS = {4789: VXLAN, 8472: VXLAN, 4790: VXLAN_GPE, 6081: GENEVE, 6635: MPLS_UDP}
# Not opened: these kinds are counted by name.
ESP_IN_UDP, WIREGUARD, L2TP, OTHER_UDP, PLAIN_UDP, PLAIN_CONTENT = range(0x3_0010, 0x3_0016)
UNOPENED = {
    IP + 50: "ESP",
    ESP_IN_UDP: "ESP in UDP",
    WIREGUARD: "WireGuard-like UDP",
    L2TP: "L2TP",
    IP + 115: "L2TP",
    0x88E5: "MACsec",
    0x894F: "NSH",
    OTHER_UDP: "UDP",
    PLAIN_UDP: "UDP",
    PLAIN_CONTENT: "unknown content",
}
# UDP ports of which it is known that no TCP is in them: time, names, addresses, logs, discovery, calls.
PLAIN_UDP_PORTS = (
    *(7, 9, 13, 19, 37, 53, 67, 68, 69, 88, 111, 123, 137, 138, 161, 162, 319, 320, 389, 464, 500, 514, 520),
    *(521, 546, 547, 623, 1645, 1646, 1812, 1813, 1900, 2055, 2123, 3702, 3784, 3785, 4739, 5060, 5246),
    *(5351, 5353, 5355, 5405, 6343, 6831, 6832, 7946, 8125, 8301, 8302, 9996, 10001, 11211, 17500),
)
PORT_ESP, PORT_L2TP = 4500, 1701
# Lower numbers in the place of an ether type are lengths; both access points 0xAA, no numbers, and the
# organization 0 that gave ether types (RFC 1042).
ETHER_TYPES_FROM = 0x600
SNAP, SNAP_BYTES = (0xAAAA_0300, 0), 8
MPLS_LABELS_MAXIMUM = 16
GRE_ROUTES_MAXIMUM = 8
PPP_KINDS = {0x0021: ETHER_IPV4, 0x0057: ETHER_IPV6, 0x0281: ETHER_MPLS}
VXLAN_KINDS = {1: ETHER_IPV4, 2: ETHER_IPV6, 3: ETHERNET, 5: ETHER_MPLS}
Opener = Callable[[BigEndian, Layer], Layer]


def _ethernet(view: BigEndian, layer: Layer) -> Layer:
    layer = layer.keep(layer.at + 14 <= layer.end)
    return _typed(view, layer, layer.at + 14)


def _tag(view: BigEndian, layer: Layer) -> Layer:
    layer = layer.keep(layer.at + 4 <= layer.end)
    return _typed(view, layer, layer.at + 4)


def _typed(view: BigEndian, layer: Layer, at: Integers) -> Layer:
    """What follows the two bytes before `at`: they are its ether type, or the length of a frame of IEEE
    802.2, in which SNAP tells the ether type."""
    kind = view.at(at - 2, 2)
    if (kind < ETHER_TYPES_FROM).any():
        in_snap = (kind < ETHER_TYPES_FROM) & (view.at(at, 4) == SNAP[0]) & (view.at(at + 4, 2) == SNAP[1])
        in_snap &= at + SNAP_BYTES <= layer.end
        kind = np.where(in_snap, view.at(at + 6, 2), kind)
        at = np.where(in_snap, at + SNAP_BYTES, at)
    return layer.inside(at, kind)


def _mpls(view: BigEndian, layer: Layer) -> Layer:
    """A stack of labels; what is under it is told by its first bytes, as routers do."""
    at = layer.at
    open_ = np.ones(len(layer), np.bool_)
    for _ in range(MPLS_LABELS_MAXIMUM):
        last = view.at(at + 2, 1) & 1 == 1
        at = np.where(open_, at + 4, at)
        open_ = open_ & ~last & (at + 4 <= layer.end)
        if not open_.any():
            break
    nibble = view.at(at, 1) >> 4
    # A bridged frame is told by its type; else a first nibble of 0 is a control word before the frame.
    known = np.isin(view.at(at + 12, 2), (ETHER_IPV4, ETHER_IPV6, *ETHER_TAGS))
    kind = np.where(known | (nibble == 0), ETHERNET, NOTHING)
    kind = np.where(_is_ip(view, at), IP_PACKET, kind)
    behind = np.where((nibble == 0) & ~known, at + 4, at)
    return layer.inside(behind, kind).keep(~open_ & (behind < layer.end))


def _is_ip(view: BigEndian, at: Integers) -> Flags:
    """Whether an IP header starts there, and not a MAC address with the same first digits."""
    first = view.at(at, 1)
    four = (first >= 0x45) & (first <= 0x4F) & np.isin(view.at(at + 9, 1), (4, 6, 17, 41, 47, 50, 51, 1))
    six = (first >> 4 == 6) & np.isin(view.at(at + 6, 1), (0, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 60))
    found: Flags = four | six
    return found


def _pppoe(view: BigEndian, layer: Layer) -> Layer:
    mine = (layer.at + 6 <= layer.end) & (view.at(layer.at, 2) == 0x1100)
    layer = layer.keep(mine)
    return _shortened(layer, layer.at + 6 + view.at(layer.at + 4, 2)).inside(layer.at + 6, PPP)


def _ppp(view: BigEndian, layer: Layer) -> Layer:
    """PPP with or without its address field, the protocol in one or two bytes."""
    at = np.where(view.at(layer.at, 2) == 0xFF03, layer.at + 2, layer.at)
    short = view.at(at, 1) & 1 == 1
    protocol = np.where(short, view.at(at, 1), view.at(at, 2))
    at = np.where(short, at + 1, at + 2)
    # What negotiates and controls is numbered from 0x8000 on.
    kind = np.where(protocol >= 0x8000, PLAIN_CONTENT, _translated(protocol, PPP_KINDS))
    return layer.inside(at, kind).keep(at < layer.end)


def _gre(view: BigEndian, layer: Layer) -> Layer:
    """GRE with any of its options, and the variant of PPTP (version 1)."""
    flags, protocol = view.at(layer.at, 2), view.at(layer.at + 2, 2)
    version = flags & 7
    mine = (layer.at + 4 <= layer.end) & ((version == 0) | ((version == 1) & (protocol == ETHER_PPP)))
    layer, flags, protocol, version = layer.keep(mine), flags[mine], protocol[mine], version[mine]
    at = layer.at + 4
    at = at + 4 * (flags & 0xC000 != 0) + 4 * (flags & 0x2000 != 0) + 4 * (flags & 0x1000 != 0)
    at = at + 4 * ((version == 1) & (flags & 0x0080 != 0))
    routed = flags & 0x4000 != 0
    for _ in range(GRE_ROUTES_MAXIMUM if routed.any() else 0):
        size = view.at(at + 3, 1)
        last = (view.at(at, 2) == 0) & (size == 0)
        at = np.where(routed, at + 4 + size, at)
        routed = routed & ~last & (at + 4 <= layer.end)
    kind = np.where((protocol == ETHER_ERSPAN_2) & (flags & 0x1000 != 0), ERSPAN_2, protocol)
    kind = np.where((protocol == ETHER_ERSPAN_2) & (flags & 0x1000 == 0), ETHERNET, kind)
    kind = np.where(protocol == ETHER_ERSPAN_3, ERSPAN_3, kind)
    kind = np.where(protocol == ETHER_PPP, PPP, kind)
    return layer.inside(at, kind).keep(~routed & (at < layer.end))


def _erspan_2(view: BigEndian, layer: Layer) -> Layer:
    mine = (view.at(layer.at, 1) >> 4 == 1) & (layer.at + 8 <= layer.end)
    layer = layer.keep(mine)
    return layer.inside(layer.at + 8, ETHERNET)


def _erspan_3(view: BigEndian, layer: Layer) -> Layer:
    """Version 2 of the header, with its optional part; the frame is Ethernet or bare IP."""
    layer = layer.keep((view.at(layer.at, 1) >> 4 == 2) & (layer.at + 12 <= layer.end))
    about = view.at(layer.at + 10, 2)
    kind = _translated(about >> 10 & 31, {0: ETHERNET, 2: IP_PACKET})
    at = layer.at + 12 + 8 * (about & 1)
    return layer.inside(at, kind).keep(at < layer.end)


def _authentication(view: BigEndian, layer: Layer) -> Layer:
    layer = layer.keep(layer.at + 12 <= layer.end)
    return layer.inside(layer.at + (view.at(layer.at + 1, 1) + 2) * 4, IP + view.at(layer.at, 1))


def _udp(view: BigEndian, layer: Layer) -> Layer:
    """What is in a UDP datagram, by its ports; what is no known tunnel stays what it is."""
    layer = layer.keep(layer.at + 8 <= layer.end)
    ports = [view.at(layer.at + place, 2) for place in (0, 2)]
    length = view.at(layer.at + 4, 2)
    inside = _shortened(layer, np.where(length < 8, layer.wire_end, layer.at + length))
    at = layer.at + 8
    kind = _translated(ports[1], UDP_PORTS)
    size = inside.wire_end - at
    # Messages of types 1 to 3 have one size each, those of type 4 hold a whole number of 16 bytes.
    typed = view.at(at, 4)
    guarded = ((typed == 0x0100_0000) & (size == 148)) | ((typed == 0x0200_0000) & (size == 92))
    guarded |= ((typed == 0x0300_0000) & (size == 64)) | (
        (typed == 0x0400_0000) & (size >= 32) & (size % 16 == 0)
    )
    encrypted = (ports[0] == PORT_ESP) | (ports[1] == PORT_ESP)
    carried = (ports[0] == PORT_L2TP) | (ports[1] == PORT_L2TP)
    for mask, name in ((carried, L2TP), (encrypted, ESP_IN_UDP), (guarded, WIREGUARD)):
        kind = np.where((kind == NOTHING) & mask, name, kind)
    plain = np.isin(ports[0], PLAIN_UDP_PORTS) | np.isin(ports[1], PLAIN_UDP_PORTS)
    other = np.where(plain, PLAIN_UDP, OTHER_UDP)
    return inside.inside(at, np.where(kind == NOTHING, other, kind))


def _vxlan(view: BigEndian, layer: Layer) -> Layer:
    """VXLAN; with the P flag of its extension the next protocol is told."""
    layer = layer.keep((layer.at + 8 <= layer.end) & (view.at(layer.at, 1) & 0x08 != 0))
    told = view.at(layer.at, 1) & 0x04 != 0
    kind = np.where(told, _translated(view.at(layer.at + 3, 1), VXLAN_KINDS), ETHERNET)
    return layer.inside(layer.at + 8, kind)


def _geneve(view: BigEndian, layer: Layer) -> Layer:
    """Geneve with any options; control messages (the O flag) carry nothing."""
    first = view.at(layer.at, 1)
    control = view.at(layer.at + 1, 1) & 0x80 != 0
    at = layer.at + 8 + (first & 63) * 4
    mine = (layer.at + 8 <= layer.end) & (first >> 6 == 0) & (control | (at < layer.end))
    return layer.inside(at, np.where(control, PLAIN_CONTENT, view.at(layer.at + 2, 2))).keep(mine)


def _shortened(layer: Layer, wire_end: Integers) -> Layer:
    """The layer ending where its own length says, when that is earlier."""
    ends = np.minimum(layer.wire_end, wire_end)
    return replace(layer, end=np.minimum(layer.end, ends), wire_end=ends)


def _translated(numbers: Integers, table: dict[int, int]) -> Integers:
    found = np.full(len(numbers), NOTHING, np.int64)
    for number, kind in table.items():
        found[numbers == number] = kind
    return found


# Kind -> what a header of it is called when it is counted (empty: it is not), and what opens it.
OPENERS: dict[int, tuple[str, Opener]] = {
    ETHERNET: ("", _ethernet),
    ETHER_BRIDGED: ("", _ethernet),
    **{kind: (name, _tag) for kind, name in ETHER_TAGS.items()},
    ETHER_MPLS: ("MPLS", _mpls),
    ETHER_MPLS_MULTICAST: ("MPLS", _mpls),
    IP_MPLS: ("MPLS", _mpls),
    MPLS_UDP: ("MPLS", _mpls),
    ETHER_PPPOE: ("PPPoE", _pppoe),
    PPP: ("", _ppp),
    IP_GRE: ("GRE", _gre),
    ERSPAN_2: ("ERSPAN II", _erspan_2),
    ERSPAN_3: ("ERSPAN III", _erspan_3),
    IP_AUTHENTICATION: ("IPsec AH", _authentication),
    UDP: ("", _udp),
    VXLAN: ("VXLAN", _vxlan),
    VXLAN_GPE: ("VXLAN", _vxlan),
    GENEVE: ("Geneve", _geneve),
}
