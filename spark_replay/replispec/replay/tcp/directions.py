"""One direction of a connection with positions counted from its first byte, and its holes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.flows import FlowKey, FlowSide, Incarnation, connection_text, endpoint_text
from replispec.replay.tcp.numbers import apart
from replispec.replay.tcp.packets import VOUCHED
from replispec.replay.tcp.pieces import (
    AMBIGUOUS,
    CORRUPT_ONLY,
    TRUNCATED,
    Hole,
    Intervals,
    Pieces,
    find_holes,
    unbroken,
)


@dataclass(frozen=True, slots=True)
class Direction:
    """What was seen of one direction; position 0 is the byte after its SYN, else the lowest seen.

    `number`: 0 when the lower endpoint sends. `from_syn`: the SYN was seen. `initiator`: it opened
    the connection; None: unknown. `pieces` are disjoint, ascending, and none lies before 0.
    `bytes_early`: payload seen before position 0, where nothing can be (a number of it was damaged), and
    what was captured with wrong checksums only, apart from all that is known (another connection's).
    `first_number`: the TCP sequence number of position 0.
    """

    connection: str
    number: int
    source: str
    destination: str
    source_port: int
    destination_port: int
    from_syn: bool
    initiator: bool | None
    pieces: Pieces
    holes: tuple[Hole, ...]
    first_time_ns: int
    last_time_ns: int
    closed: bool
    bytes_early: int = 0
    first_number: int = 0

    @property
    def first_hole(self) -> int | None:
        """Where the first hole starts; None without one."""
        return self.holes[0].start if self.holes else None


def directions(incarnation: Incarnation) -> tuple[Direction | None, Direction | None]:
    """Both directions of a connection; None for one of which no packet was seen, and no byte acknowledged."""
    first, second = (
        _direction(incarnation.key, incarnation.number, incarnation.sides, side) for side in (0, 1)
    )
    return first, second


def _direction(
    key: FlowKey, number: int, sides: tuple[FlowSide | None, FlowSide | None], at: int
) -> Direction | None:
    side, peer = sides[at], sides[1 - at]
    if side is None:
        return None
    pieces = _from_zero(side)
    holes = tuple(side_holes(side, pieces)) if _is_known(side, peer) else ()
    if not side.packets and not holes:
        return None
    first_ns, last_ns = _span(side, peer)
    return Direction(
        connection=connection_text(key, number),
        number=at,
        source=endpoint_text(key[at]),
        destination=endpoint_text(key[1 - at]),
        source_port=key[at][2],
        destination_port=key[1 - at][2],
        from_syn=side.syn is not None,
        initiator=_is_initiator(side, peer),
        pieces=pieces,
        holes=holes,
        first_time_ns=first_ns,
        last_time_ns=last_ns,
        closed=side.closed,
        bytes_early=_bytes_early(side) + _bytes_apart(side),
        first_number=side.zero % 2**32,
    )


def _is_initiator(side: FlowSide, peer: FlowSide | None) -> bool | None:
    """Whether a side opened the connection; None: unknown. Who acknowledges a SYN did not, whatever else it
    sent: a SYN alone may have lost its flag, stray from another connection, or cross the peer's."""
    accepts, opens = (False, False) if peer is None else (peer.accepts, peer.opens)
    if side.accepts != accepts:
        return accepts
    return side.opens if side.opens != opens else None


def _is_known(side: FlowSide, peer: FlowSide | None) -> bool:
    """Whether there was such a connection: a sound packet tells it, or two whose checksums are wrong. One
    alone may be of any other connection, with its address or its port damaged."""
    both = [each for each in (side, peer) if each is not None]
    return any(each.packets for each in both) or sum(len(each.corrupt_size) for each in both) > 1


def _span(side: FlowSide, peer: FlowSide | None) -> tuple[int, int]:
    """When the packets of a side came first and last. Of a side without a sound one the peer's
    acknowledgments tell, and when they came, and last what no checksum bears out."""
    for each in (side, peer):
        if each is not None and each.packets:
            return each.first_time_ns, each.last_time_ns
    times = np.concatenate([each.corrupt_time_ns for each in (side, peer) if each is not None])
    return (int(times.min()), int(times.max())) if len(times) else (0, 0)


def _from_zero(side: FlowSide) -> Pieces:
    """The side's pieces counted from its position zero, without what lies before it, or astray behind."""
    pieces = _behind_zero(side)
    last = _before_strays(side, pieces)
    return pieces if last == len(pieces) else pieces.take(np.arange(last))


def strays(side: FlowSide) -> Pieces:
    """Packets that lie apart behind all that is known of a side, whose numbers nothing bears out: no other
    packet, no acknowledgment, no checksum. They are counted from its zero.

    One of their bits was turned. Where they are real, what came before them is missing, and they stay part of
    that hole.
    """
    pieces = _behind_zero(side)
    return pieces.take(np.arange(_before_strays(side, pieces), len(pieces)))


def _behind_zero(side: FlowSide) -> Pieces:
    """The side's pieces counted from its position zero, without what lies before it."""
    pieces = side.pieces.shifted(-side.zero)
    if len(pieces) and int(pieces.start[0]) < 0:
        pieces = pieces.take(np.flatnonzero(pieces.end > 0))
        early = np.minimum(pieces.start, 0)
        moved = pieces.payload_offset - early
        pieces = replace(pieces, start=pieces.start - early, payload_offset=moved)
    return pieces


def _before_strays(side: FlowSide, pieces: Pieces) -> int:
    """Where strays begin among the pieces of a side."""
    told = max((each - side.zero for each in (side.acknowledged, side.fin) if each is not None), default=0)
    last = len(pieces)
    while last > 1:
        first = _of_one_packet(pieces, last - 1)
        if not first or not _is_astray(pieces, first, last, told):
            break
        last = first
    return last


def _of_one_packet(pieces: Pieces, at: int) -> int:
    """Where the pieces begin that follow each other up to this one and came with its packet: fragments."""
    while at and pieces.record_offset[at - 1] == pieces.record_offset[at]:
        if pieces.end[at - 1] != pieces.start[at]:
            break
        at -= 1
    return at


def _is_astray(pieces: Pieces, first: int, last: int, told: int) -> bool:
    before, start = int(pieces.end[first - 1]), int(pieces.start[first])
    # A FIN takes a number as well.
    is_told = told > before + 1 and told >= start
    return start > before and not is_told and not (pieces.trust[first:last] == VOUCHED).any()


def _bytes_early(side: FlowSide) -> int:
    """Bytes before the side's position zero; not the number of the SYN, which a keep-alive repeats."""
    first = side.zero - 1
    if not len(side.pieces) or int(side.pieces.start[0]) >= first:
        return 0
    return int((np.minimum(side.pieces.end, first) - np.minimum(side.pieces.start, first)).sum())


def side_holes(side: FlowSide, pieces: Pieces | None = None) -> list[Hole]:
    """The holes of a side, positions counted from its zero; `pieces`: its pieces counted so, if at hand."""
    pieces = _from_zero(side) if pieces is None else pieces
    zero = side.zero
    seen_end, high = _extent(side)
    if unbroken(pieces, 0, high):
        return []
    reasons = {
        TRUNCATED: _intervals(side.cut_start - zero, side.cut_end - zero),
        AMBIGUOUS: _intervals(side.ambiguous_start - zero, side.ambiguous_end - zero),
        CORRUPT_ONLY: _corrupt(side, high),
    }
    return find_holes(pieces, reasons, 0, high, seen_end, starts_known=side.syn is not None)


def _extent(side: FlowSide) -> tuple[int, int]:
    """Where what was seen of a side ends, and where what is known of it does, counted from its zero."""
    zero = side.zero
    seen_end = 0 if side.high is None else max(0, side.high - zero)
    high = seen_end
    # Without a first byte the least number mentioned may be that of a keep-alive, one below the stream.
    if side.fin is not None and (side.fin > zero + 1 or side.syn is not None or side.low is not None):
        high = max(high, side.fin - zero)
    if side.acknowledged is not None:
        confirmed = side.acknowledged - zero
        if side.fin is not None and side.acknowledged > side.fin:
            confirmed = side.fin - zero
        # One more than was seen is taken for the number of a FIN that was not captured.
        if confirmed > seen_end + 1:
            high = max(high, confirmed)
    if len(side.corrupt_size):
        further = _end_of_corrupt(side, high)
        if further > high:
            high = seen_end = further
    return seen_end, high


def _intervals(start: Integers, end: Integers) -> Intervals:
    return list(zip(start.tolist(), end.tolist(), strict=True))


def _corrupt(side: FlowSide, high: int) -> Intervals:
    """Where in [0, high) copies lay that a checksum contradicts, wherever their 32-bit numbers fit."""
    first = (side.corrupt_sequence - side.zero) % 2**32
    starts = ((start, size) for start, size in zip(first.tolist(), side.corrupt_size.tolist(), strict=True))
    return [(at, at + size) for start, size in starts for at in range(start, high, 2**32)]


def _end_of_corrupt(side: FlowSide, high: int) -> int:
    """How far what a checksum contradicts goes on where all that is known ends, at `high`: without another
    copy it is missing, though nobody is seen to acknowledge it."""
    if side.fin is not None and high >= side.fin - side.zero:
        return high
    end = high
    for start, size in _behind(side, high):
        if start == end:
            end += size
    return end


def _behind(side: FlowSide, high: int) -> Iterator[tuple[int, int]]:
    """Where what a checksum contradicts stands, at `high` or behind it, and its size, in order."""
    starts = apart(side.corrupt_sequence - (side.zero + high))
    order = np.lexsort((side.corrupt_size, starts))
    for start, size in zip(starts[order].tolist(), side.corrupt_size[order].tolist(), strict=True):
        if start >= 0:
            yield high + start, size


def _bytes_apart(side: FlowSide) -> int:
    """Bytes that a checksum contradicts and that lie apart from all that is known of a side, where another
    such packet goes on with them: of another connection of its endpoints, and no damaged number."""
    if len(side.corrupt_size) < 2:
        return 0
    _, end = _extent(side)
    middle = side.zero + end // 2
    start = apart(side.corrupt_sequence - middle) + end // 2
    beyond = (start + side.corrupt_size < 0) | (start > end)
    start, size = start[beyond], side.corrupt_size[beyond]
    last = start + size
    joined = np.isin(last, start) | np.isin(start, last[size > 0])
    joined |= np.isin(start, start[size == 0])
    return int(size[joined & (size > 1)].sum())
