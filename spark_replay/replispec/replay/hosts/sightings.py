"""Which TCP packet was seen where: one row each, over all captures that are to be merged.

Digests are BLAKE2b, 64 bits: whoever sends the packets cannot make different bytes look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b

import numpy as np

from replispec.replay.capture.files import Capture
from replispec.replay.capture.records import Integers, Records
from replispec.replay.tcp.flows import FlowKey, group
from replispec.replay.tcp.ground import lay_ground, standing, survey
from replispec.replay.tcp.packets import ACK, CORRUPT, RST, SYN, Packets, read_packets
from replispec.replay.tcp.turns import in_turns, turns_alone

# So many bytes of a payload are compared where another place may have cut the stream into other segments.
HEAD_BYTES = 64
DIGEST_BYTES = 8
# Linux cooked captures of all interfaces tell them apart in the header of each packet: at which byte which
# number stands, by link type. The same packet coming in and going out again are two sightings.
LINUX_COOKED, LINUX_COOKED_2 = 113, 276


@dataclass(frozen=True, slots=True)
class Instance:
    """One connection as one file saw it. `initial`: the initial sequence number of both sides, None where
    the SYN was not seen; `opener`: the side that sent the first SYN."""

    file: int
    key: FlowKey
    number: int
    initial: tuple[int | None, int | None]
    opener: int | None


@dataclass(frozen=True, slots=True)
class Sightings:
    """Columns, one row a TCP packet, in order of the files and in each of connections and arrival.

    `file`, `record`: the number of the file and of its record; `place`: of the interface, different for any
    two files. `instance`: the number of the connection; `side`: 0 when the lower endpoint of its key sent
    it. `sequence`, `acknowledgment`: 32 bits. `size`: bytes of payload on the wire. `head`, `content`:
    digests of its first HEAD_BYTES and of all that was captured; 0 without payload, and `head` also where
    too little was captured. `packet`: the row in the packets of its file.
    """

    file: Integers
    record: Integers
    place: Integers
    instance: Integers
    side: Integers
    sequence: Integers
    acknowledgment: Integers
    flags: Integers
    size: Integers
    head: Integers
    content: Integers
    time_ns: Integers
    trust: Integers
    packet: Integers

    def __len__(self) -> int:
        return len(self.file)


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that one file holds: its records, and its packets by connections."""

    capture: Capture
    records: Records
    packets: Packets


def sightings(captures: Sequence[Capture]) -> tuple[Sightings, list[Instance], list[Seen]]:
    """The packets of all captures, the connections that they belong to, and what each file holds.

    What the files had to be read around is added to their warnings.
    """
    instances: list[Instance] = []
    parts: list[Sightings] = []
    seen: list[Seen] = []
    places = 0
    for number, capture in enumerate(captures):
        records = capture.records()
        read = read_packets(capture.data, records)
        ground = lay_ground(capture.data, [survey(read)])
        part, packets, own = _of_file(number, capture, records, standing(read, None, ground.fillers))
        place = np.unique(part[2], return_inverse=True)[1].astype(np.int64) + places
        places = int(place.max(initial=places - 1)) + 1
        part[2], part[3] = place, part[3] + len(instances)
        parts.append(Sightings(*part))
        instances += own
        seen.append(Seen(capture, records, packets))
    columns = [np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Sightings)]
    return Sightings(*columns), instances, seen


def _of_file(
    number: int, capture: Capture, records: Records, packets: Packets
) -> tuple[list[Integers], Packets, list[Instance]]:
    """The columns of one file (places and instances by numbers of its own), and its connections."""
    grouped = group(packets)
    grouped, turn = in_turns(grouped, turns_alone(grouped))
    packets = grouped.packets
    count = len(packets)
    change = np.ones(count, np.bool_)
    change[1:] = (np.diff(grouped.flow) != 0) | (np.diff(turn) != 0)
    instance = np.cumsum(change) - 1
    record = np.searchsorted(records.record_offset, packets.record_offset)
    head, content = _digests(capture, packets)
    columns: list[Integers] = [
        np.full(count, number, np.int64),
        record,
        _places(capture, records)[record],
        instance.astype(np.int64),
        grouped.direction,
        packets.sequence,
        packets.acknowledgment,
        packets.flags,
        packets.payload_wire,
        head,
        content,
        packets.time_ns,
        packets.trust,
        np.arange(count),
    ]
    initial, opener = _openings(packets, grouped.direction, instance)
    first = np.flatnonzero(change)
    found = [
        Instance(
            number, grouped.keys[flow], turn_, (initial.get((at, 0)), initial.get((at, 1))), opener.get(at)
        )
        for at, (flow, turn_) in enumerate(
            zip(grouped.flow[first].tolist(), turn[first].tolist(), strict=True)
        )
    ]
    return columns, packets, found


def _openings(
    packets: Packets, side: Integers, instance: Integers
) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """The first SYN's sequence number of each (connection, side), and which side opened a connection."""
    rows = np.flatnonzero((packets.flags & (SYN | RST) == SYN) & (packets.trust > CORRUPT))
    initial: dict[tuple[int, int], int] = {}
    opener: dict[int, int] = {}
    columns = (instance[rows], side[rows], packets.sequence[rows], packets.flags[rows])
    for each, own, sequence, flags in zip(*(column.tolist() for column in columns), strict=True):
        initial.setdefault((each, own), sequence)
        opener.setdefault(each, 1 - own if flags & ACK else own)
    return initial, opener


def _digests(capture: Capture, packets: Packets) -> tuple[Integers, Integers]:
    """`head` and `content` of Sightings."""
    head, content = np.zeros(len(packets), np.int64), np.zeros(len(packets), np.int64)
    rows = np.flatnonzero(packets.payload_captured > 0)
    places = (packets.payload_offset[rows], packets.payload_captured[rows], packets.payload_wire[rows])
    for row, at, captured, wire in zip(rows.tolist(), *(place.tolist() for place in places), strict=True):
        payload = capture.data[at : at + captured]
        content[row] = _digest(payload)
        if captured >= min(wire, HEAD_BYTES):
            head[row] = content[row] if captured <= HEAD_BYTES else _digest(payload[:HEAD_BYTES])
    return head, content


def _digest(data: bytes) -> int:
    """A signed number of 64 bits that is not 0."""
    found = int.from_bytes(blake2b(data, digest_size=DIGEST_BYTES).digest(), "big", signed=True)
    return found or 1


def _places(capture: Capture, records: Records) -> Integers:
    """A number for each record's interface, unlike that of any other interface of the file."""
    data, place = capture.data, records.interface << 40
    for link, kind, size in ((LINUX_COOKED, 0, 16), (LINUX_COOKED_2, 4, 20)):
        rows = np.flatnonzero((records.link_type == link) & (records.captured >= size))
        for row in rows.tolist():
            at = int(records.data_offset[row]) + kind
            # Cooked: the packet type (to us, from us); version 2: the interface's number, and the type.
            told = data[at : at + 2] if link == LINUX_COOKED else data[at : at + 4] + data[at + 6 : at + 7]
            place[row] += 1 + int.from_bytes(told, "big") % (1 << 39)
    return place
