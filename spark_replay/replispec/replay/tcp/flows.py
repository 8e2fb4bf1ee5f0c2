"""TCP connections in sequence space: which packets belong together, and where their bytes lie.

Packets are grouped by their two endpoints, the lower first; where several connections used them one after
the other, `turns` tells them apart. 32-bit sequence numbers are unwrapped into 64-bit positions by
their differences in order of arrival; the peer's acknowledgments count too, so a long gap in the
capture of one direction does not lose the count. Everything that is known of one direction is a
`Side`; sides of consecutive parts of a capture can be joined (see `stitch`).

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.groups import numbered, stable_order
from replispec.replay.capture.records import Integers
from replispec.replay.tcp.numbers import apart
from replispec.replay.tcp.packets import Packets
from replispec.replay.tcp.pieces import Pieces, no_numbers, no_pieces

Endpoint = tuple[int, int, int]  # address high, address low (IPv4 mapped into IPv6), port
FlowKey = tuple[Endpoint, Endpoint]


@dataclass(slots=True)
class FlowSide:
    """One direction of one connection, in unwrapped positions.

    `references`: the first and the last position that was mentioned by a packet; the low 32 bits of
    a position are a TCP sequence number; `least`: the least one. `syn`, `fin`: position of the SYN, of
    the FIN; `acknowledged`: the furthest that the peer confirmed; None: not seen. `opens`, `accepts`: it sent
    a SYN alone, one that acknowledges a SYN. `low`, `high`: least and greatest position of payload seen on
    the wire. `cut_...`: tails missing because of the snap length.
    `disputed`: all copies of bytes of which copies differ, in order of arrival; when settled, either
    among the pieces or `ambiguous_...`. `corrupt_sequence`, `corrupt_size`: 32-bit sequence numbers and
    lengths of what a checksum contradicts, and when it came (`corrupt_time_ns`): they are no bytes, but tell
    why bytes are missing, and where nothing else was seen of them, that they were there.
    `references` is None for a side of which nothing but RST packets was seen.
    """

    references: tuple[int, int] | None
    least: int | None = None
    syn: int | None = None
    fin: int | None = None
    acknowledged: int | None = None
    low: int | None = None
    high: int | None = None
    opens: bool = False
    accepts: bool = False
    closed: bool = False
    packets: int = 0
    first_time_ns: int = 0
    last_time_ns: int = 0
    pieces: Pieces = field(default_factory=no_pieces)
    cut_start: Integers = field(default_factory=no_numbers)
    cut_end: Integers = field(default_factory=no_numbers)
    disputed: Pieces = field(default_factory=no_pieces)
    ambiguous_start: Integers = field(default_factory=no_numbers)
    ambiguous_end: Integers = field(default_factory=no_numbers)
    corrupt_sequence: Integers = field(default_factory=no_numbers)
    corrupt_size: Integers = field(default_factory=no_numbers)
    corrupt_time_ns: Integers = field(default_factory=no_numbers)

    @property
    def zero(self) -> int:
        """The position that counts as 0: the byte after the SYN, else the lowest byte seen, else the
        lowest that anybody mentioned, or that a packet with a wrong checksum does."""
        if self.syn is not None:
            return self.syn + 1
        if self.low is not None:
            return self.low
        return self.least if self.least is not None else self._least_corrupt

    @property
    def _least_corrupt(self) -> int:
        """The lowest number of payload that a checksum contradicts, seen from the first one; else 0."""
        numbers = self.corrupt_sequence[self.corrupt_size > 0]
        if not len(numbers):
            return 0
        return int(numbers[0] + apart(numbers - numbers[0]).min())


@dataclass(slots=True)
class Incarnation:
    """One connection between two endpoints; side 0 is what the lower endpoint sent."""

    key: FlowKey
    number: int
    sides: tuple[FlowSide | None, FlowSide | None]


@lru_cache(maxsize=1 << 16)
def endpoint_text(endpoint: Endpoint) -> str:
    """ADDRESS:PORT; an IPv6 address stands in brackets."""
    address = address_text(*endpoint[:2])
    return f"[{address}]:{endpoint[2]}" if ":" in address else f"{address}:{endpoint[2]}"


def address_text(high: int, low: int) -> str:
    """The address whose halves these are; IPv4 as such when it is mapped into IPv6."""
    address = ipaddress.IPv6Address(high << 64 | low)
    return str(address.ipv4_mapped or address)


def connection_text(key: FlowKey, number: int) -> str:
    """LOWER<->HIGHER#K, K counting the connections between the two endpoints from 1."""
    return f"{endpoint_text(key[0])}<->{endpoint_text(key[1])}#{number}"


@dataclass(frozen=True, slots=True)
class Grouped:
    """Packets sorted by (flow, arrival).

    `flow`: number of the flow of each row, ascending in order of the endpoints; `direction`: 0 when
    the lower endpoint sent it; `borders`: the first row of each flow, and the number of rows.
    """

    packets: Packets
    flow: Integers
    direction: Integers
    borders: Integers
    keys: list[FlowKey]

    def sorted_within(self, number: Integers) -> Grouped:
        """The packets of each flow sorted by a number of theirs, equal ones as they are."""
        order = np.lexsort((number, self.flow))
        return replace(self, packets=self.packets.take(order), direction=self.direction[order])


def group(packets: Packets) -> Grouped:
    """Group packets by their endpoints."""
    count = len(packets)
    if not count:
        return Grouped(packets, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64), [])
    high = np.concatenate([packets.source_high, packets.destination_high])
    low = np.concatenate([packets.source_low, packets.destination_low])
    port = np.concatenate([packets.source_port, packets.destination_port])
    endpoints, number = _distinct(high, low, port)
    source, destination = number[:count], number[count:]
    direction = (source > destination).astype(np.int64)
    pair = np.minimum(source, destination) * len(endpoints) + np.maximum(source, destination)
    pairs, flow = numbered(pair)
    order = stable_order(flow)
    flow = flow[order]
    borders = np.append(np.flatnonzero(np.diff(flow, prepend=-1)), count)
    keys = [(endpoints[pair // len(endpoints)], endpoints[pair % len(endpoints)]) for pair in pairs.tolist()]
    return Grouped(packets.take(order), flow, direction[order], borders, keys)


def _distinct(
    high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64], port: Integers
) -> tuple[list[Endpoint], Integers]:
    """The distinct endpoints, ascending, and the number of each row's endpoint among them."""
    if not high.any() and not (low >> np.uint64(48)).any():
        keys, number = numbered(low << np.uint64(16) | port.astype(np.uint64))
        return [(0, key >> 16, key & 0xFFFF) for key in keys.tolist()], number
    order = np.lexsort((port, low, high))
    columns = (high[order], low[order], port[order])
    change = np.zeros(len(order), np.bool_)
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(change)
    first = np.flatnonzero(np.append([True], change[1:]))
    endpoints = list(zip(*(column[first].tolist() for column in columns), strict=True))
    return endpoints, number
