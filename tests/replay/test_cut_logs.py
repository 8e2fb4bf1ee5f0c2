"""What replication connections carried, compared in blocks of the log, is what it is compared as a whole."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.event_tables import Coded, EventTable
from replispec.replay.events.observation import Batch, ObservationKind
from replispec.replay.events.rocketmq.cut_logs import (
    Edge,
    Extent,
    extents_of,
    joined_ranges,
    ranges_in_block,
    runs_by_block,
    stretches_of,
)
from replispec.replay.events.rocketmq.ranges import ranges
from replispec.replay.events.tables import to_tables
from tests.replay.test_ranges import LOG, runs

EPOCH = "g", 1


def carried(rng: random.Random) -> list[Batch]:
    """A few connections that carried parts of a log, cut anywhere, often alike, now and then not whole."""
    common = sorted(rng.sample(range(len(LOG)), rng.randrange(2, 60)))
    found: list[Batch] = []
    for name in "abc"[: rng.randrange(2, 4)]:
        own = rng.choice((common, sorted(rng.sample(range(len(LOG)), rng.randrange(2, 60)))))
        borders = sorted({*rng.sample(own, rng.randrange(2, len(own) + 1)), *rng.sample(common, 2)})
        log = bytearray(LOG)
        log[rng.randrange(len(log))] ^= rng.randrange(2)
        found += [
            replace(each, body_digest=None) if rng.random() < 0.03 else each
            for each in runs(name, borders, bytes(log))
            if rng.random() < 0.95
        ]
    return found


def columns(rows: list[Batch]) -> Columns:
    found = CaptureEvents(to_tables(rows)).columns(ObservationKind.BATCH)
    return found.having("group", Coded(np.zeros(len(found), np.int64), ["g"]))


def told(*tables: EventTable) -> Counter[tuple[object, ...]]:
    events = [table.shown(row) for table in tables for row in range(len(table))]
    return Counter(
        tuple(value for name, value in sorted(vars(each).items()) if name != "place") for each in events
    )


def in_blocks(frames: Columns, extent: Extent, block: int) -> tuple[list[EventTable], list[Edge]]:
    """The blocks in any order, and what is joined between them."""
    tables, edges = [], []
    every = np.arange(len(frames))
    for number, rows in runs_by_block(frames, every, block):
        table, own = ranges_in_block(frames.take(rows), EPOCH, number, extent.order, block, rows)
        tables.append(table)
        edges += own
    random.Random(len(edges)).shuffle(edges)
    return [*tables, joined_ranges(edges, frames, every)], edges


def extent_of(frames: Columns, block: int) -> Extent:
    return extents_of([stretches_of(frames, block)], block)[EPOCH]


def drawn(seeds: range) -> Iterator[tuple[Columns, int]]:
    for seed in seeds:
        rng = random.Random(seed)
        yield columns(carried(rng)), rng.choice((7, 40, 200, 1000))


@pytest.mark.parametrize("seeds", [range(50)])
def test_ranges_in_blocks_are_those_of_the_whole(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for frames, block in drawn(seeds):
        extent = extent_of(frames, block)
        if not extent.is_cut:
            continue
        tables, edges = in_blocks(frames, extent, block)
        assert told(*tables) == told(ranges(frames))
        seen["cut"] += 1
        seen["inside"] += sum(map(len, tables[:-1]))
        seen["joined"] += len(tables[-1])
        seen["open"] += sum(edge.tail is not None for edge in edges)
    # Something ended in another block than it began in, something broke off.
    assert seen["cut"] > len(seeds) / 2
    assert seen["inside"] > 0
    assert seen["open"] > seen["joined"] > 0


def test_what_overlaps_is_not_cut() -> None:
    whole = columns([*runs("a", [0, 100, 300, 600]), *runs("b", [0, 300, 600])])
    assert extent_of(whole, 200).is_cut
    assert not extent_of(whole, 1000).is_cut
    again = columns([*runs("a", [0, 100, 300, 600]), *runs("a", [50, 200])])
    assert not extent_of(again, 200).is_cut


def test_stretches_of_one_connection_that_carried_one_place_are_not_cut() -> None:
    parts = [[*runs("a", [0, 100, 300])], [*runs("a", [300, 600])], [*runs("a", [250, 400])]]
    told_of = [stretches_of(columns(part), 200) for part in parts]
    assert extents_of(told_of[:2], 200)[EPOCH].is_cut
    assert not extents_of(told_of, 200)[EPOCH].is_cut


@pytest.mark.parametrize("offset", [-5, (1 << 63) - 10])
def test_a_run_at_no_place_of_a_log_is_not_cut(offset: int) -> None:
    rows = [*runs("a", [0, 100, 300])]
    rows.append(replace(rows[-1], offset=offset, index=9))
    assert not extent_of(columns(rows), 200).is_cut


def test_a_run_that_lies_in_many_blocks_is_not_cut() -> None:
    rows = [*runs("a", [0, 100, 300])]
    assert not extent_of(columns([replace(rows[-1], body_size=1 << 30), *rows[:1]]), 200).is_cut


def test_an_order_of_connections_is_that_of_the_capture() -> None:
    rows = [replace(each, order=1000 - each.order) for each in runs("a", [0, 100, 300])]
    frames = columns([*rows, *runs("b", [0, 100, 300])])
    assert list(extent_of(frames, 200).order) == ["b", "a"]
