"""Variables of cases, comparing what came with what may come, and naming values in symptoms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.conformance.model import Matcher
from replispec.conformance.values import (
    MISSING,
    UnknownVariable,
    difference,
    filled,
    names_in,
    renamed,
    same,
    shown,
)

SAVED = {"epoch": "7", "id": 3, "flag": True, "none": None, "word": "abc", "list": [1]}


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("$epoch", "7"),
        ("$id", 3),
        ("$list", [1]),
        ("$epoch + 1", 8),
        ("$epoch - 10", -3),
        ("$id+1", 4),
        ("a ${word} of ${id}", "a abc of 3"),
        ("${flag}", "true"),
        ("<${none}>", "<>"),
        ("5 $ each", "5 $ each"),
        (["$id", {"k": "$word"}], [3, {"k": "abc"}]),
        ({"${word}": 1}, {"abc": 1}),
        (Matcher("above", "$id + 1"), Matcher("above", 4)),
        (5, 5),
    ],
)
def test_variables_are_put_in(written: object, sent: object) -> None:
    assert filled(written, SAVED) == sent


@pytest.mark.parametrize("written", ["$nobody", "${nobody}", "$word + 1", "$none - 1", "$list + 1"])
def test_a_variable_that_is_not_there_or_is_no_number_is_a_fault_of_the_case(written: str) -> None:
    with pytest.raises(UnknownVariable):
        filled(written, SAVED)


def test_every_variable_of_a_value_is_found() -> None:
    value = {"${a}": ["$b + 1", Matcher("not", "$c")], "x": ({"y": "${d} and ${e}"}, 5, None)}
    assert list(names_in(value)) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [("1", 1), (1, "1"), ("true", True), (False, "false"), (None, None), (MISSING, None), ([1], [1])],
)
def test_values_are_the_same_as_the_wire_writes_them(found: object, wanted: object) -> None:
    assert same(found, wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("01", 1),
        ("", None),
        (None, ""),
        (MISSING, "nothing"),
        ("True", True),
        (1, True),
        (0, None),
        ([1], "[1]"),
    ],
)
def test_values_that_the_wire_writes_differently_are_not_the_same(found: object, wanted: object) -> None:
    assert not same(found, wanted)


TAGGED = [
    (Matcher("present", None), [0, "", [], False], [None, MISSING]),
    (Matcher("absent", None), [None, MISSING], [0, "", []]),
    (Matcher("not", 1), [2, "0"], [1, "1"]),
    (Matcher("not", [1, 2]), [[2, 1], [1]], [[1, 2], ["1", 2]]),
    (Matcher("one_of", [1, "x"]), ["1", 1, "x"], [2, "y", None, [1, "x"]]),
    (Matcher("one_of", [Matcher("above", 5), 1]), [6, 1], [5]),
    (Matcher("above", 5), [6, "6"], [5, "5", 4, None, MISSING, "six", [6]]),
    (Matcher("at_least", "5"), [5, "6"], [4, None, ""]),
    (Matcher("at_most", 5), [5, "-1"], [6, None]),
    (Matcher("set", [1, 2]), [[1, 2], [2, 1], ["2", 1]], [[1], [1, 2, 2], [1, 2, 3], None, "12", []]),
    (Matcher("set", []), [[], {}], [[1], None]),
    (Matcher("set", [{"id": 1}, {"id": 2}]), [[{"id": 2, "x": 0}, {"id": 1}]], [[{"id": 1}, {"id": 1}]]),
    (Matcher("has", [1]), [[2, 1], [1], {"1": 0}], [[2], [], None, "1"]),
    (Matcher("has", [1, 1]), [[1, 1]], [[1]]),
    (Matcher("has", 1), [[1]], [[2]]),
    (Matcher("lacks", [1, 2]), [[], [3], {"3": 1}], [[1], [3, 2], {"1": 3}, None]),
    (Matcher("each", {"a": 1}), [[], [{"a": 1}, {"a": "1", "b": 2}]], [[{"a": 2}], [{"a": 1}, {}], None, {}]),
    (Matcher("each", Matcher("above", 1)), [[2, "3"]], [[2, 1]]),
    (Matcher("all", [Matcher("above", 1), Matcher("not", 5)]), [2, "6"], [1, 5, "5", None]),
    (
        Matcher("all", [Matcher("each", {"a": 1}), [{"b": 1}, {"b": 2}]]),
        [[{"a": 1, "b": 1}, {"a": 1, "b": 2}]],
        [[{"a": 1, "b": 1}], [{"a": 2, "b": 1}, {"a": 1, "b": 2}], [], None],
    ),
    (Matcher("count", 2), [[1, 2], {"a": 1, "b": 2}], [[1], "ab", None]),
    (
        Matcher("ascending", "n"),
        [[], [{"n": 1}], [{"n": 1}, {"n": 5}]],
        [[{"n": 1}, {"n": 1}], [{"n": 2}, {"n": 1}]],
    ),
    (Matcher("ascending", "n"), [[{"n": -1}, {"n": 0}]], [[{"m": 1}], [{"n": "x"}, {"n": 2}], [1, 2], None]),
]


@pytest.mark.parametrize(("wanted", "fitting", "others"), TAGGED)
def test_a_tag_fits_what_its_row_of_the_table_says(
    wanted: Matcher, fitting: list[object], others: list[object]
) -> None:
    assert [each for each in fitting if difference(each, wanted, "x") is not None] == []
    assert [each for each in others if difference(each, wanted, "x") is None] == []


@pytest.mark.parametrize(
    ("found", "wanted", "told"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, None),
        ({"a": {"b": "2"}}, {"a": {"b": 2}}, None),
        ({"a": 1}, {}, None),
        ({"a": 1}, {"a": 2}, "header.a 1 instead of 2"),
        ({}, {"a": 2}, "header.a nothing instead of 2"),
        (None, {"a": 2}, "header nothing instead of fields"),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, "header.a 1 instead of 2"),
        ([1, 2], [1, 3], "header.1 2 instead of 3"),
        ([1], [1, 3], "header [1] instead of [1, 3]"),
        ([1, 2, 3], [1, 2], "header [1, 2, 3] instead of [1, 2]"),
        ("x", [1], "header x instead of [1]"),
        ({"a": [1]}, {"a": Matcher("lacks", [1])}, "header.a [1] instead of lacks [1]"),
        ({"a": 3}, {"a": Matcher("at_least", 4)}, "header.a 3 instead of at least 4"),
        ({"a": 3}, {"a": Matcher("absent", None)}, "header.a 3 instead of absent"),
        ({"a": [1, 3]}, {"a": Matcher("each", 1)}, "header.a.1 3 instead of 1"),
        ({"a": 3}, {"a": Matcher("each", 1)}, "header.a 3 instead of each 1"),
        ({"a": 3}, {"a": Matcher("all", [3, Matcher("above", 3)])}, "header.a 3 instead of above 3"),
        ({"a": True}, {"a": {"b": 1}}, "header.a true instead of fields"),
    ],
)
def test_the_first_difference_is_told_by_its_path(found: object, wanted: object, told: str | None) -> None:
    assert difference(found, wanted, "header") == told


def test_numbers_of_any_length_are_told_in_their_order() -> None:
    told = difference(["9" * 5000, 12, 7, "no"], Matcher("set", [7]), "ids")
    assert told is not None
    assert told.startswith("ids [7, 12, 9")


def test_values_in_symptoms_are_short() -> None:
    assert shown({"a": [1, None, {"b": False}], "c": Matcher("set", [1])}) == (
        "{a: [1, nothing, {b: false}], c: set [1]}"
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_fits_itself_and_no_present_value_is_absent(value: object) -> None:
    assert difference(value, value, "x") is None
    assert (difference(value, Matcher("absent", None), "x") is None) == (value is None)
    assert (difference(value, Matcher("not", value), "x")) is not None


def test_fresh_names_of_a_run_are_told_by_their_variables() -> None:
    variables = {
        "set": "set-0123456789",
        "address1": "127.1.2.3:1",
        "check1": "127.1.2.3:1;77",
        "now": 1700000000000,
    }
    text = "body set-0123456789 at 127.1.2.3:1;77, 127.1.2.3:1, 1700000000000"
    assert renamed(text, variables) == "body $set at $check1, $address1, $now"


def test_short_values_stay_unless_the_failed_step_mentions_them() -> None:
    variables = {"id": 23, "epoch": "2", "flag": False}
    assert renamed("[1, 23, 123, 2.5] is false", variables) == "[1, 23, 123, 2.5] is false"
    assert renamed("[1, 23, 123, 2.5]", variables, ["id"]) == "[1, $id, 123, 2.5]"
    assert renamed("epoch 2 instead of 23", variables, ["epoch", "id"]) == "epoch $epoch instead of $id"


def test_a_number_inside_a_longer_value_is_not_renamed() -> None:
    variables = {"address1": "127.1.2.3:1", "epoch": 1}
    assert renamed("127.1.2.3:1 instead of 1", variables, ["epoch"]) == "$address1 instead of $epoch"


def test_a_variable_without_a_value_renames_nothing() -> None:
    assert renamed("a b", {"x": None, "y": ""}, ["x", "y", "z"]) == "a b"
