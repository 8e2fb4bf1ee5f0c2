"""From captured records to the TCP segments and the fragments in them, through whatever is around them.

Link types: 0 and 108 (loopback), 1 (Ethernet), 101, 228, 229 (bare IP), 113 and 276 (Linux cooked).
IPv4, and IPv6 with extension headers, each of them also inside a tunnel (see `tunnels`).

Sources: the link-layer header type registry of tcpdump.org, RFC 791, RFC 8200.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replispec.replay.capture.records import NO_INTERFACE, Integers, Records
from replispec.replay.tcp.checksums import HEADER_WRONG, header_checks
from replispec.replay.tcp.layers import (
    ETHER_IPV4,
    ETHER_IPV6,
    ETHERNET,
    HEADERS_MAXIMUM,
    IP,
    IP_PACKET,
    TCP,
    BigEndian,
    Layer,
    bottom,
    distinct,
)
from replispec.replay.tcp.remarks import CONTRADICTED, DEEPER, LINK, OPENED, UNDESCRIBED, UNOPENED, Remarks
from replispec.replay.tcp.tunnels import (
    ETHER_TYPES_FROM,
    IP_IPV4,
    IP_IPV6,
    OPENERS,
    PLAIN_CONTENT,
    PLAIN_UDP,
)
from replispec.replay.tcp.tunnels import UNOPENED as UNOPENED_NAMES
from replispec.replay.tcp.unopened import is_plain, kind_name, malformed, told_between

LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_LOOP, LINK_SLL = 0, 1, 101, 108, 113
LINK_IPV4, LINK_IPV6, LINK_SLL2 = 228, 229, 276
# Link type -> bytes of its header; the ether type of what follows lies in two of them, or it is IP.
LINK_HEADERS = {
    LINK_NULL: (4, None),
    LINK_RAW: (0, None),
    LINK_LOOP: (4, None),
    LINK_SLL: (16, 14),
    LINK_IPV4: (0, None),
    LINK_IPV6: (0, None),
    LINK_SLL2: (20, 0),
}
# Where a Linux cooked header (version 2) says on which interface the packet was.
SLL2_INTERFACE_AT = 4
EXTENSION_HEADERS_MAXIMUM = 8
TCP_BYTES_MINIMUM = 20
HOP_OPTIONS, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS = 0, 43, 44, 51, 60
IP_IN_IP = {IP_IPV4: "IPv4 in IP", IP_IPV6: "IPv6 in IP"}
IP_KINDS = (ETHER_IPV4, ETHER_IPV6, IP_PACKET, IP_IPV4, IP_IPV6)
# How many different kinds that nobody opens are told by number.
NUMBERS_TOLD_MAXIMUM = 8


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """Fragments among the rows: the layer starts behind the IP header, `first` is the place of its bytes
    in the datagram, `more` whether others follow, `identification` what its fragments share."""

    layer: Layer
    first: Integers
    more: Integers
    identification: Integers


@dataclass(frozen=True, slots=True)
class Opened:
    """What was found in some packets: TCP segments, fragments of IP packets, the rows of what is known to be
    nothing else, and what else there was."""

    segments: list[Layer]
    fragments: list[FragmentRows]
    others: list[Integers]
    remarks: Remarks


def lowest_layers(view: BigEndian, records: Records) -> Iterator[Layer]:
    """The captured records without their link headers, one layer for each link type."""
    rows = np.arange(len(records.record_offset), dtype=np.int64)
    for link_type, count in distinct(records.link_type).items():
        row = rows if count == len(rows) else rows[records.link_type == link_type]
        start = records.data_offset[row]
        layer = bottom(row, start, start + records.captured[row], start + records.wire[row], ETHERNET)
        if link_type in LINK_HEADERS:
            size, type_at = LINK_HEADERS[link_type]
            kind = IP_PACKET if type_at is None else view.at(start + type_at, 2)
            layer = layer.inside(start + size, kind)
            yield layer.keep(layer.at < layer.end)
        elif link_type == LINK_ETHERNET:
            yield layer


def strange_links(records: Records) -> Remarks:
    """Packets of link types that nobody reads."""
    return Remarks(
        {
            UNOPENED + (f"{LINK} {link}" if link != NO_INTERFACE else UNDESCRIBED): count
            for link, count in distinct(records.link_type).items()
            if link not in LINK_HEADERS and link != LINK_ETHERNET
        }
    )


def interfaces(view: BigEndian, records: Records) -> Integers:
    """A number for each record's interface: that of the file, and that of a cooked header."""
    cooked = records.link_type == LINK_SLL2
    if not cooked.any():
        return records.interface
    inner = np.where(cooked, view.at(records.data_offset + SLL2_INTERFACE_AT, 4), 0)
    return records.interface + (inner << 16)


