"""Frames that fit together, first frames, runs, messages within messages: a sample, and what is refused."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from replispec.compiler.check.messages import check_model
from replispec.compiler.generate import generate
from replispec.compiler.model.message import AnswersFrame, Field, Message, Model, SpecificationError
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.exchanges import Exchange, ExchangeForm, OpenRequests
from tests.compiler.specification import SPEC
from tests.compiler.test_binary_refusals import PLACE, message, number


def inner(name: str, kind: str, **options: Any) -> Field:
    """A field that holds another message."""
    return number(name, type=kind, is_message=True, **{"size": 0, **options})


def rest() -> Field:
    """The body of a frame."""
    return number("body", type="bytes", size=0, length="rest")


def frames(**said: str) -> list[Message]:
    """Two frames of which the second one answers the first, as `said`."""
    options = {"frame": "Ask", "number": "pair", "code": "what", "version": "", "failed": "bad", **said}
    ask = message("Ask", number("pair"), number("what"), rest())
    return [ask, message("Reply", number("pair"), number("bad"), rest(), answers=AnswersFrame(**options))]


END = message("End", number("e", equals=-1))
FAULTS: list[tuple[list[Message], str]] = [
    ([message("M", number("a"), opens=True)], r"M opens no stream\. name it, as stream"),
    (frames(frame="Nobody"), r"Reply answers 'Nobody', which does not exist\. name a message"),
    (frames(number="other"), r"Reply: Ask has no number 'other'\. name a field that both frames have"),
    (frames(code=""), r"Reply: nothing of Ask says what is asked for\. name its field, as code: \.\."),
    (frames(code="body"), r"Reply: Ask has no number 'body'\. name a field of it"),
    (frames(version="when"), r"Reply: Ask has no number 'when'\. name a field of it"),
    (frames(failed="worse"), r"Reply: Reply has no number 'worse'\. name a field of it"),
    ([message("M", number("a"), number=-1)], r"M has a number, but no frame pairs by one\. drop it"),
    ([*frames(), message("M", number("a"), number=-1), message("N", number("a"), number=-1)],
     r"M has the number -1, as N \(proto/sample\.proto:7\) has\. give one of them another number"),
    ([message("M", number("a", type="string", size=0, prefix=2, among=(1,)))],
     r"M\.a: only a number is one of some\. drop among"),
    ([message("M", number("a", optional=True), number("b"))], r"M\.a may be absent, and others follow\. put"),
    ([message("M", inner("a", "M"))], r"M\.a: M lies within itself\. make it a list"),
    ([message("M", inner("a", "N")), message("N", inner("b", "M"))], r"M\.a: M lies within itself\. make it"),
    ([message("M", inner("a", "N", size=4)), message("N", number("b"))],
     r"M\.a: a message ends where it ends\. drop size"),
    ([message("M", inner("a", "N", repeated=True, until="N")), message("N", number("b"))],
     r"M\.a ends with 'N', which is no message of constants\. name one"),
    ([message("M", number("a", size=0, until="End")), END], r"M\.a has no size\. give its bytes"),
    ([message("M", inner("a", "N", repeated=True, until="End", count=4)), message("N", number("b")), END],
     r"M\.a: nothing, or more than one thing, tells where it ends\. give one of size, prefix"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "says"), FAULTS)
def test_what_cannot_be_meant_is_refused_with_place_and_advice(parts: list[Message], says: str) -> None:
    model = Model("sample", {part.name: part for part in parts})
    with pytest.raises(SpecificationError, match=r"proto/sample\.proto:7: " + says):
        check_model(model)
    assert parts[0].place == PLACE


def test_frames_that_fit_together_are_taken() -> None:
    check_model(Model("sample", {part.name: part for part in frames()}))


PROTO = """
syntax = "proto3";
package replispec.sample.v1;
import "replispec/options/v1/options.proto";

