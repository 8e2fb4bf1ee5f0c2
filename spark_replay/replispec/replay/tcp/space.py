"""The bytes of one direction by position: windows over pieces of the mapped file, holes and all.

Some stretches may be opaque: a `Chain` stands for frames that were already decoded where the
capture was split, and its bytes are known to nobody here. Whoever wants to look inside gets
`NeedsBytes`, and the chain has to be replaced by its pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from replispec.replay.capture.records import CaptureBytes, CaptureError, Integers
from replispec.replay.tcp.pieces import Pieces, concatenate

WINDOW_BYTES = 1 << 20
# Positions on one axis stay below this.
_AXIS = 1 << 62


@dataclass(frozen=True, slots=True)
class Chain:
    """Whole frames of one kind without a hole between them, at positions [start, end).

    `split`, `number`: which split decoded them, and its number for them; `frames`: how many.
    `from_syn`: the split saw the SYN, and told the kind from the first bytes of the stream.
    """

    kind: str
    start: int
    end: int
    frames: int
    split: int
    number: int
    from_syn: bool


class NeedsBytes(Exception):
    """Bytes inside these chains are needed."""

    def __init__(self, chains: list[Chain]) -> None:
        super().__init__(f"{len(chains)} chains")
        self.chains = chains


class Extents(NamedTuple):
    """Of stretches of a direction: how many bytes are known, the packet that completed what is known (its
    record offset and time), and what the packet with the last known byte acknowledges (32 bits, -1)."""

    known: Integers
    record_offset: Integers
    time_ns: Integers
    acknowledged: Integers


class SequenceSpace:
    """Reads the bytes of disjoint ascending pieces by position.

    `buffer` is the current window; `window` moves it. `chains`: start -> chain; the piece of a chain
    has a negative payload offset.
    """

    def __init__(self, data: CaptureBytes, pieces: Pieces, chains: Mapping[int, Chain] | None = None) -> None:
        self.buffer = b""
        self.pieces = pieces
        self.chains = chains or {}
        self._data = data
        self._origin = 0
        self._ended = False
        count = len(pieces)
        joined = np.zeros(count, np.bool_)
        if count:
            joined[:-1] = pieces.start[1:] == pieces.end[:-1]
            opaque = pieces.payload_offset < 0
            joined[:-1] &= ~(opaque[1:] | opaque[:-1])
        # Rows after which the bytes do not go on: a hole, a chain, the end.
        self._stops = np.flatnonzero(~joined)

    @property
    def first(self) -> int | None:
        """The lowest known position; None without a byte."""
        return int(self.pieces.start[0]) if len(self.pieces) else None

    def window(self, position: int, size: int) -> int:
        """Where in `buffer` the byte at `position` is, with `size` bytes from there on if possible.

        Fewer follow only where a hole, a chain or the end comes first; none when `position` itself
        is not known. Raises NeedsBytes when the position lies in a chain, CaptureError when the file does
        not hold the bytes any more.
        """
        at = position - self._origin
        if at >= 0 and at + size <= len(self.buffer):
            return at
        if at < 0 or at > len(self.buffer) or not self._ended:
            self._load(position, size)
            at = 0
        if at + size > len(self.buffer):
            self._refuse_chain(self._origin + len(self.buffer))
        return at

    def _load(self, position: int, size: int) -> None:
        pieces = self.pieces
        self._origin, self.buffer, self._ended = position, b"", True
        row = self._row(position)
        if row is None:
            return
        if pieces.payload_offset[row] < 0:
            raise NeedsBytes([self.chains[int(pieces.start[row])]])
        stop = int(self._stops[np.searchsorted(self._stops, row)])
        wanted = position + max(size, WINDOW_BYTES)
        last = min(stop, int(np.searchsorted(pieces.end, wanted)))
        start = pieces.start[row : last + 1]
        sizes = (pieces.end[row : last + 1] - start).tolist()
        offsets = pieces.payload_offset[row : last + 1].tolist()
        skipped = position - int(start[0])
        offsets[0] += skipped
        sizes[0] -= skipped
        data = self._data
        parts = [data[at : at + length] for at, length in zip(offsets, sizes, strict=True)]
        self.buffer = b"".join(parts)
        if len(self.buffer) < sum(sizes):
            at = next(at for at, size, part in zip(offsets, sizes, parts, strict=True) if len(part) < size)
            raise CaptureError("capture", at, "the file got shorter while it was read")
        self._ended = last == stop

    def _row(self, position: int) -> int | None:
        """The piece that holds the byte at `position`; None in a hole or outside."""
        row = int(np.searchsorted(self.pieces.start, position, "right")) - 1
        return row if row >= 0 and position < int(self.pieces.end[row]) else None

    def _refuse_chain(self, position: int) -> None:
        chain = self.chains.get(position)
        if chain is not None:
            raise NeedsBytes([chain])

    def chain_at(self, position: int, kind: str) -> Chain | None:
        """The chain of this kind that starts exactly at `position`."""
        chain = self.chains.get(position)
        return chain if chain is not None and chain.kind == kind else None

    def known(self, position: int) -> bool:
        """Whether the byte at `position` was captured."""
        return self._row(position) is not None

    def next_known(self, position: int) -> int | None:
        """The lowest known position >= `position`; None when there is none."""
        row = int(np.searchsorted(self.pieces.end, position, "right"))
        if row == len(self.pieces):
            return None
        return max(position, int(self.pieces.start[row]))

    def run_end(self, position: int) -> int:
        """The position after the known bytes that go on without a hole from `position`."""
        row = self._row(position)
        if row is None:
            return position
        return int(self.pieces.end[int(self._stops[np.searchsorted(self._stops, row)])])

    def starts_piece(self, position: int) -> bool:
        """Whether a packet's payload starts at `position`."""
        row = int(np.searchsorted(self.pieces.start, position))
        return row < len(self.pieces) and int(self.pieces.start[row]) == position