def open_headers(view: BigEndian, layers: Sequence[Layer]) -> Opened:
    """Open header after header until TCP, a fragment, or something that nobody opens."""
    counts: Counter[str] = Counter()
    opened = Opened([], [], [], Remarks())
    waiting = list(layers)
    for _ in range(HEADERS_MAXIMUM):
        following: list[Layer] = []
        for layer in waiting:
            following.extend(_inside(view, layer, opened, counts))
        waiting = [layer for layer in following if len(layer)]
        if not waiting:
            break
    counts[UNOPENED + DEEPER] += sum(len(layer) for layer in waiting)
    opened.others.extend(layer.row for layer in waiting)
    return replace(opened, remarks=Remarks(dict(counts)))


def _inside(view: BigEndian, layer: Layer, opened: Opened, counts: Counter[str]) -> Iterator[Layer]:
    """What is inside of the rows of a layer; what is final is put into `opened`, or counted."""
    for kind, count in distinct(layer.kind).items():
        if kind in IP_KINDS:
            if kind in IP_IN_IP:
                counts[OPENED + IP_IN_IP[kind]] += count
            own = layer.keep(layer.kind == kind)
            rows = []
            for inside in _ip(view, own, opened, counts):
                rows.append(inside.row)
                yield inside
            rows.extend(part.layer.row for part in opened.fragments)
            _tell_malformed(view, own, np.concatenate([own.row[:0], *rows]), kind, counts)
        elif kind == TCP:
            own = layer.keep(layer.kind == kind)
            opened.segments.append(own)
            size = (view.at(own.at + 12, 1) >> 4) * 4
            sound = (size >= TCP_BYTES_MINIMUM) & (own.at + size <= own.wire_end)
            _tell_malformed(view, own, own.row[sound], kind, counts)
        elif kind in OPENERS:
            name, opener = OPENERS[kind]
            own = layer.keep(layer.kind == kind)
            inside = opener(view, own)
            if name:
                counts[OPENED + name] += len(inside)
            _tell_malformed(view, own, inside.row, kind, counts)
            yield inside
        else:
            name, own = _unopened(kind, counts), layer.keep(layer.kind == kind)
            counts[name] += count
            opened.others.append(own.row)
            if kind not in (PLAIN_CONTENT, PLAIN_UDP) and not is_plain(kind):
                _add(counts, told_between(view, own, name.removeprefix(UNOPENED)))


def _tell_malformed(view: BigEndian, layer: Layer, rest: Integers, kind: int, counts: Counter[str]) -> None:
    """Count the rows of a layer that make no sense: those that are not among the rest."""
    if len(rest) < len(layer):
        names = {of: name for of, (name, _) in OPENERS.items()} | IP_IN_IP | {TCP: "TCP"}
        _add(counts, told_between(view, malformed(layer, rest), kind_name(kind, names)))


def _add(counts: Counter[str], told: Iterable[tuple[str, int]]) -> None:
    for name, count in told:
        counts[name] += count


def _ip(view: BigEndian, layer: Layer, opened: Opened, counts: Counter[str]) -> Iterator[Layer]:
    """What is inside of IP packets, whose first digit tells their version."""
    counts[CONTRADICTED] += int((layer.header == HEADER_WRONG).sum())
    version = view.at(layer.at, 1) >> 4
    for number, read in ((4, _ipv4), (6, _ipv6)):
        own = layer.keep(version == number)
        if len(own):
            inside, parts = read(view, own)
            yield inside
            if parts is not None:
                opened.fragments.append(parts)


