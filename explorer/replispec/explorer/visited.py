"""Which states were reached: 64 bits and a number of each, in sorted runs of which a new one costs little."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from replispec.explorer.tables import Mask, Numbers

Hashes = npt.NDArray[np.uint64]
_GROWTH: Final = 4
"""How many times a run must be as long as the next one: of 60 million states there are eight runs."""


@dataclass(slots=True)
class Visited:
    """The states that were reached, the longest run first.

    One sorted run of all would be copied for each population: at 30 million states that takes as long as
    stepping the population.
    """

    _runs: list[tuple[Hashes, Numbers]] = field(default_factory=list)

    def find(self, hashes: Hashes) -> tuple[Mask, Numbers]:
        """Which of these sorted hashes are known, and their numbers; of the others -1."""
        numbers = np.full(len(hashes), -1, np.int32)
        for run, its_numbers in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            here = run[places] == hashes
            numbers[here] = its_numbers[places[here]]
        return numbers >= 0, numbers

    def add(self, hashes: Hashes, numbers: Numbers) -> None:
        """Keep these sorted hashes, none of which is known, with their numbers."""
        if not len(hashes):
            return
        while self._runs and len(self._runs[-1][0]) < _GROWTH * len(hashes):
            longer, its_numbers = self._runs.pop()
            places = np.searchsorted(longer, hashes)
            hashes, numbers = np.insert(longer, places, hashes), np.insert(its_numbers, places, numbers)
        self._runs.append((hashes, numbers))