def extents(pieces: Pieces, start: Integers, end: Integers) -> Extents:
    """What is known of stretches [start, end) that each hold a byte of some disjoint ascending pieces."""
    first = np.searchsorted(pieces.end, start, "right")
    behind = np.searchsorted(pieces.start, end, "left")
    total = np.concatenate([[0], np.cumsum(pieces.end - pieces.start)])
    known = total[behind] - total[first]
    known -= np.maximum(0, start - pieces.start[first])
    known -= np.maximum(0, pieces.end[behind - 1] - end)
    records = pieces.record_offset
    acknowledged = pieces.acknowledged[behind - 1]
    if len(records) < 2 or bool((records[1:] >= records[:-1]).all()):
        return Extents(known, records[behind - 1], pieces.time_ns[behind - 1], acknowledged)
    pairs = np.column_stack([first, behind]).ravel()
    record = np.maximum.reduceat(np.append(records, 0), pairs)[::2]
    order = np.argsort(records, kind="stable")
    row = order[np.searchsorted(records[order], record)]
    return Extents(known, record, pieces.time_ns[row], acknowledged)


def extents_of_all(parts: Sequence[tuple[Pieces, Integers, Integers]]) -> Extents:
    """As `extents` of the pieces, starts and ends of several directions, one after the other."""
    counts = [len(start) for _, start, _ in parts]
    sizes = [len(pieces) for pieces, _, _ in parts]
    pieces = concatenate([pieces for pieces, _, _ in parts])
    start, end = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    # All directions side by side on one axis.
    room = max(int(end.max()), int(pieces.end.max())) + 1
    if room * len(parts) >= _AXIS:
        alone = [extents(*part) for part in parts]
        return Extents(*(np.concatenate(columns) for columns in zip(*alone, strict=True)))
    places = room * np.arange(len(parts))
    raised, by = np.repeat(places, sizes), np.repeat(places, counts)
    side_by_side = replace(pieces, start=pieces.start + raised, end=pieces.end + raised)
    return extents(side_by_side, start + by, end + by)
