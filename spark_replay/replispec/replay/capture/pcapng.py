"""pcapng: the walk over sections, interfaces and packet blocks.

Source: draft-ietf-opsawg-pcapng-02. Integers are in the byte order of their section.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import (
    NO_INTERFACE,
    ByteOrder,
    CaptureError,
    CaptureWarning,
    Integers,
    Interface,
    Records,
    Split,
    Words,
)

SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION_BYTE_ORDERS: dict[bytes, ByteOrder] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_OLD_PACKET, BLOCK_SIMPLE, BLOCK_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
BLOCK_STATISTICS = 5
OPTION_END, OPTION_TIME_RESOLUTION, OPTION_TIME_OFFSET = 0, 9, 14
# Packets that were there and are not in the file: since the packet before, and of all the interface.
OPTION_DROPPED_BEFORE, OPTION_DROPPED_BY_INTERFACE, OPTION_DROPPED_BY_SYSTEM = 4, 5, 7
# An obsolete packet block whose writer did not know how many were dropped before it.
DROPPED_UNKNOWN = 0xFFFF
# Whole blocks, both length words included; a packet block's data starts 28 bytes after its start.
BLOCK_MINIMUM, INTERFACE_BLOCK_MINIMUM, STATISTICS_BLOCK_MINIMUM = 12, 20, 24
PACKET_BLOCK_MINIMUM = {BLOCK_PACKET: 32, BLOCK_OLD_PACKET: 32, BLOCK_SIMPLE: 16}
PACKET_DATA_AT, SIMPLE_DATA_AT = 28, 12
INTERFACES_MAXIMUM = 4_096
# Why a walk stops where more may follow once it is written.
CUT_OFF = CUT_HEADER, CUT_BLOCK = ("the file ends inside a block header", "the file ends inside a block")


def whole(data: mmap.mmap, path: str, name: str) -> Split:
    """The split of all blocks. Raises CaptureError when the first section has no byte order."""
    order = SECTION_BYTE_ORDERS.get(data[8:12])
    if order is None:
        raise CaptureError(name, 8, "a pcapng section without a byte-order mark")
    return Split(path, name, 0, 0, len(data), "pcapng", order, ())


class _Dropped:
    """How many packets were dropped while a file was captured, as its blocks say in two ways: by each packet
    since the one before, and by each interface since it began."""

    def __init__(self) -> None:
        self._before = 0
        self._by_packets = 0
        self._by_interfaces: dict[int, int] = {}

    def packet(self, counts: Mapping[int, int]) -> None:
        """The options of a packet."""
        self._by_packets += counts.get(OPTION_DROPPED_BEFORE, 0)

    def old_packet(self, count: int) -> None:
        """What an obsolete packet block says of those before it."""
        if count != DROPPED_UNKNOWN:
            self._by_packets += count

    def interface(self, number: int, counts: Mapping[int, int]) -> None:
        """The options of statistics: the last ones of an interface hold those before."""
        dropped = sum(counts.get(each, 0) for each in (OPTION_DROPPED_BY_INTERFACE, OPTION_DROPPED_BY_SYSTEM))
        self._by_interfaces[number] = max(dropped, self._by_interfaces.get(number, 0))

    def next_section(self) -> None:
        """Interfaces are numbered anew."""
        self._before, self._by_packets, self._by_interfaces = self.count(), 0, {}

    def count(self) -> int:
        """Packets, each once."""
        return self._before + max(self._by_packets, sum(self._by_interfaces.values()))


class BlockWalk:
    """Walks the blocks of a pcapng range; sections and interfaces change the state on the way. `damage`: why
    it stopped before the end."""

    def __init__(self, data: mmap.mmap, split: Split, warnings: list[CaptureWarning]) -> None:
        self.data = data
        self.split = split
        self.warnings = warnings
        self.byte_order: ByteOrder = split.byte_order
        self.interfaces = list(split.interfaces)
        self.kind = 0
        self.damage = ""
        self._dropped = _Dropped()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Kind and file offset of each whole block; stops, with a warning, at a damaged one."""
        at, end, size = self.split.start, self.split.end, len(self.data)
        while at < end:
            if at + BLOCK_MINIMUM > size:
                return self._stop(at, CUT_HEADER)
            if self.data[at : at + 4] == SECTION_MAGIC:
                order = SECTION_BYTE_ORDERS.get(self.data[at + 8 : at + 12])
                if order is None:
                    return self._stop(at, "a section without a byte-order mark")
                self.byte_order, self.interfaces = order, []
                self._dropped.next_section()
            self.kind, length = struct.unpack_from(self.byte_order + "II", self.data, at)
            if length < PACKET_BLOCK_MINIMUM.get(self.kind, BLOCK_MINIMUM) or length % 4:
                return self._stop(at, f"a damaged block claims {length} bytes")
            if at + length > size:
                return self._stop(at, CUT_BLOCK)
            if self.kind == BLOCK_INTERFACE and not self._add_interface(at, length):
                return self._stop(at, "a damaged interface description")
            if self.kind == BLOCK_PACKET:
                (captured,) = struct.unpack_from(self.byte_order + "I", self.data, at + 20)
                options = at + PACKET_DATA_AT + (captured + 3 & ~3)
                if options + 4 < at + length:
                    self._dropped.packet(self._counts(options, at + length - 4))
            elif self.kind == BLOCK_OLD_PACKET:
                self._dropped.old_packet(*struct.unpack_from(self.byte_order + "H", self.data, at + 10))
            elif self.kind == BLOCK_STATISTICS and length >= STATISTICS_BLOCK_MINIMUM:
                (number,) = struct.unpack_from(self.byte_order + "I", self.data, at + 8)
                self._dropped.interface(number, self._counts(at + 20, at + length - 4))
            yield self.kind, at
            at += length
        return self._end(at)

    def _stop(self, at: int, reason: str) -> None:
        self.damage = reason
        self.warnings.append(CaptureWarning(self.split.name, at, reason, unread=True))
        self._end(at)

    @property
    def dropped(self) -> int:
        """How many packets were dropped while it was captured, as the blocks say that were walked."""
        return self._dropped.count()

    def _end(self, at: int) -> None:
        """Say what the file itself says to be missing."""
        if count := self.dropped:
            packets = "1 packet was" if count == 1 else f"{count:,} packets were"
            reason = f"{packets} dropped while it was captured, as the file itself says"
            self.warnings.append(CaptureWarning(self.split.name, at, reason, unread=True))

    def _counts(self, option: int, end: int) -> dict[int, int]:
        """The options of a block that hold 64-bit numbers, by their codes."""
        return {
            code: int.from_bytes(self.data[at : at + size], "little" if self.byte_order == "<" else "big")
            for code, at, size in self._options(option, end)
            if size == 8
        }

    def _options(self, option: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Code, place and size of each option, as far as they make sense."""
        while option + 4 <= end:
            code, size = struct.unpack_from(self.byte_order + "HH", self.data, option)
            if code == OPTION_END or option + 4 + size > end:
                return
            yield code, option + 4, size
            option += 4 + (size + 3 & ~3)

    def _add_interface(self, at: int, length: int) -> bool:
        """Take an interface description block; False when it makes no sense."""
        if length < INTERFACE_BLOCK_MINIMUM or len(self.interfaces) >= INTERFACES_MAXIMUM:
            return False
        link_type, _, snap_length = struct.unpack_from(self.byte_order + "HHI", self.data, at + 8)
        ticks, offset_s = 10**6, 0
        for code, value, size in self._options(at + 16, at + length - 4):
            if code == OPTION_TIME_RESOLUTION and size >= 1:
                resolution = self.data[value]
                ticks = 2 ** (resolution & 127) if resolution & 128 else 10 ** (resolution & 127)
            elif code == OPTION_TIME_OFFSET and size == 8:
                offset_s = struct.unpack_from(self.byte_order + "q", self.data, value)[0]
        if ticks >= 2**63 or abs(offset_s) > 2**33:
            return False
        self.interfaces.append(Interface(link_type, ticks, offset_s, snap_length))
        return True


def columns(data: mmap.mmap, split: Split, warnings: list[CaptureWarning]) -> Records:
    """Walk the blocks of a split and gather the packet columns."""
    reader = BlockWalk(data, split, warnings)
    parts: list[Records] = []
    order, interfaces = reader.byte_order, reader.interfaces
    offsets: list[int] = []
    kinds: list[int] = []
    for kind, at in reader:
        if kind == BLOCK_SECTION:
            parts.append(_section(data, order, interfaces, offsets, kinds))
            order, interfaces, offsets, kinds = reader.byte_order, reader.interfaces, [], []
        elif kind in PACKET_BLOCK_MINIMUM:
            offsets.append(at)
            kinds.append(kind)
    parts.append(_section(data, order, interfaces, offsets, kinds))
    return Records(
        *(np.concatenate(columns) for columns in zip(*(_fields(part) for part in parts), strict=True))
    )


def _fields(records: Records) -> tuple[Integers, ...]:
    return (
        records.record_offset,
        records.data_offset,
        records.captured,
        records.wire,
        records.time_ns,
        records.link_type,
        records.interface,
    )


def _section(
    data: mmap.mmap,
    byte_order: ByteOrder,
    interfaces: Sequence[Interface],
    offsets: list[int],
    kinds: list[int],
) -> Records:
    """The packets of one section. Those of an interface nobody described have link type -1."""
    at = np.array(offsets, np.int64)
    kind = np.array(kinds, np.int64)
    words = Words(data, byte_order)
    room = words.at(at + 4)
    simple = kind == BLOCK_SIMPLE
    full = ~simple
    number = np.zeros(len(at), np.int64)
    number[full] = words.at(at[full] + 8)
    old = kind == BLOCK_OLD_PACKET
    number[old] = number[old] & 0xFFFF if byte_order == "<" else number[old] >> 16
    wire = np.zeros(len(at), np.int64)
    captured = np.zeros(len(at), np.int64)
    ticks = np.zeros(len(at), np.uint64)
    ticks[full] = (words.at(at[full] + 12) << 32 | words.at(at[full] + 16)).astype(np.uint64)
    captured[full] = np.minimum(words.at(at[full] + 20), room[full] - PACKET_BLOCK_MINIMUM[BLOCK_PACKET])
    wire[full] = words.at(at[full] + 24)
    wire[simple] = words.at(at[simple] + 8)
    captured[simple] = np.minimum(wire[simple], room[simple] - PACKET_BLOCK_MINIMUM[BLOCK_SIMPLE])
    time_ns = np.zeros(len(at), np.int64)
    link_type = np.full(len(at), NO_INTERFACE, np.int64)
    for index in np.unique(number):
        if index >= len(interfaces):
            continue
        interface = interfaces[index]
        mine = number == index
        link_type[mine] = interface.link_type
        time_ns[mine & full] = _nanoseconds(ticks[mine & full], interface)
        if interface.snap_length:
            captured[mine & simple] = np.minimum(captured[mine & simple], interface.snap_length)
    return Records(
        at, at + np.where(simple, SIMPLE_DATA_AT, PACKET_DATA_AT), captured, wire, time_ns, link_type, number
    )


def _nanoseconds(ticks: npt.NDArray[np.uint64], interface: Interface) -> Integers:
    """Ticks since 1970 of an interface as nanoseconds, rounded down."""
    second = 10**9
    rate = interface.ticks_per_second
    if second % rate == 0:
        whole_ns = ticks * np.uint64(second // rate)
    elif rate % second == 0:
        whole_ns = ticks // np.uint64(rate // second)
    else:
        shift = max(0, rate.bit_length() - 1 - 32)
        ticks, rate = ticks >> np.uint64(shift), rate >> shift
        seconds, rest = np.divmod(ticks, np.uint64(rate))
        whole_ns = seconds * np.uint64(second) + rest * np.uint64(second) // np.uint64(rate)
    return (whole_ns & np.uint64(2**63 - 1)).astype(np.int64) + interface.offset_s * second