def _unopened(kind: int, counts: Counter[str]) -> str:
    """What rows of a kind that nobody opens are counted as."""
    name = UNOPENED + UNOPENED_NAMES.get(kind, _numbered(kind))
    known = kind in UNOPENED_NAMES or name in counts
    told = sum(other.startswith(UNOPENED) for other in counts)
    return name if known or told < NUMBERS_TOLD_MAXIMUM else UNOPENED + "others"


def _numbered(kind: int) -> str:
    if kind < IP:
        return f"ether type 0x{kind:04x}" if kind >= ETHER_TYPES_FROM else "IEEE 802.3 frames"
    return f"IP protocol {kind - IP}" if kind < 2 * IP else "unknown content"


def _ipv4(view: BigEndian, layer: Layer) -> tuple[Layer, FragmentRows | None]:
    """What is in IPv4 packets, and the fragments among them."""
    header = (view.at(layer.at, 1) & 15) * 4
    total = view.at(layer.at + 2, 2)
    fragment = view.at(layer.at + 6, 2)
    whole = (header >= 20) & (layer.at + header <= layer.end)
    sound = whole & (total != 1) & ((total == 0) | (total >= header))
    # Total length 0: the sender left it to the network card (segmentation offload).
    wire_end = np.where(total == 0, layer.wire_end, layer.at + total)
    inside = replace(
        layer,
        at=layer.at + header,
        end=np.minimum(layer.end, wire_end),
        wire_end=wire_end,
        kind=IP + view.at(layer.at + 9, 1),
        addresses=layer.at + 12,
        family=np.full(len(layer), 4, np.int64),
        header=header_checks(view, layer.at, header, whole),
    )
    parts = sound & (fragment & 0x3FFF != 0)
    if not parts.any():
        return inside.keep(sound), None
    rows = fragment[parts]
    pieces = FragmentRows(
        inside.keep(parts), (rows & 0x1FFF) * 8, rows >> 13 & 1, view.at(layer.at[parts] + 4, 2)
    )
    return inside.keep(sound & ~parts), pieces


def _ipv6(view: BigEndian, layer: Layer) -> tuple[Layer, FragmentRows | None]:
    """What is in IPv6 packets behind their extension headers, and the fragments among them."""
    layer = layer.keep(layer.at + 40 <= layer.end)
    length = view.at(layer.at + 4, 2)
    following = view.at(layer.at + 6, 1)
    at = layer.at + 40
    part = np.zeros(len(layer), np.bool_)
    place = np.zeros(len(layer), np.int64)
    for _ in range(EXTENSION_HEADERS_MAXIMUM):
        options = np.isin(following, (HOP_OPTIONS, ROUTING, DESTINATION_OPTIONS))
        authentication, fragment = following == AUTHENTICATION, following == FRAGMENT
        extended = (options | authentication | fragment) & (at + 8 <= layer.end) & ~part
        if not extended.any():
            break
        # A fragment header without others before or behind it is one packet all the same.
        torn = extended & fragment & (view.at(at + 2, 2) & 0xFFF9 != 0)
        place = np.where(torn, at, place)
        part |= torn
        units = view.at(at + 1, 1)
        size = np.where(fragment, 8, np.where(authentication, (units + 2) * 4, (units + 1) * 8))
        following = np.where(extended, view.at(at, 1), following)
        at = np.where(extended, at + size, at)
    # Payload length 0: a jumbogram or segmentation offload; the record's own length decides.
    wire_end = np.where(length == 0, layer.wire_end, layer.at + 40 + length)
    inside = replace(
        layer,
        at=at,
        end=np.minimum(layer.end, wire_end),
        wire_end=wire_end,
        kind=IP + following,
        addresses=layer.at + 8,
        family=np.full(len(layer), 6, np.int64),
        header=np.zeros(len(layer), np.int64),
    )
    if not part.any():
        return inside, None
    about = view.at(place + 2, 2)[part]
    pieces = FragmentRows(inside.keep(part), about & 0xFFF8, about & 1, view.at(place + 4, 4)[part])
    return inside.keep(~part), pieces
