"""The merged capture as a file: every packet once, on one clock, by the names that are shown."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replispec.replay.capture.pcapng_writer import WrittenPacket, opening, packet_block
from replispec.replay.capture.records import Integers
from replispec.replay.hosts.copies import Story
from replispec.replay.hosts.sightings import Seen, Sightings
from replispec.replay.tcp.checksums import TCP_RIGHT, TCP_WRONG
from replispec.replay.tcp.flows import Endpoint, FlowKey
from replispec.replay.tcp.layers import Flags

RAW_IP = 101
IPV4_HEADER, TCP_HEADER, HOPS, IP_TCP = 20, 20, 64, 6
V4_PREFIX = bytes(10) + b"\xff\xff"
# IPv4 and IPv6 hold no longer packets than this; a capture with offloading may.
LENGTH_MAXIMUM = 0xFFFF


@dataclass(frozen=True, slots=True)
class Renamed:
    """The row of a packet that is written with other endpoints, source first, and numbers."""

    packet: int
    source: Endpoint
    destination: Endpoint
    sequence: int
    acknowledgment: int


def kept_rows(rows: Sightings, story: Story, time_ns: Integers) -> Flags:
    """The first copy of every packet by the common clock."""
    order = np.lexsort((rows.record, rows.file, time_ns, story.packet))
    first = np.ones(len(rows), np.bool_)
    first[1:] = np.diff(story.packet[order]) != 0
    kept = np.zeros(len(rows), np.bool_)
    kept[order[first]] = True
    return kept


def write_story(
    path: Path,
    seen: Sequence[Seen],
    left_out: Sequence[Integers],
    times: Sequence[Integers],
    renamed: Sequence[dict[int, Renamed]],
) -> None:
    """Write all records but those left out, by time; of those renamed only TCP's part. Raises OSError.

    For each file: `left_out`: numbers of records; `times`: of every record, ns UTC; `renamed`: by record.
    """
    numbers: dict[tuple[int, int, int], int] = {}
    rows: list[Integers] = []
    for file, each in enumerate(seen):
        record = np.setdiff1d(np.arange(len(each.records.record_offset)), left_out[file])
        rows.append(np.column_stack([times[file][record], np.full(len(record), file), record]))
        links, interfaces = each.records.link_type[record].tolist(), each.records.interface[record].tolist()
        for at, link, interface in zip(record.tolist(), links, interfaces, strict=True):
            place = (file, interface, RAW_IP if at in renamed[file] else link)
            numbers.setdefault(place, len(numbers))
    every = np.concatenate(rows)
    every = every[np.lexsort((every[:, 2], every[:, 1], every[:, 0]))]
    names = [(link, f"{seen[file].capture.whole.name} {interface}") for file, interface, link in numbers]
    with path.open("wb") as out:
        out.write(opening(names))
        for time_ns, file, record in every.tolist():
            own = renamed[file].get(record)
            packet = (
                _as_captured(seen[file], record, time_ns)
                if own is None
                else _as_shown(seen[file], own, time_ns)
            )
            place = (file, int(seen[file].records.interface[record]), packet.link_type)
            out.write(packet_block(packet, numbers[place]))


def _as_captured(seen: Seen, record: int, time_ns: int) -> WrittenPacket:
    records = seen.records
    at, size = int(records.data_offset[record]), int(records.captured[record])
    data = bytes(seen.capture.data[at : at + size])
    return WrittenPacket(time_ns, int(records.link_type[record]), data, int(records.wire[record]))


def _as_shown(seen: Seen, renamed: Renamed, time_ns: int) -> WrittenPacket:
    """A packet with other names: new headers, which hold what a replay reads of them, and its payload.

    The checksum stays what it was: right, wrong, or not filled in.
    """
    row, packets = renamed.packet, seen.packets
    at, captured = int(packets.payload_offset[row]), int(packets.payload_captured[row])
    payload, wire = bytes(seen.capture.data[at : at + captured]), int(packets.payload_wire[row])
    numbers = (renamed.sequence, renamed.acknowledgment, (TCP_HEADER // 4) << 12 | int(packets.flags[row]))
    ports = (renamed.source[2], renamed.destination[2])
    tcp = struct.pack("!HHIIHHHH", *ports, *numbers, LENGTH_MAXIMUM, 0, 0)
    head = _ip(renamed, TCP_HEADER + wire)
    checks = int(packets.checks[row])
    if checks & (TCP_RIGHT | TCP_WRONG):
        total = _checksum(head, tcp + payload)
        total = total if checks & TCP_RIGHT else total ^ 1
        tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    return WrittenPacket(time_ns, RAW_IP, head + tcp + payload, len(head) + TCP_HEADER + wire)


def _ip(renamed: Renamed, length: int) -> bytes:
    """An IP header for so many bytes; a length that does not fit is 0, as with offloading."""
    ends = [struct.pack("!QQ", *end[:2]) for end in (renamed.source, renamed.destination)]
    if all(end.startswith(V4_PREFIX) for end in ends):
        total = IPV4_HEADER + length if IPV4_HEADER + length <= LENGTH_MAXIMUM else 0
        head = struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0x4000, HOPS, IP_TCP, 0)
        return head + ends[0][12:] + ends[1][12:]
    total = length if length <= LENGTH_MAXIMUM else 0
    return struct.pack("!IHBB", 6 << 28, total, IP_TCP, HOPS) + ends[0] + ends[1]


def _checksum(head: bytes, segment: bytes) -> int:
    """The checksum of TCP for a segment whose field is 0 (RFC 9293, section 3.1)."""
    addresses = head[12:] if head[0] >> 4 == 4 else head[8:]
    data = addresses + segment + bytes(len(segment) % 2)
    total = int(np.frombuffer(data, ">u2").sum(dtype=np.int64)) + IP_TCP + len(segment)
    folded = total % 0xFFFF
    # A field of 0 would read as not filled in; its other form is as right.
    return (~folded & 0xFFFF) if folded != 0xFFFF else 0xFFFF


def ends_of(key: FlowKey, side: int) -> tuple[Endpoint, Endpoint]:
    """Source and destination of what a side of a connection sent."""
    return key[side], key[1 - side]
