"""The value of what was not seen."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from replispec.runtime.primitives.unknown import (
    UNKNOWN,
    AtLeast,
    UnknownRead,
    Unseen,
    covers,
    is_none,
    is_same,
    key_of,
)

QUESTIONS: list[Callable[[Any, Any], Any]] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.contains,
    lambda left, _: bool(left),
    lambda left, _: hash(left),
    lambda left, _: list(left),
    lambda left, _: max(left, 1),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_about_it_is_not_answered(question: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(UnknownRead):
        question(UNKNOWN, 1)


@pytest.mark.parametrize("other", [0, "text", None, frozenset({1}), 1.5])
def test_known_values_do_not_equal_it_silently(other: object) -> None:
    with pytest.raises(UnknownRead):
        operator.eq(other, UNKNOWN)
    with pytest.raises(UnknownRead):
        operator.contains({1, 2}, UNKNOWN)


def test_arithmetic_on_it_is_unknown_again() -> None:
    assert (UNKNOWN + 1) is UNKNOWN
    assert (1 - UNKNOWN) is UNKNOWN
    assert (2 * UNKNOWN) is UNKNOWN
    assert UNKNOWN.union({1}) is UNKNOWN


def test_what_decides_alone_is_enough() -> None:
    known_end = 0
    assert known_end == 0 or known_end == UNKNOWN
    with pytest.raises(UnknownRead):
        assert known_end == UNKNOWN or known_end == 0


def test_there_is_one_of_it() -> None:
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN
    assert f"{UNKNOWN}" == "unknown"


def test_sameness_never_asks() -> None:
    assert is_same(UNKNOWN, UNKNOWN)
    assert not is_same(UNKNOWN, 1)
    assert not is_same(1, UNKNOWN)
    assert is_same(1, 1)


def test_an_unseen_event_has_every_field_and_no_magic() -> None:
    assert Unseen().anything is UNKNOWN
    assert not hasattr(Unseen(), "__length_hint__")


def test_a_lower_bound_answers_what_it_can_and_nothing_else() -> None:
    least = AtLeast(4)
    assert least != 3
    assert (least == 3) is False
    assert least > 3
    assert least >= 4
    assert not (least < 4)
    assert not (least <= 3)
    questions: list[Callable[[], object]] = [
        lambda: least == 4,
        lambda: least > 4,
        lambda: least <= 4,
        lambda: bool(least),
    ]
    for asked in questions:
        with pytest.raises(UnknownRead):
            asked()
    assert is_same(least + 1, AtLeast(5))
    assert not is_same(least, 4)


def test_a_lower_bound_stands_for_all_numbers_from_it_on() -> None:
    assert covers(AtLeast(4), 4)
    assert covers(AtLeast(4), AtLeast(5))
    assert not covers(AtLeast(4), 3)
    assert not covers(AtLeast(4), UNKNOWN)
    assert covers(UNKNOWN, AtLeast(4))


def test_whether_there_is_a_value_is_asked_only_of_what_was_seen() -> None:
    assert is_none(None)
    assert not is_none(0)
    with pytest.raises(UnknownRead):
        is_none(UNKNOWN)


def test_keys_of_values_are_the_same_only_where_the_values_are() -> None:
    values = [UNKNOWN, AtLeast(4), AtLeast(5), 4, None, "4", frozenset({4}), {1: "a"}, {1: "b"}, (4,)]
    for one, other in product(values, values):
        assert (key_of(one) == key_of(other)) == is_same(one, other), (one, other)
    assert key_of(AtLeast(4)) == key_of(AtLeast(4))
    assert len({key_of(each) for each in values}) == len(values)
