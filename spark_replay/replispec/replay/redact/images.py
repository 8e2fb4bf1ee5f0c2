"""What becomes of the bytes of one direction: zeros, until a frame is written over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import CaptureBytes
from replispec.replay.tcp.pieces import Pieces

Bytes = npt.NDArray[np.uint8]


class Image:
    """Of each byte that counts: what it was and what it becomes, by position in the direction."""

    def __init__(self, data: CaptureBytes, pieces: Pieces) -> None:
        self._start, self._end = pieces.start, pieces.end
        sizes = pieces.end - pieces.start
        self._index = np.concatenate([[0], np.cumsum(sizes)])
        offsets = zip(pieces.payload_offset.tolist(), sizes.tolist(), strict=True)
        self._was: Bytes = np.frombuffer(b"".join(data[at : at + size] for at, size in offsets), np.uint8)
        self._becomes: Bytes = np.zeros(len(self._was), np.uint8)
        self._first: dict[int, int] = {}

    def write(self, position: int, made: bytes) -> None:
        """What the bytes from `position` on become; those that were not captured are passed over."""
        end = position + len(made)
        row = int(np.searchsorted(self._end, position, "right"))
        while row < len(self._start) and self._start[row] < end:
            low, high = max(position, int(self._start[row])), min(end, int(self._end[row]))
            at = int(self._index[row]) + low - int(self._start[row])
            part = np.frombuffer(made, np.uint8)[low - position : high - position]
            self._becomes[at : at + high - low] = part
            row += 1

    def shown(self, position: int, copy: bytes) -> bytes:
        """What a captured copy of bytes becomes; where it differs from what counts, so does this."""
        own = np.frombuffer(copy, np.uint8)
        made = np.zeros(len(own), np.uint8)
        known = np.zeros(len(own), np.bool_)
        end = position + len(own)
        row = int(np.searchsorted(self._end, position, "right"))
        while row < len(self._start) and self._start[row] < end:
            low, high = max(position, int(self._start[row])), min(end, int(self._end[row]))
            at = int(self._index[row]) + low - int(self._start[row])
            here = slice(low - position, high - position)
            same = own[here] == self._was[at : at + high - low]
            made[here] = self._becomes[at : at + high - low] ^ np.where(same, 0, 0xFF).astype(np.uint8)
            known[here] = True
            row += 1
        if not known.all():
            for at in np.flatnonzero(~known).tolist():
                first = self._first.setdefault(position + at, int(own[at]))
                made[at] = 0 if own[at] == first else 0xFF
        return made.tobytes()
