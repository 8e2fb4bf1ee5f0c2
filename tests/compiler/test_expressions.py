"""The guard language: what it says, what it refuses, what it becomes."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.compiler.language.check import Scope, type_of
from replispec.compiler.language.text import mutations, to_english, to_python, to_text
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, INT32, INT64, STRING, Type, parse_type
from replispec.runtime.primitives.bindings import as_set
from replispec.runtime.primitives.lists import list_of
from replispec.runtime.primitives.unknown import UNKNOWN, UnknownRead, is_none, with_entry, without_entries
from tests.compiler.small_family import small_model

PLACE = Place("guards.yaml", 7)
MODEL = small_model()
SCOPE = Scope(
    MODEL,
    may_miss=True,
    variables={
        "end": INT64,
        "epoch": INT32,
        "master": Type("int64", optional=True),
        "members": Type("set", item=INT64),
        "marks": Type("list", item=Type("message", "Mark")),
        "numbers": Type("list", item=INT64, optional=True),
        "names": parse_type("map int64 string", MODEL, PLACE),
        "name": STRING,
        "ready": BOOL,
    },
    event={
        "offset": INT64,
        "size": INT32,
        "who": Type("string", optional=True),
        "state": Type("enum", "SmallState"),
    },
    event_name="batch",
    rules={
        "point": RuleType({"marks": Type("list", item=Type("message", "Mark"))}, Type("int64", optional=True))
    },
)


def kind(text: str) -> str:
    return str(type_of(ex.parse(text, PLACE), SCOPE, PLACE))


def value(text: str, variables: dict[str, Any] | None = None, event: dict[str, Any] | None = None) -> Any:
    """What the Python of an expression evaluates to."""
    names = {
        "variables": SimpleNamespace(**(variables or {})),
        "event": SimpleNamespace(**(event or {})),
        "rules": SimpleNamespace(point=len),
        "UNKNOWN": UNKNOWN,
        "is_none": is_none,
        "as_set": as_set,
        "list_of": list_of,
        "with_entry": with_entry,
        "without_entries": without_entries,
    }
    return eval(to_python(ex.parse(text, PLACE)), names)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("event.offset + event.size", "int64"),
        ("event.size + epoch", "int32"),
        ("event.offset == end or end == 0", "bool"),
        ("master != none and master > 3", "bool"),
        ("master == none or master > 3", "bool"),
        ("not (master == none) and master in members", "bool"),
        ("event.state == SmallState.BUSY", "bool"),
        ("event.state in [SmallState.BUSY, SmallState.DONE]", "bool"),
        ("rule.point(marks) != none and rule.point(marks) < end", "bool"),
        ("union(members, only(end))", "set int64"),
        ("size(without(members, only(end)))", "int64"),
        ("size(names)", "int64"),
        ("listed(end)", "list int64"),
        ("first(master, end)", "int64"),
        ("event.who == 'x'", "bool"),
        ("0 <= event.offset < end", "bool"),
        ("none", "none"),
        ("unknown", "unknown"),
        ("end if ready else epoch", "int64"),
        ("name if ready else none", "string or none"),
        ("first(end if master == none else master, 0)", "int64"),
        ("set(numbers)", "set int64 or none"),
        ("elements(numbers)", "set int64"),
        ("get(names, master)", "string or none"),
        ("get(names, end) != none and get(names, end) == name", "bool"),
        ("put(names, end, name)", "map int64 string"),
        ("drop(names, members)", "map int64 string"),
    ],
)
def test_an_expression_has_a_type(text: str, wanted: str) -> None:
    assert kind(text) == wanted


@pytest.mark.parametrize(
    ("text", "fault", "advice"),
    [
        ("event.offzet > 0", "batch has no field 'offzet'", "known here: offset, size, state, who"),
        ("offset > 0", "no variable is named 'offset'", "a field of the event is event.NAME"),
        ("end", "is int64, not bool", "of type bool"),
        ("ready and end", "int64 stands where a condition is needed", "compare it"),
        ("name > 3", "is used on string", "use integers"),
        ("master > 3", "is used on int64 or none", "against none first"),
        ("end == none", "int64 is compared with none", "none only with what may be none"),
        ("end == name", "int64 is compared with string", "one type"),
        ("name in members", "string is looked up among int64", "same type"),
        ("end in name", "`in` looks into string", "list or set"),
        ("event.state == SmallState.LOST", "SmallState has no value 'LOST'", "known here: BUSY, DONE, IDLE"),
        ("event.state == Other.LOST", "no enum is named 'Other'", "SmallState"),
        ("rule.gap(marks) == none", "no rule is named 'gap'", "vectors under spec/vectors"),
        ("rule.point() == none", "given 0 arguments", "it takes: marks"),
        ("rule.point(members) == none", "marks of rule.point is set int64", "list Mark"),
        ("guard.lost", "no guard is named 'guard.lost'", "known here: none"),
        ("other.offset == 1", "where there is no other", "variables only"),
        ("size(end) == 1", "size of int64", "list or set"),
        ("only(master) == members", "only of int64 or none", "not none"),
        ("size(listed(master)) == 1", "listed of int64 or none", "not none"),
        ("end == 9223372036854775808", "is no 64-bit integer", "smaller number"),
        ("end if end else 0", "int64 stands where a condition is needed", "compare it"),
        ("(end if ready else name) == end", "either int64 or string", "one type"),
        ("elements(marks) == members", "elements of list Mark", "numbers or texts"),
        ("get(members, end) == none", "get of set int64", "a map that is not none"),
        ("get(names, name) == none", "get of map int64 string by string", "a key of type int64"),
        ("put(names, end, end) == names", "put of map int64 string is given int64", "give it string"),
        ("end in names", "`in` looks into map int64 string", "list or set"),
        ("header.name == name", "where there is no header", "binding of a message"),
        ("marks == marks", "list Mark is compared with list Mark", "one type"),
    ],
)
def test_a_mistyped_condition_is_refused_with_place_and_advice(text: str, fault: str, advice: str) -> None:
    from replispec.compiler.language.check import require

    with pytest.raises(SpecificationError) as caught:
        require(ex.parse(text, PLACE), BOOL, SCOPE, PLACE, f"{text!r}")
    assert re.match(r"guards\.yaml:7: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "event.offset.real",
        "(lambda: 1)()",
        "[x for x in members]",
        "end // 2",
        "end ** 2",
        "members[0]",
        "f'{end}'",
        "b'x' == name",
        "1_000 == end",
        "0x10 == end",
        "1.5 == end",
        "True",
        "end is none",
        "max(end)",
        "max(a=1, b=2)",
        "event.from",
        "-ready",
        "x := 1",
        "",
        "((((",
        "end == [1, 2]",
        "end in []",
        "end in [epoch]",
        "a." * 3000 + "b",
    ],
)
def test_what_is_outside_the_language_is_refused(text: str) -> None:
    with pytest.raises(SpecificationError, match=r"^guards\.yaml:7: "):
        type_of(ex.parse(text, PLACE), SCOPE, PLACE)


def test_the_python_of_an_expression_means_the_same() -> None:
    assert value("event.offset == end or end == 0", {"end": 5}, {"offset": 5}) is True
    assert value("end - (epoch - 1) * 2", {"end": 10, "epoch": 4}) == 4
    assert value("not (ready or end > 3) and end != -1", {"ready": False, "end": 2}) is True
    assert value("master == none", {"master": None}) is True
    assert value("without(union(members, only(end)), only(1))", {"members": frozenset({1}), "end": 2}) == {2}
    assert value("common(members, only(1)) == only(1)", {"members": frozenset({1, 2})}) is True
    assert value("first(master, end)", {"master": None, "end": 4}) == 4
    assert value("size(marks)", {"marks": (1, 2)}) == 2
    assert value("size(names)", {"names": {1: "a"}}) == 1
    assert value("listed(end)", {"end": 2}) == (2,)
    assert value("listed(end)", {"end": UNKNOWN}) is UNKNOWN
    assert value("end == unknown", {"end": UNKNOWN}) is True
    assert value("ready == false", {"ready": False}) is True
    assert value("rule.point(marks)", {"marks": [1]}) == 1
    assert value("end if ready else epoch", {"ready": False, "end": 1, "epoch": 2}) == 2
    assert value("elements(numbers)", {"numbers": None}) == frozenset()
    assert value("set(numbers)", {"numbers": [2, 2]}) == {2}
    assert value("set(numbers)", {"numbers": None}) is None
    assert value("get(names, end)", {"names": {1: "a"}, "end": 2}) is None
    assert value("put(names, end, name)", {"names": {1: "a"}, "end": 2, "name": "b"}) == {1: "a", 2: "b"}
    assert value("drop(names, only(1))", {"names": {1: "a", 2: "b"}}) == {2: "b"}


def test_entries_of_what_was_not_seen_are_not_known() -> None:
    assert value("put(names, end, name)", {"names": UNKNOWN, "end": 2, "name": "b"}) is UNKNOWN
    assert value("put(names, end, name)", {"names": {}, "end": 2, "name": UNKNOWN}) is UNKNOWN
    assert value("drop(names, only(1))", {"names": UNKNOWN}) is UNKNOWN
    assert value("get(names, end)", {"names": UNKNOWN, "end": 2}) is UNKNOWN


@pytest.mark.parametrize("text", ["master == none", "master != none", "not (master == none)"])
def test_nobody_can_tell_whether_what_was_not_seen_is_there(text: str) -> None:
    with pytest.raises(UnknownRead):
        value(text, {"master": UNKNOWN})
    assert value(text, {"master": 3}) is (text != "master == none")
    assert value(f"ready or {text}", {"ready": True, "master": UNKNOWN}) is True
    assert value("first(master, end)", {"master": UNKNOWN, "end": 4}) is UNKNOWN


def test_an_expression_reads_as_english() -> None:
    node = ex.parse("event.offset == end or master == none and not ready", PLACE)
    assert to_english(node) == "the event's `offset` is `end` or (`master` is absent and not `ready`)"


names = st.sampled_from(["end", "epoch"]).map(ex.Variable)
numbers = st.one_of(names, st.integers(-9, 9).map(ex.Literal), st.just(ex.EventField("offset")))
arithmetic = st.recursive(
    numbers, lambda inner: st.builds(ex.Arithmetic, st.sampled_from("+-*"), inner, inner), max_leaves=6
)
comparisons = st.builds(
    ex.Compare, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), arithmetic, arithmetic
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(ex.Not, inner),
        st.builds(ex.Conditional, inner, inner, inner),
        st.builds(
            ex.Logic, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple)
        ),
    ),
    max_leaves=6,
)


@given(conditions)
def test_the_text_of_an_expression_is_read_back_as_the_same(node: ex.Expression) -> None:
    assert ex.parse(to_text(node), PLACE) == node


@given(conditions, st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_python_and_text_agree_on_every_value(node: ex.Expression, end: int, epoch: int, offset: int) -> None:
    """The language's operators bind as Python's do: its own text, evaluated, gives the same."""
    names = {"variables": SimpleNamespace(end=end, epoch=epoch), "event": SimpleNamespace(offset=offset)}
    spelt = {"end": end, "epoch": epoch, "event": names["event"]}
    assert eval(to_python(node), dict(names)) == eval(to_text(node), spelt)


@given(conditions)
def test_every_mutation_differs_from_the_original_in_one_place_and_still_has_its_type(
    node: ex.Expression,
) -> None:
    mutants = [each.mutant for each in mutations(node)]
    assert node not in mutants
    assert len(set(mutants)) == len(mutants) > 0
    assert all(type_of(each, SCOPE, PLACE) == BOOL for each in mutants)


def test_the_mutations_of_a_guard_are_these() -> None:
    node = ex.parse("event.offset == end or end == 0", PLACE)
    assert [to_text(each.mutant) for each in mutations(node)] == [
        "event.offset == end and end == 0",
        "end == 0",
        "event.offset == end",
        "event.offset != end or end == 0",
        "event.offset == end or end != 0",
        "event.offset == end or end == 1",
        "event.offset == end or end == -1",
    ]


@pytest.mark.parametrize(
    "text", ["", "number", "list", "list of", "set set int64", "int64?", "int64 or nothing"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(SpecificationError, match="is no type"):
        parse_type(text, MODEL, PLACE)


@pytest.mark.parametrize(
    "text", ["int64", "string or none", "list Mark", "set int64", "SmallState", "map int64 string"]
)
def test_a_type_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_type(text, MODEL, PLACE)) == text
