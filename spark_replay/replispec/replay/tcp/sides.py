"""From grouped packets to the sides of connections: unwrapped positions, pieces, and what frames them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.groups import runs, stable_order
from replispec.replay.capture.records import CaptureBytes, Integers
from replispec.replay.tcp.copies import resolve, settle
from replispec.replay.tcp.flows import FlowSide, Grouped, Incarnation, group
from replispec.replay.tcp.numbers import unwrapped
from replispec.replay.tcp.packets import ACK, CORRUPT, FIN, RST, SYN, Packets
from replispec.replay.tcp.pieces import Pieces
from replispec.replay.tcp.turns import Turns, in_turns, turns_alone

UNKNOWN_LOW, UNKNOWN_HIGH = 2**62, -(2**62)


def read_connections(data: CaptureBytes, packets: Packets) -> list[Incarnation]:
    """All connections of the packets of a capture, in order of their endpoints and then of time."""
    found = parts_of_connections(data, packets)
    for incarnation in found:
        for side in incarnation.sides:
            if side is not None:
                resolve_side(data, side)
    return found


def resolve_side(data: CaptureBytes, side: FlowSide) -> None:
    """Put the copies that count of what is disputed among the pieces; the rest is ambiguous."""
    side.pieces, ambiguous = resolve(data, side.pieces, side.disputed)
    if not ambiguous:
        return
    side.ambiguous_start, side.ambiguous_end = np.array(ambiguous, np.int64).reshape(-1, 2).T


def parts_of_connections(
    data: CaptureBytes, packets: Packets, turns: Turns | None = None
) -> list[Incarnation]:
    """What some packets say of connections, of which other packets may say more; disputes are left open.

    `turns`: the connections of the flows in doubt; None: the packets are those of a whole capture.
    """
    if not len(packets):
        return []
    grouped = group(packets)
    grouped, number = in_turns(grouped, turns_alone(grouped) if turns is None else turns)
    connection = _connections(grouped, number)
    sides = _sides(data, grouped, connection)
    return [
        Incarnation(
            grouped.keys[int(grouped.flow[first])],
            int(number[first]),
            (sides.get(2 * at), sides.get(2 * at + 1)),
        )
        for at, first in enumerate(np.flatnonzero(np.diff(connection, prepend=-1)).tolist())
    ]


@dataclass(frozen=True, slots=True)
class Placed:
    """All packets of a capture, by connection and arrival, with what `read_connections` makes of them.

    `connection`, `direction`: which of `found` a row belongs to, and which side sent it; `start`: position
    of its payload, unwrapped; `has_start`: whether it has one (packets that are not read have none).
    """

    packets: Packets
    connection: Integers
    direction: Integers
    start: Integers
    has_start: npt.NDArray[np.bool_]
    found: list[Incarnation]


def placed(data: CaptureBytes, packets: Packets) -> Placed:
    """All connections, and where in them each packet's payload stands."""
    grouped = group(packets)
    if not len(packets):
        none = packets.sequence
        return Placed(packets, none, none, none, np.zeros(0, np.bool_), [])
    grouped, number = in_turns(grouped, turns_alone(grouped))
    packets = grouped.packets
    connection = _connections(grouped, number)
    positions = _unwrap(grouped, connection)
    start = positions.own + (packets.flags & SYN != 0)
    found = read_connections(data, packets)
    return Placed(packets, connection, grouped.direction, start, positions.has_own, found)


def _connections(grouped: Grouped, number: Integers) -> Integers:
    """The connection of each row, counted from 0."""
    change = (np.diff(grouped.flow, prepend=grouped.flow[0]) != 0) | (np.diff(number, prepend=number[0]) != 0)
    return np.cumsum(change)


