"""Which connection a packet belongs to, where two endpoints had several: the one whose numbers it fits.

Order of arrival alone does not tell: a packet of an earlier connection may be captured again, or late, and
the SYN of a later one may be missing. Every packet is compared with all connections that are known so far.
No time is compared here, except in the one question of `Handshake.opens`.

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.flows import OVERTAKING_BYTES, Grouped, Handshake, incarnations
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.packets import ACK, CORRUPT, FIN, RST, SYN

NUMBERS, HALF = 2**32, 2**31
# How many connections of the same two endpoints a packet is compared with, the latest first: more of them
# make no packet dearer.
KNOWN_MAX = 32


class Row(NamedTuple):
    """What matters of one packet: `side` sent it; `size`: its numbers, payload with SYN and FIN."""

    side: int
    sequence: int
    acknowledgment: int
    flags: int
    size: int
    time_ns: int


@dataclass(slots=True)
class _Span:
    """From the least to the greatest position of one side that was mentioned; None: nothing was."""

    low: int | None = None
    high: int = 0

    def far(self, number: int) -> int | None:
        """How far outside a number lies; None where nothing is known."""
        if self.low is None:
            return None
        at = self._at(number)
        return max(self.low - at, at - self.high, 0)

    def mention(self, number: int, size: int) -> None:
        """Stretch it to hold a number, and what follows it."""
        if self.low is None:
            self.low = self.high = number
        at = self._at(number)
        self.low, self.high = min(self.low, at), max(self.high, at + size)

    def _at(self, number: int) -> int:
        return self.high + (number - self.high + HALF) % NUMBERS - HALF


@dataclass(slots=True)
class _Turn:
    """One connection so far: its handshake, its spans by side, and who closed it."""

    handshake: Handshake = field(default_factory=lambda: Handshake([None, None], [None, None]))
    spans: tuple[_Span, _Span] = field(default_factory=lambda: (_Span(), _Span()))
    ended: list[bool] = field(default_factory=lambda: [False, False])

    def begun_by(self, row: Row) -> bool:
        """Whether a SYN repeats this connection's own, or answers it."""
        initial = self.handshake.initial
        own, other = initial[row.side], initial[1 - row.side]
        answered = other is not None and (other + 1) % NUMBERS == row.acknowledgment
        if not row.flags & ACK:
            return own == row.sequence
        if own is not None:
            return own == row.sequence and (other is None or answered)
        return answered and (self.spans[row.side].far(row.sequence) or 0) <= OVERTAKING_BYTES

    def fits(self, row: Row) -> bool:
        """Whether none of a packet's numbers lies far outside of what was mentioned."""
        return all(far <= OVERTAKING_BYTES for far in self._distances(row))

    def refuses(self, row: Row) -> bool:
        """Whether both sides were closed, and every number of a packet lies far outside."""
        outside = bool(row.flags & ACK) and all(far > OVERTAKING_BYTES for far in self._distances(row))
        return outside and all(self.ended)

    def _distances(self, row: Row) -> Iterator[int]:
        own = self.spans[row.side].far(row.sequence)
        other = self.spans[1 - row.side].far(row.acknowledgment) if row.flags & ACK else None
        yield from (far for far in (own, other) if far is not None)

    def take(self, row: Row) -> None:
        """Count a packet to this connection; the numbers of a RST need not lie near the stream."""
        if row.flags & RST:
            self.ended[:] = True, True
            return
        if row.flags & SYN:
            self.handshake.initial[row.side] = row.sequence
        elif self.handshake.plain[row.side] is None:
            self.handshake.plain[row.side] = row.sequence, row.time_ns
        self.spans[row.side].mention(row.sequence, row.size)
        if row.flags & ACK:
            self.spans[1 - row.side].mention(row.acknowledgment, 0)
        self.ended[row.side] |= bool(row.flags & FIN)


def turns(rows: list[Row | None]) -> list[int]:
    """The number, from 1, of the connection of each of a flow's packets; None: one that is not to be read."""
    known = [_Turn()]
    present = 0
    found = []
    for row in rows:
        if row is not None:
            present = _place(known, present, row)
            known[present].take(row)
        found.append(present + 1)
    return found


def _place(known: list[_Turn], present: int, row: Row) -> int:
    """Which of the known connections a packet belongs to, the present one first; else a new one."""
    begins = row.flags & (SYN | RST) == SYN
    belongs = _Turn.begun_by if begins else _Turn.fits
    latest = range(max(0, len(known) - KNOWN_MAX), len(known))
    for at in chain((present,), reversed(latest)):
        if belongs(known[at], row):
            return at
    if begins:
        opens = known[present].handshake.opens(row.side, row.sequence, row.time_ns)
    else:
        opens = not row.flags & RST and known[present].refuses(row)
    if not opens:
        return present
    known.append(_Turn())
    return len(known) - 1


def in_turns(grouped: Grouped, before: Handshake | None = None) -> tuple[Grouped, Integers]:
    """The packets by (flow, connection, arrival), and the number of each one's connection in its flow.

    `before`: what the packets before these say of connection 1 (of a single flow); nothing is then known
    of the numbers between, and order of arrival decides.
    """
    number = incarnations(grouped, before)
    if before is not None or not len(number):
        return grouped, number
    doubtful = np.unique(grouped.flow[_in_doubt(grouped, number)]).tolist()
    for flow in doubtful:
        first, upto = int(grouped.borders[flow]), int(grouped.borders[flow + 1])
        number[first:upto] = turns(rows_of(grouped, first, upto))
    if not doubtful:
        return grouped, number
    order = np.lexsort((number, grouped.flow))
    sorted_ = replace(grouped, packets=grouped.packets.take(order), direction=grouped.direction[order])
    return sorted_, number[order]


def _in_doubt(grouped: Grouped, number: Integers) -> Flags:
    """Packets for which their flow is to be looked at: of a second connection, or payload behind an end."""
    packets = grouped.packets
    read = packets.trust > CORRUPT
    ends = np.cumsum((packets.flags & (FIN | RST) != 0) & read)
    first = grouped.borders[:-1]
    earlier = np.append([0], ends)[first][grouped.flow]
    late = (ends > earlier) & read & (packets.payload_wire > 0) & (packets.flags & (FIN | RST) == 0)
    found: Flags = (number > 1) | late
    return found


def rows_of(grouped: Grouped, first: int, upto: int) -> list[Row | None]:
    """The packets [first, upto) of one flow."""
    packets, part = grouped.packets, slice(first, upto)
    flags = packets.flags[part]
    sizes: Integers = packets.payload_wire[part] + (flags & SYN != 0) + (flags & FIN != 0)
    columns = (
        grouped.direction[part],
        packets.sequence[part],
        packets.acknowledgment[part],
        flags,
        sizes,
        packets.time_ns[part],
    )
    read = (packets.trust[part] > CORRUPT).tolist()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Row(*row) if sound else None for row, sound in zip(rows, read, strict=True)]
