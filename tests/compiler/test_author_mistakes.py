"""What an author of a specification may get wrong is refused with place and advice: never a traceback, never
wrong code without a word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from replispec.compiler.check.python_names import check_module
from replispec.compiler.evolution.behaviour import BEHAVIOUR
from replispec.compiler.evolution.compare import Difference
from replispec.compiler.evolution.verdict import Context, Reach
from replispec.compiler.evolution.walk import SpecNode
from replispec.compiler.family import compile_family
from replispec.compiler.generate import generate
from replispec.compiler.model.binding import RecordLog
from replispec.compiler.model.message import Place, SpecificationError
from tests.compiler import small_specification
from tests.compiler.bound_family import FILES, bound_model, write

COUNTER = "statemachines/bound/counter.yaml"
CALLER = "statemachines/bound/caller.yaml"
LOG = "proto/replispec/noted/v1/noted.proto"
BOUND = [
    (
        COUNTER,
        "record: {case: count, fields: {by: amount}}",
        "record: {case: count, fields: {by: amount}, marks: {amount: A, before: B}}",
        "amount and before both mark the event",
        "by one field",
    ),
    (
        COUNTER,
        "fields: {by: amount}",
        "fields: {by: amount}, derived: {amount: event.by}",
        "into amount",
        "its own",
    ),
    (
        COUNTER,
        "fields: {by: amount}",
        "fields: {by: amount}, derived: {members: event.by}",
        "Count.members cannot hold 'event.by', which is int64",
        "of this type",
    ),
    (
        LOG,
        "    Count count = 2;",
        "    int64 count = 2;",
        "Entry.count is no message",
        "make the case a message",
    ),
    (
        LOG,
        "  string name = 1;",
        "  int64 name = 1;",
        "Entry.name cannot hold the name of an instance",
        "string",
    ),
    (
        LOG,
        "  string name = 1;",
        "  repeated string name = 1;",
        "cannot hold the name of an instance",
        "string",
    ),
    (COUNTER, "instance: name}", "instance: count}", "cannot hold the name of an instance", "type string"),
    (
        COUNTER,
        "instance: name}",
        "instance: name, fields: {name: instance}}",
        "Entry.name is said already",
        "drop it",
    ),
    (
        COUNTER,
        "message: CountResponse\n    header: {total: total}\n    body: {ids: members}",
        "message: CountRequest",
        "CountRequest is not an answer",
        "kind RESPONSE",
    ),
    (
        COUNTER,
        "message: CountResponse\n    header: {total: total}\n    body: {ids: members}",
        "message: NameResponse",
        "NameResponse does not answer CountRequest, which is counted",
        "with code 1",
    ),
    (
        COUNTER,
        "message: NameRequest, header: {name: instance}",
        "message: NameResponse",
        "NameResponse is not a request of this side",
        "kind REQUEST",
    ),
    (
        COUNTER,
        "    header: {total: total}\n    body: {ids: members}",
        "    body: {ids: members}",
        "CountResponse must have total, and nothing says what it is",
        "write total: EXPRESSION",
    ),
    (
        COUNTER,
        "    body: {ids: members}",
        "    body: {}",
        "Members must have ids, and nothing says what it is",
        "write ids: EXPRESSION",
    ),
    (
        COUNTER,
        "    message: CountResponse\n    header: {total: total}\n    body: {ids: members}",
        "    by_release: {'apache@..': {message: CountResponse}}",
        "CountResponse must have total, and nothing says what it is",
        "write total: EXPRESSION",
    ),
    (
        COUNTER,
        "message: NameRequest, header: {name: instance}",
        "message: NameRequest",
        "NameRequest must have name, and nothing says what it is",
        "write name: EXPRESSION",
    ),
    (
        COUNTER,
        "header: {name: instance}",
        "header: {name: event.name}",
        "event.name is used where there is no event",
        "variables only",
    ),
    (
        COUNTER,
        "record_count: counted",
        "record_count: counted, answer_name: x",
        "answer_name is said in two ways",
        "two",
    ),
    (
        COUNTER,
        "do: [answer_name]}\n  - {from: FULL",
        "do: [answer_name, answer_name]}\n  - {from: FULL",
        "this edge answers answer_name and answer_name",
        "do one effect of answers",
    ),
    (
        COUNTER,
        "event: name_asked, to: EMPTY, do: [answer_name]",
        "event: name_asked, to: EMPTY",
        "name_asked is the request NameRequest, and this edge answers nothing",
        "do one effect of answers",
    ),
    (
        COUNTER,
        "answer_name: Told.DONE",
        "answer_name: Ask.NAME",
        "Ask.NAME is no code of an answer",
        "one enum",
    ),
    (
        COUNTER,
        "counts_as: answer_count",
        "counts_as: answer_full",
        "answer_full counts as another",
        "drop it",
    ),
    (
        COUNTER,
        "counts_as: answer_count",
        "counts_as: answer_name",
        "never answers what answer_name does",
        "same request",
    ),
    (
        COUNTER,
        "    instance: header.name\n",
        "",
        "name_asked is of no instance",
        "write instance: header.NAME",
    ),
    (
        COUNTER,
        "    instance: header.name\n",
        "    instance: header.name\n    if: header.name != none\n",
        "NameRequest is no event where the if of name_asked does not hold",
        "under refused:",
    ),
    (
        COUNTER,
        "before: total, least",
        "before: event.before, least",
        "fields of counted are made of each other",
        "message",
    ),
    (
        COUNTER,
        "by: header.by, members: elements(body.ids), before: total",
        "by: event.before, members: elements(body.ids), before: event.by",
        "fields of counted are made of each other",
        "from the message",
    ),
    (
        COUNTER,
        "remark: '{members} of",
        "remark: '{members of",
        "has a brace outside {..}",
        "write {expression}",
    ),
    (COUNTER, "header: {total: total}", "header: {total: let.x}", "let.x is not known here", "write it out"),
    (
        COUNTER,
        "  total:   int64\n",
        "  total:   int64\n  class: int64\n",
        "'class' is a word of Python",
        "another name",
    ),
    (
        COUNTER,
        "  total:   int64\n",
        "  total:   int64\n  none: int64\n",
        "'none' means something else",
        "another name",
    ),
    (
        COUNTER,
        "  total:   int64\n",
        "  total:   int64\n  instance: int64\n",
        "'instance' means something",
        "another",
    ),
    (COUNTER, "  limit: {type: int64", "  from: {type: int64", "'from' is a word of Python", "another name"),
    (
        CALLER,
        "    message: NameRequest\n    if",
        "    received_as: [{message: NameRequest}]\n    if",
        "if says nothing",
        "received_as",
    ),
    (
        CALLER,
        "    from: {name: header.name}\n",
        "    from: {name: header.name}\n    where: event.name == 'a'\n",
        "where says nothing of told here",
        "write if:",
    ),
    (
        CALLER,
        "codes: [Told.DONE, Told.FULL]",
        "codes: [Ask.NAME, Told.FULL]",
        "Ask.NAME is a request",
        "an answer",
    ),
    (
        CALLER,
        "    codes: [Told.DONE, Told.FULL]\n",
        "    codes: [Told.DONE, Told.FULL]\n    instance: header.x\n",
        "an answer has no instance",
        "drop instance:",
    ),
    (
        CALLER,
        "    codes: [Told.DONE, Told.FULL]\n",
        "    codes: [Told.DONE, Told.FULL]\n    body: NameRequest\n",
        "NameRequest is no body of CountResponse",
        "Members",
    ),
]
"""File, what stands there, what is written instead, and what the compiler says to it."""


@pytest.mark.parametrize(("file", "old", "new", "fault", "advice"), BOUND)
def test_a_mistake_in_a_machine_is_refused_with_place_and_advice(
    file: str, old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    assert FILES[file].count(old) >= 1
    write(tmp_path, {file: FILES[file].replace(old, new, 1)})
    with pytest.raises(SpecificationError) as caught:
        compile_family(bound_model(), tmp_path)
    assert re.match(r"statemachines/bound/\w+\.yaml:[1-9][0-9]*: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize("name", ["event", "variables", "state", "name_request", "final"])
def test_an_event_that_would_hide_another_name_in_its_module_is_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path, {CALLER: FILES[CALLER].replace("untold", name)})
    said = r"caller\.yaml:1: \w+ (would be two things .* rename it|is a name of .* and of .* another name)"
    with pytest.raises(SpecificationError, match=said):
        compile_family(bound_model(), tmp_path)


def test_fields_that_are_made_of_others_are_read_after_them(tmp_path: Path) -> None:
    """The one that is read from the message comes first, wherever the specification names it."""
    made = "by: event.before, members: elements(body.ids), before: event.least + 1, least: header.least"
    text = FILES[COUNTER].replace(
        "by: header.by, members: elements(body.ids), before: total, least: header.least", made
    )
    text = text.replace("before: int64, least: int64 or none", "before: int64, least: int64")
    write(tmp_path, {COUNTER: text, LOG: FILES[LOG].replace("  optional int64 least", "  int64 least")})
    module = compile_family(bound_model(), tmp_path)["replispec/wire/bound/machines/counter_wire.py"].decode()
    read = [module.index(f"    {name} = ") for name in ("least", "before")]
    assert read == sorted(read)
    assert "by=before" in module


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("set int64", "sorted(variables.members)"),
        ("list int64", "list(variables.members)"),
        ("set int64 or none", "None if variables.members is None else sorted(variables.members)"),
    ],
)
def test_a_variable_is_said_as_its_type_has_it(kind: str, said: str, tmp_path: Path) -> None:
    text = FILES[COUNTER].replace("members: {type: set int64}", f"members: {{type: {kind}}}")
    changed = ("members: set int64, before", f"members: {kind}, before")
    text = text.replace(*changed).replace(
        "elements(body.ids)", "set(body.ids)" if "set" in kind else "body.ids"
    )
    write(tmp_path, {COUNTER: text})
    module = compile_family(bound_model(), tmp_path)["replispec/wire/bound/machines/counter_wire.py"].decode()
    assert f"Members(ids={said})" in module


WIRE = [
    (
        "size: 8  unit: BYTES",
        "size: 8  minimum: 9  maximum: 3",
        "Pong.number is at least 9 and at most 3",
        "swap",
    ),
    (
        "size: 4  minimum: 0  maximum: 80",
        "size: 1  minimum: 0  maximum: 300",
        "300 does not fit 1 bytes",
        "more",
    ),
    (
        "size: 8  minimum: 0  maximum: 900  tells: true",
        "size: 8  tells: true",
        "tells frames apart, but has no",
        "equals",
    ),
    ("size: 8  unit: BYTES", "size: 8  equals: 3  minimum: 4", "is 3, outside its bounds", "drop them"),
    (
        "int64 number = 1 [(wire) = {size: 8  unit: BYTES}]",
        "int64 end = 1 [(wire) = {size: 8  unit: BYTES}]",
        "Pong.end: readers of binary messages have something else of this name",
        "another name",
    ),
    (
        "[(wire) = {optional: true  minimum: 1}]",
        "[(wire) = {size: 4}]",
        "size says nothing in a HEADER_FIELDS",
        "drop",
    ),
    ("int64 wish_id = 1;", 'int64 wish_id = 1 [(wire) = {key: " a"}];', "has the key ' a'", "without blanks"),
    (
        '{length: "size"}];\n',
        '{length: "rest"}];\n  int32 more = 4 [(wire) = {size: 4}];\n',
        "is the rest",
        "put it last",
    ),
    ("size: 8  unit: BYTES", 'size: 8  measures: "all"', "measures 'all'", "whole or after"),
    ("  string what = 1;", "  oneof x { string what = 1; }", "what is in a oneof", "optional: true"),
    ("  string what = 1;", "  string class = 1;", "'class' is a word of Python", "another name"),
    ("TONE_HIGH", "TONE_1", "'1' is no name of a value", "capital words"),
    (
        "orders: {HASH_16",
        "orders: {DECLARED: {hash_map: 16}, HASH_16",
        "DECLARED means something",
        "another name",
    ),
    (
        "  extended: small.ext\n",
        "  extended: small.ext\n  parts: [../dissector.py]\n",
        "no part '../dissector.py'",
        "parts: ",
    ),
]


@pytest.mark.parametrize(("old", "new", "fault", "advice"), WIRE)
def test_a_mistake_in_messages_or_what_a_family_declares_is_refused_with_place_and_advice(
    old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecificationError) as caught:
        generate(small_specification.write(tmp_path, [(old, new)]))
    assert re.match(
        r"(proto/replispec/small/v1/small\.proto:[1-9][0-9]*|families/small\.yaml\S*): ", str(caught.value)
    )
    assert fault in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("statemachines/small/x.yml", b"x: 1\n", "statemachines/small/x.yml: this is read by nobody"),
        ("statemachines/small/x.yaml/y", b"x: 1\n", "statemachines/small/x.yaml: this is read by nobody"),
        ("constants/small/x.yaml", b"constants: {A: " + b"9" * 5000 + b"}\n", "a number of 5000 digits"),
        ("proto/replispec/small/v1/x.proto", "// ö\n".encode("latin-1"), "x.proto"),
    ],
)
def test_a_file_that_nobody_reads_or_can_read_is_refused(
    name: str, content: bytes, fault: str, tmp_path: Path
) -> None:
    small_specification.write(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(SpecificationError) as caught:
        generate(tmp_path)
    assert fault in str(caught.value)


def test_invariants_without_streams_are_refused(tmp_path: Path) -> None:
    small_specification.write(tmp_path)
    (streams,) = tmp_path.glob("invariants/small/streams.yaml")
    streams.unlink()
    with pytest.raises(SpecificationError) as caught:
        generate(tmp_path)
    assert str(caught.value).startswith("invariants/small/streams.yaml: invariants, but no streams of events")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("from a import Told\n\n\nclass Told:\n    pass\n", "Told would be two things"),
        ("Event = int\nEvent = str\n", "Event would be two things"),
        ("x: int = 1\n\n\ndef x() -> None: ...\n", "x would be two things"),
        ("class Broker:\n    number: int\n    number: str\n", "number would be two things of one Broker"),
        ("import a\n\nfrom = 1\n", "this becomes 'from = 1', which is no Python"),
    ],
)
def test_generated_code_that_means_two_things_by_one_name_is_refused(text: str, fault: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(fault)):
        check_module(text, Place("statemachines/x.yaml", 1))


def test_what_may_be_none_and_has_a_maximum_is_read_as_it_is_written(tmp_path: Path) -> None:
    """A length of -1 lies outside of the bounds, and says that there is none."""
    name = "string name = 2 [(wire) = {prefix: 2  maximum: 255"
    made = generate(small_specification.write(tmp_path, [(name, f"{name}  nullable: true")]))
    text = made["replispec/wire/small/small.py"].decode()
    (refused,) = re.findall(r"size, at = read_nullable\(.*\n *if (.*):\n", text)
    assert [size for size in (-2, -1, 0, 255, 256) if eval(refused, {"size": size})] == [-2, 256]


@pytest.mark.parametrize(
    "after",
    [
        RecordLog("Other", "what", "name", {}),
        RecordLog("Entry", "other", "name", {}),
        RecordLog("Entry", "what", "other", {}),
    ],
)
def test_a_log_that_is_read_otherwise_breaks_what_was_written(after: RecordLog) -> None:
    node = SpecNode("machine", "counter", "counter", Place("x.yaml", 1), None, None)
    before = RecordLog("Entry", "what", "name", {})
    difference = Difference("changed", node, node, "log", "", before, after)
    assert BEHAVIOUR["machine", "log"](difference, cast("Context", None)).kind is Reach.WIRE
