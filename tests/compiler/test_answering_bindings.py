"""A machine that answers for itself: whole bodies, bytes and code of a request, what is asked once."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from replispec.compiler.family import compile_family
from replispec.compiler.model.message import SpecificationError
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines import broker_sends_wire
from tests.compiler.bound_family import bound_model, write

TELLER = """\
machine: teller
about: Who tells everybody.
states: {OPEN: {initial: true, about: It tells.}}
local:
  members: {type: Members or none, of: {name: string}, kept: true, about: Who is in it.}
  is_known: {type: bool, of: {name: string}, about: Whether anybody knows it.}
  is_full: {type: bool, of: {name: string}, about: Whether nobody else may come.}
missing: Told.BUSY
events:
  counted:
    message: CountRequest
    fields: {name: string, is_named: bool, is_full: bool}
    from:
      name: first(header.name, '')
      is_named: code == Ask.NAME
      is_full: local.is_full(first(header.name, ''))
    refused:
      - {if: "not local.is_known(first(header.name, ''))", code: Told.FULL, remark: nobody}
      - {if: "local.members(first(header.name, '')) == none", code: Told.FULL, remark: nothing}
      - {if: "local.is_full(first(header.name, ''))", code: Told.FULL, remark: full}
  named: {message: NameRequest, fields: {said: string}, from: {said: text(data)}}
answers:
  answer_count:
    {code: Told.DONE, message: CountResponse, header: {total: 0}, body: local.members(event.name)}
  answer_name: Told.DONE
transitions:
  - {from: OPEN, event: counted, to: OPEN, do: [answer_count]}
  - {from: OPEN, event: named, to: OPEN, do: [answer_name]}
"""
PATH = "statemachines/bound/teller.yaml"


def _made(spec: Path, text: str) -> str:
    write(spec, {PATH: text})
    made = compile_family(bound_model(), spec)
    return next(data.decode() for name, data in made.items() if name.endswith("teller_wire.py"))


def test_a_body_that_is_kept_is_written_by_whoever_keeps_it(tmp_path: Path) -> None:
    made = _made(tmp_path, TELLER)
    assert "def members(self, name: str, /) -> Kept[Members] | None: ..." in made
    assert "header.to_ext_fields(), encoded(local.members(event.name))" in made


def test_the_code_and_the_bytes_of_a_request_can_be_read(tmp_path: Path) -> None:
    made = _made(tmp_path, TELLER)
    assert "is_named=code == codes.Ask.NAME" in made
    assert "Named(said=" in made
    assert "text_of(data)" in made


def test_what_a_request_says_twice_is_read_once_and_asked_no_earlier(tmp_path: Path) -> None:
    made = _made(tmp_path, TELLER)
    assert made.count('header.name or ""') == 1
    assert made.count("local.is_full(name)") == 1
    assert made.index("if not local.is_known(name)") < made.index("is_full = local.is_full(name)")


def test_requests_that_differ_in_their_header_alone_are_read_by_one_function() -> None:
    made = inspect.getsource(broker_sends_wire)
    assert made.count("sending message is forbidden") == 1
    readers = broker_sends_wire.REQUESTS
    assert readers[RequestCode.SEND_MESSAGE] is not readers[RequestCode.SEND_MESSAGE_V2]


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("body: local.members(event.name)", "body: event.name", "the body of CountResponse"),
        (
            "{type: bool, of: {name: string}, about: Whether any",
            "{type: bool, kept: true, of: {name: string}, about: Whether any",
            "bool is kept",
        ),
        ("text(data)", "text(header.name)", "text of string or none"),
        ("said: text(data)", "said: data", "named.said"),
    ],
)
def test_what_is_no_body_and_no_text_is_refused(tmp_path: Path, before: str, after: str, fault: str) -> None:
    assert before in TELLER
    with pytest.raises(SpecificationError, match=fault):
        _made(tmp_path, TELLER.replace(before, after))
