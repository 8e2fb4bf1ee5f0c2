"""Frames of one direction in sequence space.

Every frame tells its size in its head, so a hole inside a body keeps the next boundary known; only
a hole over a head, or bytes that are no frame, need a new place to start (see `anchors`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from replispec.replay.capture.records import CaptureBytes, Integers
from replispec.replay.frames.anchors import Searcher
from replispec.replay.frames.classify import Classified, Hints, agree, classify, reader_for
from replispec.replay.frames.rocketmq.readers import (
    FOREIGN,
    HA_MASTER,
    HA_REPLICA,
    REMOTING,
    SHORT,
    FrameReader,
    Outcome,
)
from replispec.replay.tcp.directions import Direction
from replispec.replay.tcp.pieces import no_pieces
from replispec.replay.tcp.space import Chain, Extents, NeedsBytes, SequenceSpace

DECODED_KINDS = (REMOTING, HA_MASTER, HA_REPLICA)


@dataclass(slots=True)
class Decoded:
    """The frames of one direction: their positions, and what the readers said, in order.

    `chains`: stretches that were decoded elsewhere, each with the number of frames before it here.
    `broken_at`: the first position where the stream was lost or began with a hole; None: nowhere.
    `told`: the direction's own bytes told its kind, from its first frame on. `skipped`: position and size
    of frames without a readable header.
    """

    direction: Direction
    space: SequenceSpace
    kind: str
    positions: list[int] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    chains: list[tuple[int, Chain]] = field(default_factory=list)
    broken_at: int | None = None
    told: bool = False
    skipped: list[tuple[int, int]] = field(default_factory=list)
    _extents: Extents | None = None

    def extents(self) -> Extents:
        """What is known of each frame. To be asked for when all frames are there: the answer is kept."""
        if self._extents is None:
            position = np.array(self.positions, np.int64)
            self._extents = self.space.extents(position, position + self.sizes)
        return self._extents

    @property
    def sizes(self) -> Integers:
        """Bytes of each whole frame."""
        return np.array([outcome[0] for outcome in self.outcomes], np.int64)

    @property
    def unbroken_until(self) -> int:
        """Frames that start up to here come from a stream seen from its SYN without a gap; -1: none."""
        if not self.direction.from_syn:
            return -1
        breaks = [at for at in (self.broken_at, self.direction.first_hole) if at is not None]
        return min(breaks, default=2**62)


def decode_connection(
    data: CaptureBytes,
    pair: tuple[Direction | None, Direction | None],
    hints: Hints,
    chains: tuple[dict[int, Chain], dict[int, Chain]] = ({}, {}),
) -> list[Decoded]:
    """The frames of the directions of a connection of which packets were seen, side 0 first.

    Raises NeedsBytes when a chain cannot be used as it is.
    """
    spaces = [
        SequenceSpace(data, direction.pieces if direction else no_pieces(), chains[side])
        for side, direction in enumerate(pair)
    ]
    own: list[Classified] = [
        classify(direction, space, hints) if direction else Classified(FOREIGN, 0, aligned=True, sure=False)
        for direction, space in zip(pair, spaces, strict=True)
    ]
    found: list[Decoded] = []
    for direction, space, how, alone in zip(pair, spaces, agree(*own), own, strict=True):
        if direction is not None:
            decoded = decode_direction(direction, space, how, hints)
            decoded.told = alone.sure and alone.aligned and alone.position == 0
            found.append(decoded)
    return found


def decode_direction(direction: Direction, space: SequenceSpace, how: Classified, hints: Hints) -> Decoded:
    """The frames of one direction whose kind is known. Foreign and legacy streams have none."""
    decoded = Decoded(direction, space, how.kind)
    if how.position:
        decoded.broken_at = 0
    if how.kind in DECODED_KINDS and len(space.pieces):
        _read_frames(decoded, reader_for(how.kind, hints), how.position, aligned=how.aligned)
    if decoded.kind in DECODED_KINDS:
        used = {chain.start for _, chain in decoded.chains}
        unused = [chain for start, chain in space.chains.items() if start not in used]
        if unused:
            raise NeedsBytes(unused)
    return decoded


def _read_frames(decoded: Decoded, reader: FrameReader, position: int, *, aligned: bool) -> None:
    """Read frame after frame; where the stream is lost, go on at the next place that is proved."""
    space = decoded.space
    searcher = Searcher(space)
    positions, outcomes = decoded.positions, decoded.outcomes
    chained = bool(space.chains)
    while True:
        if not aligned:
            place = searcher.find([reader], position)
            if place is None:
                return
            position, aligned = place[0], True
        if chained:
            chain = space.chain_at(position, reader.kind)
            if chain is not None:
                decoded.chains.append((len(positions), chain))
                position = chain.end
                continue
        else:
            found, said, position = reader.read_run(space, position)
            positions += found
            outcomes += said
        outcome = reader.read(space, position)
        size = outcome[0]
        if size > 0:
            if outcome[1] is not None:
                positions.append(position)
                outcomes.append(outcome)
            else:
                decoded.skipped.append((position, size))
            position += size
            continue
        if decoded.broken_at is None and space.next_known(position) is not None:
            decoded.broken_at = position
        if size == SHORT:
            following = space.next_known(space.run_end(position))
            if following is None:
                return
            position, aligned = following, False
        else:
            position, aligned = position + 1, False
