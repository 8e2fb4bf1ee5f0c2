"""Events stepped at once come to what they come to one by one, whatever is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.events.event_tables import Coded, EventTable, coded, counted
from replispec.replay.machines.folds import ColumnFold
from replispec.replay.machines.traces import NUMBER_MAX
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead

Row = tuple[str, int | None, str]


@dataclass(frozen=True)
class Memory:
    """Numbers that move, may be unknown, and a word."""

    low: Any = UNKNOWN
    high: Any = 0
    word: str = ""


class Toy:
    """Keeps, compares, counts up and exchanges numbers, as events of one letter tell it."""

    def apart(self, state: Memory) -> tuple[Any, list[tuple[str, Any]]]:
        return Memory, list(zip(("low", "high", "word"), astuple(state), strict=True))

    def together(self, structure: Any, values: Sequence[Any]) -> Memory:
        made: Memory = structure(*values)
        return made

    def step(self, state: Memory, name: str, event: Any) -> tuple[str, Memory]:
        try:
            return self._step(state, name, event)
        except UnknownRead:
            return "unknown", state

    def _step(self, state: Memory, name: str, event: Any) -> tuple[str, Memory]:
        if event.number is None:
            return "nothing", state
        if name == "keep":
            return "kept", replace(state, low=event.number)
        if name == "grow":
            return "grown", replace(state, high=max(state.high, event.number))
        if name == "fits":
            fits = event.number == state.low
            return ("fits", replace(state, low=event.number + 1)) if fits else ("gap", state)
        if name == "count":
            return "counted", replace(state, high=state.high + 1)
        if name == "exchange":
            return "exchanged", replace(state, low=state.high, high=max(state.low, 0))
        if name == "say":
            return "said", replace(state, word=event.word)
        return "forgotten", replace(state, low=UNKNOWN)


NAMES = ("keep", "grow", "fits", "count", "exchange", "say", "forget")


def table(rows: Sequence[Row]) -> EventTable:
    numbers = counted([number for _, number, _ in rows])
    assert numbers is not None
    known = {"word": coded([word for *_, word in rows])}
    names: Coded = coded([name for name, *_ in rows])
    places = np.arange(len(rows), dtype=np.int64)
    return EventTable("toy", names, known, {"number": numbers}, places, lambda _: None)


def assert_alike(rows: Sequence[Row]) -> None:
    """Outcomes, every state on the way and the last one are those of stepping one by one."""
    toy, state = Toy(), Memory()
    events = table(rows)
    folded = ColumnFold(toy).run(state, events)
    for row in range(len(rows)):
        assert same(folded.before(row), state)
        outcome, state = toy.step(state, events.name(row), events.event(row))
        assert folded.outcomes[folded.codes[row]] == outcome
    assert same(folded.state, state)


def same(left: Memory, right: Memory) -> bool:
    return repr(left) == repr(right)


NUMBERS = st.one_of(
    st.integers(-2, 6), st.none(), st.sampled_from([NUMBER_MAX - 1, NUMBER_MAX, 2**63 - 1, -(2**63)])
)
MIXED = st.lists(st.tuples(st.sampled_from(NAMES), NUMBERS, st.sampled_from(("a", "b"))), max_size=120)
PART = st.tuples(st.sampled_from(NAMES), st.integers(0, 3), st.integers(1, 60), st.integers(0, 4))


@given(MIXED)
def test_any_events_in_any_order(rows: list[Row]) -> None:
    assert_alike(rows)


@given(st.lists(PART, max_size=8))
def test_long_runs_of_one_kind(parts: list[tuple[str, int, int, int]]) -> None:
    rows: list[Row] = []
    for name, step, count, first in parts:
        rows += [(name, first + step * at, "a") for at in range(count)]
    assert_alike(rows)


def test_a_chain_of_a_thousand_steps_and_one_that_breaks_in_its_middle() -> None:
    chain: list[Row] = [("keep", 0, ""), *(("fits", at, "") for at in range(1000))]
    assert_alike(chain)
    assert_alike([*chain[:500], *chain[501:]])


def test_numbers_that_depend_on_all_before_are_settled_too() -> None:
    assert_alike([("count", 0, "")] * 300)
    assert_alike([("keep", 1, ""), *[("exchange", 0, ""), ("count", 0, "")] * 150])