@dataclass(frozen=True, slots=True)
class _Positions:
    """Unwrapped positions: of each row's own sequence number, and of what it acknowledges.

    Rows where the flag in `has_own`, `has_acknowledged` is off have no position.
    `references`: side -> first and last position mentioned.
    """

    own: Integers
    acknowledged: Integers
    has_own: npt.NDArray[np.bool_]
    has_acknowledged: npt.NDArray[np.bool_]
    references: dict[int, tuple[int, int]]


def _unwrap(grouped: Grouped, connection: Integers) -> _Positions:
    """Unwrap sequence and acknowledgment numbers per side, in order of arrival.

    The numbers of a RST are left out: they need not lie near the stream.
    """
    packets = grouped.packets
    count = len(packets)
    plain = (packets.flags & RST == 0) & (packets.trust > CORRUPT)
    mentions = np.empty((count, 2), np.int64)
    mentions[:, 0], mentions[:, 1] = packets.sequence, packets.acknowledgment
    space = np.empty((count, 2), np.int64)
    space[:, 0] = 2 * connection + grouped.direction
    space[:, 1] = 2 * connection + 1 - grouped.direction
    valid = np.empty((count, 2), np.bool_)
    valid[:, 0], valid[:, 1] = plain, plain & (packets.flags & ACK != 0)
    chosen = np.flatnonzero(valid.ravel())
    chosen = chosen[stable_order(space.ravel()[chosen])]
    side, number = space.ravel()[chosen], mentions.ravel()[chosen]
    positions = np.zeros(2 * count, np.int64)
    references: dict[int, tuple[int, int]] = {}
    if len(chosen):
        positions[chosen], references = unwrapped(side, number)
    pair = positions.reshape(count, 2)
    return _Positions(pair[:, 0], pair[:, 1], valid[:, 0], valid[:, 1], references)


def _sides(data: CaptureBytes, grouped: Grouped, connection: Integers) -> dict[int, FlowSide]:
    """2 * connection + direction -> what its packets and the peer's acknowledgments say."""
    packets = grouped.packets
    positions = _unwrap(grouped, connection)
    own_side = 2 * connection + grouped.direction
    sides = {side: FlowSide(references) for side, references in positions.references.items()}
    for side in np.unique(own_side).tolist():
        sides.setdefault(side, FlowSide(None))
    start = positions.own + (packets.flags & SYN != 0)
    payload = positions.has_own & (packets.payload_wire > 0)
    reducer = _Reducer(own_side, stable_order(own_side))
    _add_packets(sides, packets, reducer)
    _add_marks(sides, packets, positions, start, reducer)
    for side, value in reducer.run(np.minimum, start, payload):
        sides[side].low = value
    for side, value in reducer.run(np.maximum, start + packets.payload_wire, payload):
        sides[side].high = value
    peer = own_side ^ 1
    peer_reducer = _Reducer(peer, stable_order(peer))
    for side, value in peer_reducer.run(np.maximum, positions.acknowledged, positions.has_acknowledged):
        sides[side].acknowledged = value
    _add_least(sides, positions, reducer, peer_reducer)
    _add_pieces(data, sides, packets, own_side, start, payload)
    _add_corrupt(sides, packets, own_side)
    return sides


def _add_packets(sides: dict[int, FlowSide], packets: Packets, reducer: _Reducer) -> None:
    """What all packets of a side say: how many, when, and whether it was closed."""
    count = len(packets)
    everything = packets.trust > CORRUPT
    for side, value in reducer.run(np.add, np.ones(count, np.int64), everything):
        sides[side].packets = value
    for side, value in reducer.run(np.minimum, packets.time_ns, everything):
        sides[side].first_time_ns = value
    for side, value in reducer.run(np.maximum, packets.time_ns, everything):
        sides[side].last_time_ns = value
    for side, value in reducer.run(np.bitwise_or, packets.flags, everything):
        sides[side].closed = bool(value & (FIN | RST))


