"""Putting the splits of a capture together: exactly what decoding it in one go would give.

For each connection the parts that the splits know are joined in file order: 64-bit positions, pieces.
Which connection a part belongs to was settled before (see `turns`). Then it is decoded as ever, except that
a chain is taken as it is when reading arrives exactly at its start, at the same kind. Where bytes in a chain
must be known, that split's part of the flow is read again from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from replispec.replay.capture.records import CaptureBytes
from replispec.replay.engines.split import FlowPart, SplitPart
from replispec.replay.frames.framing import Decoded, decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.copies import settle
from replispec.replay.tcp.directions import directions, strays
from replispec.replay.tcp.flows import FlowKey, FlowSide, Incarnation
from replispec.replay.tcp.numbers import apart
from replispec.replay.tcp.pieces import Pieces, concatenate, no_pieces
from replispec.replay.tcp.sides import resolve_side
from replispec.replay.tcp.space import Chain, NeedsBytes

# The connections of one flow in one split, from its packets.
ReadAgain = Callable[[int, FlowKey], list[Incarnation]]


@dataclass(slots=True)
class _Contribution:
    """What one split gave to one side: pieces, copies of disputed bytes, and chains in the side's positions.

    `shift`: added to its positions.
    """

    split: int
    shift: int
    pieces: Pieces
    disputed: Pieces
    chains: list[Chain]


@dataclass(slots=True)
class _Growing:
    """A connection while its parts are joined."""

    key: FlowKey
    number: int
    sides: list[FlowSide | None] = field(default_factory=lambda: [None, None])
    given: tuple[list[_Contribution], list[_Contribution]] = field(default_factory=lambda: ([], []))


def stitch_flow(
    data: CaptureBytes, parts: Sequence[FlowPart], hints: Hints, read_again: ReadAgain
) -> list[list[Decoded]]:
    """The directions of each connection of one flow, in order of time; `parts` in file order."""
    grown: dict[int, _Growing] = {}
    for flow in parts:
        for part in flow.parts:
            _add(grown.setdefault(part.number, _Growing(flow.key, part.number)), part, flow.split)
    return [_decode(data, growing, hints, read_again) for _, growing in sorted(grown.items())]


def _add(growing: _Growing, part: SplitPart, split: int) -> None:
    """Join a part to its connection: shift its positions to where the sides stand."""
    for at, given in enumerate(part.sides):
        if given is None:
            continue
        known, new = growing.sides[at], given.side
        shift = 0
        if known is not None and known.references is not None and new.references is not None:
            last, first = known.references[1], new.references[0]
            shift = last + apart(first - last) - first
        growing.sides[at] = _shifted(new, shift) if known is None else _merged(known, _shifted(new, shift))
        chains = [replace(chain, start=chain.start + shift, end=chain.end + shift) for chain in given.chains]
        moved = new.pieces.shifted(shift), new.disputed.shifted(shift)
        growing.given[at].append(_Contribution(split, shift, *moved, chains))


def _shifted(side: FlowSide, by: int) -> FlowSide:
    """The side `by` positions further on, without its pieces."""

    def moved(position: int | None) -> int | None:
        return None if position is None else position + by

    references = None if side.references is None else (side.references[0] + by, side.references[1] + by)
    return replace(
        side,
        references=references,
        least=moved(side.least),
        syn=moved(side.syn),
        fin=moved(side.fin),
        acknowledged=moved(side.acknowledged),
        low=moved(side.low),
        high=moved(side.high),
        pieces=no_pieces(),
        disputed=no_pieces(),
        cut_start=side.cut_start + by,
        cut_end=side.cut_end + by,
    )


def _merged(first: FlowSide, second: FlowSide) -> FlowSide:
    """What two consecutive views of a side say together."""
    references = first.references or second.references
    if references is not None and second.references is not None:
        references = (references[0], second.references[1])
    seen = [side for side in (first, second) if side.packets]
    return FlowSide(
        references=references,
        least=_least(first.least, second.least),
        syn=_least(first.syn, second.syn),
        fin=_greatest(first.fin, second.fin),
        acknowledged=_greatest(first.acknowledged, second.acknowledged),
        low=_least(first.low, second.low),
        high=_greatest(first.high, second.high),
        opens=first.opens or second.opens,
        accepts=first.accepts or second.accepts,
        closed=first.closed or second.closed,
        packets=first.packets + second.packets,
        first_time_ns=min((side.first_time_ns for side in seen), default=0),
        last_time_ns=max((side.last_time_ns for side in seen), default=0),
        cut_start=np.concatenate([first.cut_start, second.cut_start]),
        cut_end=np.concatenate([first.cut_end, second.cut_end]),
        corrupt_sequence=np.concatenate([first.corrupt_sequence, second.corrupt_sequence]),
        corrupt_size=np.concatenate([first.corrupt_size, second.corrupt_size]),
        corrupt_time_ns=np.concatenate([first.corrupt_time_ns, second.corrupt_time_ns]),
    )


def _least(first: int | None, second: int | None) -> int | None:
    return min((value for value in (first, second) if value is not None), default=None)


def _greatest(first: int | None, second: int | None) -> int | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _decode(data: CaptureBytes, growing: _Growing, hints: Hints, read_again: ReadAgain) -> list[Decoded]:
    """Decode a joined connection, reading again what chains cannot answer.

    Each round replaces at least one contribution's chains by its pieces, so it ends.
    """
    while True:
        chains = (_lay_out(data, growing, 0, read_again), _lay_out(data, growing, 1, read_again))
        incarnation = Incarnation(growing.key, growing.number, (growing.sides[0], growing.sides[1]))
        try:
            return decode_connection(data, directions(incarnation), hints, chains)
        except NeedsBytes as needed:
            wanted = {(chain.split, chain.number) for chain in needed.chains}
            for at, given in enumerate(growing.given):
                for contribution in given:
                    if any((chain.split, chain.number) in wanted for chain in contribution.chains):
                        _dissolve(growing, at, contribution, read_again)


def _lay_out(data: CaptureBytes, growing: _Growing, at: int, read_again: ReadAgain) -> dict[int, Chain]:
    """Give a side its pieces, chains among them; the chains by their start, counted from the side's zero.

    A chain that other packets overlap, that lies before the side's zero, that may hold bytes of a packet of
    which others are disputed, or that seems to be astray, is replaced by its pieces.
    """
    side = growing.sides[at]
    if side is None:
        return {}
    while True:
        given = growing.given[at]
        parts: list[Pieces] = []
        for number, contribution in enumerate(given):
            parts.extend([contribution.pieces, contribution.disputed, _opaque(contribution.chains, number)])
        pieces = concatenate(parts)
        settled = settle(data, np.zeros(len(pieces), np.int64), pieces)
        torn = {-1 - record for record in pieces.record_offset[settled.torn].tolist()}
        torn |= {
            number
            for number, contribution in enumerate(given)
            if any(chain.start < side.zero for chain in contribution.chains)
            or (contribution.chains and _has_any(contribution, settled.disputed))
        }
        if not torn:
            side.pieces, side.disputed = settled.pieces, settled.disputed
            resolve_side(data, side)
            # Packets of a chain may bear each other out: only the chain's pieces tell.
            torn = {-1 - record for record in strays(side).record_offset.tolist() if record < 0}
        if not torn:
            chains = (chain for contribution in given for chain in contribution.chains)
            zero = side.zero
            moved = (replace(chain, start=chain.start - zero, end=chain.end - zero) for chain in chains)
            return {chain.start: chain for chain in moved}
        for number in sorted(torn):
            _dissolve(growing, at, given[number], read_again)


def _has_any(contribution: _Contribution, disputed: Pieces) -> bool:
    """Whether a contribution has pieces of a packet of which bytes are disputed."""
    own = np.concatenate([contribution.pieces.record_offset, contribution.disputed.record_offset])
    return bool(np.isin(disputed.record_offset, own).any())


def _opaque(chains: Sequence[Chain], number: int) -> Pieces:
    """Chains as pieces whose bytes nobody knows: payload offset -1, record offset -1 - `number`."""
    zeros = np.zeros(len(chains), np.int64)
    start = np.array([chain.start for chain in chains], np.int64)
    end = np.array([chain.end for chain in chains], np.int64)
    return Pieces(start, end, zeros - 1, zeros - 1 - number, zeros, zeros - 1, zeros)


def _dissolve(growing: _Growing, at: int, contribution: _Contribution, read_again: ReadAgain) -> None:
    """Replace the chains of a contribution by its pieces, read again from the file."""
    found = {each.number: each for each in read_again(contribution.split, growing.key)}
    side = found[growing.number].sides[at]
    if side is None:
        raise AssertionError("a split gave something else the second time")
    contribution.pieces = side.pieces.shifted(contribution.shift)
    contribution.disputed = side.disputed.shifted(contribution.shift)
    contribution.chains = []
