"""One row a TCP packet, as numpy columns, gathered from a mapped capture without a loop over packets.

Link types: 0 and 108 (loopback), 1 (Ethernet, with VLAN tags), 101, 228, 229 (bare IP), 113 and 276
(Linux cooked). IPv4 and IPv6 with extension headers. IP fragments are not put together: the first
one counts with the bytes it has, the others are counted in `Packets.remarks`.

Sources: the link-layer header type registry of tcpdump.org, RFC 791, RFC 8200, RFC 9293. Byte order
on the wire: big endian.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from replispec.replay.capture_records import Integers, Records

Unsigned = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_LOOP, LINK_SLL = 0, 1, 101, 108, 113
LINK_IPV4, LINK_IPV6, LINK_SLL2 = 228, 229, 276
# Link type -> bytes before the ether type or the IP packet; where the ether type lies, if anywhere.
LINK_HEADER_SIZES = {
    LINK_NULL: 4,
    LINK_ETHERNET: 14,
    LINK_RAW: 0,
    LINK_LOOP: 4,
    LINK_SLL: 16,
    LINK_IPV4: 0,
    LINK_IPV6: 0,
    LINK_SLL2: 20,
}
ETHER_TYPE_AT = {LINK_ETHERNET: 12, LINK_SLL: 14, LINK_SLL2: 0}
ETHER_VLAN = (0x8100, 0x88A8, 0x9100)
ETHER_IP = (0x0800, 0x86DD)
VLAN_TAGS_MAXIMUM = 4
EXTENSION_HEADERS_MAXIMUM = 8
IP_TCP, IP_HOP_OPTIONS, IP_ROUTING, IP_FRAGMENT, IP_AUTHENTICATION, IP_OPTIONS = 6, 0, 43, 44, 51, 60
V4_MAPPED = np.uint64(0xFFFF_0000_0000)
FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass(frozen=True, slots=True)
class Remarks:
    """Packets that did not become rows, or whose rows are doubtful, counted.

    `fragments`: later fragments of an IP packet, left out. `others`: left out because they are not TCP
    over IP, or not whole up to there. `contradicted`: read, though the IPv4 header does not match its
    checksum (0 is no checksum: the sender left it to the network card).
    """

    fragments: int = 0
    others: int = 0
    contradicted: int = 0

    def __add__(self, more: Remarks) -> Remarks:
        return Remarks(
            self.fragments + more.fragments,
            self.others + more.others,
            self.contradicted + more.contradicted,
        )

    def __bool__(self) -> bool:
        return self != Remarks()

    def texts(self) -> list[str]:
        """What there is to say, a line each."""
        told = (
            (self.fragments, "IP fragments were left out"),
            (self.others, "packets were left out: no TCP over IP, or cut before its end"),
            (self.contradicted, "packets have an IPv4 header that does not match its checksum"),
        )
        return [f"{count} {text}" for count, text in told if count]


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns, one row a TCP packet, in file order.

    `record_offset`: file offset of the capture record, the packet's identity. `time_ns`: UTC.
    Addresses are 128 bits in two halves, IPv4 mapped into IPv6. `sequence`, `acknowledgment`:
    32 bits. `payload_offset`: file offset of the payload; `payload_captured` <= `payload_wire`
    bytes of it are in the file. `remarks`: what else there was.
    """

    record_offset: Integers
    time_ns: Integers
    source_high: Unsigned
    source_low: Unsigned
    source_port: Integers
    destination_high: Unsigned
    destination_low: Unsigned
    destination_port: Integers
    sequence: Integers
    acknowledgment: Integers
    flags: Integers
    payload_offset: Integers
    payload_captured: Integers
    payload_wire: Integers
    remarks: Remarks = Remarks()

    def __len__(self) -> int:
        return len(self.record_offset)

    def take(self, rows: npt.NDArray[np.int64] | Flags) -> Packets:
        """The rows chosen by positions or by a mask."""
        columns = {
            item.name: getattr(self, item.name)[rows] for item in fields(self) if item.name != "remarks"
        }
        return Packets(**columns, remarks=self.remarks)

    def moved(self, by: int) -> Packets:
        """The same packets in a capture in which their file stands `by` bytes further on."""
        if not by:
            return self
        return replace(self, record_offset=self.record_offset + by, payload_offset=self.payload_offset + by)


