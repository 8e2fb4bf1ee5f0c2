"""A capture that gives fewer bytes than it said is told as what it is: a file that got shorter."""

from __future__ import annotations

import numpy as np
import pytest

from replispec.replay.capture.records import CaptureError
from replispec.replay.frames.anchors import Searcher
from replispec.replay.frames.family import readers
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.pieces import Pieces
from replispec.replay.tcp.space import SequenceSpace
from tests.replay.random_traffic import command


class Short:
    """Gives `most` bytes, whatever is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._most = most

    def __getitem__(self, where: slice, /) -> bytes:
        return self._data[where][: self._most]


def space_of(data: bytes, most: int, *borders: int) -> SequenceSpace:
    """The data as one piece, or as several with these borders."""
    places = np.array([0, *borders, len(data)], np.int64)
    start, zero = places[:-1], np.zeros(len(places) - 1, np.int64)
    return SequenceSpace(Short(data, most), Pieces(start, places[1:], start, zero, zero, zero - 1, zero))


@pytest.mark.parametrize("kind", sorted(readers(Hints())))
@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_search_ends_with_an_error_where_the_capture_gives_fewer_bytes_than_it_had(
    kind: str, most: int
) -> None:
    space = space_of(bytes(50) + command(1) + command(2), most)
    with pytest.raises(CaptureError, match="shorter"):
        Searcher(space).find([readers(Hints())[kind]], 0)


def test_the_error_names_the_first_bytes_that_are_not_there() -> None:
    data = bytes(range(30))
    assert space_of(data, 20, 20).window(0, 30) == 0
    with pytest.raises(CaptureError) as error:
        space_of(data, 12, 10, 25).window(0, 30)
    assert error.value.offset == 10
