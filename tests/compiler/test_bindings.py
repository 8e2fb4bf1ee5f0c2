"""What binds the events of a machine to messages: what it becomes, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.family import compile_family
from replispec.compiler.model.message import SpecificationError
from tests.compiler.bound_family import FILES, bound_model, compiled, write

CALLER = "statemachines/bound/caller.yaml"
UNTOLD = "  untold:  {message: NameRequest, fields: {}}\n"
REFUSED = [
    (
        "codes: Told.BUSY",
        "codes: Told.DONE",
        "busy and counted are both the answer 0 to CountRequest",
        "one of",
    ),
    ("codes: Told.BUSY", "codes: Told.FULL_ONCE", "are both the answer 8 to CountRequest", "leave it to one"),
    ("codes: Told.BUSY", "codes: Told.LOST", "Told has no value 'LOST'", "known here: BUSY"),
    ("codes: Told.BUSY", "codes: 7", "'7' is no value of an enum", "write ENUM.NAME"),
    (", unanswered: true", "", "no event is its answer that is unanswered", "answer_to: CountRequest"),
    (", otherwise: true", "", "does not say which answers it is", "give codes: "),
    (
        "{message: NameResponse, codes: Told.DONE}",
        "{message: NameResponse}",
        "does not say which",
        "give codes",
    ),
    ("      total: header.total\n", "", "nothing says where counted.total comes from", "write from: {total:"),
    (
        "      total: header.total",
        "      total: header.sum",
        "the header has no field 'sum'",
        "known here: total",
    ),
    (
        "      total: header.total",
        "      total: local.own",
        "the local has no field 'own'",
        "known here: own_id",
    ),
    (
        "      total: header.total",
        "      total: body.ids",
        "counted.total is list int64 or none",
        "type int64",
    ),
    (
        "      total: header.total",
        "      total: header.total\n      sum: total",
        "has no field 'sum'",
        "fields: total",
    ),
    ("    if: header.name != none\n", "", "untold and told are both NameRequest", "tell them apart"),
    ("    if: header.name != none", "    if: header.name", "the condition is string or none", "of type bool"),
    ("    if: header.name != none", "    otherwise: true", "NameRequest is a request", "only answers have"),
    ("message: CountResponse", "message: Count", "no message is named 'Count'", "spec/proto"),
    ("message: CountResponse", "message: Members", "Members is no header of a command", "bind a request"),
    (
        "answer_to: CountRequest, otherwise",
        "answer_to: CountResponse, otherwise",
        "is no request",
        "name a request",
    ),
    (
        "refused: {answer_to: CountRequest, otherwise: true}",
        "refused: {answer_to: CountRequest, otherwise: true, fields: {it: int64}, from: {it: header.total}}",
        "refused has fields, which not every answer has",
        "name its codes",
    ),
    (
        "{message: NameRequest, fields: {}}",
        "{message: NameRequest, fields: {}, origin: local}",
        "is local",
        "peer",
    ),
]


COUNTER = "statemachines/bound/counter.yaml"
LOG = "proto/replispec/noted/v1/noted.proto"
FULL = "{from: FULL, event: counted, to: FULL, do: [answer_count]"
NOT_HELD = [
    (COUNTER, "message: Entry", "message: Row", "no message of our own is named 'Row'", "below spec/proto"),
    (COUNTER, "cases: what", "cases: who", "Entry has no oneof 'who'", "name the oneof"),
    (COUNTER, "{case: count, fields", "{case: sum, fields", "Entry has no case 'sum'", "cases: count"),
    (COUNTER, "{by: amount}", "{by: sum}", "Count has no field 'sum', which is to hold counted.by", "add it"),
    (COUNTER, "{by: amount}", "{sum: amount}", "counted has no field 'sum'", "name one of its fields"),
    (COUNTER, "fields: {by: amount}", "derived: {amount: 'rule.x(1)'}", "Count has no field 'by'", "add it"),
    (
        LOG,
        "  int64 amount = 1;",
        "  int32 amount = 1;",
        "Count.amount cannot hold counted.by",
        "of this type",
    ),
    (
        LOG,
        "repeated int64 members",
        "int64 members",
        "Count.members cannot hold counted.members",
        "set int64",
    ),
    (LOG, "optional int64 least", "int64 least", "Count.least cannot hold counted.least", "optional for one"),
    (
        COUNTER,
        "    record: {case: count",
        "    about: x #",
        "counted changes what is remembered",
        "a record:",
    ),
    (
        COUNTER,
        "event: name_asked, to: FULL",
        "event: name_asked, to: EMPTY",
        "name_asked changes what is remembered",
        "record:",
    ),
    (COUNTER, "log: {message", "# {message", "counter has no log", "declare it by log:"),
    (COUNTER, "missing: Told.BUSY\n", "", "counter has no code for a request that lacks", "write missing:"),
    (COUNTER, "notes: {record_count: counted}\n", "", "nothing says what record_count does", "under answers"),
    (COUNTER, "notes: {record_count", "notes: {record_it", "no edge does 'record_it'", "effects: answer"),
    (
        COUNTER,
        "header: {total: total}",
        "header: {sum: total}",
        "CountResponse has no field 'sum'",
        "fields: total",
    ),
    (
        COUNTER,
        "header: {total: total}",
        "header: {total: members}",
        "total is int64, not set int64",
        "its type",
    ),
    (COUNTER, "header: {total: total}", "header: {total: event.x}", "has no field 'x'", "known here: before"),
    (
        COUNTER,
        "body: {ids: members}",
        "body: {ids: total}",
        "Members.ids is list int64, not int64",
        "its type",
    ),
    (
        COUNTER,
        "counts_as: answer_count",
        "counts_as: answer_it",
        "no answer is named 'answer_it'",
        "answers:",
    ),
    (COUNTER, "counts_as: answer_count, ", "", "releases of nothing", "give counts_as:"),
    (COUNTER, "remark: '{members} of", "remark: '{sum} of", "no variable is named 'sum'", "declare it"),
    (
        COUNTER,
        "header: {name: instance}",
        "header: {nobody: instance}",
        "has no field 'nobody'",
        "fields: name",
    ),
    (
        COUNTER,
        "{if: header.by != none and header.by > local.limit, code",
        "{code",
        "every request is",
        "give if:",
    ),
    (
        COUNTER,
        FULL,
        FULL.replace("answer_count", "answer_cost"),
        "nothing says what answer_cost",
        "under answers",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "fault", "advice"), NOT_HELD)
def test_what_a_log_or_an_answer_cannot_hold_is_refused_with_place_and_advice(
    file: str, old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    assert FILES[file].count(old) == 1
    write(tmp_path, {file: FILES[file].replace(old, new)})
    with pytest.raises(SpecificationError) as caught:
        compile_family(bound_model(), tmp_path)
    assert re.match(rf"{COUNTER}:[1-9][0-9]*: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


def test_two_events_of_one_record_are_refused(tmp_path: Path) -> None:
    text = FILES[COUNTER].replace("    fields: {}\n", "    fields: {}\n    record: {case: count}\n")
    write(tmp_path, {COUNTER: text})
    with pytest.raises(
        SpecificationError, match=r"name_asked and counted are both count\. tell them apart by marks"
    ):
        compile_family(bound_model(), tmp_path)


def test_requests_answers_and_records_of_instances_are_these(tmp_path: Path) -> None:
    text = compiled(tmp_path)["replispec/wire/bound/machines/counter_wire.py"]
    for part in (
        """\
    header = CountRequest.from_ext_fields(ext_fields)
    instance = "nobody" if header.name is None else header.name
    variables, local = instances.known(instance)
    if header.by is not None and header.by > local.limit:
        raise Refused(codes.Told.FULL, f"at most {local.limit}")
    body = Members.decode(data) if data else Members()
