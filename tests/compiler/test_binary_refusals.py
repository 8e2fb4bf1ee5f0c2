"""What is refused about fields that depend on a version, may be null, or hold a set or a map."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.compiler.check.messages import check_model
from replispec.compiler.model.message import (
    Enum,
    EnumValue,
    Field,
    Given,
    Message,
    Model,
    Place,
    SpecificationError,
    When,
)
from replispec.compiler.model.value_types import field_type

PLACE = Place("proto/sample.proto", 7)


def number(name: str, **options: Any) -> Field:
    """A field of two bytes with these options."""
    return Field(name, 1, options.pop("type", "int32"), "", PLACE, **{"size": 2, **options})


def message(name: str, *fields: Field, **options: Any) -> Message:
    """A binary message with these fields and options."""
    return Message(name, "sample", "", PLACE, options.pop("layout", "BINARY"), fields, **options)


def element(**options: Any) -> Field:
    """A counted list of the message Part."""
    return Field("parts", 1, "Part", "", PLACE, repeated=True, is_message=True, count=2, size=0, **options)


def codes(name: str) -> Enum:
    """An enum of codes with the value 7."""
    return Enum(name, "sample", "", PLACE, (EnumValue("SAMPLE", 7, "SAMPLE", "", PLACE),), codes=True)


ONE = Given("version", 1, 1)
LATER = When("version", 2, None)
FAULTS: list[tuple[list[Message | Enum], str]] = [
    ([message("M", number("a", when=LATER))],
     r"M\.a refers to 'version', which no earlier field has and nobody gives\. name a field"),
    ([message("M", number("a", when=When("b", 1, 1)), number("b"))],
     r"M\.a refers to 'b', which no earlier field has"),
    ([message("M", number("b", when=When("version", 1, 1)), number("a", when=When("b", 1, 1)), given=(ONE,))],
     r"M\.a: b decides nothing\. test a number that is always there"),
    ([message("M", number("a", when=When("version", None, None)), given=(ONE,))],
     r"M\.a: when without a bound always holds\. give minimum"),
    ([message("M", number("a", nullable=True))], r"M\.a: no length or count can be -1\. give prefix"),
    ([message("M", number("a", distinct=True))], r"M\.a is no list\. drop distinct"),
    ([message("M", number("a", repeated=True))], r"M\.a: no count tells how many numbers there are\. give"),
    ([message("M", number("a", type="string", repeated=True, count=2))],
     r"M\.a: nothing tells where a text ends\. give the bytes of its length, as prefix: 4"),
    ([message("M", element(distinct=True)), message("Part", number("a"))],
     r"nothing identifies a Part\. mark its keys with identifies: true"),
    ([message("M", element()), message("Part", number("a"), given=(ONE,))],
     r"M\.parts: nobody gives Part its version\. give it to M, or make it an earlier field"),
    ([message("M", element(), given=(Given("version", 0, 1),)), message("Part", number("a"), given=(ONE,))],
     r"M has version 0\.\.1, but Part only 1\.\.1\. widen the element's range"),
    ([message("M", number("a"), given=(ONE,), streams=("S",))],
     r"M is a frame of its own, so nobody gives it version\. put it into the frame as a field"),
    ([message("M", number("a", when=LATER), layout="JSON")], r"M is not BINARY\. drop given, when, nullable"),
    ([message("M", number("a"), codes=(7,), kind="REQUEST"), codes("Asked")],
     r"M has a code, but no version goes with it\. give it one, as given"),
    ([message("M", number("a"), codes=(7,), kind="REQUEST", given=(ONE,))],
     r"M: code 7 is not in an enum with option \(numbers\) = \{codes: true\}\. add it there"),
    ([codes("Asked"), codes("Wanted")], r"Asked and Wanted both hold the codes\. mark one of them"),
    ([message("M", number("a"), codes=(7,), kind="REQUEST", given=(Given("version", 0, 1),)),
      message("N", number("a"), codes=(7,), kind="REQUEST", given=(Given("version", 1, 2),)), codes("Asked")],
     r"N takes code 7, which M \(proto/sample\.proto:7\) has in the same releases"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "says"), FAULTS)
def test_a_construct_that_cannot_be_meant_is_refused_with_place_and_advice(
    parts: list[Message | Enum], says: str
) -> None:
    model = Model("sample")
    for part in parts:
        if isinstance(part, Enum):
            model.enums[part.name] = part
        else:
            model.messages[part.name] = part
    with pytest.raises(SpecificationError, match=r"proto/sample\.proto:7: " + says):
        check_model(model)


def test_one_code_may_be_two_messages_in_versions_that_do_not_meet() -> None:
    model = Model("sample")
    for name, version in (("M", 0), ("N", 1)):
        given = (Given("version", version, version),)
        model.messages[name] = message(name, number("a"), codes=(7,), kind="REQUEST", given=given)
    model.enums["Asked"] = codes("Asked")
    check_model(model)


@pytest.mark.parametrize(
    "options", [{"when": LATER}, {"type": "string", "size": 0, "prefix": 2, "nullable": True}]
)
def test_whoever_reads_what_may_be_absent_must_ask(options: dict[str, Any]) -> None:
    field = number("a", **options)
    holder = message("M", field, given=(ONE,))
    kind = field_type(field, holder, Model("sample"))
    assert kind is not None
    assert kind.optional
