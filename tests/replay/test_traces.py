"""What is traced once answers as the call itself does, and what cannot be traced says so."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.replay.machines.traces import (
    LEAVES_MAX,
    LESS,
    NUMBER_MAX,
    SAME,
    Asked,
    Expression,
    Path,
    Tree,
    UntraceableError,
    explore,
)
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead

STARTS = (0, 10, 30)
Call = Callable[[Any], object]


def asks_unknown(event: Any) -> object:
    try:
        return event.a < 3 and event.b + UNKNOWN > event.a
    except UnknownRead:
        return "unknown"


CALLS: dict[str, Call] = {
    "comparisons": lambda e: (e.a < e.b, e.a <= 5, e.a > e.b, e.b <= 5, e.a == e.b, e.a != 7),
    "sums": lambda e: e.a + e.b > 10 or e.a - 3 == e.b or 4 - e.a < -e.b,
    "least and greatest": lambda e: max(e.a, e.b) == e.a and min(e.a, e.b, 3) == 3,
    "truth": lambda e: bool(e.a) and not e.b,
    "chains": lambda e: 0 <= e.a < e.b <= 20,
    "search": lambda e: bisect_right(STARTS, e.a),
    "nothing there": lambda e: e.a == None or e.b in (1, 2, None),  # noqa: E711
    "unknown": asks_unknown,
}


def traced(call: Call) -> Tree[object]:
    return explore(
        lambda path: call(SimpleNamespace(a=path.number(("event", "a")), b=path.number(("event", "b"))))
    )


def value(expression: Expression, known: dict[str, int]) -> int:
    if isinstance(expression, int):
        return expression
    if expression[0] == "event":
        return known[expression[1]]
    left, right = value(expression[1], known), value(expression[2], known)
    return left + right if expression[0] == "+" else left - right


def answer(tree: Tree[object], known: dict[str, int]) -> object:
    while isinstance(tree, Asked):
        left, right = value(tree.question.left, known), value(tree.question.right, known)
        operator = tree.question.operator
        holds = left == right if operator == SAME else left < right if operator == LESS else left <= right
        tree = tree.yes if holds else tree.no
    return tree.outcome


@pytest.mark.parametrize("name", CALLS)
@given(a=st.integers(-3, 35), b=st.integers(-3, 35))
def test_a_tree_answers_as_its_call(name: str, a: int, b: int) -> None:
    assert answer(TREES[name], {"a": a, "b": b}) == CALLS[name](SimpleNamespace(a=a, b=b))


TREES = {name: traced(call) for name, call in CALLS.items()}


@pytest.mark.parametrize(
    "call",
    [
        lambda e: {1: 2}.get(e.a),
        lambda e: STARTS[e.a],
        lambda e: e.a * 2 > 4,
        lambda e: e.a % 2 == 0,
        lambda e: e.a < 0.5,
        lambda e: e.a < NUMBER_MAX + 1,
        lambda e: sum([e.a, e.a, e.a, e.a, e.a, e.a, e.a, e.a]) > 0,
        lambda e: [e.a == each for each in range(LEAVES_MAX)],
    ],
    ids=["looked up", "a place", "product", "remainder", "fraction", "too large", "too long", "too many"],
)
def test_what_needs_the_number_itself_is_not_traced(call: Call) -> None:
    with pytest.raises(UntraceableError):
        traced(call)


def test_a_question_is_asked_once() -> None:
    path = Path([])
    number = path.number(("event", "a"))
    assert number < 3
    assert number < 3
    assert number == number
    assert len(path.questions) == 1
