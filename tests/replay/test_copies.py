"""Of copies that differ the one that a checksum vouches for counts; where none does, or several, neither."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.tcp.copies import resolve, settle
from replispec.replay.tcp.packets import PLAIN, PROBE, VOUCHED
from replispec.replay.tcp.pieces import Pieces, concatenate

Chosen = dict[tuple[int, int], tuple[int, int] | None]
# One row: start, bytes, direction, trust.
Row = tuple[int, bytes, int, int]
row = st.tuples(
    st.integers(0, 30),
    st.text("ab", min_size=2, max_size=9).map(str.encode),
    st.integers(0, 1),
    st.sampled_from([PLAIN, VOUCHED]),
)
probe = st.tuples(st.integers(0, 30), st.sampled_from([b"a", b"?"]), st.integers(0, 1), st.just(PROBE))
copies = st.lists(row | probe, max_size=20)


def columns(rows: list[Row]) -> tuple[bytes, npt.NDArray[np.int64], Pieces]:
    sizes = np.array([len(data) for _, data, _, _ in rows], np.int64)
    start = np.array([at for at, _, _, _ in rows], np.int64)
    offset = np.cumsum(sizes) - sizes
    number = np.arange(len(rows), dtype=np.int64)
    trust = np.array([trust for *_, trust in rows], np.int64)
    group = np.array([side for _, _, side, _ in rows], np.int64)
    data = b"".join(data for _, data, _, _ in rows)
    return data, group, Pieces(start, start + sizes, offset, number, number, number, trust)


def by_byte(rows: list[Row]) -> Chosen:
    """(direction, position) -> the byte that counts and the row that brought it; None: ambiguous."""
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, (start, data, side, trust) in enumerate(rows):
        for at, byte in enumerate(data):
            found[side, start + at].append((byte, number, trust))
    chosen: Chosen = {}
    sure: set[tuple[int, int]] = set()
    doubtful: set[int] = set()
    denied: set[int] = set()
    for place, all_copies in found.items():
        # The byte of a keep-alive counts where there is no other, and the first one then.
        best = [copy for copy in all_copies if copy[2] > PROBE] or all_copies[:1]
        vouched = [copy for copy in best if copy[2] == VOUCHED]
        bytes_ = {copy[0] for copy in vouched or best}
        chosen[place] = next(copy for copy in best if copy[0] in bytes_)[:2] if len(bytes_) == 1 else None
        if vouched:
            sure.add(place)
        if len(bytes_) > 1:
            told = (next(copy[1] for copy in best if copy[0] == byte) for byte in bytes_)
            (denied if vouched else doubtful).update(told)
    for place, kept in chosen.items():
        if kept is not None and (kept[1] in denied or (kept[1] in doubtful and place not in sure)):
            chosen[place] = None
    return chosen


def settled_bytes(data: bytes, group: npt.NDArray[np.int64], pieces: Pieces) -> Chosen:
    """As `by_byte`, by way of the code under test."""
    settled = settle(data, group, pieces)
    chosen: Chosen = {}
    for side in (0, 1):
        disputed = settled.disputed.take(np.flatnonzero(settled.disputed_group == side))
        own, ambiguous = resolve(data, settled.pieces.take(np.flatnonzero(settled.group == side)), disputed)
        for start, end, offset, record, *_ in zip(*(c.tolist() for c in own.columns()), strict=True):
            for place in range(start, end):
                assert (side, place) not in chosen
                chosen[side, place] = (data[offset + place - start], record)
        for start, end in ambiguous:
            for place in range(start, end):
                assert (side, place) not in chosen
                chosen[side, place] = None
    return chosen


@given(copies)
def test_every_byte_is_the_one_that_counts(rows: list[Row]) -> None:
    data, group, pieces = columns(rows)
    assert settled_bytes(data, group, pieces) == by_byte(rows)


@given(copies, st.integers(0, 20))
def test_it_does_not_matter_where_a_capture_is_cut(rows: list[Row], cut: int) -> None:
    data, group, pieces = columns(rows)
    groups, parts = [], []
    for part in (np.arange(min(cut, len(rows))), np.arange(min(cut, len(rows)), len(rows))):
        settled = settle(data, group[part], pieces.take(part))
        groups += [settled.group, settled.disputed_group]
        parts += [settled.pieces, settled.disputed]
    assert settled_bytes(data, np.concatenate(groups), concatenate(parts)) == by_byte(rows)


def test_a_chain_that_others_overlap_is_named() -> None:
    data, group, pieces = columns([(0, b"abcd", 0, PLAIN), (2, b"cd", 0, PLAIN), (9, b"zz", 0, PLAIN)])
    pieces.payload_offset[[0, 2]] = -1
    assert settle(data, group, pieces).torn.tolist() == [0]
