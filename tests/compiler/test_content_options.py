"""What a field may be said to hold beside names."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.compiler.check.wire_options import check_wire_options
from replispec.compiler.model.message import Field, Message, Model, Place, SpecificationError

PLACE = Place("proto/sample.proto", 7)


def checked(kind: str, **options: Any) -> None:
    field = Field("a", 1, kind, "", PLACE, key="a", **options)
    check_wire_options(Model("small"), Message("M", "sample", "", PLACE, "JSON", (field,)))


def test_a_text_may_have_words_or_hold_something_else_than_names() -> None:
    checked("string", words=("ON", "OFF"))
    checked("string", holds="MESSAGE_IDS")


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("int32", {"words": ("ON",)}, r"M\.a: only a text has words"),
        ("string", {"words": ("ON",), "holds": "NUMBERS"}, r"M\.a: only a text has words"),
        ("string", {"holds": "ADDRESS"}, r"string cannot hold 'ADDRESS'\. write NUMBERS, MESSAGE_IDS, PROP"),
        ("int32", {"holds": "NUMBERS"}, r"int32 cannot hold 'NUMBERS'\. drop holds"),
    ],
)
def test_what_a_type_cannot_hold_is_refused(kind: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        checked(kind, **options)


def of_layout(layout: str, kind: str, **options: Any) -> None:
    field = Field("a", 1, kind, "", PLACE, key="a", **options)
    check_wire_options(Model("small"), Message("M", "sample", "", PLACE, layout, (field,)))


def test_a_fraction_and_keys_that_are_objects_stand_in_json_alone() -> None:
    of_layout("JSON", "double")
    of_layout("JSON", "map", map_key="string", map_value="double", object_keys=True)
    with pytest.raises(SpecificationError, match=r"M\.a: a double stands in JSON alone"):
        of_layout("HEADER_FIELDS", "double")
    with pytest.raises(SpecificationError, match=r"M\.a: object_keys are those of a JSON map"):
        of_layout("JSON", "map", map_key="int32", map_value="int64", object_keys=True)
    with pytest.raises(SpecificationError, match=r"M\.a: object_keys are those of a JSON map"):
        of_layout("JSON", "string", object_keys=True)