""",
        '    instance = asked_text(header.name, "counterName", _MISSING)\n',
        '                by=asked_for(header.by, "by", _MISSING),\n'.replace(
            "                ", "            "
        ),
        """\
    header = CountResponse(total=variables.total)
    body = Members(ids=sorted(variables.members))
    return Answer(codes.Told.DONE, header.to_ext_fields(), body.encode())
""",
        'return Answer(codes.Told.FULL, remark=f"{listed(variables.members)} of {instance}")',
        '"answer_full": ("answer_count", Releases("apache", (2, 0), None))',
        '(Counted, 8): (frozenset(("answer_full",)), True, _nothing),',
        """\
                    **({} if event.least is None else {"least": event.least}),
""",
        """\
                least=part.least if part.HasField("least") else None,
""",
    ):
        assert part in text


@pytest.mark.parametrize(("old", "new", "fault", "advice"), REFUSED)
def test_a_binding_that_does_not_hold_is_refused_with_place_and_advice(
    old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    assert FILES[CALLER].count(old) == 1
    write(tmp_path, {CALLER: FILES[CALLER].replace(old, new)})
    with pytest.raises(SpecificationError) as caught:
        compile_family(bound_model(), tmp_path)
    assert re.match(rf"{CALLER}:[1-9][0-9]*: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize("what", ["header", "body"])
def test_an_event_may_be_the_whole_header_or_body_and_nothing_else(what: str, tmp_path: Path) -> None:
    """No name stands in a reader that the reader does not define."""
    kinds = {"header": "CountResponse", "body": "Members"}
    caller = FILES[CALLER].replace("if: event.total > total", "if: total > 0")
    caller = caller.replace("{total: event.total}", "{total: total + 1}")
    begin, end = caller.index("    fields: {total"), caller.index("  told:\n")
    fields = f"    fields: {{whole: {kinds[what]}}}\n    from: {{whole: {what}}}\n"
    text = caller[:begin] + fields + caller[end:]
    write(tmp_path, {CALLER: text})
    read = compile_family(bound_model(), tmp_path)["replispec/wire/bound/machines/caller_wire.py"].decode()
    lines = {
        "header": "header = CountResponse.from_ext_fields(ext_fields)",
        "body": "body = Members.decode(data) if data else Members()",
    }
    assert f"            {lines[what]}\n            return Counted(whole={what})\n" in read


def test_the_generated_bindings_are_these(tmp_path: Path) -> None:
    text = compiled(tmp_path)["replispec/wire/bound/machines/caller_wire.py"]
    assert (
        """\
            return Counted(
                total=needed(header.total, "total"),
                members=needed(as_set(body.ids), "ids"),
                is_in=local.own_id in frozenset(body.ids or ()),
            )
"""
        in text
    )
    assert (
        """\
        case codes.Told.BUSY:
            return Busy()
        case None:
            return Busy()
        case _:
            return Refused()
"""
        in text
    )
    assert (
        """\
    header = NameRequest.from_ext_fields(ext_fields)
    if header.name is not None:
        return Told(name=header.name)
    return Untold()
"""
        in text
    )


def test_what_must_be_there_is_called_by_its_key(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            CALLER: FILES[CALLER]
            .replace("    if: header.name != none\n", "")
            .replace(UNTOLD, "")
            .replace("untold, ", "")
        },
    )
    text = compile_family(bound_model(), tmp_path)["replispec/wire/bound/machines/caller_wire.py"].decode()
    assert 'return Told(name=needed(header.name, "counterName"))' in text


def test_the_page_of_a_machine_says_what_its_events_are(tmp_path: Path) -> None:
    page = compiled(tmp_path)["docs/bound/machines/caller.md"]
    assert "the answer to `CountRequest`: `BUSY`, no answer that can be read" in page
    assert "`NameRequest` received, if `header.name != none`, with `name` = `header.name`" in page
