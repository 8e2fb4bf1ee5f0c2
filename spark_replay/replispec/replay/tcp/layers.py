"""Headers inside headers, for all packets at once: where each packet's present layer starts, and what it is.

A `Layer` holds rows, one a packet, that are opened header by header. What a row's layer is says its
`kind`: an ether type as it is on the wire, `IP + n` for an IP protocol, or one of the kinds below that
have no such number. Byte order on the wire: big endian.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers

Unsigned = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

IP = 0x1_0000
TCP, UDP = IP + 6, IP + 17
# Kinds without a number of their own: an Ethernet frame, a PPP frame, a packet that says its IP version.
ETHERNET, PPP, IP_PACKET, NOTHING = 0x2_0000, 0x2_0001, 0x2_0002, 0x2_0003
ETHER_IPV4, ETHER_IPV6 = 0x0800, 0x86DD
# A packet may have so many headers up to TCP; a tag, a label stack, a tunnel's header is one each.
HEADERS_MAXIMUM = 32


class BigEndian:
    """Big-endian integers at any offsets of some bytes; offsets are clipped to them."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self.size = len(data)
        self._views: dict[int, npt.NDArray[np.unsignedinteger]] = {
            size: np.ndarray((max(0, self.size - size + 1),), f">u{size}", data, 0, (1,))
            for size in (1, 2, 4, 8)
        }
        # All aligned 32-bit words, the other way round: the sums of checksums can be turned afterwards.
        self.turned_words: npt.NDArray[np.uint32] = np.ndarray((self.size // 4,), "<u4", data)

    def at(self, offsets: Integers, size: int) -> Integers:
        """The integers of `size` bytes (1, 2 or 4) at the offsets."""
        return self._gather(offsets, size).astype(np.int64)

    def unsigned(self, offsets: Integers, size: int) -> Unsigned:
        """As `at`, also of 8 bytes."""
        return self._gather(offsets, size).astype(np.uint64)

    def _gather(self, offsets: Integers, size: int) -> npt.NDArray[np.unsignedinteger]:
        view = self._views[size]
        if not len(view):
            return np.zeros(len(offsets), view.dtype)
        return view[np.minimum(offsets, len(view) - 1)]


def distinct(values: Integers) -> dict[int, int]:
    """The values, ascending, and how often each is there."""
    if len(values) and (values == values[0]).all():
        return {int(values[0]): len(values)}
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Layer:
    """Columns, one row a packet on its way up its headers.

    `row`: which record; `at`: where the layer starts; `end`: offset behind its last captured byte,
    `wire_end`: behind the last that was on the wire; `kind`: what starts there. Of the last IP header:
    `addresses`: where its source address is, the destination behind it; `family`: 4 or 6 (0: none yet);
    `header`: what is to be said of its checksum (see `checksums`).
    """

    row: Integers
    at: Integers
    end: Integers
    wire_end: Integers
    kind: Integers
    addresses: Integers
    family: Integers
    header: Integers

    def __len__(self) -> int:
        return len(self.row)

    def keep(self, mask: Flags) -> Layer:
        """The rows in the mask."""
        if mask.all():
            return self
        return Layer(*(getattr(self, item.name)[mask] for item in fields(self)))

    def inside(self, at: Integers, kind: Integers | int) -> Layer:
        """The next layer of the rows: what starts at `at` and is of this kind."""
        kinds = np.full(len(self), kind, np.int64) if isinstance(kind, int) else kind
        return replace(self, at=at, kind=kinds)


def bottom(row: Integers, at: Integers, end: Integers, wire_end: Integers, kind: Integers | int) -> Layer:
    """The lowest layer of some packets, without an IP header so far."""
    none = np.zeros(len(row), np.int64)
    return Layer(row, at, end, wire_end, none, none, none, none).inside(at, kind)
