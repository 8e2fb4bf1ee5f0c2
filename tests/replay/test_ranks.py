"""Ranks among numbers of several parts are those among all of them together."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.report.ranks import Ranks, counted, sizes_of

EDGES = [(1 << bits) + more for bits in range(1, 63) for more in (-1, 0, 1)]
NUMBERS = st.one_of(st.integers(0, 50), st.integers(0, 2**63 - 1), st.sampled_from(EDGES))


@given(st.lists(st.lists(NUMBERS, max_size=30), min_size=1, max_size=5), st.data())
def test_the_number_of_any_rank_is_found_where_it_is(parts: list[list[int]], data: st.DataObject) -> None:
    held = [np.array(part, np.int64) for part in parts]
    every = sorted(number for part in parts for number in part)
    if not every:
        return
    ranks = data.draw(st.sets(st.integers(0, len(every) - 1), min_size=1))
    found = Ranks.of(sum(map(counted, held), Counter[int]()), ranks)
    wanted = np.concatenate([found.wanted(part) for part in held])
    assert found.found(wanted) == {rank: every[rank] for rank in ranks}


@given(st.lists(NUMBERS, min_size=2))
def test_a_larger_number_is_of_no_smaller_size(numbers: list[int]) -> None:
    sizes = sizes_of(np.array(sorted(numbers), np.int64))
    assert (np.diff(sizes) >= 0).all()