class _Bytes:
    """Big-endian integers at any offsets of the mapped file; offsets are clipped to the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._size = len(data)
        self._views: dict[int, npt.NDArray[np.unsignedinteger]] = {
            size: np.ndarray((max(0, self._size - size + 1),), f">u{size}", data, 0, (1,))
            for size in (1, 2, 4, 8)
        }

    def at(self, offsets: Integers, size: int) -> Integers:
        return self._gather(offsets, size).astype(np.int64)

    def unsigned(self, offsets: Integers, size: int) -> Unsigned:
        return self._gather(offsets, size).astype(np.uint64)

    def _gather(self, offsets: Integers, size: int) -> npt.NDArray[np.unsignedinteger]:
        view = self._views[size]
        if not len(view):
            return np.zeros(len(offsets), view.dtype)
        return view[np.minimum(offsets, len(view) - 1)]


@dataclass(slots=True)
class _Layer:
    """Rows on their way up the layers: which record, where the layer starts, how much is captured
    (`end`: file offset after the last captured byte) and how much was on the wire (`wire_end`)."""

    row: Integers
    at: Integers
    end: Integers
    wire_end: Integers

    def keep(self, mask: Flags) -> _Layer:
        return _Layer(self.row[mask], self.at[mask], self.end[mask], self.wire_end[mask])


def read_packets(data: mmap.mmap, records: Records) -> Packets:
    """The TCP packets among the records of a mapped capture; everything else is passed over."""
    view = _Bytes(data)
    parts: list[Packets] = []
    for layer in _network_layers(view, records):
        version = view.at(layer.at, 1) >> 4
        sound = layer.at < layer.end
        parts.append(_tcp(view, records, *_ipv4(view, layer.keep(sound & (version == 4)))))
        parts.append(_tcp(view, records, *_ipv6(view, layer.keep(sound & (version == 6)))))
    packets = join_packets(parts)
    others = len(records.record_offset) - len(packets) - packets.remarks.fragments
    return replace(packets, remarks=packets.remarks + Remarks(others=others))


def _network_layers(view: _Bytes, records: Records) -> Iterator[_Layer]:
    """Where the IP packets start, one layer for each link type of the capture."""
    rows = np.arange(len(records.record_offset), dtype=np.int64)
    for link_type in np.unique(records.link_type):
        size = LINK_HEADER_SIZES.get(int(link_type))
        if size is None:
            continue
        row = rows[records.link_type == link_type]
        start = records.data_offset[row]
        layer = _Layer(row, start + size, start + records.captured[row], start + records.wire[row])
        type_at = ETHER_TYPE_AT.get(int(link_type))
        if type_at is not None:
            layer = _through_tags(view, layer, view.at(start + type_at, 2))
        yield layer


def _through_tags(view: _Bytes, layer: _Layer, ether_type: Integers) -> _Layer:
    """Step over VLAN tags (4 bytes each) and keep what then is IP."""
    for _ in range(VLAN_TAGS_MAXIMUM):
        tagged = np.isin(ether_type, ETHER_VLAN) & (layer.at + 4 <= layer.end)
        if not tagged.any():
            break
        ether_type = np.where(tagged, view.at(layer.at + 2, 2), ether_type)
        layer.at = np.where(tagged, layer.at + 4, layer.at)
    return layer.keep(np.isin(ether_type, ETHER_IP))


def _ipv4(view: _Bytes, layer: _Layer) -> tuple[_Layer, Integers, int, Remarks]:
    """The TCP layer of IPv4 packets, the offsets of their addresses, an address's size, remarks."""
    header = (view.at(layer.at, 1) & 15) * 4
    total = view.at(layer.at + 2, 2)
    fragment = view.at(layer.at + 6, 2) & 0x1FFF
    protocol = view.at(layer.at + 9, 1)
    mine = (protocol == IP_TCP) & (header >= 20) & (layer.at + header <= layer.end) & (total != 1)
    mine &= (total == 0) | (total >= header)
    later = mine & (fragment != 0)
    addresses = layer.at + 12
    # Total length 0: the sender left it to the network card (segmentation offload).
    wire_end = np.where(total == 0, layer.wire_end, layer.at + total)
    up = _Layer(layer.row, layer.at + header, np.minimum(layer.end, wire_end), wire_end)
    whole = layer.at + header <= layer.end
    contradicted = _contradicted(view, layer.at[whole], header[whole])
    mine &= ~later
    return up.keep(mine), addresses[mine], 4, Remarks(int(later.sum()), contradicted=contradicted)


