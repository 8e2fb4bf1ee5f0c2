"""Random numbers from a seed, the same on every machine and every release of Python.

Source: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

_MASK: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15

T = TypeVar("T")


class Rng:
    """A stream of numbers that look random and follow from `seed` alone."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """The next 64 bits, as a number that is not negative."""
        self._state = (self._state + _GAMMA) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1; `limit` is at least 1."""
        assert limit > 0, f"nothing is below {limit}"
        return self.bits() % limit

    def between(self, least: int, most: int) -> int:
        """A number from `least` to `most`, both possible."""
        return least + self.below(most - least + 1)

    def happens(self, per_mille: int) -> bool:
        """Whether something happens that does so in `per_mille` of 1,000 cases."""
        return self.below(1_000) < per_mille

    def one_of(self, choices: Sequence[T]) -> T:
        """One of some things, each as likely as the others."""
        return choices[self.below(len(choices))]

    def fork(self) -> Rng:
        """Another stream, so that what draws from it does not shift what is drawn here."""
        return Rng(self.bits())
