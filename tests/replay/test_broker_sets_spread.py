"""Broker sets are judged by parts of a capture, each told of its own sets alone, as the whole judges them."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rocketmq.generate_capture import Kind, Wanted, generate
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import Options
from replispec.replay.engines.rocketmq.broker_sets import SetsPiece
from replispec.replay.engines.rocketmq.spread import SPREAD
from replispec.replay.engines.spread import judged_in_parts
from replispec.replay.events.group_names import is_named
from replispec.replay.events.observation import Batch
from replispec.replay.events.observe import observe
from replispec.replay.events.tables import Events, to_tables
from replispec.replay.machines.group_walks import together
from replispec.replay.machines.steps import Findings
from replispec.replay.report.summary import CaptureRow
from tests.replay.event_rows import from_tables
from tests.replay.test_spread import assert_same, in_parts, seen

SETS, CONNECTIONS, LOST = 7, 40, 3
# Parts of which some have no broker set, and some several.
PARTS = (2, 5, 11)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[CaptureRow, Events]:
    path: Path = tmp_path_factory.mktemp("many") / "many.pcap"
    generate(path, Wanted(0.5, 7, Kind.MANY, LOST, SETS, CONNECTIONS))
    decoded = decode_capture(path)
    return capture_row(path, decoded), observe(decoded.frames, decoded.holes, decoded.streams)


def told(capture: CaptureRow, events: Events, count: int) -> tuple[list[SetsPiece], list[int]]:
    """The pieces of the last round, and how many bytes all that parts are told before has, by round."""
    pieces: list[SetsPiece] = []
    sizes: list[int] = []
    last = SPREAD.rounds[-1]

    def cut(known: Any, parts: int) -> tuple[Any, Sequence[Any]]:
        assert last.cut is not None
        ending, own = last.cut(known, parts)
        pieces.extend(own)
        return ending, own

    def apart(known: Any) -> tuple[Any, Any]:
        told, aside = SPREAD.apart(known)
        sizes.append(0 if pieces else len(pickle.dumps(told)))
        return told, aside

    seen_through = replace(SPREAD, apart=apart, rounds=(*SPREAD.rounds[:-1], replace(last, cut=cut)))
    rare = {kind: table for kind, table in events.items() if kind not in SPREAD.frequent}
    judged_in_parts(seen_through, capture, rare, in_parts(events, 1, count), Options())
    return pieces, sizes


@pytest.mark.parametrize("count", PARTS)
def test_many_sets_come_to_the_same_whoever_judges_them(many: tuple[CaptureRow, Events], count: int) -> None:
    assert_same(*many, Options(), count, count)


def test_what_is_rare_about_a_set_is_told_to_one_part_alone(many: tuple[CaptureRow, Events]) -> None:
    pieces, told_before = told(*many, count=3)
    rare = [{row.group for row in pickle.loads(each.rare)[0].rows} for each in pieces]
    groups = [{group for group in own if is_named(group)} for own in rare]
    assert sum(map(len, groups)) == len(set().union(*groups)) == SETS
    assert all(own for own in groups)
    sizes = [len(each.rare) for each in pieces]
    assert max(sizes) < sum(sizes) / 2
    # Before that all parts are told the same, and it is little: not what is rare.
    assert max(told_before) < sum(sizes) / 2


@dataclass(frozen=True)
class Walk:
    """A walk that has to do with some groups."""

    groups: Collection[str]

    def walk(self, found: Findings) -> None:
        """None of these is walked."""
        raise NotImplementedError


def test_sets_that_one_broker_joins_are_one_parts() -> None:
    walks = [Walk(groups) for groups in ("a", "bc", "d", "ce", "fa", "e")]
    assert sorted("".join(sorted(each)) for each in together(walks)) == ["af", "bce", "d"]


YEARS_NS = 56 * 365 * 86_400 * 10**9


def test_a_clock_that_was_set_within_a_capture_changes_nothing() -> None:
    """The times of its first half may lie in 1970; its curves are in the order of time."""
    capture, events = seen("older_copy")
    middle = (capture.first_time_ns or 0) // 2 + (capture.last_time_ns or 0) // 2
    rows = [
        replace(row, time_ns=row.time_ns - YEARS_NS) if row.time_ns < middle else row
        for row in from_tables(events)
    ]
    capture = replace(capture, first_time_ns=(capture.first_time_ns or 0) - YEARS_NS)
    assert_same(capture, to_tables(rows), Options(), 1, 4)
    curves = [
        curve for line in judged(capture, to_tables(rows), Options()).timelines for curve in line.curves
    ]
    assert any(len(curve.points) > 1 for curve in curves)
    assert all(list(curve.points) == sorted(curve.points, key=itemgetter(0)) for curve in curves)


LEAST = -(1 << 63)


@pytest.mark.parametrize("all_ack", [False, True])
def test_the_least_number_of_a_header_hides_no_other_one(all_ack: bool) -> None:
    """One transfer of each connection confirms the least number of all, a later one more than any other."""
    capture, events = seen("hung_master")
    rows = from_tables(events)
    own: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if isinstance(row, Batch):
            own[row.connection].append(at)
    for places in own.values():
        first, later, last = (rows[places[at]] for at in (len(places) // 3, len(places) // 2, -1))
        assert isinstance(first, Batch)
        assert isinstance(later, Batch)
        assert isinstance(last, Batch)
        rows[places[len(places) // 3]] = replace(first, confirm_offset=LEAST)
        rows[places[len(places) // 2]] = replace(later, confirm_offset=(last.confirm_offset or 0) + 10**6)
    assert_same(capture, to_tables(rows), Options(all_ack=all_ack), 5, 4)
