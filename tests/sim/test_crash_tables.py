"""Crash tables of logical queues: who dies at a step of a move costs nothing, and the next run finishes it.

`python -m tests.sim.crash_tables` plays all rows, `make test` some of each step, `make test-full` all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest

from lab.errors import LabError
from lab.rocketmq.crash_rows import (
    AGAIN,
    DRAINED,
    GONE,
    LOST,
    MOVES,
    NEW,
    OTHERS,
    REMAPPED,
    Moment,
    Move,
    Party,
    Row,
    Step,
)
from replispec.administrator.rocketmq import logical_migration, logical_queues
from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.cli.rocketmq.admin import static_topics
from replispec.wire.rocketmq.codes import RequestCode
from tests.sim import crash_tables
from tests.sim.crash_stages import STAGES
from tests.sim.crash_tables import Crash, part_of_rows, played, rows

IS_WHOLE: Final = os.environ.get("REPLISPEC_CRASHES") == "all"
CHANGES_EACH, QUESTIONS_EACH, PAIRS_EACH = (1, 1, 1) if IS_WHOLE else (7, 53, 29)
"""Every so many row is played: of requests that change something, of those that do not, of two who die."""
RARER: Final = 1 if IS_WHOLE else 12
"""Of commands that do something else than move a queue, and of sets of two, every so many of those."""
PARTS: Final = 4
TAKE: Final = RecordedMappings._take
MAP: Final = RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING
SET: Final = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
COMMIT: Final = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
PREPARE: Final = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE


def chosen(move: Move) -> list[Row]:
    """The rows that are played."""
    changes = rows(move, questions=False)
    others = [each for each in rows(move) if each not in changes]
    of_two = rows(move, questions=False, two_die=True)
    rarer = RARER if move in OTHERS else 1
    # No multiple of three, so that it meets each moment.
    changes_each = CHANGES_EACH * rarer + (rarer > 1)
    return [*changes[::changes_each], *others[:: QUESTIONS_EACH * rarer], *of_two[:: PAIRS_EACH * rarer]]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("move", [*MOVES, *OTHERS], ids=lambda move: move.name)
def test_whoever_dies_at_any_step_of_a_move_the_next_run_finishes_it_and_nothing_is_lost(
    move: Move, part: int
) -> None:
    wrong = {str(row): found for row in chosen(move)[part::PARTS] if (found := played(move, row))}
    assert wrong == {}


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_every_request_that_a_machine_sends_is_a_step_of_its_table(move: Move) -> None:
    table = rows(move)
    steps = {each.step for each in table}
    assert {each.code for each in steps} >= move.codes
    assert len(table) == len(set(table)) == len(steps) * len(move.mortal) * len(Moment)
    played_now = chosen(move)
    assert {each.step for each in played_now if not each.step.is_question} == {
        each for each in steps if not each.is_question
    }
    assert {each.who for each in played_now} == set(move.mortal)
    assert {each.moment for each in played_now} == set(Moment)
    pairs = rows(move, questions=False, two_die=True)
    assert {each.dead for each in pairs} == set(map(frozenset, combinations(move.mortal, 2)))
    assert {each.step for each in pairs} >= {each for each in steps if each.code in move.codes}


@pytest.mark.parametrize("move", OTHERS, ids=lambda move: move.name)
def test_every_request_of_another_command_is_a_step_of_its_table(move: Move) -> None:
    table = rows(move, questions=False)
    steps = {each.step for each in table}
    assert {each.code for each in steps} >= move.codes
    assert len(table) == len(set(table)) == len(steps) * len(move.mortal) * len(Moment)


def test_a_step_that_no_run_takes_is_missed() -> None:
    seen = [each.step for each in rows(NEW) if each.step.code != COMMIT]
    with pytest.raises(LabError, match=rf"LQ, a new queue: the machine sends \[{int(COMMIT)}\]"):
        list(NEW.rows(seen))


def _forgets(self: RecordedMappings[Any], data: bytes, offset: int, end: int) -> None:
    if offset >= self._began_at:
        TAKE(self, data, offset, end)


def _forgets_the_seal(self: RecordedMappings[Any], data: bytes, offset: int, end: int) -> None:
    if offset >= self._began_at or b'"ReadOnly"' not in data:
        TAKE(self, data, offset, end)


Broken = Callable[[], AbstractContextManager[object]]
BROKEN: Final[Mapping[str, tuple[Broken, Move, Row]]] = {
    "what an earlier run left is passed over": (
        lambda: patch.object(logical_migration, "_left", lambda *_: None),
        NEW,
        Row(Step(PREPARE, Party.SOURCE), Party.ADMINISTRATOR, Moment.WRITTEN),
    ),
    "an interrupted run is finished by nobody": (
        lambda: patch.object(static_topics, "is_unfinished", lambda *_: False),
        REMAPPED,
        Row(Step(SET, Party.SOURCE), Party.ADMINISTRATOR, Moment.WRITTEN),
    ),
    "where a queue goes on whose source is lost is forgotten": (
        lambda: patch.object(RecordedMappings, "_take", _forgets),
        LOST,
        Row(Step(COMMIT, Party.TARGET), Party.TARGET, Moment.WRITTEN),
    ),
    "a source that begins again does not know that it has ended": (
        lambda: patch.object(RecordedMappings, "_take", _forgets),
        AGAIN,
        Row(Step(PREPARE, Party.SOURCE), Party.SOURCE, Moment.WRITTEN),
    ),
    "a source that begins again has lost its seal alone": (
        lambda: patch.object(RecordedMappings, "_take", _forgets_the_seal),
        NEW,
        Row(Step(COMMIT, Party.TARGET), Party.SOURCE, Moment.ANSWERED),
    ),
    "a broker leaves and takes along where a group reads on": (
        lambda: patch.object(logical_queues, "carried_over", lambda *_: ()),
        GONE,
        Row(Step(MAP, Party.TARGET), Party.ADMINISTRATOR, Moment.BEFORE),
    ),
    "a target that begins again does not know that it leads": (
        lambda: patch.object(RecordedMappings, "_take", _forgets),
        REMAPPED,
        Row(Step(SET, Party.TARGET), Party.TARGET, Moment.ANSWERED),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_is_found_by_a_row(name: str) -> None:
    broken, move, row = BROKEN[name]
    assert row in rows(move, questions=False)
    with broken():
        try:
            wrong = played(move, row)
        except AssertionError as error:
            wrong = [repr(error)]
    assert wrong != []


def test_a_broker_leaves_with_nobody_waiting_for_what_it_alone_decides() -> None:
    row = Row(Step(PREPARE, Party.SOURCE), Party.ADMINISTRATOR, Moment.WRITTEN)
    assert played(DRAINED, row) == []


def test_a_row_is_played_the_same_each_time() -> None:
    row = rows(REMAPPED)[-1]
    first, second = (Crash(STAGES[REMAPPED], row).play() for _ in range(2))
    assert first.is_struck
    assert first.brokers.world.digest() == second.brokers.world.digest()


def test_no_row_is_passed_over_in_silence() -> None:
    (row, *_) = rows(NEW)
    never = replace(row, step=Step(row.step.code, row.step.to, 99))
    assert "there is no such step" in played(NEW, never)


def test_what_clients_saw_is_counted_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = rows(NEW, questions=False)[0]
    monkeypatch.setattr(crash_tables, "MOVES", (NEW,))
    monkeypatch.setattr(crash_tables, "OTHERS", ())
    words = ["crash_tables", f"{NEW.name}: {row}", "--results", str(tmp_path / "rows.jsonl")]
    monkeypatch.setattr("sys.argv", words)
    assert crash_tables.main() == 0
    *_, last = capsys.readouterr().out.splitlines()
    played_rows, *_, sent, failed, undecided, read = (int(each) for each in last.split("|")[2:-1])
    assert played_rows == 1
    # Each message is tried once, and what is acknowledged is read.
    assert sent > 12
    assert 0 <= failed + undecided < sent
    assert sent - failed <= read <= sent


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "1", "/2", "-1/2", "1/2/3", "a/b"])
def test_a_part_of_the_rows_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no part; 1/2 and 2/2 are the two halves"):
        part_of_rows(text)
    assert [part_of_rows(each) for each in ("1/1", "2/2")] == [(1, 1), (2, 2)]