// What is asked.
enum Asked {
  option (numbers) = {codes: true};
  ASKED_NOTHING = 0;
  ASKED_SAMPLE  = 7;
}
message Hello {
  option (on_wire) = { layout: BINARY  fixed: 1  stream: "ASKS"  opens: true };
  int32 kind = 1 [(wire) = {size: 1}];
}
message Ask {
  option (on_wire) = { layout: BINARY  fixed: 6  stream: "ASKS" };
  int32 size    = 1 [(wire) = {size: 2  measures: "after"  minimum: 4  maximum: 100}];
  int32 what    = 2 [(wire) = {size: 2}];
  int32 version = 3 [(wire) = {size: 2}];
  bytes body    = 4 [(wire) = {length: "rest"}];
}
message Reply {
  option (on_wire) = { layout: BINARY  answers: {frame: "Ask"  code: "what"  version: "version"} };
  bytes body = 1 [(wire) = {length: "rest"}];
}
message SampleRequest {
  option (on_wire) = { layout: BINARY  code: 7  kind: REQUEST  given: {name: "version"  first: 0  last: 3} };
  repeated string names = 1 [(wire) = {count: 2  prefix: 1  distinct: true}];
  repeated Part parts = 2 [(wire) = {until: "End"}];
}
message FormerAnswer {
  option (on_wire) = { layout: BINARY  code: 7  kind: RESPONSE  given: {name: "version"  first: 0  last: 1} };
  int32 value = 1 [(wire) = {size: 1  among: 2  among: 4}];
}
message LaterAnswer {
  option (on_wire) = { layout: BINARY  code: 7  kind: RESPONSE  given: {name: "version"  first: 2  last: 3} };
  Part part = 1;
  int32 last = 2 [(wire) = {size: 2  optional: true}];
}
message Part {
  option (on_wire) = { layout: BINARY  given: {name: "version"  first: 0  last: 9} };
  int32 left  = 1 [(wire) = {size: 1}];
  int32 right = 2 [(wire) = {size: 1  when: {field: "version"  minimum: 1}}];
}
message End {
  option (on_wire) = { layout: BINARY };
  int32 mark = 1 [(wire) = {size: 1  equals: -1}];
}
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """The generated modules of the sample."""
    spec = tmp_path_factory.mktemp("exchanges")
    shutil.copytree(SPEC / "proto/replispec/options", spec / "proto/replispec/options")
    folder = spec / "proto/replispec/sample/v1"
    folder.mkdir(parents=True)
    (folder / "sample.proto").write_text(PROTO)
    output, place = generate(spec), tmp_path_factory.mktemp("generated")
    found = {}
    for name in ("sample", "streams", "commands"):
        text = output[f"replispec/wire/sample/{name}.py"].decode()
        text = text.replace("replispec.wire.sample.", "exchanged_")
        found[name] = _loaded(place, f"exchanged_{name}", text)
    return found


def _loaded(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_pair_is_of_the_versions_in_which_its_answer_holds(modules: dict[str, ModuleType]) -> None:
    exchange, sample = modules["commands"].REPLY, modules["sample"]
    assert isinstance(exchange, Exchange)
    assert exchange.forms == (
        ExchangeForm(7, 0, 1, sample.SampleRequest, sample.FormerAnswer),
        ExchangeForm(7, 2, 3, sample.SampleRequest, sample.LaterAnswer),
    )


def test_where_there_is_no_number_order_alone_pairs(modules: dict[str, ModuleType]) -> None:
    exchange, sample = modules["commands"].REPLY, modules["sample"]
    pairing = OpenRequests(exchange, most=2)
    for version in (3, 0):
        pairing.ask(sample.Ask(7, version))
    later, former = (pairing.answered(sample.Reply(data)).message for data in (b"\1\2", b"\4"))
    assert (later, former) == (sample.LaterAnswer(sample.Part(1, 2)), sample.FormerAnswer(4))
    with pytest.raises(RemoteProtocolError, match="nobody waits"):
        pairing.answered(sample.Reply())


@pytest.mark.parametrize(
    ("data", "version", "fields"),
    [
        (b"\0\0\xff", 0, ([], [])),
        (b"\0\2\1a\0\1\2\3\4\xff", 1, (["a", ""], [(1, 2), (3, 4)])),
        (b"\0\1\1a\5\xff", 0, (["a"], [(5, None)])),
    ],
)
def test_texts_and_runs_are_read_and_written(
    modules: dict[str, ModuleType], data: bytes, version: int, fields: tuple[list[str], list[Any]]
) -> None:
    sample = modules["sample"]
    made = sample.SampleRequest(fields[0], [sample.Part(*part) for part in fields[1]])
    assert sample.SampleRequest.decode(data, version=version) == made
    assert made.encode(version=version) == data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\0\0", "parts: nothing ends it"),
        (b"\0\0\1", "parts: nothing ends it"),
        (b"\0\x09\0\0", "names: 9 bytes needed, 2 left"),
        (b"\0\2\1a\1a\xff", "names: an element stands twice"),
        (b"\xff\xff", "names: negative length -1"),
    ],
)
def test_texts_and_runs_that_break_off_are_blamed_on_the_peer(
    modules: dict[str, ModuleType], data: bytes, says: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        modules["sample"].SampleRequest.decode(data, version=0)


def test_an_element_that_looks_like_the_end_is_our_own_fault(modules: dict[str, ModuleType]) -> None:
    sample = modules["sample"]
    with pytest.raises(LocalProtocolError, match="an element looks like its end"):
        sample.SampleRequest(parts=[sample.Part(-1)]).encode(version=0)


def test_a_number_at_the_end_may_be_absent_but_not_cut(modules: dict[str, ModuleType]) -> None:
    later = modules["sample"].LaterAnswer
    assert later.decode(b"\1\2", version=2).last is None
    assert later.decode(b"\1\2\0\3", version=2).last == 3
    with pytest.raises(RemoteProtocolError, match="last: 2 bytes needed, 1 left"):
        later.decode(b"\1\2\0", version=2)


def test_the_first_frame_of_a_stream_is_one_that_opens_it(modules: dict[str, ModuleType]) -> None:
    stream = modules["streams"].ASKS
    assert [form.message for form in stream.first] == ["Hello"]
    assert [form.message for form in stream.forms] == ["Ask"]
    assert stream.opening.measure(b"\7", 0, 1) == 1
