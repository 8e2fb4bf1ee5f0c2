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
