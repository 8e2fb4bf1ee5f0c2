"""Digests of neighbouring ranges join, and differently cut runs are compared between common borders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.event_tables import Coded
from replispec.replay.events.observation import Batch, ObservationKind, Place
from replispec.replay.events.rocketmq.ranges import ranges
from replispec.replay.events.tables import to_tables
from replispec.replay.frames.digests import digest, joined

LOG = bytes(range(256)) * 4


def runs(connection: str, borders: Sequence[int], log: bytes = LOG) -> Iterator[Batch]:
    """The log from the first border to the last one, cut at each of them."""
    for start, end in pairwise(borders):
        place = Place("c", start, 0, connection, 0, start, 0)
        known = digest(log[start:end])
        yield Batch(*place, epoch=1, offset=start, body_size=end - start, body_digest=known)


def compared(*rows: Batch) -> list[SimpleNamespace]:
    """The ranges that these runs have in common."""
    batches = CaptureEvents(to_tables(rows)).columns(ObservationKind.BATCH)
    table = ranges(batches.having("group", Coded(np.zeros(len(batches), np.int64), ["g"])))
    return [table.event(row) for row in range(len(table))]


@given(st.binary(), st.binary())
def test_the_digest_of_two_ranges_is_joined_from_theirs(first: bytes, second: bytes) -> None:
    assert joined(digest(first), digest(second), len(second)) == digest(first + second)


def test_runs_are_compared_between_common_borders() -> None:
    found = compared(*runs("a", [0, 100, 300, 600]), *runs("b", [0, 50, 300, 400, 600, 700]))
    assert [(each.offset, each.size) for each in found] == [(0, 300), (300, 300)]
    assert all(each.digest == each.first_digest for each in found)


def test_one_other_byte_shows_in_its_range_alone() -> None:
    other = LOG[:350] + b"?" + LOG[351:]
    found = compared(*runs("a", [0, 100, 300, 600]), *runs("b", [0, 50, 300, 400, 600], other))
    assert [each.digest == each.first_digest for each in found] == [True, False]


def test_ranges_without_a_common_border_at_both_ends_are_not_compared() -> None:
    assert not compared(*runs("a", [0, 100, 300]), *runs("b", [50, 300]))
    assert not compared(*runs("a", [0, 100]), *runs("b", [0, 90]))


def test_a_run_without_bytes_has_no_end_to_go_on_from() -> None:
    empty = replace(next(runs("b", [100, 300])), body_size=0)
    assert not compared(*runs("a", [0, 100, 300]), empty)
