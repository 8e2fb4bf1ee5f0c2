"""Where the records of a pcap file begin, from stretches of it that are walked side by side.

Only the record before tells where a record begins. So each stretch is walked from where one seems to begin,
and what came of it counts only where the walk of the stretch before ended just there. All else is walked
again: the borders are exact whatever seemed to be, as a payload may itself hold a capture.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from replispec.replay.capture.pcap import RECORD_HEADER_SIZE, offsets
from replispec.replay.capture.records import CaptureWarning, Integers, Split, Words, release

# So many records one after the other look like records where one seems to begin.
ALIKE = 16
# What seems to be a record has at most so many bytes, and is stamped so near to the first one of the file.
LIKELY_BYTES_MAXIMUM = 1 << 18
LIKELY_S_MAXIMUM = 30 * 24 * 3600
# A beginning is looked for among so many bytes at a time.
LOOK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Walked:
    """A stretch of a file that was walked from the record at `first` up to the one at `behind`, which is the
    first that is no longer in it."""

    first: int
    behind: int


def grid(whole: Split, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Stretches [low, high) of a file, of so many bytes each."""
    for low in range(whole.start, whole.end, size_bytes):
        yield low, min(low + size_bytes, whole.end)


def walked(data: mmap.mmap, whole: Split, low: int, high: int) -> Walked | None:
    """The walk of one stretch; None where no record seems to begin in it, or where it had to stop."""
    first = low if low == whole.start else _beginning(data, whole, low, high)
    if first is None:
        return None
    warnings: list[CaptureWarning] = []
    found = offsets(data, replace(whole, start=first, end=high), warnings)
    if warnings or not found:
        return None
    release(data, low, high)
    return Walked(first, _behind(data, whole, found[-1]))


def borders(
    data: mmap.mmap,
    whole: Split,
    size_bytes: int,
    known: Mapping[int, Walked],
    warnings: list[CaptureWarning],
) -> Iterator[int]:
    """File offsets of records about `size_bytes` apart, the first one included; `known`: the walks of some
    stretches of that `grid`, by where each begins."""
    at = whole.start
    for low, high in grid(whole, size_bytes):
        part = known.get(low)
        if at >= high:
            # One record is longer than the stretch.
            continue
        if part is not None and part.first == at:
            yield at
            at = part.behind
            continue
        before = len(warnings)
        found = offsets(data, replace(whole, start=at, end=high), warnings)
        if not found:
            return
        yield found[0]
        release(data, at, found[-1])
        if len(warnings) > before:
            return
        at = _behind(data, whole, found[-1])


def _behind(data: mmap.mmap, whole: Split, at: int) -> int:
    (captured,) = struct.unpack_from(whole.byte_order + "I", data, at + 8)
    return at + RECORD_HEADER_SIZE + int(captured)


def _beginning(data: mmap.mmap, whole: Split, low: int, high: int) -> int | None:
    """Where a record seems to begin first, of those that begin in [low, high)."""
    words = Words(data, whole.byte_order)
    last = min(high, whole.end - RECORD_HEADER_SIZE)
    second = int(words.at(np.array([whole.start]))[0])
    ticks = whole.interfaces[0].ticks_per_second
    for begin in range(low, last, LOOK_BYTES):
        places = np.arange(begin, min(begin + LOOK_BYTES, last))
        for place in places[_like_records(words, places, second, ticks)].tolist():
            if _goes_on(words, whole, place, second, ticks):
                return int(place)
    return None


def _like_records(words: Words, at: Integers, second: int, ticks: int) -> Integers:
    """Which of these places look like the headers of records."""
    captured, wire = words.at(at + 8), words.at(at + 12)
    found = (captured <= LIKELY_BYTES_MAXIMUM) & (wire <= LIKELY_BYTES_MAXIMUM) & (wire >= captured)
    found &= (words.at(at + 4) < ticks) & (np.abs(words.at(at) - second) < LIKELY_S_MAXIMUM)
    return np.flatnonzero(found)


def _goes_on(words: Words, whole: Split, at: int, second: int, ticks: int) -> bool:
    """Whether records seem to follow each other from here."""
    for _ in range(ALIKE):
        if at + RECORD_HEADER_SIZE > whole.end:
            return at == whole.end
        here = np.array([at])
        if not len(_like_records(words, here, second, ticks)):
            return False
        at += RECORD_HEADER_SIZE + int(words.at(here + 8)[0])
    return at <= whole.end
