"""What is emitted for fields that depend on a version, may be null, or hold a set or a map."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from replispec.compiler.generate import generate
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from tests.compiler.specification import SPEC

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
message Sample {
  option (on_wire) = { layout: BINARY  code: 7  kind: REQUEST  versions: "one@2.."
                       given: {name: "version"  first: 1  last: 3} };
  int32  kind              = 1 [(wire) = {size: 1}];
  int32  only_of_two       = 2 [(wire) = {size: 2  when: {field: "kind"  minimum: 2  maximum: 2}}];
  uint32 until_two         = 3 [(wire) = {size: 2  when: {field: "version"  maximum: 2}}];
  bool   between           = 4 [(wire) = {size: 1  minimum: 0  maximum: 1
                                          when: {field: "kind"  minimum: 3  maximum: 5}}];
  string name              = 5 [(wire) = {prefix: 2  nullable: true}];
  repeated uint32 numbers  = 6 [(wire) = {count: 4  size: 2  nullable: true}];
  repeated Part parts      = 7 [(wire) = {count: 2  nullable: true  distinct: true
                                          when: {field: "version"  minimum: 2}}];
  repeated int64 set       = 8 [(wire) = {count: 2  size: 8  distinct: true}];
}
message Part {
  option (on_wire) = { layout: BINARY  given: {name: "version"  first: 1  last: 9} };
  int32 left  = 1 [(wire) = {size: 2  identifies: true}];
  int32 right = 2 [(wire) = {size: 2  identifies: true}];
  int32 since = 3 [(wire) = {size: 4  when: {field: "version"  minimum: 3}}];
}
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the compiler makes of the sample."""
    spec = tmp_path_factory.mktemp("constructs")
    shutil.copytree(SPEC / "proto/replispec/options", spec / "proto/replispec/options")
    folder = spec / "proto/replispec/sample/v1"
    folder.mkdir(parents=True)
    (folder / "sample.proto").write_text(PROTO)
    return generate(spec)


