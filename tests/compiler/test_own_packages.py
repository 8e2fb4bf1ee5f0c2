"""What becomes of our own protobuf packages, and what the compiler refuses in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from replispec.compiler.own_messages import compile_own
from replispec.compiler.read.own_messages import own_packages
from tests.compiler.specification import SPEC, changed

NAME = "replispec.thing.v1"
ENUM = "// Colours.\nenum Colour {\n  COLOUR_UNSPECIFIED = 0;\n  COLOUR_RED = 1;  // like blood\n}\n"
# A message whose only field is in the place of %s.
ONE_FIELD = "// A thing.\nmessage Thing {\n  // What it has.\n  %s\n}\n"


def written(target: Path, body: str, package: str = NAME) -> Path:
    """A specification below `target` with one package of our own, `thing`."""
    path = target / "proto/replispec/thing/v1/thing.proto"
    path.parent.mkdir(parents=True)
    path.write_text(f'// Things.\nsyntax = "proto3";\n\npackage {package};\n\n{body}', "utf-8")
    return target / "proto"


REFUSALS = [
    pytest.param(
        ONE_FIELD % "double size = 1;",
        r"thing\.proto:9: Thing\.size is a double\. use one of bool, bytes, int32, int64, string",
        id="a type that is not walked",
    ),
    pytest.param(
        ONE_FIELD % "map<string, sint32> sizes = 1;",
        r"thing\.proto:9: Thing\.sizes is a sint32\. use one of",
        id="such a type in a map",
    ),
    pytest.param(
        f"{ONE_FIELD % 'Part part = 1;'}// A part.\nmessage Part {{}}\n",
        r"thing\.proto:9: Thing\.part is a message that one runtime drops when it is empty\. say `optional`",
        id="a message that may get lost",
    ),
    pytest.param(
        ONE_FIELD % "optional Thing inner = 1;",
        r"thing\.proto:7: Thing can hold itself\. readers need a known depth",
        id="a message that holds itself",
    ),
    pytest.param(
        ONE_FIELD % "map<string, Part> parts = 1;"
        + "// A part.\nmessage Part {\n  repeated Thing all = 1; // of\n}",
        r"thing\.proto:7: Thing can hold itself",
        id="a message that holds itself through a map",
    ),
    pytest.param(
        ONE_FIELD % "message Inner {}",
        r"thing\.proto:7: Thing defines a type inside itself\. define it beside",
        id="a type inside a message",
    ),
    pytest.param(
        ONE_FIELD % "bool load = 1;",
        r"thing\.proto:9: Thing\.load hides a method of one runtime\. give the field another name",
        id="the name of a method",
    ),
    pytest.param(
        "// A thing.\nmessage Thing {\n  bool good = 1;\n}\n",
        r"thing\.proto:8: Thing\.good is not explained\. write what it means",
        id="a field without a word",
    ),
    pytest.param(
        "message Thing {}\n", r"thing\.proto:6: Thing is not explained", id="a message without a word"
    ),
    pytest.param(
        ENUM.replace("  // like blood", ""),
        r"thing\.proto:9: COLOUR_RED is not explained",
        id="a value without a word",
    ),
    pytest.param(
        ENUM.replace("COLOUR_RED", "RED"),
        r"thing\.proto:9: RED does not start with COLOUR_\. enum values are scoped",
        id="a value without prefix",
    ),
    pytest.param(
        ENUM.replace("COLOUR_UNSPECIFIED", "COLOUR_BLUE"),
        r"thing\.proto:8: Colour starts with COLOUR_BLUE\. start with COLOUR_UNSPECIFIED = 0",
        id="a default that says something",
    ),
    pytest.param(
        'import "google/protobuf/timestamp.proto";\n',
        r"thing\.proto:6: imports google/protobuf/timestamp\.proto\. a package of our own stands alone",
        id="an import",
    ),
    pytest.param(
        ONE_FIELD % "bool good = 1;" + "service Making {\n  rpc Make(stream Thing) returns (Thing);\n}\n",
        r"thing\.proto:11: has the service Making\. messages travel over pipes",
        id="a service",
    ),
    pytest.param(
        ONE_FIELD % "bool good",
        r"^proto/replispec/thing/v1/thing\.proto:10:1: Missing field number\.",
        id="what protoc refuses",
    ),
]


@pytest.mark.parametrize(("body", "says"), REFUSALS)
def test_a_package_has_only_what_both_runtimes_do_alike(tmp_path: Path, body: str, says: str) -> None:
    proto = written(tmp_path, body)
    with pytest.raises(SpecificationError) as refusal:
        compile_own(proto, own_packages(proto))
    assert re.search(says, str(refusal.value)), str(refusal.value)


def test_a_package_is_named_like_its_folder(tmp_path: Path) -> None:
    proto = written(tmp_path, ENUM, package="replispec.things.v1")
    with pytest.raises(
        SpecificationError, match=r"thing\.proto:4: the package is replispec\.things\.v1\. name it like"
    ):
        compile_own(proto, ["thing"])


def test_a_folder_that_says_nothing_about_a_foreign_wire_is_our_own() -> None:
    assert own_packages(SPEC / "proto") == ["adapter", "event", "trace"]


def test_a_package_becomes_modules_for_two_runtimes_and_a_page(tmp_path: Path) -> None:
    outputs = compile_own(written(tmp_path, ENUM + ONE_FIELD % "repeated Colour colours = 3;"), ["thing"])
    home = "replispec/thing/v1"
    # Neither replispec/__init__.py nor replispec/thing/__init__.py: both would hide other rooms.
    assert sorted(outputs) == [
        "docs/thing.md",
        "replispec/thing/py.typed",
        f"{home}/__init__.py",
        f"{home}/messages.py",
        f"{home}/thing_pb2.py",
        f"{home}/thing_pb2.pyi",
    ]
    dataclasses = outputs[f"{home}/messages.py"].decode()
    assert dataclasses.startswith(
        "# @generated by `make generate` from spec/proto/replispec/thing/v1/thing.proto"
    )
    assert '    colours: "list[Colour]" = betterproto.enum_field(3)\n' in dataclasses
    assert "| 3 | colours | list of [Colour](#colour) | What it has. |" in outputs["docs/thing.md"].decode()
    assert [name for name, content in outputs.items() if str(tmp_path).encode() in content] == []


def test_no_package_of_our_own_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "proto/replispec").mkdir(parents=True)
    assert compile_own(tmp_path / "proto", own_packages(tmp_path / "proto")) == {}


def test_a_renamed_field_is_renamed_for_both_runtimes_and_on_the_page(tmp_path: Path) -> None:
    file = "proto/replispec/event/v1/event.proto"
    copy = changed(tmp_path, file, "string register_check_code = 2;", "string check_code = 2;")
    outputs = compile_own(copy / "proto", ["event"])
    for name in ("replispec/event/v1/messages.py", "replispec/event/v1/event_pb2.pyi", "docs/event.md"):
        text = outputs[name].decode()
        assert "register_check_code" not in text
        assert "check_code" in text
