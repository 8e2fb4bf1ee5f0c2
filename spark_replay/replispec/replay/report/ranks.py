"""Exact ranks among numbers that nobody holds together: counted by size, then looked at where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
DIGITS: Final = 12
"""Binary digits of a number that tell its size: there are some 200,000 sizes of 64-bit numbers."""


def sizes_of(values: Numbers) -> Numbers:
    """The size of each number, none of which is below 0; larger numbers are of no smaller size.

    How many binary digits a number has is asked of a float, which may round it up: that keeps the order.
    """
    lengths = np.where(values < 2, values, np.frexp((values >> 1).astype(np.float64))[1] + 1)
    shifts = np.maximum(lengths.astype(np.int64) - DIGITS, 0)
    return np.asarray((shifts << DIGITS) + (values >> shifts), np.int64)


def counted(values: Numbers) -> Counter[int]:
    """How many numbers are of each size."""
    sizes, counts = np.unique(sizes_of(values), return_counts=True)
    return Counter(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))


@dataclass(slots=True)
class Ranks:
    """Of some ranks, from 0 on, the size of the number there, and how many are of smaller sizes."""

    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Mapping[int, int], ranks: Iterable[int]) -> Ranks:
        """Where numbers with such counts of sizes have these ranks."""
        sizes = sorted(counts)
        below = np.cumsum([0, *(counts[size] for size in sizes)])
        found = {}
        for rank in ranks:
            at = int(np.searchsorted(below, rank, "right")) - 1
            found[rank] = sizes[at], int(below[at])
        return cls(found)

    def wanted(self, values: Numbers) -> Numbers:
        """Those of the numbers that may be the ones."""
        return values[np.isin(sizes_of(values), [size for size, _ in self.sizes.values()])]

    def found(self, wanted: Numbers) -> dict[int, int]:
        """The number of each rank; `wanted`: all that `wanted` tells of all numbers."""
        ascending = np.sort(wanted)
        sizes = sizes_of(ascending)
        return {
            rank: int(ascending[int(np.searchsorted(sizes, size)) + rank - below])
            for rank, (size, below) in self.sizes.items()
        }
