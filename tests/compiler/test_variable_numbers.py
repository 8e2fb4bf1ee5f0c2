"""What is emitted for numbers of variable length and for checksums of what comes after them."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from types import ModuleType
from typing import Any

import pytest

from replispec.compiler.check.messages import check_model
from replispec.compiler.generate import generate
from replispec.compiler.model.message import Checksum, Field, Given, Message, Model, SpecificationError, When
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from tests.compiler.specification import SPEC
from tests.compiler.test_binary_refusals import PLACE, message, number

PROTO = """
syntax = "proto3";
package replispec.sample.v1;
import "replispec/options/v1/options.proto";

message Entry {
  option (on_wire) = { layout: BINARY };
  int32  length = 1 [(wire) = {size: 4  zigzag: true  measures: "after"}];
  int32  kind   = 2 [(wire) = {size: 1}];
  int64  delta  = 3 [(wire) = {size: 8  zigzag: true}];
  int32  step   = 4 [(wire) = {size: 4  zigzag: true  minimum: 0  maximum: 300}];
  bytes  key    = 5 [(wire) = {prefix: 4  zigzag: true  nullable: true}];
  string name   = 6 [(wire) = {prefix: 4  zigzag: true}];
  repeated Part parts = 7 [(wire) = {count: 4  zigzag: true  nullable: true}];
}
message Part {
  option (on_wire) = { layout: BINARY };
  int32 number = 1 [(wire) = {size: 4  zigzag: true}];
}
message Block {
  option (on_wire) = { layout: BINARY  fixed: 15  head: "readers look at it alone" };
  int64  start = 1 [(wire) = {size: 8}];
  uint32 crc   = 2 [(wire) = {size: 4  checksum: {over: "after"  mask: 0xffffffff  kind: CRC_32C}}];
  int32  marks = 3 [(wire) = {size: 2}];
  int32  more  = 4 [(wire) = {size: 1}];
  bytes  data  = 5 [(wire) = {length: "rest"}];
}
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the compiler makes of the sample."""
    spec = tmp_path_factory.mktemp("variable")
    shutil.copytree(SPEC / "proto/replispec/options", spec / "proto/replispec/options")
    folder = spec / "proto/replispec/sample/v1"
    folder.mkdir(parents=True)
    (folder / "sample.proto").write_text(PROTO)
    return generate(spec)


@pytest.fixture(scope="module")
def sample(output: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The generated module of the sample."""
    path = tmp_path_factory.mktemp("generated") / "sample_of_variable_numbers.py"
    path.write_bytes(output["replispec/wire/sample/sample.py"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# length | kind | delta | step | key | name | parts
FORMS = [
    ({}, "0c 00 00 00 01 00 01"),
    ({"delta": -1, "step": 1}, "0c 00 01 02 01 00 01"),
    ({"delta": 63}, "0c 00 7e 00 01 00 01"),
    ({"delta": 64}, "0e 00 8001 00 01 00 01"),
    ({"delta": -65}, "0e 00 8101 00 01 00 01"),
    ({"delta": (1 << 63) - 1}, "1e 00 feffffffffffffffff01 00 01 00 01"),
    ({"delta": -(1 << 63)}, "1e 00 ffffffffffffffffff01 00 01 00 01"),
    ({"step": 300}, "0e 00 00 d804 01 00 01"),
    ({"key": b"", "name": "ä"}, "10 00 00 00 00 04c3a4 01"),
    ({"key": bytes(70)}, "9a01 00 00 00 8c01" + "00" * 70 + " 00 01"),
    ({"parts": []}, "0c 00 00 00 01 00 00"),
]


@pytest.mark.parametrize(("fields", "text"), FORMS)
def test_numbers_of_variable_length_are_written_and_read_back(
    sample: ModuleType, fields: dict[str, Any], text: str
) -> None:
    entry, data = sample.Entry(**fields), bytes.fromhex(text)
    assert entry.encode() == data
    assert sample.Entry.decode(data) == entry


def test_elements_after_a_count_of_variable_length(sample: ModuleType) -> None:
    entry = sample.Entry(parts=[sample.Part(-1), sample.Part(1 << 20)])
    data = bytes.fromhex("16 00 00 00 01 00 04 01 80808001")
    assert entry.encode() == data
    assert sample.Entry.decode(data) == entry


REMOTE_FAULTS = [
    ("", r"Entry\.length: 1 bytes needed, 0 left"),
    ("80", r"Entry\.length: 2 bytes needed"),
    ("8c00 00 00 00 01 00 01", r"Entry\.length: a number is longer than it need be"),
    ("808080808001", r"Entry\.length: a number does not fit 4 bytes"),
    ("ffffffff1f", r"Entry\.length: a number does not fit 4 bytes"),
    ("1e 00 ffffffffffffffffff03 00 01 00 01", r"Entry\.delta: a number does not fit 8 bytes"),
    ("01", r"Entry\.length: negative length -1"),
    ("0e 00 00 00 01 00 01 00", r"Entry: 1 bytes are left over"),
    ("0a 00 00 00 01 00 01", r"Entry\.parts: 1 bytes needed, 0 left"),
    ("0c 00 00 01 01 00 01", r"Entry\.step: -1 is outside 0\.\.300"),
    ("0c 00 00 00 03 00 01", r"Entry\.key: negative length -2"),
    ("0c 00 00 00 01 01 01", r"Entry\.name: negative length -1"),
    ("0c 00 00 00 01 00 03", r"Entry\.parts: negative length -2"),
    ("14 00 00 00 01 00 feffffff0f", r"Entry\.parts: 2147483647 bytes needed"),
]


@pytest.mark.parametrize(("text", "says"), REMOTE_FAULTS)
def test_bytes_that_are_no_such_number_are_blamed_on_the_peer(
    sample: ModuleType, text: str, says: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        sample.Entry.decode(bytes.fromhex(text))


def test_a_number_that_does_not_fit_is_our_own_fault(sample: ModuleType) -> None:
    with pytest.raises(LocalProtocolError, match=r"Entry\.delta: 9223372036854775808 does not fit 8 bytes"):
        sample.Entry(delta=1 << 63).encode()


def test_a_checksum_of_what_comes_after_it_is_computed_and_compared(sample: ModuleType) -> None:
    data = sample.Block(start=1, marks=0x3132, more=0x33, data=b"456789").encode()
    assert data[8:12].hex() == "e3069283"
    assert sample.BlockFixed.crc_holds(b"x" + data + b"y", 1, 1 + len(data))
    assert sample.Block.decode(data).crc_holds
    assert sample.Block(crc=7).encode()[8:12].hex() == "00000007"
    assert not sample.Block(crc=7).crc_holds
    assert not sample.BlockFixed.crc_holds(data[:-1] + b"8", 0, len(data))


@pytest.mark.parametrize(
    "line",
    [
        "| delta | zigzag, at most 8 bytes of number | int64 |  |  |  |",
        "| key | zigzag (length), content | bytes |  |  | A length or number of -1: there is none. |",
        "| name | zigzag (length), content | string |  |  |  |",
        "| crc | 4 | uint32 |  |  | CRC-32C of all bytes after it, masked with 0xffffffff. |",
    ],
)
def test_the_documents_say_it_in_words(output: dict[str, bytes], line: str) -> None:
    assert line in output["docs/sample/messages/sample.md"].decode().splitlines()


SUM = Checksum("after", 0xFFFFFFFF, zero_unchecked=False, kind="CRC_32C")
BYTES = {"type": "bytes", "size": 0}
FAULTS: list[tuple[Message, str]] = [
    (message("M", number("a", zigzag=True)), r"M\.a: it stands for a number, a length or a count of 4 or 8"),
    (message("M", number("a", type="uint32", size=4, zigzag=True)), r"M\.a: it stands for a number"),
    (message("M", number("a", type="bytes", size=4, zigzag=True)), r"M\.a: it stands for a number"),
    (message("M", number("a", repeated=True, count=4, size=4, zigzag=True)), r"M\.a: it stands for a number"),
    (
        message("M", number("a", size=4, zigzag=True, when=When("v", 1, 1)), given=(Given("v", 1, 2),)),
        r"M\.a: a number of variable length is always there",
    ),
    (
        message("M", number("b"), number("a", size=4, zigzag=True, measures="after")),
        r"M\.a: such a number measures what comes after it in a message that is no frame\. put it first",
    ),
    (
        message("M", number("a", size=4, zigzag=True, measures="whole")),
        r"M\.a: such a number measures what comes after it",
    ),
    (
        message("M", number("b", prefix=2, **BYTES), number("a", type="uint32", size=4, checksum=SUM)),
        r"M\.a sums up what comes after it, but has no place of its own\. make it a uint32 of 4 bytes",
    ),
    (message("M", number("a", size=4, checksum=SUM)), r"M\.a sums up what comes after it"),
]


@pytest.mark.parametrize(("fault", "says"), FAULTS)
def test_what_cannot_be_meant_is_refused_with_place_and_advice(fault: Message, says: str) -> None:
    model = Model("sample", {fault.name: fault})
    with pytest.raises(SpecificationError, match=r"proto/sample\.proto:7: " + says):
        check_model(model)


def test_a_field_of_these_tests_stands_where_it_should() -> None:
    assert isinstance(number("a"), Field)
    assert number("a").place == PLACE
