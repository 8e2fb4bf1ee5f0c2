"""protoc reads what it is asked for and what that imports: an edit elsewhere changes no answer of it."""

from __future__ import annotations

from replispec.compiler.read.descriptors import needed, proto_contents
from replispec.compiler.read.own_messages import own_packages
from tests.compiler.specification import SPEC

FILES = (
    ("a.proto", b'syntax = "proto3";\nimport public "b.proto"; import \'c.proto\';\nimport "missing.proto";'),
    ("b.proto", b'import weak "d.proto";'),
    ("c.proto", b'import "a.proto";'),
    ("d.proto", b""),
    ("e.proto", b'import "a.proto";'),
)


def test_imports_are_followed_through_others_and_in_circles() -> None:
    assert [name for name, _ in needed(FILES, ["a.proto"])] == ["a.proto", "b.proto", "c.proto", "d.proto"]
    assert needed(FILES, ["d.proto"]) == (FILES[3],)


def test_our_own_messages_need_no_family() -> None:
    proto = SPEC / "proto"
    own = tuple(f"replispec/{name}/" for name in own_packages(proto))
    contents = proto_contents(proto)
    names = [name for name, _ in contents if name.startswith(own)]
    assert names
    assert [name for name, _ in needed(contents, names)] == names
    assert len(contents) > len(names)
