"""What came of crash tables is a file that a later run goes on from, and that several share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.rocketmq.crash_results import Results
from lab.rocketmq.crash_rows import NEW, Moment, Party, Row, Step
from replispec.wire.rocketmq.codes import RequestCode

MOVE = NEW.name
STEP = Step(RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE, Party.SOURCE)
ROWS = [Row(STEP, Party.ADMINISTRATOR, moment) for moment in Moment]
CELLS = f"| {STEP} | administrator |"


def _last(results: Results) -> str:
    return [*results.lines([MOVE])][-1]


def test_a_run_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out" / "rows.jsonl"
    first = Results(path, is_resumed=False)
    first.expect(MOVE, ROWS)
    first.add(MOVE, ROWS[0], [], 2.0)
    first.add(MOVE, ROWS[1], ["two write"], 3.0)
    with path.open("ab") as file:
        file.write(b'{"row": ["LQ')
    again = Results(path, is_resumed=True)
    assert [again.is_right(MOVE, row) for row in ROWS] == [True, False, False]
    assert not again.are_right
    assert f"{CELLS} right | wrong | not played |" in [*again.lines([MOVE])]
    assert _last(again).startswith(f"| {MOVE} | 3 | 1 | 1 | 1 | 5 |")


def test_what_was_before_counts_for_nobody_who_does_not_go_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    Results(path, is_resumed=False).add(MOVE, ROWS[0], [])
    assert not Results(path, is_resumed=False).is_right(MOVE, ROWS[0])


def test_a_row_that_was_not_played_is_not_right(tmp_path: Path) -> None:
    results = Results(tmp_path / "rows.jsonl", is_resumed=False)
    assert not results.are_right
    results.expect(MOVE, ROWS[:2])
    results.add(MOVE, ROWS[0], [])
    assert not results.are_right
    results.add(MOVE, ROWS[1], [])
    assert results.are_right


def test_a_row_that_was_wrong_and_is_right_when_it_is_played_again_is_right(tmp_path: Path) -> None:
    results = Results(tmp_path / "rows.jsonl", is_resumed=False)
    results.add(MOVE, ROWS[0], ["broken off: not within 60 s"])
    results.add(MOVE, ROWS[0], [])
    assert results.are_right
    assert Results(results.path, is_resumed=True).are_right


def test_what_clients_miss_is_the_fault_of_every_row_that_they_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "rows.jsonl", is_resumed=False)
    for row in ROWS:
        results.add(MOVE, row, [])
    results.add_clients(MOVE, ROWS[:2], {"sent": 9, "failed": 1, "undecided": 0, "read": 7}, ["1 is lost"])
    assert [results.is_right(MOVE, row) for row in ROWS] == [False, False, True]
    assert _last(results).endswith("| 9 | 1 | 0 | 7 |")
    assert "clients of this and 1 other rows: 1 is lost" in capsys.readouterr().out


def test_processes_that_share_the_work_share_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    whole = Results(path, is_resumed=False)
    for row in ROWS:
        part = Results(path, is_resumed=True)
        part.expect(MOVE, [row])
        part.add(MOVE, row, [])
    whole.load()
    assert whole.are_right
    assert f"{CELLS} right | right | right |" in [*whole.lines([MOVE])]