@pytest.fixture(scope="module")
def sample(output: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The generated module of the sample."""
    path = tmp_path_factory.mktemp("generated") / "sample_of_constructs.py"
    path.write_bytes(output["replispec/wire/sample/sample.py"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


Make = Callable[..., Any]
# What a sample is: its fields, its version, its bytes.
FORMS: dict[str, tuple[Make, int, str]] = {
    "nothing but what is always there": (lambda _: {"until_two": 0}, 1, "00 0000 ffff ffffffff 0000"),
    "a number of one value of an earlier field": (
        lambda _: {"kind": 2, "only_of_two": -1, "until_two": 1},
        1,
        "02 ffff 0001 ffff ffffffff 0000",
    ),
    "an unsigned number": (lambda _: {"until_two": 65535}, 1, "00 ffff ffff ffffffff 0000"),
    "a number no longer there": (lambda _: {"parts": []}, 3, "00 ffff ffffffff 0000 0000"),
    "a truth between two values of an earlier field": (
        lambda _: {"kind": 5, "until_two": 0, "between": True},
        1,
        "05 0000 01 ffff ffffffff 0000",
    ),
    "an empty text, which is not null": (
        lambda _: {"until_two": 0, "name": ""},
        1,
        "00 0000 0000 ffffffff 0000",
    ),
    "numbers": (
        lambda _: {"until_two": 0, "numbers": [1, 65535]},
        1,
        "00 0000 ffff 00000002 0001 ffff 0000",
    ),
    "no numbers, which is not null": (
        lambda _: {"until_two": 0, "numbers": []},
        1,
        "00 0000 ffff 00000000 0000",
    ),
    "elements that are null": (lambda _: {"until_two": 0}, 2, "00 0000 ffff ffffffff ffff 0000"),
    "elements of the version that is passed on": (
        lambda module: {"parts": [module.Part(1, 2, since=9), module.Part(1, 3, since=8)]},
        3,
        "00 ffff ffffffff 0002 0001 0002 00000009 0001 0003 00000008 0000",
    ),
    "elements of an earlier version": (
        lambda module: {"until_two": 0, "parts": [module.Part(1, 2)]},
        2,
        "00 0000 ffff ffffffff 0001 0001 0002 0000",
    ),
    "a set of numbers": (
        lambda _: {"until_two": 0, "set": [-1, 1]},
        1,
        "00 0000 ffff ffffffff 0002 ffffffffffffffff 0000000000000001",
    ),
}


@pytest.mark.parametrize(("fields", "version", "text"), FORMS.values(), ids=FORMS)
def test_a_construct_is_written_and_read_back(
    sample: ModuleType, fields: Make, version: int, text: str
) -> None:
    message, data = sample.Sample(**fields(sample)), bytes.fromhex(text)
    assert message.encode(version=version) == data
    assert sample.Sample.decode(data, version=version) == message


REMOTE_FAULTS = [
    ("00 0000 fffe ffffffff 0000", 1, r"Sample\.name: negative length -2"),
    ("00 0000 ffff fffffffe 0000", 1, r"Sample\.numbers: negative length -2"),
    ("00 0000 ffff 7fffffff 0000", 1, r"Sample\.numbers: 2147483647 bytes needed"),
    ("05 0000 02 ffff ffffffff 0000", 1, r"Sample\.between: 2 is outside 0\.\.1"),
    (
        "00 ffff ffffffff 0002 0001 0002 00000009 0001 0002 00000008 0000",
        3,
        r"Sample\.parts: an element stands twice",
    ),
    (
        "00 0000 ffff ffffffff 0002 0000000000000001 0000000000000001",
        1,
        r"Sample\.set: an element stands twice",
    ),
    ("00 0000 ffff ffffffff 0000", 4, r"Sample: version: 4 is outside 1\.\.3"),
]


@pytest.mark.parametrize(("text", "version", "says"), REMOTE_FAULTS)
def test_bytes_that_break_a_construct_are_blamed_on_the_peer(
    sample: ModuleType, text: str, version: int, says: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        sample.Sample.decode(bytes.fromhex(text), version=version)


LOCAL_FAULTS: list[tuple[Callable[[Any], dict[str, Any]], int, str]] = [
    (lambda _: {}, 1, r"Sample\.until_two: .* it is None"),
    (lambda _: {"until_two": 0, "only_of_two": 1}, 1, r"Sample\.only_of_two: .* no room"),
    (lambda _: {"until_two": 0, "parts": []}, 1, r"Sample\.parts: .* no room"),
    (lambda _: {"until_two": 0, "numbers": [65536]}, 1, r"Sample\.numbers"),
    (lambda m: {"parts": [m.Part(1, 2, 0), m.Part(1, 2, 1)]}, 3, r"Sample\.parts: an element stands twice"),
    (lambda _: {"until_two": 0, "set": [1, 1]}, 1, r"Sample\.set: an element stands twice"),
    (lambda _: {"until_two": 0}, 0, r"Sample: version: 0 is outside 1\.\.3"),
]


@pytest.mark.parametrize(("fields", "version", "says"), LOCAL_FAULTS)
def test_values_that_break_a_construct_are_our_own_fault(
    sample: ModuleType, fields: Make, version: int, says: str
) -> None:
    with pytest.raises(LocalProtocolError, match=says):
        sample.Sample(**fields(sample)).encode(version=version)


def test_a_family_gets_only_what_it_has(output: dict[str, bytes]) -> None:
    """No streams, keys, clauses, machines or rules: no modules and pages of them; one table."""
    assert sorted(output) == [
        "docs/sample/messages/sample.md",
        "docs/sample/numbers.md",
        "replispec/wire/names.json",
        "replispec/wire/py.typed",
        "replispec/wire/sample/__init__.py",
        "replispec/wire/sample/codes.py",
        "replispec/wire/sample/commands.py",
        "replispec/wire/sample/sample.py",
    ]
    assert b"WIRE_KEYS" not in output["replispec/wire/sample/codes.py"]
    table = output["replispec/wire/sample/commands.py"].decode()
    assert 'VersionedForm(7, 1, 3, Releases("one", (2,), None), Sample)' in table


@pytest.mark.parametrize(
    "line",
    [
        "| only_of_two | 2 | int32 |  |  | There when kind is 2. |",
        "| until_two | 2 | uint32 |  |  | There when version is 2 or less. |",
        "| between | 1 | bool |  |  | Range 0..1. There when kind is 3 to 5. |",
        "| name | 2 (length), content | string |  |  | A length or number of -1: there is none. |",
        "| set | 2 (number), 8 each | list of int64 |  |  | No two elements agree in what identifies them. |",
        "| left | 2 | int32 |  |  | Identifies the element. |",
        "Layout: binary; code 7 (request); version 1 to 3; releases one@2...",
    ],
)
def test_the_documents_say_it_in_words(output: dict[str, bytes], line: str) -> None:
    assert line in output["docs/sample/messages/sample.md"].decode().splitlines()
