"""One row a TCP packet, as numpy columns, gathered from a mapped capture without a loop over packets.

What is around a packet (VLAN tags, tunnels) is opened (see `network`), fragments of IP packets are gathered
to be joined (see `fragments`), and checksums are verified (see `checksums`).

Source: RFC 9293. Byte order on the wire: big endian.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers, Records
from replispec.replay.tcp.checksums import tcp_checks
from replispec.replay.tcp.fragment_rows import Fragments, fragments_of, join_fragments
from replispec.replay.tcp.layers import BigEndian, Flags, Layer, Unsigned
from replispec.replay.tcp.network import (
    LINK_ETHERNET,
    LINK_HEADERS,
    interfaces,
    lowest_layers,
    open_headers,
    strange_links,
)
from replispec.replay.tcp.remarks import CUT, NO_REMARKS, OTHERS, TCP, Remarks, total

V4_MAPPED = np.uint64(0xFFFF_0000_0000)
FIN, SYN, RST, ACK = 1, 2, 4, 16
# What a packet's bytes are worth: not to be read; one byte that a keep-alive may have made up; taken as they
# are; vouched for by a checksum of a sender that fills it in.
CORRUPT, PROBE, PLAIN, VOUCHED = 0, 1, 2, 3
ABOUT_ALL = ("remarks", "fragments")


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns, one row a TCP packet, in file order; of a joined packet, one row each of its fragments.

    `record_offset`: file offset of the capture record, the packet's identity (of a joined packet: the one
    that completed it). `time_ns`: UTC. Addresses are 128 bits in two halves, IPv4 mapped into IPv6.
    `sequence`, `acknowledgment`: 32 bits. `payload_offset`: file offset of the payload;
    `payload_captured` <= `payload_wire` bytes of it are in the file. `interface`: where it was captured.
    `checks`: what its checksums say, as bits (see `checksums`); `trust`: what follows from them, CORRUPT
    to VOUCHED. `remarks`: what else there was; `fragments`: of IP packets, to be joined.
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
    interface: Integers
    checks: Integers
    trust: Integers
    remarks: Remarks = NO_REMARKS
    fragments: Fragments | None = None

    def __len__(self) -> int:
        return len(self.record_offset)

    def columns(self) -> list[npt.NDArray[Any]]:
        """The columns in the order of the fields."""
        return [getattr(self, name) for name in COLUMNS]

    def take(self, rows: npt.NDArray[np.int64] | Flags) -> Packets:
        """The rows chosen by positions or by a mask, without what is about all of them."""
        return of_columns([column[rows] for column in self.columns()])

    def moved(self, by: int) -> Packets:
        """The same packets in a capture in which their file stands `by` bytes further on."""
        if not by:
            return self
        fragments = self.fragments.moved(by) if self.fragments is not None else None
        moved = self.record_offset + by, self.payload_offset + by
        return replace(self, record_offset=moved[0], payload_offset=moved[1], fragments=fragments)


COLUMNS = tuple(item.name for item in fields(Packets) if item.name not in ABOUT_ALL)


def of_columns(columns: Sequence[npt.NDArray[Any]]) -> Packets:
    """Packets of these columns, in the order of the fields."""
    named: dict[str, Any] = dict(zip(COLUMNS, columns, strict=True))
    return Packets(**named)


def read_packets(data: mmap.mmap, records: Records) -> Packets:
    """The TCP packets among the records of a mapped capture; everything else is passed over."""
    view = BigEndian(data)
    opened = open_headers(view, list(lowest_layers(view, records)))
    places = (records.record_offset, records.time_ns, interfaces(view, records))
    packets = join_packets([segments(view, layer, *places) for layer in opened.segments])
    found = join_fragments([fragments_of(view, rows, *places) for rows in opened.fragments])
    cut = _cut(records, packets, found, opened.others)
    others = len(records.record_offset) - len(packets) - len(found) - cut
    counts = {OTHERS: others, CUT: cut, TCP: len(packets)}
    remarks = total([opened.remarks, strange_links(records), Remarks(counts)])
    return replace(packets, remarks=remarks, fragments=found if len(found) else None)


def _cut(records: Records, packets: Packets, found: Fragments, others: Sequence[Integers]) -> int:
    """How many records were cut so short that it is not known what they hold."""
    shorter = np.flatnonzero(
        (records.captured < records.wire) & np.isin(records.link_type, [*LINK_HEADERS, LINK_ETHERNET])
    )
    if not len(shorter):
        return 0
    left = np.setdiff1d(shorter, np.concatenate([np.zeros(0, np.int64), *others]))
    known = np.concatenate([packets.record_offset, found.record_offset])
    return int((~np.isin(records.record_offset[left], known)).sum())


def segments(
    view: BigEndian, layer: Layer, record_offset: Integers, time_ns: Integers, interface: Integers
) -> Packets:
    """The packet columns of a TCP layer; what has no whole fixed TCP header is left out.

    The last three say where and when each row's record was captured.
    """
    header = (view.at(layer.at + 12, 1) >> 4) * 4
    mine = (layer.at + 20 <= layer.end) & (header >= 20) & (layer.at + header <= layer.wire_end)
    layer, header = layer.keep(mine), header[mine]
    at = layer.at
    ends = [_addresses(view, layer, side) for side in (0, 1)]
    payload = at + header
    wire = layer.wire_end - payload
    return Packets(
        record_offset=record_offset[layer.row],
        time_ns=time_ns[layer.row],
        source_high=ends[0][0],
        source_low=ends[0][1],
        source_port=view.at(at, 2),
        destination_high=ends[1][0],
        destination_low=ends[1][1],
        destination_port=view.at(at + 2, 2),
        sequence=view.at(at + 4, 4),
        acknowledgment=view.at(at + 8, 4),
        flags=view.at(at + 13, 1),
        payload_offset=payload,
        payload_captured=np.maximum(0, layer.end - payload),
        payload_wire=wire,
        interface=interface[layer.row],
        checks=tcp_checks(view, layer) | layer.header,
        trust=np.where(wire == 1, PROBE, PLAIN),
    )


def _addresses(view: BigEndian, layer: Layer, side: int) -> tuple[Unsigned, Unsigned]:
    """Both halves of the source (side 0) or destination addresses."""
    six = layer.family == 6
    low = view.unsigned(layer.addresses + 4 * side, 4) | V4_MAPPED
    if not six.any():
        return np.zeros(len(layer), np.uint64), low
    at = layer.addresses + 16 * side
    high = np.where(six, view.unsigned(at, 8), np.uint64(0))
    return high, np.where(six, view.unsigned(at + 8, 8), low)


def join_packets(parts: Sequence[Packets]) -> Packets:
    """All parts as one table, sorted by record offset."""
    remarks = total(part.remarks for part in parts)
    found = [part.fragments for part in parts if part.fragments is not None]
    fragments = join_fragments(found) if found else None
    filled = [part for part in parts if len(part)] or list(parts[:1]) or [no_packets()]
    if len(filled) == 1:
        return replace(filled[0], remarks=remarks, fragments=fragments)
    columns = zip(*(part.columns() for part in filled), strict=True)
    joined = of_columns([np.concatenate(own) for own in columns])
    at = joined.record_offset
    if (at[1:] >= at[:-1]).all():
        return replace(joined, remarks=remarks, fragments=fragments)
    ordered = joined.take(np.argsort(at, kind="stable"))
    return replace(ordered, remarks=remarks, fragments=fragments)


def no_packets() -> Packets:
    """Packets without a row."""
    wide = ("source_high", "source_low", "destination_high", "destination_low")
    return of_columns([np.zeros(0, np.uint64 if name in wide else np.int64) for name in COLUMNS])
