"""A capture that is still being written: up to where its records are whole."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

from replispec.replay.capture import pcap, pcapng
from replispec.replay.capture.records import RECORD_BYTES_MAXIMUM, ByteOrder, Interface, Split


@dataclass(frozen=True, slots=True)
class Grown:
    """The whole records of a split end at `end`, where the container stands as `byte_order` and
    `interfaces` say.

    `packets`: whether there is any packet among them. `damage`: why nothing after them can become whole.
    """

    end: int
    byte_order: ByteOrder
    interfaces: tuple[Interface, ...]
    packets: bool
    damage: str = ""


def grown(data: mmap.mmap, split: Split) -> Grown:
    """The whole records of a split whose file may end inside one."""
    return _grown_records(data, split) if split.container == "pcap" else _grown_blocks(data, split)


def _grown_records(data: mmap.mmap, split: Split) -> Grown:
    at, damage = split.start, ""
    length_at = struct.Struct(split.byte_order + "I").unpack_from
    last = min(split.end, len(data)) - pcap.RECORD_HEADER_SIZE
    while at <= last:
        (captured,) = length_at(data, at + 8)
        if at + pcap.RECORD_HEADER_SIZE + captured > split.end:
            if captured > RECORD_BYTES_MAXIMUM:
                damage = f"a damaged record claims {captured} bytes"
            break
        at += pcap.RECORD_HEADER_SIZE + captured
    return Grown(at, split.byte_order, split.interfaces, at > split.start, damage)


def _grown_blocks(data: mmap.mmap, split: Split) -> Grown:
    walk = pcapng.BlockWalk(data, split, [])
    found = Grown(split.start, split.byte_order, split.interfaces, packets=False)
    for kind, at in walk:
        (length,) = struct.unpack_from(walk.byte_order + "I", data, at + 4)
        packets = found.packets or kind in pcapng.PACKET_BLOCK_MINIMUM
        found = Grown(at + length, walk.byte_order, tuple(walk.interfaces), packets)
    damage = "" if walk.damage in pcapng.CUT_OFF else walk.damage
    return Grown(found.end, found.byte_order, found.interfaces, found.packets, damage)
