"""The merged capture as a file: every packet once, on one clock, by the names that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replispec.replay.capture.pcapng_writer import WrittenPacket, opening, packet_block
from replispec.replay.capture.records import Integers
from replispec.replay.capture.whole_files import whole_file
from replispec.replay.hosts.copies import Story
from replispec.replay.hosts.sightings import Seen, Sightings
from replispec.replay.tcp.flows import Endpoint, FlowKey
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.network import LINK_RAW
from replispec.replay.tcp.rewritten import Segment, address_bytes, rewritten


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
            place = (file, interface, LINK_RAW if at in renamed[file] else link)
            numbers.setdefault(place, len(numbers))
    every = np.concatenate(rows)
    every = every[np.lexsort((every[:, 2], every[:, 1], every[:, 0]))]
    names = [(link, f"{seen[file].capture.whole.name} {interface}") for file, interface, link in numbers]
    with whole_file(path) as out:
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

    The checksums stay what they were: right, wrong, or not filled in.
    """
    row, packets = renamed.packet, seen.packets
    at, captured = int(packets.payload_offset[row]), int(packets.payload_captured[row])
    segment = Segment(
        time_ns,
        address_bytes(*renamed.source[:2]),
        address_bytes(*renamed.destination[:2]),
        *(renamed.source[2], renamed.destination[2], renamed.sequence, renamed.acknowledgment),
        int(packets.flags[row]),
        bytes(seen.capture.data[at : at + captured]),
        int(packets.payload_wire[row]),
        int(packets.checks[row]),
    )
    return rewritten(segment)


def ends_of(key: FlowKey, side: int) -> tuple[Endpoint, Endpoint]:
    """Source and destination of what a side of a connection sent."""
    return key[side], key[1 - side]
