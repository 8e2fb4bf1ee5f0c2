"""Columns of numbers that lie in files, of which little is in memory at a time.

They are written anywhere, and read by stretches or by places. A column is as long as what was written; what
was not written before its end is 0.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers

# So many numbers are read at once; of each column the last few blocks are kept.
BLOCK = 1 << 15
BLOCKS_KEPT = 4


class LongColumn:
    """Numbers of 64 bits, or narrower ones of `kind` in the file."""

    def __init__(self, path: Path, kind: npt.DTypeLike = np.int64) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        self._kind: np.dtype[Any] = np.dtype(kind)
        self._blocks: OrderedDict[int, Integers] = OrderedDict()
        self._firsts: Integers | None = None
        self._count = os.fstat(self._file).st_size // self._kind.itemsize

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def write(self, first: int, values: npt.NDArray[Any]) -> None:
        """Put numbers at a place and those behind it."""
        data = np.ascontiguousarray(values, self._kind).view(np.uint8).data
        at = first * self._kind.itemsize
        while len(data):
            done = os.pwrite(self._file, data, at)
            data, at = data[done:], at + done
        self._count = max(self._count, first + len(values))
        self._firsts = None
        for block in range(first // BLOCK, (first + len(values)) // BLOCK + 1):
            self._blocks.pop(block, None)

    def spread(self, places: Integers, values: npt.NDArray[Any]) -> None:
        """Put numbers at places that ascend."""
        runs = np.append(0, np.flatnonzero(np.diff(places) != 1) + 1)
        for first, run in zip(places[runs[: len(places)]].tolist(), np.split(values, runs[1:]), strict=False):
            self.write(first, run)

    def read(self, first: int, behind: int) -> Integers:
        """The numbers from one place up to another, as far as there are any."""
        size = self._kind.itemsize
        count = max(0, min(behind, self._count) - first)
        data = bytearray()
        while len(data) < count * size:
            got = os.pread(self._file, count * size - len(data), first * size + len(data))
            if not got:
                raise OSError("a file of numbers was cut while it was used")
            data += got
        return np.frombuffer(data, self._kind).astype(np.int64)

    def at(self, places: Integers) -> Integers:
        """The numbers at some places, in any order."""
        found = np.empty(len(places), np.int64)
        for block, rows in _by_block(places):
            found[rows] = self._block(block)[places[rows] - block * BLOCK]
        return found

    def put(self, places: Integers, values: Integers) -> None:
        """Put numbers at some places (each once) of those that there are."""
        for block, rows in _by_block(places):
            held = self._block(block).copy()
            held[places[rows] - block * BLOCK] = values[rows]
            self.write(block * BLOCK, held)

    def rank(self, values: Integers, side: Literal["left", "right"] = "left") -> Integers:
        """As `numpy.searchsorted` in the whole column, which ascends."""
        if self._firsts is None:
            self._firsts = np.concatenate(
                [np.zeros(0, np.int64), *(self.read(at, at + 1) for at in range(0, self._count, BLOCK))]
            )
        blocks = np.searchsorted(self._firsts, values, side) - 1
        found = np.zeros(len(values), np.int64)
        for block, rows in _by_block(np.maximum(blocks, 0) * BLOCK):
            inside = rows[blocks[rows] >= 0]
            if len(inside):
                found[inside] = block * BLOCK + np.searchsorted(self._block(block), values[inside], side)
        return found

    def _block(self, number: int) -> Integers:
        held = self._blocks.pop(number, None)
        if held is None:
            held = self.read(number * BLOCK, (number + 1) * BLOCK)
            while len(self._blocks) >= BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        self._blocks[number] = held
        return held


def _by_block(places: Integers) -> list[tuple[int, Integers]]:
    """The blocks in which places are, and which of them are in each."""
    if not len(places):
        return []
    blocks = places // BLOCK
    low, high = int(blocks.min()), int(blocks.max())
    if low == high:
        return [(low, np.arange(len(places)))]
    order = np.argsort(blocks, kind="stable")
    borders = np.flatnonzero(np.diff(blocks[order])) + 1
    return [(int(blocks[rows[0]]), rows) for rows in np.split(order, borders)]


class LongColumns:
    """Columns in a folder, by names; it is a context that closes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def column(self, name: str, kind: npt.DTypeLike = np.int64) -> LongColumn:
        """A new column."""
        made = LongColumn(self._folder / name, kind)
        self._open.callback(made.close)
        return made
