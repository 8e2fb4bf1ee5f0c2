"""Decoding one split of a capture by itself, so that little is left to be put together.

A connection of which no other split has packets is decoded as a whole: nothing of it is left. Of all others a
split decodes each direction from its SYN, or from the first place that is proved to be a frame's
start. What it finds is a proposal: runs of whole frames without a hole between them are chains, whose
frames are emitted; the pieces of payload outside chains, and what else is known of each side, go
to `stitch` as a few rows. Positions are counted locally; their low 32 bits are TCP sequence numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from replispec.replay.capture.records import CaptureBytes, Integers, Split
from replispec.replay.engines.decoding import BATCH_FRAMES, without_collector
from replispec.replay.frames.anchors import PROOF_FRAMES
from replispec.replay.frames.family import decoded_kinds
from replispec.replay.frames.framing import Decoded, decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import FOREIGN
from replispec.replay.frames.tables import FRAMES, frames_batch, holes_table, streams_table
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.flows import FlowKey, FlowSide, Incarnation
from replispec.replay.tcp.packets import Packets
from replispec.replay.tcp.pieces import Pieces, concatenate
from replispec.replay.tcp.remarks import Remarks
from replispec.replay.tcp.sides import parts_of_connections, resolve_side
from replispec.replay.tcp.space import Chain
from replispec.replay.tcp.turns import Turns

# The frames of chains: `sequence` and `index` count from the chain's start, `chain` numbers the chains
# of a split.
CHAINED_FRAMES: pa.Schema = FRAMES.append(pa.field("split", pa.int32())).append(pa.field("chain", pa.int32()))
# The first bytes of a stream that nobody understands are kept at hand: they tell that it is foreign.
FOREIGN_HEAD_BYTES = 4096
FOREIGN_RUN_PIECES = 4
# Of a connection that has at most so many pieces of payload in a split these are left as they are: its frames
# are read once, where the connection is put together, not here, there, and once more where they do not fit.
PIECES_LEFT = 16


@dataclass(slots=True)
class PartSide:
    """What a split knows of one direction: `side` with the pieces outside `chains`."""

    side: FlowSide
    chains: list[Chain] = field(default_factory=list)


@dataclass(slots=True)
class SplitPart:
    """What a split knows of one connection; `number` as in `Incarnation`."""

    number: int
    sides: tuple[PartSide | None, PartSide | None]


@dataclass(slots=True)
class FlowPart:
    """What a split knows of all connections between two endpoints, in order of time."""

    key: FlowKey
    split: int
    parts: list[SplitPart]


@dataclass(frozen=True, slots=True)
class WholeConnections:
    """The rows of connections of which no other split has packets, as FRAMES, HOLES and STREAMS."""

    frames: list[pa.RecordBatch] = field(default_factory=list)
    holes: list[pa.Table] = field(default_factory=list)
    streams: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DecodedSplit:
    """Frames as CHAINED_FRAMES, the parts of flows, the remarks on the split's packets, and the connections
    that are whole."""

    frames: list[pa.RecordBatch]
    flows: list[FlowPart]
    remarks: Remarks
    whole: WholeConnections = field(default_factory=WholeConnections)


def decode_split(
    split: Split,
    data: CaptureBytes,
    packets: Packets,
    turns: Turns,
    hints: Hints,
    crossing: Collection[FlowKey] | None = None,
) -> DecodedSplit:
    """Decode the packets of one split and nothing else; `data`: the bytes of its capture.

    `crossing`: the flows of which other splits may have packets, too; None: all of them.
    """
    with without_collector():
        found = parts_of_connections(data, packets, turns)
        return _SplitDecoder(data, split, hints).run(found, packets.remarks, crossing)


class _SplitDecoder:
    """Gathers frames in batches, numbers the chains, and collects the parts of flows."""

    def __init__(self, data: CaptureBytes, split: Split, hints: Hints) -> None:
        self._data = data
        self._split = split
        self._hints = hints
        self._chains = 0
        self._batches: list[pa.RecordBatch] = []
        self._waiting: list[tuple[Decoded, PartSide]] = []
        self._rows = 0
        self._whole = WholeConnections()
        self._waiting_whole: list[Decoded] = []
        self._rows_whole = 0

    def run(
        self, found: Sequence[Incarnation], remarks: Remarks, crossing: Collection[FlowKey] | None
    ) -> DecodedSplit:
        flows: dict[FlowKey, FlowPart] = {}
        for incarnation in found:
            if crossing is not None and incarnation.key not in crossing:
                self._add_whole(incarnation)
                continue
            flow = flows.setdefault(incarnation.key, FlowPart(incarnation.key, self._split.number, []))
            # Whoever knows the splits behind this one reads the frames of so little where it is joined; of
            # others it is read once, as they are asked again and again.
            few = crossing is not None and _pieces(incarnation) <= PIECES_LEFT
            flow.parts.append(_left(incarnation) if few else self._part(incarnation))
            if self._rows >= BATCH_FRAMES:
                self._flush()
        self._flush()
        self._flush_whole()
        return DecodedSplit(self._batches, list(flows.values()), remarks, self._whole)

    def _add_whole(self, incarnation: Incarnation) -> None:
        """Decode a connection as it is decoded where a capture is read in one go."""
        for side in incarnation.sides:
            if side is not None:
                resolve_side(self._data, side)
        found = decode_connection(self._data, directions(incarnation), self._hints)
        self._waiting_whole += found
        self._rows_whole += sum(len(decoded.positions) for decoded in found)
        if self._rows_whole >= BATCH_FRAMES:
            self._flush_whole()

    def _flush_whole(self) -> None:
        waiting = self._waiting_whole
        if waiting:
            name = self._split.capture
            self._whole.frames.append(frames_batch(name, waiting))
            self._whole.holes.append(holes_table(name, waiting))
            self._whole.streams.append(streams_table(name, waiting))
        self._waiting_whole, self._rows_whole = [], 0

    def _part(self, incarnation: Incarnation) -> SplitPart:
        first, second = (PartSide(side) if side is not None else None for side in incarnation.sides)
        sides = (first, second)
        for decoded in decode_connection(self._data, directions(incarnation), self._hints):
            mine = sides[decoded.direction.number]
            if mine is None:
                raise AssertionError("a direction without a side")
            self._waiting.append((decoded, mine))
            self._rows += len(decoded.positions)
        return SplitPart(incarnation.number, sides)

    def _flush(self) -> None:
        """Turn what waits into a batch of chained frames, and leave the rest as pieces."""
        if not self._waiting:
            return
        batch = frames_batch(self._split.capture, [decoded for decoded, _ in self._waiting])
        complete = batch.column("complete").to_numpy(zero_copy_only=False)
        sequence = batch.column("sequence").to_numpy()
        count = len(sequence)
        chain = np.full(count, -1, np.int64)
        index = np.zeros(count, np.int64)
        place = np.zeros(count, np.int64)
        at = 0
        for decoded, mine in self._waiting:
            upto = at + len(decoded.positions)
            rows = slice(at, upto)
            for first, last in self._runs(decoded, sequence[rows], complete[rows]):
                number = self._add_chain(decoded, mine, first, last)
                chain[at + first : at + last] = number
                index[at + first : at + last] = np.arange(last - first)
                place[at + first : at + last] = sequence[at + first : at + last] - sequence[at + first]
            if decoded.kind not in decoded_kinds():
                self._add_foreign(decoded, mine)
            mine.side.pieces = outside(mine.side.pieces, mine.chains)
            at = upto
        self._waiting, self._rows = [], 0
        kept = np.flatnonzero(chain >= 0)
        table = batch if len(kept) == count else batch.take(pa.array(kept))
        arrays = table.columns
        arrays[FRAMES.get_field_index("sequence")] = pa.array(place[kept])
        arrays[FRAMES.get_field_index("index")] = pa.array(index[kept].astype(np.int32))
        arrays.append(pa.array(np.full(len(kept), self._split.number, np.int32)))
        arrays.append(pa.array(chain[kept].astype(np.int32)))
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=CHAINED_FRAMES))

    def _runs(self, decoded: Decoded, position: Integers, complete: Integers) -> list[tuple[int, int]]:
        """[first, last) frames of each run of whole frames that follow each other without a gap."""
        if not len(position):
            return []
        joined = complete[1:] & complete[:-1] & (position[:-1] + decoded.sizes[:-1] == position[1:])
        borders = [0, *(np.flatnonzero(~joined) + 1).tolist(), len(position)]
        runs = [(first, last) for first, last in pairwise(borders) if complete[first]]
        if not runs:
            return runs
        first, last = runs[0]
        if decoded.direction.from_syn and position[first] == 0:
            # The kind was told from two frames; with fewer the stitch must look itself.
            if not decoded.told or last - first < 2:
                runs.pop(0)
        elif self._split.is_first and not decoded.direction.from_syn:
            # Nothing is before this split: the stitch has to search here, and needs what it proves with.
            runs[0] = (min(last, first + PROOF_FRAMES + 1), last)
        return [(first, last) for first, last in runs if first < last]

    def _add_chain(self, decoded: Decoded, mine: PartSide, first: int, last: int) -> int:
        start = decoded.positions[first]
        end = decoded.positions[last - 1] + decoded.frames.sizes[last - 1]
        from_syn = decoded.direction.from_syn and start == 0
        self._append(mine, decoded.kind, start, end, last - first, from_syn=from_syn)
        return self._chains - 1

    def _append(
        self, mine: PartSide, kind: str, start: int, end: int, frames: int, *, from_syn: bool
    ) -> None:
        zero = mine.side.zero
        mine.chains.append(
            Chain(kind, start + zero, end + zero, frames, self._split.number, self._chains, from_syn)
        )
        self._chains += 1

    def _add_foreign(self, decoded: Decoded, mine: PartSide) -> None:
        """Runs of bytes that nobody will read are one chain each, without frames."""
        pieces = decoded.space.pieces
        stops = np.flatnonzero(pieces.start[1:] != pieces.end[:-1]) + 1
        borders = [0, *stops.tolist(), len(pieces)]
        for first, last in pairwise(borders):
            if last - first >= FOREIGN_RUN_PIECES:
                start = max(int(pieces.start[first]), FOREIGN_HEAD_BYTES if decoded.direction.from_syn else 0)
                end = int(pieces.end[last - 1])
                if start < end:
                    self._append(mine, FOREIGN, start, end, 0, from_syn=False)


def _pieces(incarnation: Incarnation) -> int:
    return sum(len(side.pieces) for side in incarnation.sides if side is not None)


def _left(incarnation: Incarnation) -> SplitPart:
    first, second = (None if side is None else PartSide(side) for side in incarnation.sides)
    return SplitPart(incarnation.number, (first, second))


def outside(pieces: Pieces, chains: Sequence[Chain]) -> Pieces:
    """What of disjoint ascending pieces lies in none of the disjoint ascending chains."""
    if not chains or not len(pieces):
        return pieces
    starts = np.array([chain.start for chain in chains], np.int64)
    ends = np.array([chain.end for chain in chains], np.int64)
    owner = np.searchsorted(starts, pieces.start, "right") - 1
    inside = (owner >= 0) & (pieces.end <= ends[np.maximum(owner, 0)])
    rows = np.flatnonzero(~inside)
    parts: list[Pieces] = []
    for row in rows.tolist():
        piece = pieces.take(slice(row, row + 1))
        at, end = int(piece.start[0]), int(piece.end[0])
        for number in range(int(np.searchsorted(ends, at, "right")), len(chains)):
            if starts[number] >= end:
                break
            if at < starts[number]:
                parts.append(_cut(piece, at, int(starts[number])))
            at = max(at, int(ends[number]))
        if at < end:
            parts.append(_cut(piece, at, end))
    return concatenate(parts)


def _cut(piece: Pieces, start: int, end: int) -> Pieces:
    """Bytes [start, end) of a single piece."""
    moved = piece.payload_offset + (start - piece.start)
    return replace(piece, start=np.array([start]), end=np.array([end]), payload_offset=moved)
