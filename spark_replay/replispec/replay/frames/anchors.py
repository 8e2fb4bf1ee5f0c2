"""Where to start reading a stream that was not seen from its start, or that was lost on the way.

Places that fit a form of the stream are found for a whole window at once, from the forms that the
specification gives; each is then proved by reading the frames that follow each other from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers
from replispec.replay.frames.readers import BAD, FrameReader
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.streams import FrameForm, Stream

# So many frames in a row prove a place.
PROOF_FRAMES = 3
# Places that fit a form and then prove to be none: more of them in one direction and it is given up.
ATTEMPTS_MAXIMUM = 20_000
# So many offsets are looked at together.
PART_BYTES = 1 << 15


class Searcher:
    """Finds the next start of a frame; counts its failures over the whole direction."""

    def __init__(self, space: SequenceSpace) -> None:
        self._space = space
        self._attempts = 0

    def find(
        self, readers: Sequence[FrameReader], position: int, limit: int | None = None
    ) -> tuple[int, FrameReader] | None:
        """The first place >= `position` (and < `limit`) where a frame of one of the kinds starts.

        At one place the first reader that fits wins. None: there is none, or too many tries failed.
        """
        space = self._space
        head = max(reader.stream.head_size for reader in readers)
        place = space.next_known(position)
        while place is not None and (limit is None or place < limit):
            at = space.window(place, head)
            buffer = space.buffer
            for offset, reader in _candidates(readers, buffer, at):
                if limit is not None and place + offset - at >= limit:
                    return None
                if not reader.worth_reading(buffer, offset):
                    continue
                found = place + offset - at
                if self._attempts > ATTEMPTS_MAXIMUM:
                    return None
                if proved(space, reader, found):
                    return found, reader
                self._attempts += 1
            # Unless a hole comes there, the last bytes of a window are looked at again with what follows.
            end = place + len(buffer) - at
            if end == space.run_end(place):
                place = space.next_known(end)
            elif end - place < head:
                # The capture gives fewer bytes than it had: there is nothing to go on with.
                return None
            else:
                place = space.next_known(end - head + 1)
        return None


def proved(space: SequenceSpace, reader: FrameReader, position: int) -> bool:
    """Whether frames of this kind follow each other from `position` on, as far as the bytes go."""
    previous: Any = None
    at = position
    for count in range(PROOF_FRAMES):
        if count and not space.known(at):
            return count >= reader.evidence or (space.starts_piece(position) and space.known(at - 1))
        size, message, *_ = reader.read(space, at)
        if size == BAD:
            return False
        if message is None:
            return 0 < reader.evidence <= count
        if not reader.plausible(message) or (previous is not None and not reader.follows(previous, message)):
            return False
        previous = message
        at += size
    return True


def _candidates(readers: Sequence[FrameReader], buffer: bytes, at: int) -> Iterator[tuple[int, FrameReader]]:
    """(offset in the buffer, reader) of all places from `at` on that fit a form, ascending.

    They are looked for part by part: the first one is mostly near.
    """
    for begin in range(at, len(buffer), PART_BYTES):
        found: list[tuple[int, int]] = []
        for rank, reader in enumerate(readers):
            fitting = places(reader.stream, buffer, begin, begin + PART_BYTES)
            found.extend((offset, rank) for offset in fitting.tolist())
        yield from ((offset, readers[rank]) for offset, rank in sorted(found))


def places(stream: Stream, buffer: bytes, at: int, upto: int) -> Integers:
    """Offsets in [at, upto), ascending, where the buffer fits a form of the stream, its length in bounds."""
    count = min(len(buffer), upto) - at
    fits = np.zeros(max(0, count), np.bool_)
    for form in stream.forms:
        fit = _fit(form, buffer, at, count)
        fits[: len(fit)] |= fit
    return np.flatnonzero(fits) + at


def _fit(form: FrameForm, buffer: bytes, at: int, most: int) -> npt.NDArray[np.bool_]:
    """For each of at most so many offsets from `at` on that leave room for the tests: whether they hold."""
    need = max([form.length_end, *(test.end for test in form.tests)])
    count = min(most, len(buffer) - at - need + 1)
    if count <= 0:
        return np.zeros(0, np.bool_)
    fit = np.ones(count, np.bool_)
    for test in form.tests:
        value = _integers(buffer, at + test.at, test.size, count)
        fit &= (value >= test.minimum) & (value <= test.maximum)
    if form.length_size:
        value = _integers(buffer, at + form.length_at, form.length_size, count)
        fit &= (value >= form.minimum) & (value <= form.maximum)
    return fit


def _integers(buffer: bytes, at: int, size: int, count: int) -> Integers | npt.NDArray[np.unsignedinteger]:
    """The big-endian integers of `size` bytes that start at each of `count` offsets from `at` on."""
    kind = "u" if size == 1 else "i"
    return np.ndarray((count,), f">{kind}{size}", buffer, at, (1,))
