"""The table with real processes: which rows a cluster plays, and what is told of those that it does not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from lab.errors import LabError
from lab.rocketmq.crash_results import Results
from lab.rocketmq.crash_rows import NEW, Party, Row, Step
from lab.rocketmq.kills_queues import Table, _rows_played

STEPS = [Step(code, Party.TARGET) for code in sorted(NEW.codes)]
ROWS = [*NEW.rows(STEPS)]
NEVER_S = float("inf")


class _Played:
    """In the place of a cluster."""

    move = NEW

    def __init__(self, wrong: Mapping[Row, str], clients: Sequence[str] = ()) -> None:
        self._wrong = wrong
        self._clients = clients
        self.rows: list[Row] = []

    def prepare(self) -> None:
        """Nothing to do."""

    def steps(self) -> Sequence[Step]:
        """Those of a run."""
        return STEPS

    def play(self, row: Row) -> list[str]:
        """See Table."""
        self.rows.append(row)
        why = self._wrong.get(row, "")
        if why.startswith("!"):
            raise LabError(why)
        return [why] if why else []

    def end(self) -> tuple[Mapping[str, int], Sequence[str]]:
        """See Table."""
        return {"sent": 1}, self._clients


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """An empty file."""
    return Results(tmp_path / "rows.jsonl", is_resumed=False)


def _plays(table: _Played, results: Results, tried: set[Row], until_s: float = NEVER_S, **more: Any) -> bool:
    arguments = argparse.Namespace(
        **{"questions": False, "two_die": False, "only": None, "first": 1, "each": 1, "part": (1, 1), **more}
    )
    return _rows_played(cast("Table", table), arguments, results, until_s, tried)


@pytest.mark.parametrize("why", ["two brokers write", "!not within 60 s"])
def test_behind_a_wrong_row_another_cluster_goes_on_with_the_next_one(results: Results, why: str) -> None:
    first, second, tried = _Played({ROWS[2]: why}), _Played({}), set[Row]()
    assert not _plays(first, results, tried)
    assert _plays(second, results, tried)
    assert (first.rows, second.rows) == (ROWS[:3], ROWS[3:])
    assert [each for each in ROWS if not results.is_right(NEW.name, each)] == [ROWS[2]]
    assert not results.are_right


def test_a_run_that_goes_on_plays_what_was_not_right(results: Results) -> None:
    _plays(_Played({ROWS[2]: "wrong"}), results, set())
    again = _Played({})
    assert _plays(again, results, set())
    assert again.rows == ROWS[2:]
    assert results.are_right


def test_parts_are_all_rows_once(results: Results) -> None:
    tables = [_Played({}) for _ in range(3)]
    for number, table in enumerate(tables, 1):
        assert _plays(table, results, set(), part=(number, 3))
    assert sorted((row for table in tables for row in table.rows), key=ROWS.index) == ROWS
    assert results.are_right


def test_what_there_was_no_time_for_is_not_right(results: Results) -> None:
    table = _Played({})
    assert _plays(table, results, set(), until_s=float("-inf"))
    assert table.rows == []
    assert not results.are_right


def test_what_clients_miss_is_told_of_the_rows_of_their_cluster(results: Results) -> None:
    assert _plays(_Played({}, ["1 is lost"]), results, set(), first=len(ROWS) - 1)
    assert not any(results.is_right(NEW.name, each) for each in ROWS[-2:])


def test_clients_behind_a_row_that_is_wrong_blame_no_other_row(results: Results) -> None:
    assert not _plays(_Played({ROWS[1]: "wrong"}, ["1 is lost"]), results, set())
    assert results.is_right(NEW.name, ROWS[0])
