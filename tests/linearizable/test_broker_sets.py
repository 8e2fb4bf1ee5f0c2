"""Which histories of a broker set must be refused, and which ones elections that nobody asked for explain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.linearizable.broker_sets import (
    AddressModel,
    Altered,
    Applied,
    Brokers,
    Elected,
    Granted,
    Holds,
    IdentitiesModel,
    Moved,
    NextId,
    Reached,
    Seen,
    SetSeen,
    View,
    ViewModel,
)
from tests.linearizable.checker import Model, Operation, contradiction

ONE, BOTH, OTHER = frozenset({1}), frozenset({1, 2}), frozenset({2})
MINE, YOURS = "127.0.0.1:1;1", "127.0.0.1:2;1"
FIRST = Elected(View(1, 1, 1, ONE))
GROWN = Altered(1, 1, 1, BOTH, "done")


def explains(model: Model[Any, Any], *said: Any) -> bool:
    """Whether these can be, one after the other; the last two side by side where one is a pair; what has no
    answer is in a list of its own."""
    operations, now = [], 0
    for each in said:
        now += 10
        if isinstance(each, list):
            operations.append(Operation(each[0], now))
        elif isinstance(each, set):
            operations += [Operation(one, now + place, now + 8 + place) for place, one in enumerate(each)]
        else:
            operations.append(Operation(each, now, now + 5))
    return contradiction(operations, model) is None


@pytest.mark.parametrize(
    "said",
    [
        [NextId(1), Applied(1, MINE, True), NextId(2), Applied(1, MINE, True), Brokers(ONE)],
        [Applied(1, MINE, True), Applied(1, YOURS, False, 2), Holds(1, True), Holds(2, False)],
        [[Applied(1, MINE)], NextId(1), NextId(2), Brokers(None)],
        [[Applied(1, MINE)], Brokers(frozenset()), Applied(1, YOURS, True)],
        [{Applied(1, MINE, True), Applied(1, YOURS, False, 2)}],
    ],
)
def test_ids_are_granted_in_order(said: list[Any]) -> None:
    assert explains(IdentitiesModel(), *said)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([Applied(1, MINE, True), Applied(1, YOURS, True)], id="granted twice"),
        pytest.param([{Applied(1, MINE, True), Applied(1, YOURS, True)}], id="granted twice side by side"),
        pytest.param([Applied(1, MINE, True), NextId(1)], id="a stale read"),
        pytest.param([Applied(1, MINE, True), Brokers(frozenset())], id="an id that is lost"),
        pytest.param([Applied(1, MINE, True), Holds(1, False)], id="an id that is not known"),
        pytest.param([NextId(2)], id="an id that nobody got"),
        pytest.param([Applied(2, MINE, True)], id="not the next"),
        pytest.param([Applied(1, MINE, False, 1)], id="refused for no reason"),
        pytest.param([[Applied(1, MINE)], NextId(2), NextId(1)], id="happened and did not"),
    ],
)
def test_and_each_to_one(said: list[Any]) -> None:
    assert not explains(IdentitiesModel(), *said)


@pytest.mark.parametrize(
    ("said", "is_so"),
    [
        ([Granted("a"), Granted("b"), Reached("a"), Moved("c", True), Reached("c")], True),
        ([Granted("a"), [Moved("c")], Reached("a"), Reached("c")], True),
        ([Granted("a"), Moved("c", True), Reached("a")], False),
        ([Granted("a"), Moved("c", False)], False),
        ([Moved("c", True)], False),
    ],
)
def test_a_broker_is_reached_where_it_registered_last(said: list[Any], is_so: bool) -> None:
    assert explains(AddressModel(), *said) == is_so


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([FIRST, GROWN, Seen(View(1, 2, 1, BOTH))], id="a set that grows"),
        pytest.param([FIRST, GROWN, Seen(View(2, 3, 2, OTHER))], id="an election"),
        pytest.param([FIRST, Seen(View(2, 1, None, ONE)), Seen(View(3, 2, 1, ONE))], id="nobody leads"),
        pytest.param([FIRST, Seen(View(5, 3, 2, OTHER))], id="several elections"),
        pytest.param([FIRST, [GROWN], Seen(View(1, 1, 1, ONE)), Seen(View(1, 2, 1, BOTH))], id="late"),
        pytest.param([FIRST, [GROWN], Seen(View(2, 2, 2, OTHER))], id="never"),
        pytest.param([FIRST, Altered(1, 1, 1, BOTH, "another master"), Seen(View(2, 2, 2, OTHER))], id="why"),
        pytest.param([FIRST, GROWN, Altered(1, 1, 1, BOTH, "another set")], id="an older set"),
        pytest.param([FIRST, Altered(1, 2, 2, BOTH, "done"), Seen(View(2, 3, 1, BOTH))], id="a later office"),
        pytest.param([FIRST, SetSeen(View(0, 1, None, ONE)), SetSeen(View(0, 2, None, OTHER))], id="a set"),
    ],
)
def test_elections_explain_what_nobody_asked_for(said: list[Any]) -> None:
    assert explains(ViewModel(), *said)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([FIRST, GROWN, Seen(View(1, 1, 1, ONE))], id="a stale read"),
        pytest.param([FIRST, GROWN, Seen(View(1, 2, 1, ONE))], id="a lost update"),
        pytest.param([FIRST, {GROWN, Altered(1, 1, 1, ONE, "done")}], id="two changes of one set"),
        pytest.param([FIRST, Seen(View(2, 2, 2, OTHER)), GROWN], id="an old master changes it"),
        pytest.param([FIRST, Elected(View(1, 1, 2, OTHER))], id="two masters of one epoch"),
        pytest.param([Elected(View(2, 2, 2, OTHER)), Elected(View(1, 1, 1, ONE))], id="epochs go back"),
        pytest.param([FIRST, GROWN, Seen(View(2, 2, 2, OTHER))], id="an election from an older set"),
        pytest.param([FIRST, Seen(View(2, 2, 1, BOTH))], id="an election of a set of two"),
        pytest.param([FIRST, Altered(1, 1, 1, BOTH, "another set")], id="refused for no reason"),
        pytest.param([FIRST, GROWN, SetSeen(View(0, 1, None, ONE))], id="an older set is told"),
        pytest.param(
            [FIRST, Altered(1, 1, 1, BOTH, "another master"), Seen(View(1, 1, 1, ONE))], id="refused, stays"
        ),
    ],
)
def test_and_nothing_else(said: list[Any]) -> None:
    assert not explains(ViewModel(), *said)
