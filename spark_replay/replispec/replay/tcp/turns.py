"""Which connection a packet belongs to, where two endpoints had several: the one whose numbers it fits.

Order of arrival alone does not tell: a packet of an earlier connection may be captured again, or late, and
the SYN of a later one may be missing. Every packet of a flow in doubt (see `doubts`) is compared with the
last connections that are known. What is known is carried from one part of a capture to the next, so that
packets belong to the same connections wherever the capture is cut. No time is compared, except
in the one question of `Handshake.opens`.

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.doubts import doubtful_flows
from replispec.replay.tcp.flows import FlowKey, Grouped
from replispec.replay.tcp.numbers import HALF, NUMBERS, apart
from replispec.replay.tcp.packets import ACK, CORRUPT, FIN, RST, SYN

# So far behind its SYN a packet may be that overtook it: what one window without scaling holds; and when
# the packet is stamped later than the SYN, what the largest window holds.
OVERTAKING_BYTES, OVERTAKING_BYTES_LATER = 1 << 16, 1 << 30
# How many connections of the same two endpoints a packet is compared with, the latest first: more of them
# make no packet dearer.
KNOWN_MAX = 32
# The number, from 1, of the connection of each packet, by flow and arrival; flows with one are left out.
Turns = Mapping[FlowKey, Integers]


class Row(NamedTuple):
    """What matters of one packet: `side` sent it; `size`: its numbers, payload with SYN and FIN."""

    side: int
    sequence: int
    acknowledgment: int
    flags: int
    size: int
    time_ns: int


@dataclass(slots=True)
class Handshake:
    """What decides whether a SYN opens another connection: for both sides the initial sequence number, its
    own or the one that its peer's SYN answers, and the sequence number and time of the first packet that is
    neither SYN nor RST; None: not seen."""

    initial: list[int | None] = field(default_factory=lambda: [None, None])
    plain: list[tuple[int, int] | None] = field(default_factory=lambda: [None, None])

    def opens(self, side: int, sequence: int, time_ns: int) -> bool:
        """Whether a SYN of this side with this number cannot belong to the present connection.

        A SYN continues a connection when it repeats the side's initial sequence number, or when it
        is the side's first packet, or when only reordering put packets of that side (the first of
        them not far behind the SYN, or stamped later than it) before it.
        """
        known, plain = self.initial[side], self.plain[side]
        if known is not None:
            return known != sequence
        if plain is None:
            return False
        most = OVERTAKING_BYTES_LATER if time_ns < plain[1] else OVERTAKING_BYTES
        return (plain[0] - sequence - 1) % NUMBERS >= most


@dataclass(slots=True)
class _Span:
    """From the least to the greatest position of one side that was mentioned; None: nothing was."""

    low: int | None = None
    high: int = 0

    def far(self, number: int) -> int:
        """How far outside a number lies; 0 where nothing is known, or half of all numbers lie inside."""
        if self.low is None or self.high - self.low >= HALF - OVERTAKING_BYTES:
            return 0
        at = self._at(number)
        return max(self.low - at, at - self.high, 0)

    def leaps(self, number: int) -> bool:
        """Whether a number that lies far outside is behind, or further ahead than a gap reaches."""
        return self._at(number) < self.high or self.far(number) > OVERTAKING_BYTES_LATER

    def mention(self, number: int, size: int) -> None:
        """Stretch it to hold a number, and what follows it."""
        if self.low is None:
            self.low = self.high = number
        at = self._at(number)
        self.low, self.high = min(self.low, at), max(self.high, at + size)

    def _at(self, number: int) -> int:
        return self.high + apart(number - self.high)


@dataclass(slots=True)
class _Turn:
    """One connection so far: its handshake, its spans by side, and who closed it."""

    handshake: Handshake = field(default_factory=Handshake)
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
        return answered and self.spans[row.side].far(row.sequence) <= OVERTAKING_BYTES

    def denies(self, row: Row) -> bool:
        """Whether a SYN answers another one than this connection's."""
        other = self.handshake.initial[1 - row.side]
        return bool(row.flags & ACK) and other is not None and (other + 1) % NUMBERS != row.acknowledgment

    def fits(self, row: Row) -> bool:
        """Whether none of a packet's numbers lies far outside of what was mentioned."""
        return all(span.far(number) <= OVERTAKING_BYTES for span, number in self._mentioned(row))

    def refuses(self, row: Row) -> bool:
        """Whether every number of a packet lies far outside, and both sides were closed; or so that no gap in
        the capture explains it: one is behind all that was mentioned, or further ahead than any window."""
        if not row.flags & ACK:
            return False
        known = [(span, number) for span, number in self._mentioned(row) if span.low is not None]
        if not known or any(span.far(number) <= OVERTAKING_BYTES for span, number in known):
            return False
        return all(self.ended) or (len(known) == 2 and any(span.leaps(number) for span, number in known))

    def _mentioned(self, row: Row) -> Iterator[tuple[_Span, int]]:
        yield self.spans[row.side], row.sequence
        if row.flags & ACK:
            yield self.spans[1 - row.side], row.acknowledgment

    def take(self, row: Row) -> None:
        """Count a packet to this connection; the numbers of a RST need not lie near the stream."""
        if row.flags & RST:
            self.ended[:] = True, True
            return
        if row.flags & SYN:
            self.handshake.initial[row.side] = row.sequence
            if row.flags & ACK and self.handshake.initial[1 - row.side] is None:
                self.handshake.initial[1 - row.side] = (row.acknowledgment - 1) % NUMBERS
        elif self.handshake.plain[row.side] is None:
            self.handshake.plain[row.side] = row.sequence, row.time_ns
        self.spans[row.side].mention(row.sequence, row.size)
        if row.flags & ACK:
            self.spans[1 - row.side].mention(row.acknowledgment, 0)
        self.ended[row.side] |= bool(row.flags & FIN)


