"""From a capture to one that can be shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from replispec.replay.capture.pcap_writer import write_pcap
from replispec.replay.capture.pcapng_writer import WrittenPacket, dropped_block, opening, packet_block
from replispec.replay.capture.records import CaptureBytes, CaptureError
from replispec.replay.capture.whole_files import whole_file
from replispec.replay.frames.framing import decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.prefaces import preface_size
from replispec.replay.redact.family import Writers
from replispec.replay.redact.images import Image
from replispec.replay.redact.prefaces import shown_preface
from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.ground import lay_ground, standing, survey
from replispec.replay.tcp.network import LINK_RAW
from replispec.replay.tcp.packets import Packets
from replispec.replay.tcp.rewritten import Segment, address_bytes, rewritten
from replispec.replay.tcp.rotation import Source, open_rotation
from replispec.replay.tcp.sides import Placed, placed

_INTERFACES_MAXIMUM: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Redacted:
    """What was written: packets, and how many other packets were left out; bytes of payload that became
    zeros, of all that were captured."""

    packets: int
    left_out: int
    bytes_zero: int
    bytes_payload: int


class SameAddressError(ValueError):
    """Under this key an address of the capture becomes another one of it."""


def redact(source: Source, out: Path, key: bytes, hints: Hints | None = None) -> Redacted:
    """Write the capture with all names, addresses and contents replaced.

    All payload of the capture is held in memory, and once more while it is replaced.

    Raises CaptureError, OSError; ValueError for a key that is too short; SameAddressError.
    """
    names = Pseudonyms(key)
    with open_rotation(source) as capture:
        read, data = capture.packets(), capture.data
        ground = lay_ground(data, [survey(read)])
        where = placed(data, standing(read, ground.joined, ground.fillers))
        addresses = _addresses(where.packets, names)
        writers = Writers(names)
        images: dict[tuple[int, int], tuple[Image, int]] = {}
        for number, incarnation in enumerate(where.found):
            decoded = decode_connection(data, directions(incarnation), hints or Hints())
            pair = [(each, Image(data, each.direction.pieces)) for each in decoded]
            writers.connection(pair)
            for each, image in pair:
                if size := preface_size(each):
                    at = each.space.window(0, size)
                    image.write(0, shown_preface(each.space.buffer[at : at + size], names))
                side = incarnation.sides[each.direction.number]
                images[number, each.direction.number] = (image, side.zero if side is not None else 0)
        container = capture.files[0].whole.container
        segments = _Segments(where, images, addresses)
        interfaces = int(where.packets.interface.max(initial=0)) + 1
        if interfaces > _INTERFACES_MAXIMUM:
            raise CaptureError(capture.name, 0, f"{interfaces} interfaces are too many")
        with whole_file(out) as file:
            chosen = segments.of(data)
            if container == "pcap":
                write_pcap((packet for _, packet in chosen), LINK_RAW, file)
            else:
                file.write(opening([(LINK_RAW, "")] * interfaces))
                file.writelines(packet_block(packet, interface) for interface, packet in chosen)
                # What was not captured takes the promise of a replay: also of what is shown of it.
                if dropped := sum(each.dropped() for each in capture.files):
                    file.write(dropped_block(dropped, 0))
        records = sum(len(file.records().record_offset) for file in capture.files)
        written = len(np.unique(where.packets.record_offset))
        return Redacted(len(where.packets), records - written, segments.bytes_zero, segments.bytes_payload)


class _Segments:
    """The packets of a capture as they are to be written, and counts of their bytes."""

    def __init__(
        self,
        where: Placed,
        images: dict[tuple[int, int], tuple[Image, int]],
        addresses: dict[tuple[int, int], bytes],
    ) -> None:
        self._where = where
        self._images = images
        self._addresses = addresses
        self.bytes_zero = 0
        self.bytes_payload = 0

    def of(self, data: CaptureBytes) -> Iterator[tuple[int, WrittenPacket]]:
        """All of them in the order of the capture, each with the number of its interface."""
        where, packets = self._where, self._where.packets
        order = np.argsort(packets.record_offset, kind="stable")
        columns = zip(
            *(column[order].tolist() for column in packets.columns()),
            where.connection[order].tolist(),
            where.direction[order].tolist(),
            where.start[order].tolist(),
            where.has_start[order].tolist(),
            strict=True,
        )
        for row in columns:
            (_, time_ns, high, low, port, to_high, to_low, to_port, sequence, acknowledgment, flags) = row[
                :11
            ]
            (at, captured, wire, interface, checks, _, connection, direction, start, has_start) = row[11:]
            payload = bytes(captured)
            found = self._images.get((connection, direction)) if has_start and captured else None
            if found is not None:
                image, zero = found
                payload = image.shown(start - zero, data[at : at + captured])
            self.bytes_payload += captured
            self.bytes_zero += payload.count(0)
            ends = self._addresses[high, low], self._addresses[to_high, to_low], port, to_port
            segment = Segment(time_ns, *ends, sequence, acknowledgment, flags, payload, wire, checks)
            yield interface, rewritten(segment)


def _addresses(packets: Packets, names: Pseudonyms) -> dict[tuple[int, int], bytes]:
    """The pseudonym of each address by its halves. Raises SameAddressError."""
    halves = {
        *zip(packets.source_high.tolist(), packets.source_low.tolist(), strict=True),
        *zip(packets.destination_high.tolist(), packets.destination_low.tolist(), strict=True),
    }
    own = {pair: address_bytes(*pair) for pair in halves}
    made = {pair: names.address(packed) for pair, packed in own.items()}
    if set(own.values()) & {packed for packed in made.values() if any(packed)}:
        raise SameAddressError(
            "under this key an address becomes another one of the capture: take another key"
        )
    return made
