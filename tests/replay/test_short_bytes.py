"""A capture that gives fewer bytes than it said ends what is read of it; nothing waits for the others."""

from __future__ import annotations

import numpy as np
import pytest

from replispec.replay.frames.anchors import Searcher
from replispec.replay.frames.family import readers
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.pieces import Pieces
from replispec.replay.tcp.space import SequenceSpace
from tests.replay.random_traffic import command

STEPS_MAXIMUM = 100


class TooOftenError(Exception):
    """The search goes on and on."""


class Short:
    """Gives `most` bytes, whatever is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._most = most

    def __getitem__(self, where: slice, /) -> bytes:
        return self._data[where][: self._most]


class Counted(SequenceSpace):
    """Counts how often a search goes on."""

    steps = 0

    def next_known(self, position: int) -> int | None:
        self.steps += 1
        if self.steps > STEPS_MAXIMUM:
            raise TooOftenError
        return super().next_known(position)


@pytest.mark.parametrize("kind", sorted(readers(Hints())))
@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_search_ends_where_the_capture_gives_fewer_bytes_than_it_had(kind: str, most: int) -> None:
    data = bytes(50) + command(1) + command(2)
    zero = np.zeros(1, np.int64)
    pieces = Pieces(zero, zero + len(data), zero, zero, zero, zero - 1, zero)
    space = Counted(Short(data, most), pieces)
    assert Searcher(space).find([readers(Hints())[kind]], 0) is None
