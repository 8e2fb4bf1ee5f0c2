"""What SQLite would leave out of a write-ahead log without a word.

It reads a log up to the first frame whose checksum is wrong, as a crash leaves one in the transaction that
was being written. A transaction is written when the one before is on the disk: where two or more end after
such a frame, one of them had been on the disk, and the frame was damaged later.
Source: sqlite.org/fileformat2.html, "The Write-Ahead Log".
"""

from __future__ import annotations

import sys
from array import array
from typing import Final, NamedTuple

from replispec.runtime.storage.interface import StorageFailed

_WORD: Final = 4
_HEADER: Final = 8 * _WORD
_FRAME: Final = 6 * _WORD
_MAGIC: Final = 0x377F0682
"""Of checksums over little-endian words; the next number, over big-endian ones."""
_CHECKED: Final = 8
"""Bytes of a frame's header that its checksum covers, and its page."""
_BITS: Final = 0xFFFFFFFF
_PAGE_BYTES: Final = 4_096
"""As SQLite makes them, for a log that cannot say."""
_ENDS: Final = 2

_Sum = tuple[int, int]


class _Frame(NamedTuple):
    at: int
    ends: bool
    salts: _Sum
    sums: _Sum
    checked: bytes


def check_wal(data: bytes) -> None:
    """Raises StorageFailed, with the place, for a log of which SQLite reads less than was on the disk."""
    if len(data) < _HEADER:
        return
    magic, _, page_bytes, _, *rest = _words(data[:_HEADER])
    if magic & ~1 == _MAGIC and _sum((0, 0), data[:24], magic) == (rest[2], rest[3]):
        frames = _frames(data, page_bytes)
        damaged, ends = _behind(frames, (rest[0], rest[1]), (rest[2], rest[3]), magic)
    else:
        frames = _frames(data, _PAGE_BYTES)
        salts = frames[0].salts if frames else (0, 0)
        damaged, ends = 0, max(_behind(frames, salts, (0, 0), each)[1] for each in (_MAGIC, _MAGIC + 1))
    if ends >= _ENDS:
        raise StorageFailed(
            f"damaged at byte {damaged}: {ends} transactions or more after it were on the disk"
        )


def _behind(frames: list[_Frame], salts: _Sum, sums: _Sum, magic: int) -> tuple[int, int]:
    """Where the first frame lies that does not follow the one before, and how many transactions end in a run
    of frames after it of which each does. What a failed transaction left behind shorter ones is no run."""
    damaged = -1
    ends = most = 0
    for frame in frames:
        if frame.salts != salts or _sum(sums, frame.checked, magic) != frame.sums:
            damaged = frame.at if damaged < 0 else damaged
            ends = 0
        elif damaged >= 0:
            ends += frame.ends
            most = max(most, ends)
        sums = frame.sums
    return damaged, most


def _frames(data: bytes, page_bytes: int) -> list[_Frame]:
    size = _FRAME + page_bytes
    found = []
    for at in range(_HEADER, len(data) - size + 1, size):
        _, pages, salt1, salt2, sum1, sum2 = _words(data[at : at + _FRAME])
        checked = data[at : at + _CHECKED] + data[at + _FRAME : at + size]
        found.append(_Frame(at, pages > 0, (salt1, salt2), (sum1, sum2), checked))
    return found


def _words(data: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(data[at : at + _WORD], "big") for at in range(0, len(data), _WORD))


def _sum(before: _Sum, data: bytes, magic: int) -> _Sum:
    words = array("I", data)
    if (sys.byteorder == "big") != bool(magic & 1):
        words.byteswap()
    first, second = before
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _BITS
        second = (second + odd + first) & _BITS
    return first, second
