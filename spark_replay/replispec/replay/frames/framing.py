"""Frames of one direction in sequence space.

Every frame tells its size in its head, so a hole inside a body keeps the next boundary known; only
a hole over a head, or bytes that are no frame, need a new place to start (see `anchors`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from replispec.replay.capture.records import CaptureBytes, Integers
from replispec.replay.frames.anchors import Searcher
from replispec.replay.frames.classify import Classified, agree, classify
from replispec.replay.frames.digests import digest
from replispec.replay.frames.family import decoded_kinds, held_bodies, readers
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import FOREIGN, SHORT, FrameReader, Record, Run
from replispec.replay.tcp.directions import Direction
from replispec.replay.tcp.pieces import Pieces, no_pieces
from replispec.replay.tcp.space import Chain, NeedsBytes, SequenceSpace

# A body in JSON is shown up to this size; of a larger one its reader says that it was not read.
JSON_BODY_BYTES_MAXIMUM = 1024 * 1024
# White space may stand before JSON, more of it than the standard has: readers pass over it.
_JSON = re.compile(rb"[\t\n\f\r\b ]*[{\[]")
Chosen = Callable[[Direction, str], bool]
"""Whether the frames of a direction of this kind are wanted."""


@dataclass(slots=True)
class Frames:
    """What the readers said of frames, by columns, one entry a frame.

    `positions`, `sizes`: where it is and how long (bytes); `messages`: None where a header has a hole;
    `body_sizes`: bytes of body; `digests`: of a body of which every byte is there; `records`: that it
    holds; `json_bodies`: bodies in JSON that the family wants to see; `bodies`: raw, when asked for;
    `encodings`: of headers; `held`: entries of an agreed log, or messages, by the column that has them and by
    the place of the frame that holds them.
    """

    positions: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    body_sizes: list[int] = field(default_factory=list)
    digests: list[int | None] = field(default_factory=list)
    records: list[list[Record] | None] = field(default_factory=list)
    json_bodies: list[bytes | None] = field(default_factory=list)
    bodies: list[bytes | None] = field(default_factory=list)
    encodings: list[int | None] = field(default_factory=list)
    held: dict[str, dict[int, Sequence[tuple[Any, ...]] | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Decoded:
    """The frames of one direction, in order.

    `chains`: stretches that were decoded elsewhere, each with the number of frames before it here.
    `broken_at`: the first position where the stream was lost or began with a hole; None: nowhere.
    `told`: the direction's own bytes told its kind, from its first frame on. `skipped`: position and size
    of frames without a readable header.
    """

    direction: Direction
    space: SequenceSpace
    kind: str
    frames: Frames = field(default_factory=Frames)
    chains: list[tuple[int, Chain]] = field(default_factory=list)
    broken_at: int | None = None
    told: bool = False
    skipped: list[tuple[int, int]] = field(default_factory=list)

    @property
    def positions(self) -> list[int]:
        """Where each frame begins."""
        return self.frames.positions

    @property
    def sizes(self) -> Integers:
        """Bytes of each whole frame."""
        return np.array(self.frames.sizes, np.int64)

    @property
    def stretch(self) -> tuple[Pieces, Integers, Integers]:
        """The direction's pieces, and where each frame begins and ends."""
        start = np.array(self.frames.positions, np.int64)
        return self.space.pieces, start, start + self.sizes

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
    chosen: Chosen | None = None,
) -> list[Decoded]:
    """The frames of the directions of a connection of which packets were seen, side 0 first.

    `chosen`: directions of which it is false are classified, since they tell of each other, and left out.
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
        if direction is not None and (chosen is None or chosen(direction, how.kind)):
            decoded = decode_direction(direction, space, how, hints)
            is_own = alone.sure and alone.kind == how.kind
            decoded.told = is_own and alone.aligned and alone.position == 0
            found.append(decoded)
    return found


def decode_direction(direction: Direction, space: SequenceSpace, how: Classified, hints: Hints) -> Decoded:
    """The frames of one direction whose kind is known. Foreign and legacy streams have none."""
    decoded = Decoded(direction, space, how.kind)
    if how.position:
        decoded.broken_at = 0
    if how.kind in decoded_kinds():
        if len(space.pieces):
            reading = _Reading(decoded, readers(hints)[how.kind], keep=hints.keep_bodies)
            reading.run(how.position, aligned=how.aligned)
        used = {chain.start for _, chain in decoded.chains}
        unused = [chain for start, chain in space.chains.items() if start not in used]
        if unused:
            raise NeedsBytes(unused)
    return decoded


class _Reading:
    """Reads frame after frame of one direction; where the stream is lost, it goes on at the next place that
    is proved. `keep`: raw bodies are wanted."""

    def __init__(self, decoded: Decoded, reader: FrameReader, *, keep: bool) -> None:
        self._decoded = decoded
        self._frames = decoded.frames
        self._space = decoded.space
        self._reader = reader
        self._searcher = Searcher(decoded.space)
        self._keep = keep
        self._held = held_bodies(reader.kind)

    def run(self, position: int, *, aligned: bool) -> None:
        """Read from `position` on: the start of a frame when `aligned`, else a place to search from."""
        place: int | None = position if aligned else self._found(position)
        while place is not None:
            chain = self._space.chain_at(place, self._reader.kind)
            if chain is not None:
                self._decoded.chains.append((len(self._frames.positions), chain))
                place = chain.end
                continue
            following = self._run_of_frames(place)
            place = self._frame(place) if following == place else following

    def _run_of_frames(self, position: int) -> int:
        """Read frames that lie in one window; where the next one begins. A chain may begin anywhere."""
        space = self._space
        if space.chains:
            return position
        run = self._reader.read_run(space, position)
        if not run.sizes:
            return position
        following = position + sum(run.sizes)
        self._take(run, position, space.window(position, 1))
        return following

    def _frame(self, position: int) -> int | None:
        """Read one frame; where to go on, None: nowhere."""
        outcome, space = self._reader.read(self._space, position), self._space
        if outcome.size > 0:
            end = position + outcome.size
            if outcome.message is not None:
                body = end - outcome.body_size
                begin = position + (space.window(body, outcome.body_size) - body if body < end else 0)
                one = Run([outcome.size], [outcome.message], [outcome.body_size], outcome.encoding)
                self._take(one, position, begin)
            else:
                self._decoded.skipped.append((position, outcome.size))
            return end
        if self._decoded.broken_at is None and space.next_known(position) is not None:
            self._decoded.broken_at = position
        if outcome.size != SHORT:
            return self._found(position + 1)
        known = space.next_known(space.run_end(position))
        return None if known is None else self._found(known)

    def _take(self, run: Run, position: int, begin: int) -> None:
        """Take frames that follow each other from `position` on, which would be `buffer[begin]`; of each the
        body is in the window, as far as it goes on without a hole."""
        frames, buffer, view = self._frames, self._space.buffer, memoryview(self._space.buffer)
        borders = list(accumulate(run.sizes, initial=begin))
        first = len(frames.positions)
        frames.positions += [border - begin + position for border in borders[:-1]]
        frames.sizes += run.sizes
        frames.messages += run.messages
        frames.body_sizes += run.body_sizes
        frames.encodings += [run.encoding] * len(run.sizes)
        known = len(buffer)
        sized = zip(borders[1:], run.body_sizes, strict=True)
        places = [(end - size, end) if size and end <= known else None for end, size in sized]
        frames.digests += [digest(view[at[0] : at[1]]) if at else None for at in places]
        if self._reader.has_records:
            each = zip(run.messages, places, strict=True)
            frames.records += [self._reader.records(of, buffer, *at) if at else None for of, at in each]
        else:
            frames.records += [None] * len(places)
        for bodies in self._held:
            for row in bodies.holding(run.messages):
                if at := places[row]:
                    found = bodies.read(run.messages[row], buffer, *at)
                    frames.held.setdefault(bodies.column, {})[first + row] = found
        shown: list[bytes | None] = [None] * len(places)
        for row, at in enumerate(places):
            if at and at[1] - at[0] <= JSON_BODY_BYTES_MAXIMUM and _JSON.match(buffer, *at):
                shown[row] = buffer[at[0] : at[1]] if self._reader.wants(run.messages[row]) else None
        frames.json_bodies += shown
        frames.bodies += [buffer[at[0] : at[1]] if at and self._keep else None for at in places]

    def _found(self, position: int) -> int | None:
        """The next place >= `position` that is proved to be the start of a frame."""
        found = self._searcher.find([self._reader], position)
        return None if found is None else found[0]
