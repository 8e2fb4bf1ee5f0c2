"""Numbers of 32 bits that go round, and the positions that they stand for.

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from replispec.replay.capture.groups import runs
from replispec.replay.capture.records import Integers

NUMBERS, HALF = 2**32, 2**31
# The largest window: numbers of one side that are further apart are not of one moment.
NEAR_BYTES = 1 << 30
NumberT = TypeVar("NumberT", int, Integers)


def apart(step: NumberT) -> NumberT:
    """The difference of two numbers, the shorter way round: from -2^31 on, and below 2^31."""
    return (step + HALF) % NUMBERS - HALF


def unwrapped(side: Integers, number: Integers) -> tuple[Integers, dict[int, tuple[int, int]]]:
    """The position of each number, and by side the first and the last one that count.

    The rows of a side stand next to each other, in order of arrival. A number that lies far from both of its
    neighbours was damaged, or is a lie: it has a place, and moves none of the others.
    """
    firm = _firm(side, number)
    firm_side, position = side[firm], _chained(side[firm], number[firm])
    references = {each: (int(position[at]), int(position[upto - 1])) for each, at, upto in runs(firm_side)}
    return _beside(firm, position, side, number), references


def _firm(side: Integers, number: Integers) -> Integers:
    """The rows whose number lies near that of the one before or behind it of its side; of a side without
    any such row all of them."""
    near = (side[1:] == side[:-1]) & (np.abs(apart(np.diff(number))) < NEAR_BYTES)
    firm = np.append(False, near) | np.append(near, False)
    if firm.all():
        return np.arange(len(side))
    return np.flatnonzero(firm | ~np.isin(side, np.unique(side[firm])))


def _chained(side: Integers, number: Integers) -> Integers:
    """Positions of numbers, each near the one before it; a side's first number is its own position."""
    step = apart(np.diff(number, prepend=number[0]))
    first = np.flatnonzero(np.append([True], side[1:] != side[:-1]))
    step[first] = 0
    total = np.cumsum(step)
    sizes = np.diff(np.append(first, len(side)))
    return total + np.repeat(number[first] - total[first], sizes)


def _beside(firm: Integers, positions: Integers, side: Integers, number: Integers) -> Integers:
    """The positions of all rows: of those that are not firm near the last one that is, else the next one."""
    if len(firm) == len(side):
        return positions
    at = np.maximum(np.searchsorted(firm, np.arange(len(side)), "right") - 1, 0)
    at += side[firm[at]] != side
    return positions[at] + apart(number - positions[at])
