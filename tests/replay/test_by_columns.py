"""Judging by columns comes to what judging one event after the other does, for every invariant."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.events.event_tables import EventTable, table_of
from replispec.replay.events.observation import Observation, Opened
from replispec.replay.judges.by_columns import ColumnJudge, judge_events
from replispec.replay.judges.parts import PartFinding
from replispec.replay.judges.rocketmq.judge import RULES
from replispec.runtime.primitives.invariants import (
    EVIDENCE_MAX,
    OrderInvariant,
    PairingInvariant,
    Verdict,
)
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS

STREAMS = Path(__file__).parents[2] / "spec/invariants/rocketmq/streams.yaml"
# Rules about topics are asked of lists alone.
BY_COLUMNS = [each.id for each in RULES.values() if not isinstance(each, PairingInvariant)]
LOSING = "acknowledged-send-survives"
SMALL, LARGE = st.integers(-1, 12), st.sampled_from([1 << 60, (1 << 63) - 1, -(1 << 63)])
MESSAGE = {"is_message": True, "followed": False, "in_doubt": False}
EPOCHS = st.integers(0, 4).map(lambda epoch: epoch or UNKNOWN)
NUMBERS = st.one_of(SMALL, SMALL, SMALL, LARGE)
OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "string": st.sampled_from(("id", "address", "1")),
    "set string": st.frozensets(st.sampled_from(("1", "2"))),
    "list int64": st.lists(SMALL, max_size=3).map(sorted),
}


@cache
def kinds_of(stream: str) -> dict[str, dict[str, str]]:
    """The types of the attributes of each kind of event, as the specification declares them."""
    declared = yaml.safe_load(STREAMS.read_text("utf-8"))["streams"][stream]["events"]
    return {
        kind: {name: about["type"] for name, about in attributes.items() if name != "group"}
        for kind, attributes in declared.items()
    }


def row_at(place: int) -> Observation:
    return Opened("c", place, place, "connection", 0, place, 0)


def columns_of(stream: str, events: list[tuple[str, dict[str, Any]]]) -> EventTable:
    """Events as columns: whatever is a number in some kind is one in all."""
    types = {name: kind for attributes in kinds_of(stream).values() for name, kind in attributes.items()}
    numbers = {name for name, kind in types.items() if kind.startswith("int") and name != "epoch"}
    told = [(name, SimpleNamespace(group="g", **MESSAGE, **attributes)) for name, attributes in events]
    return table_of(stream, told, numbers, row_at)


def events_of(stream: str) -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    """Long streams of few different events: what repeats is what columns are for."""

    def attributes(types: dict[str, str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries(
            {name: EPOCHS if name == "epoch" else of_type(kind) for name, kind in types.items()}
        )

    one = st.one_of(
        *(st.tuples(st.just(kind), attributes(types)) for kind, types in kinds_of(stream).items())
    )
    return st.lists(st.tuples(one, st.integers(1, 30)), min_size=1, max_size=12).map(
        lambda parts: [event for event, count in parts for _ in range(count)]
    )


def of_type(kind: str) -> st.SearchStrategy[Any]:
    plain = kind.removesuffix(" or none")
    found = NUMBERS if plain.startswith("int") else OTHERS[plain]
    return st.one_of(found, found, st.none()) if plain != kind else found


def assert_alike(name: str, events: list[tuple[str, dict[str, Any]]]) -> PartFinding:
    """By columns and one by one; returns what it comes to."""
    invariant = INVARIANTS[name]
    of_sends = name == LOSING
    table = columns_of(invariant.stream, events)
    one_by_one = PartFinding()
    shown = ((table.name(row), table.shown(row)) for row in range(len(table)))
    folds = set(table.names.values) if name == LOSING else set()
    judge = judge_events(invariant, rules, shown, one_by_one, of_sends=of_sends)
    rows = np.flatnonzero([each != "epoch_started" and each != "epoch_unseen" for each, _ in events])
    own = table.take(rows) if folds else table
    first = invariant.variables if isinstance(invariant, OrderInvariant) else None
    before: Callable[[Any], Any] = judge.variables_of if folds else lambda _: first
    by_columns = ColumnJudge(invariant, rules, of_sends=of_sends).judge(own, own.templates(), before)
    assert by_columns == one_by_one
    return by_columns


@pytest.mark.parametrize("name", BY_COLUMNS)
@settings(max_examples=15)
@given(data=st.data())
def test_every_invariant_comes_to_the_same(name: str, data: st.DataObject) -> None:
    assert_alike(name, data.draw(events_of(INVARIANTS[name].stream)))


def batches(*offsets: int, size: int = 10) -> list[tuple[str, dict[str, Any]]]:
    told = {"connection": "c", "body_size": size, "epoch": 1, "epoch_start_offset": 0, "confirm_offset": 0}
    return [("batch", {**told, "offset": offset, "known_starts": [0]}) for offset in offsets]


def test_all_evidence_is_counted_and_the_first_is_kept() -> None:
    broken = batches(*range(0, 4000, 20))
    found = assert_alike("offset-chain", [("report", {"connection": "c", "max_offset": 5}), *broken])
    assert found.counts[Verdict.VIOLATED] == 199
    assert len(found.kept) == EVIDENCE_MAX


def test_a_chain_of_many_runs_holds() -> None:
    found = assert_alike("offset-chain", batches(*range(0, 40_000, 10)))
    assert found.counts == {Verdict.OK: 3999, Verdict.UNKNOWN: 1}


def test_lost_messages_take_eight_bytes_each_in_what_a_part_comes_to() -> None:
    count = 50_000
    told = {"epoch": 1, "cut_to": None, "given_again": True}
    table = columns_of("sends", [("acknowledged", {**told, "offset": 10 * at}) for at in range(count)])
    invariant = INVARIANTS[LOSING]
    assert isinstance(invariant, OrderInvariant)
    first = invariant.variables
    judge = ColumnJudge(invariant, rules, of_sends=True)
    found = judge.judge(table, table.templates(), lambda _: first)
    assert (found.lost[1].count, found.lost_at.tolist()) == (count, [*range(count)])
    assert len(pickle.dumps(found)) < 9 * count