def _add_least(
    sides: dict[int, FlowSide], positions: _Positions, reducer: _Reducer, peer_reducer: _Reducer
) -> None:
    """The least position of a side that its own packets or the peer's acknowledgments mention."""
    for side, value in reducer.run(np.minimum, positions.own, positions.has_own):
        sides[side].least = value
    for side, value in peer_reducer.run(np.minimum, positions.acknowledged, positions.has_acknowledged):
        known = sides[side].least
        sides[side].least = value if known is None else min(known, value)


def _add_marks(
    sides: dict[int, FlowSide], packets: Packets, positions: _Positions, start: Integers, reducer: _Reducer
) -> None:
    """What the SYN and FIN packets say."""
    syn = positions.has_own & (packets.flags & SYN != 0)
    for side, value in reducer.run(np.minimum, positions.own, syn):
        sides[side].syn = value
    acknowledges = packets.flags & ACK != 0
    for side, _ in reducer.run(np.minimum, start, syn & ~acknowledges):
        sides[side].opens = True
    for side, _ in reducer.run(np.minimum, start, syn & acknowledges):
        sides[side].accepts = True
    fin = positions.has_own & (packets.flags & FIN != 0)
    for side, value in reducer.run(np.maximum, start + packets.payload_wire, fin):
        sides[side].fin = value


class _Reducer:
    """Folds a column over the rows of each side."""

    def __init__(self, side: Integers, order: Integers) -> None:
        self._side = side
        self._order = order

    def run(self, fold: np.ufunc, column: Integers, mask: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """(side, folded value) for each side that has a row in the mask."""
        rows = self._order[mask[self._order]]
        if not len(rows):
            return
        side = self._side[rows]
        first = np.flatnonzero(np.append([True], side[1:] != side[:-1]))
        values = fold.reduceat(column[rows], first)
        yield from zip(side[first].tolist(), values.tolist(), strict=True)


def _add_pieces(
    data: CaptureBytes,
    sides: dict[int, FlowSide],
    packets: Packets,
    own_side: Integers,
    start: Integers,
    payload: npt.NDArray[np.bool_],
) -> None:
    """Give each side its payload, each byte once, and the tails that the snap length cut off."""
    rows = np.flatnonzero(payload & (packets.payload_captured > 0))
    pieces = Pieces(
        start[rows],
        start[rows] + packets.payload_captured[rows],
        packets.payload_offset[rows],
        packets.record_offset[rows],
        packets.time_ns[rows],
        np.where(packets.flags[rows] & ACK != 0, packets.acknowledgment[rows], -1),
        packets.trust[rows],
    )
    settled = settle(data, own_side[rows], pieces)
    for number, at, upto in runs(settled.group):
        sides[number].pieces = settled.pieces.take(slice(at, upto))
    order = stable_order(settled.disputed_group)
    for number, at, upto in runs(settled.disputed_group[order]):
        sides[number].disputed = settled.disputed.take(order[at:upto])
    rows = np.flatnonzero(payload & (packets.payload_captured < packets.payload_wire))
    rows = rows[stable_order(own_side[rows])]
    cut_start, cut_end = (
        start[rows] + packets.payload_captured[rows],
        start[rows] + packets.payload_wire[rows],
    )
    for number, at, upto in runs(own_side[rows]):
        sides[number].cut_start, sides[number].cut_end = cut_start[at:upto], cut_end[at:upto]


def _add_corrupt(sides: dict[int, FlowSide], packets: Packets, own_side: Integers) -> None:
    """What a checksum contradicts is kept as numbers only: it tells why bytes are missing."""
    rows = np.flatnonzero((packets.trust == CORRUPT) & (packets.flags & RST == 0))
    rows = rows[stable_order(own_side[rows])]
    for number, at, upto in runs(own_side[rows]):
        own = rows[at:upto]
        sides[number].corrupt_sequence = packets.sequence[own] + (packets.flags[own] & SYN != 0)
        sides[number].corrupt_size = packets.payload_wire[own]
        sides[number].corrupt_time_ns = packets.time_ns[own]
