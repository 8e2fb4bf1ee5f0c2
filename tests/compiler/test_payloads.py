"""What a machine says in messages of its own: what it becomes, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.family import compile_family
from replispec.compiler.model.message import Field, Message, Model, Place, SpecificationError
from tests.compiler.bound_family import bound_model, write

SPEAKER = "statemachines/bound/speaker.yaml"
CONSTANTS = "constants/bound/constants.yaml"
TEXT = """\
machine: speaker
about: Who says much.
states:
  TALKING: {initial: true, about: Nothing more.}
variables:
  total:   int64
  names:   {type: map int64 string}
  members: {type: set int64}
local:
  own_name: {type: string, about: Its own name.}
  size_of:  {type: int32, of: {total: int64}, about: How long a run is.}
sends:
  ask_again:
    NameRequest: {name: local.own_name}
views:
  shown:
    about: The members by name.
    message: Table
    fields:
      rows: {each: members, of: {id: each, name: 'get(names, each)'}}
events:
  asked:
    sends:
      CountRequest:
        by: total + 1
        name: local.own_name
        least: constant.LEAST
        body: {ids: members}
      NameRequest: null
  feed: {sends: {Run: {size: local.size_of(total)}}}
  due:  {origin: local, fields: {by: int64}}
transitions:
  - {from: TALKING, event: [asked, feed], to: TALKING}
  - {from: TALKING, event: due, to: TALKING, do: [ask_again], assign: {total: total + event.by}}
"""
LEAST = "constants: {LEAST: {value: 7, about: No less.}, WORD: {value: seven, about: A text.}}\n"
PLACE = Place("proto/bound.proto", 1)


def speaking_model() -> Model:
    """The bound family with a frame and a table."""
    model = bound_model()
    frame = (
        Field("kind", 1, "int32", "", PLACE, size=4, equals=2),
        Field("size", 2, "int32", "", PLACE, size=4),
        Field("body", 3, "bytes", "", PLACE, length="size"),
    )
    row = (Field("id", 1, "int64", "", PLACE, key="id"), Field("name", 2, "string", "", PLACE, key="name"))
    rows = Field("rows", 1, "Row", "", PLACE, repeated=True, is_message=True, key="rows")
    model.messages |= {
        "Run": Message("Run", "bound", "", PLACE, "BINARY", frame, fixed=8, head="it is sent alone"),
        "Row": Message("Row", "bound", "", PLACE, "JSON", row),
        "Table": Message("Table", "bound", "", PLACE, "JSON", (rows,)),
    }
    return model


def spoken(spec: Path, text: str = TEXT) -> dict[str, str]:
    """What the family becomes with this machine."""
    write(spec, {SPEAKER: text, CONSTANTS: LEAST})
    return {name: data.decode() for name, data in compile_family(speaking_model(), spec).items()}


REFUSED = [
    (
        "        by: total + 1\n",
        "        by: none\n",
        "CountRequest must have by, and nothing says what it is",
        "write by: EXP",
    ),
    (
        "        by: total + 1\n",
        "",
        "CountRequest must have by, and nothing says what it is",
        "write by: EXP",
    ),
    ("        by: total + 1", "        sum: total", "CountRequest has no field 'sum'", "fields: by, name"),
    (
        "        by: total + 1",
        "        by: local.own_name",
        "CountRequest.by is int64, not string",
        "its type",
    ),
    (
        "        by: total + 1",
        "        by: {each: members}",
        "CountRequest.by is int64, no message",
        "give an",
    ),
    ("least: constant.LEAST", "least: constant.WORD", "CountRequest.least is int64, not string", "its type"),
    ("constant.LEAST", "constant.MOST", "no constant is named 'MOST'", "known here: LEAST, WORD"),
    ("{ids: members}", "{}", "Members must have ids, and nothing says what it is", "write ids:"),
    ("{ids: members}", "{ids: total}", "Members.ids is list int64, not int64", "its type"),
    (
        "      NameRequest: null",
        "      NameRequest: {name: local.own_name}",
        "fields of 2 messages",
        "null to",
    ),
    ("  ask_again:\n", "  ask_twice:\n", "no edge does 'ask_twice'", "effects: ask_again"),
    ("local.own_name}\nviews", "event.total}\nviews", "due has no field 'total'", "known here: by"),
    ("size: local.size_of(total)", "size: local.size_of()", "size_of is given 0 arguments", "takes: total"),
    ("size: local.size_of(total)", "size: local.size(total)", "the role is not asked local.size", "size_of"),
    ("size_of(total)", "size_of(local.own_name)", "total of local.size_of is string", "value of type int64"),
    ("size: local.size_of(total)", "kind: 2", "Run must have body, and nothing says", "write body:"),
    ("{each: members,", "{each: total,", "each of int64", "give it a list or set"),
    ("of: {id: each,", "of: {id: names,", "Row.id is int64, not map int64 string", "its type"),
    ("    message: Table", "    message: Chair", "no message is named 'Chair'", "spec/proto"),
]


@pytest.mark.parametrize(("old", "new", "fault", "advice"), REFUSED)
def test_what_cannot_be_said_is_refused_with_place_and_advice(
    old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(SpecificationError) as caught:
        spoken(tmp_path, TEXT.replace(old, new))
    assert re.match(rf"{SPEAKER}:[1-9][0-9]*: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


def test_an_effect_that_is_called_like_an_event_that_sends_is_refused(tmp_path: Path) -> None:
    text = TEXT.replace("  ask_again:\n", "  asked:\n").replace("do: [ask_again]", "do: [asked]")
    with pytest.raises(SpecificationError, match="asked is an event that sends, and an effect"):
        spoken(tmp_path, text)


def test_each_message_that_is_sent_has_a_function(tmp_path: Path) -> None:
    text = spoken(tmp_path)["replispec/wire/bound/machines/speaker_wire.py"]
    for part in (
        "    def size_of(self, total: int, /) -> int: ...  # How long a run is.\n",
        """\
def asked(variables: Variables, local: Local) -> Call[CountRequest]:
    \"\"\"What is sent as asked.\"\"\"
    header = CountRequest(by=variables.total + 1, name=local.own_name, least=constants.LEAST)
    body = Members(ids=sorted(variables.members))
    return Call(codes.Ask.COUNT, header, body.encode())
""",
        """\
def feed(variables: Variables, local: Local) -> RunFixed:
    \"\"\"What is sent as feed, without what follows its part of fixed size.\"\"\"
    return RunFixed(kind=2, size=local.size_of(variables.total))
""",
        """\
def shown(variables: Variables, _local: Local) -> Table:
    \"\"\"The members by name.\"\"\"
    return Table(
        rows=[Row(id=each, name=entry_of(variables.names, each)) for each in sorted(variables.members)]
    )
""",
        """\
def ask_again(_variables: Variables, local: Local) -> Call[NameRequest]:
    \"\"\"What is sent to ask again.\"\"\"
    header = NameRequest(name=local.own_name)
    return Call(codes.Ask.NAME, header)
""",
    ):
        assert part in text


def test_the_page_of_a_machine_says_what_is_sent(tmp_path: Path) -> None:
    page = spoken(tmp_path)["docs/bound/machines/speaker.md"]
    assert "`by` = `total + 1`, `name` = `local.own_name`, `least` = `constant.LEAST`" in page
    assert "the part of fixed size: `size` = `local.size_of(total)`" in page
    assert "`Table`: `rows` = for each of `members` (`id` = `each`, `name` = `get(names, each)`)" in page