class FlowTurns:
    """The connections of one flow so far: the last ones by number, and the present one."""

    def __init__(self) -> None:
        self._known = {1: _Turn()}
        self._present = 1

    def take(self, row: Row | None) -> int:
        """The number of a packet's connection; None: a packet that is not to be read."""
        if row is not None:
            self._present = self._place(row)
            self._known[self._present].take(row)
        return self._present

    def _place(self, row: Row) -> int:
        """Which of the known connections a packet belongs to, the present one first; else a new one."""
        begins = row.flags & (SYN | RST) == SYN
        belongs = _Turn.begun_by if begins else _Turn.fits
        present = self._known[self._present]
        for at in chain((self._present,), reversed(self._known)):
            if belongs(self._known[at], row):
                return at
        if begins:
            opens = present.handshake.opens(row.side, row.sequence, row.time_ns) or present.denies(row)
        else:
            opens = not row.flags & RST and present.refuses(row)
        if not opens:
            return self._present
        number = next(reversed(self._known)) + 1
        self._known[number] = _Turn()
        self._known.pop(number - KNOWN_MAX, None)
        return number


class TurnsOfParts:
    """Finds the connections of the flows in doubt, from the parts of a capture in file order."""

    def __init__(self, doubtful: Collection[FlowKey]) -> None:
        self._flows = {key: FlowTurns() for key in doubtful}

    def add(self, grouped: Grouped) -> Turns:
        """The connections of the next part's packets."""
        found: dict[FlowKey, Integers] = {}
        for at, key in enumerate(grouped.keys):
            flow = self._flows.get(key)
            if flow is not None:
                rows = rows_of(grouped, int(grouped.borders[at]), int(grouped.borders[at + 1]))
                found[key] = np.array([flow.take(row) for row in rows], np.int64)
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


def turns_alone(grouped: Grouped) -> Turns:
    """The connections of a whole capture's flows in doubt."""
    return TurnsOfParts(doubtful_flows(grouped)).add(grouped)


def in_turns(grouped: Grouped, turns: Turns) -> tuple[Grouped, Integers]:
    """The packets by (flow, connection, arrival), and the number of each one's connection in its flow."""
    number = np.ones(len(grouped.packets), np.int64)
    if not turns:
        return grouped, number
    for at, key in enumerate(grouped.keys):
        if key in turns:
            number[int(grouped.borders[at]) : int(grouped.borders[at + 1])] = turns[key]
    return grouped.sorted_within(number), number[np.lexsort((number, grouped.flow))]