def _contradicted(view: _Bytes, at: Integers, header: Integers) -> int:
    """How many IPv4 headers (offsets, sizes in bytes) do not match their checksums."""
    total = np.zeros(len(at), np.int64)
    for place in range(0, int(header.max(initial=0)), 2):
        total += np.where(place < header, view.at(at + place, 2), 0)
    # The ones' complement sum of a sound header is 0xFFFF, which is 0 modulo itself.
    return int(((view.at(at + 10, 2) != 0) & (total % 0xFFFF != 0)).sum())


def _ipv6(view: _Bytes, layer: _Layer) -> tuple[_Layer, Integers, int, Remarks]:
    """The TCP layer of IPv6 packets, after their extension headers; else as `_ipv4`."""
    mine = layer.at + 40 <= layer.end
    length = view.at(layer.at + 4, 2)
    following = view.at(layer.at + 6, 1)
    at = layer.at + 40
    later = np.zeros(len(at), np.bool_)
    for _ in range(EXTENSION_HEADERS_MAXIMUM):
        options = np.isin(following, (IP_HOP_OPTIONS, IP_ROUTING, IP_OPTIONS))
        authentication = following == IP_AUTHENTICATION
        fragment = following == IP_FRAGMENT
        extended = (options | authentication | fragment) & (at + 8 <= layer.end) & mine
        if not extended.any():
            break
        later |= extended & fragment & (view.at(at + 2, 2) >> 3 != 0)
        units = view.at(at + 1, 1)
        size = np.where(fragment, 8, np.where(authentication, (units + 2) * 4, (units + 1) * 8))
        following = np.where(extended, view.at(at, 1), following)
        at = np.where(extended, at + size, at)
    mine &= following == IP_TCP
    # Payload length 0: a jumbogram or segmentation offload; the record's own length decides.
    wire_end = np.where(length == 0, layer.wire_end, layer.at + 40 + length)
    up = _Layer(layer.row, at, np.minimum(layer.end, wire_end), wire_end)
    fragments = int((mine & later).sum())
    mine &= ~later
    return up.keep(mine), (layer.at + 8)[mine], 16, Remarks(fragments)


def _tcp(
    view: _Bytes, records: Records, layer: _Layer, addresses: Integers, address_size: int, remarks: Remarks
) -> Packets:
    """The packet columns of a TCP layer; what has no whole fixed TCP header is left out."""
    header = (view.at(layer.at + 12, 1) >> 4) * 4
    mine = (layer.at + 20 <= layer.end) & (header >= 20) & (layer.at + header <= layer.wire_end)
    layer, addresses, header = layer.keep(mine), addresses[mine], header[mine]
    at = layer.at
    if address_size == 4:
        high = np.zeros((2, len(at)), np.uint64)
        low = [view.unsigned(addresses + 4 * side, 4) | V4_MAPPED for side in (0, 1)]
    else:
        high = np.array([view.unsigned(addresses + 16 * side, 8) for side in (0, 1)])
        low = [view.unsigned(addresses + 16 * side + 8, 8) for side in (0, 1)]
    payload = at + header
    return Packets(
        record_offset=records.record_offset[layer.row],
        time_ns=records.time_ns[layer.row],
        source_high=high[0],
        source_low=low[0],
        source_port=view.at(at, 2),
        destination_high=high[1],
        destination_low=low[1],
        destination_port=view.at(at + 2, 2),
        sequence=view.at(at + 4, 4),
        acknowledgment=view.at(at + 8, 4),
        flags=view.at(at + 13, 1),
        payload_offset=payload,
        payload_captured=np.maximum(0, layer.end - payload),
        payload_wire=layer.wire_end - payload,
        remarks=remarks,
    )


def join_packets(parts: Sequence[Packets]) -> Packets:
    """All parts as one table, sorted by record offset."""
    filled = [part for part in parts if len(part)] or list(parts[:1]) or [_nothing()]
    remarks = sum((part.remarks for part in parts), Remarks())
    names = [item.name for item in fields(Packets) if item.name != "remarks"]
    if len(filled) == 1:
        return Packets(**{name: getattr(filled[0], name) for name in names}, remarks=remarks)
    joined = Packets(
        **{name: np.concatenate([getattr(part, name) for part in filled]) for name in names},
        remarks=remarks,
    )
    return joined.take(np.argsort(joined.record_offset, kind="stable"))


def _nothing() -> Packets:
    wide = ("source_high", "source_low", "destination_high", "destination_low")
    columns: dict[str, Any] = {
        item.name: np.zeros(0, np.uint64 if item.name in wide else np.int64)
        for item in fields(Packets)
        if item.name != "remarks"
    }
    return Packets(**columns)
