"""Golden bytes of the specification: what is read of them, what is refused, and the page they become."""

from __future__ import annotations

import pytest

from replispec.compiler.check.citations import check_citations
from replispec.compiler.emit.docs.examples import examples_document
from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.message import Field, Given, Message, Model, Place, SpecificationError, When
from replispec.compiler.read.examples import read_examples
from replispec.compiler.read.yaml_source import parse_yaml

PLACE = Place("proto/sample.proto", 1)
EXAMPLE = """\
messages:
  - name: a pair
    message: Pair
    given: {version: 1}
    clause: SAMPLE-PAIR-1
    bytes:
      - 00 05 | the number, in two bytes
      - 00 00 00 01 00 07 | one part
      - ff | the rest
    fields:
      number: 5
      late: null
      parts: [{left: 7}]
      rest: 'ff'
"""


def model() -> Model:
    """A pair with parts, a field of a later version, and bytes."""
    made = Model("sample")
    fields = (
        Field("number", 1, "int32", "", PLACE, size=2),
        Field("late", 2, "int32", "", PLACE, size=2, when=When("version", 2, None)),
        Field("parts", 3, "Part", "", PLACE, repeated=True, is_message=True, count=4),
        Field("rest", 4, "bytes", "", PLACE, length="rest"),
    )
    given = (Given("version", 1, 2),)
    made.messages["Pair"] = Message("Pair", "sample", "", PLACE, "BINARY", fields, given=given)
    part = (Field("left", 1, "int32", "", PLACE, size=2),)
    made.messages["Part"] = Message("Part", "sample", "", PLACE, "BINARY", part)
    made.messages["Text"] = Message("Text", "sample", "", PLACE, "JSON", ())
    return made


def test_an_example_is_bytes_with_reasons_and_plain_values() -> None:
    (example,) = read_examples(parse_yaml(EXAMPLE, "vectors/sample.yaml"), model())
    assert example.data == bytes.fromhex("0005 00000001 0007 ff")
    assert example.groups[0] == (b"\0\5", "the number, in two bytes")
    assert example.values == {"number": 5, "late": None, "parts": [{"left": 7}], "rest": b"\xff"}
    assert (example.given, example.place.line) == ({"version": 1}, 2)


def test_the_page_shows_the_groups_of_bytes() -> None:
    examples = list(read_examples(parse_yaml(EXAMPLE, "vectors/sample.yaml"), model()))
    page = examples_document(examples, {"vectors/sample.yaml": b""})
    assert "`Pair`, version 1; 9 bytes." in page
    assert "| `00 00 00 01 00 07` | one part |" in page


def test_an_example_cites_clauses_and_only_those_that_exist() -> None:
    examples = list(read_examples(parse_yaml(EXAMPLE, "vectors/sample.yaml"), model()))
    clause = ClauseSpec("SAMPLE-PAIR-1", "It is a pair.", "REQUIRED", "ours", "This test", "", {}, PLACE)
    assert check_citations({clause.id: clause}, model(), {}, {}, {}, examples) == {
        clause.id: ["example: a pair"]
    }
    with pytest.raises(
        SpecificationError, match=r"sample\.yaml:2: the clause 'SAMPLE-PAIR-1' is not defined"
    ):
        check_citations({}, model(), {}, {}, {}, examples)


FAULTS = [
    (
        "message: Pair",
        "message: Text",
        r"sample\.yaml:3: no binary message is named 'Text'\. name one of spec/proto",
    ),
    ("version: 1", "release: 1", r"sample\.yaml:4: unknown option 'release'"),
    ("{version: 1}", "{}", r"sample\.yaml:2: Pair is not given its version\. write given: \{version: 1\}"),
    ("00 05 |", "00 5 |", r"sample\.yaml:6: '00 5' are no bytes\. write pairs of hexadecimal digits"),
    ("| one part", "", r"sample\.yaml:6: nothing is said about '00 00 00 01 00 07'\. say what it is"),
    ("number: 5", "figure: 5", r"sample\.yaml:11: Pair has no field 'figure'\. name fields of the message"),
    ("number: 5", "number: five", r"sample\.yaml:11: this is no value of number\. give int32"),
    ("number: 5", "number: null", r"sample\.yaml:11: this is no value of number\. give int32"),
    ("left: 7", "right: 7", r"sample\.yaml:13: Part has no field 'right'"),
    ("rest: 'ff'", "rest: 'fg'", r"sample\.yaml:14: 'fg' are no bytes"),
]


@pytest.mark.parametrize(("old", "new", "says"), FAULTS)
def test_a_faulty_example_is_refused_at_its_line_with_advice(old: str, new: str, says: str) -> None:
    assert EXAMPLE.count(old) == 1
    tree = parse_yaml(EXAMPLE.replace(old, new), "vectors/sample.yaml")
    with pytest.raises(SpecificationError, match=says):
        list(read_examples(tree, model()))
