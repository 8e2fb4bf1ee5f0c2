"""What the compiler refuses in our own protobuf packages.

Two runtimes read and write these messages, and the strict reader walks their bytes before either sees
them. So the packages use only what both runtimes do alike, and what can be walked to a known depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from google.protobuf import descriptor_pb2

from replispec.compiler.check.python_names import check_word
from replispec.compiler.model.message import Place, SpecificationError

_Kind = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    _Kind.TYPE_BOOL: "bool",
    _Kind.TYPE_BYTES: "bytes",
    _Kind.TYPE_INT32: "int32",
    _Kind.TYPE_INT64: "int64",
    _Kind.TYPE_STRING: "string",
    _Kind.TYPE_UINT32: "uint32",
    _Kind.TYPE_UINT64: "uint64",
}
KINDS = {**SCALARS, _Kind.TYPE_ENUM: "enum", _Kind.TYPE_MESSAGE: "message"}
# Methods of betterproto's messages: a field of this name would hide them.
_TAKEN = {
    "dump",
    "from_dict",
    "from_json",
    "from_pydict",
    "is_set",
    "load",
    "parse",
    "to_dict",
    "to_json",
    "to_pydict",
}
_PACKAGE, _IMPORT, _MESSAGE, _ENUM, _SERVICE, _FIELD, _VALUE = 2, 3, 4, 5, 6, 2, 2


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A .proto of ours as protoc parsed it, with its comments (path of descriptor.proto -> text)."""

    parsed: descriptor_pb2.FileDescriptorProto
    comments: dict[tuple[int, ...], str] = field(default_factory=dict)
    lines: dict[tuple[int, ...], int] = field(default_factory=dict)

    def place(self, *path: int) -> Place:
        """Where the element at `path` stands."""
        return Place(f"proto/{self.parsed.name}", self.lines.get(path, 0))

    def about(self, *path: int) -> str:
        """The comment before or after the element at `path`, on one line; empty when there is none."""
        return self.comments.get(path, "")

    def messages(self) -> Iterator[tuple[int, descriptor_pb2.DescriptorProto]]:
        """The messages with their numbers."""
        return enumerate(self.parsed.message_type)


def read_file(parsed: descriptor_pb2.FileDescriptorProto) -> OwnFile:
    """The file with its comments found."""
    read = OwnFile(parsed)
    for location in parsed.source_code_info.location:
        path = tuple(location.path)
        read.lines[path] = location.span[0] + 1
        text = location.leading_comments or location.trailing_comments
        read.comments[path] = " ".join(text.split())
    return read


def check_files(files: Iterable[OwnFile]) -> None:
    """Raise SpecificationError for the first thing that our own packages may not have."""
    for file in files:
        _check_file(file)
        depths: dict[str, set[str]] = {}
        for number, message in file.messages():
            depths[f".{file.parsed.package}.{message.name}"] = _check_message(file, number, message)
        _check_depth(file, depths)
        for number, enum in enumerate(file.parsed.enum_type):
            _check_enum(file, number, enum)


def _check_file(file: OwnFile) -> None:
    folder = file.parsed.name.rsplit("/", 1)[0].replace("/", ".")
    if file.parsed.package != folder:
        raise SpecificationError(
            file.place(_PACKAGE),
            f"the package is {file.parsed.package}",
            f"name it like its folder: {folder}",
        )
    for name in folder.split("."):
        check_word(name, file.place(_PACKAGE))
    for number, imported in enumerate(file.parsed.dependency):
        raise SpecificationError(
            file.place(_IMPORT, number),
            f"imports {imported}",
            "a package of our own stands alone: repeat what it needs",
        )
    for number, service in enumerate(file.parsed.service):
        raise SpecificationError(
            file.place(_SERVICE, number),
            f"has the service {service.name}",
            "messages travel over pipes and in files only",
        )


def _check_message(file: OwnFile, number: int, message: descriptor_pb2.DescriptorProto) -> set[str]:
    """Check one message; the full names of the messages that it holds."""
    _documented(file, (_MESSAGE, number), message.name)
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    if message.enum_type or len(entries) < len(message.nested_type):
        raise SpecificationError(
            file.place(_MESSAGE, number),
            f"{message.name} defines a type inside itself",
            "define it beside the message: each runtime names inner types in its own way",
        )
    held = set()
    for position, item in enumerate(message.field):
        path = (_MESSAGE, number, _FIELD, position)
        name = f"{message.name}.{item.name}"
        check_word(item.name, file.place(*path))
        if item.name in _TAKEN:
            raise SpecificationError(
                file.place(*path), f"{name} hides a method of one runtime", "give the field another name"
            )
        in_oneof = item.HasField("oneof_index") and not item.proto3_optional
        if not in_oneof or item.type != _Kind.TYPE_MESSAGE:
            _documented(file, path, name)
        entry = entries.get(item.type_name.rsplit(".", 1)[-1]) if item.type_name else None
        for each in entry.field if entry else [item]:
            _check_type(file, path, name, each)
            if each.type == _Kind.TYPE_MESSAGE:
                held.add(each.type_name)
        repeated = item.label == _Kind.LABEL_REPEATED
        if item.type == _Kind.TYPE_MESSAGE and not (repeated or item.HasField("oneof_index")):
            raise SpecificationError(
                file.place(*path),
                f"{name} is a message that one runtime drops when it is empty",
                "say `optional`, or put it into a oneof",
            )
    return held


def _check_type(file: OwnFile, path: tuple[int, ...], name: str, item: _Kind) -> None:
    if item.type not in KINDS:
        spelt = _Kind.Type.Name(item.type).removeprefix("TYPE_").lower()
        raise SpecificationError(
            file.place(*path), f"{name} is a {spelt}", f"use one of {', '.join(sorted(SCALARS.values()))}"
        )


def _check_depth(file: OwnFile, held: dict[str, set[str]]) -> None:
    """Refuse a message that can hold itself: readers walk to a known depth."""
    for number, (start, first) in enumerate(held.items()):
        reached: set[str] = set()
        waiting = list(first)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += held.get(name, ())
        if start in reached:
            name = start.rsplit(".", 1)[-1]
            raise SpecificationError(
                file.place(_MESSAGE, number), f"{name} can hold itself", "readers need a known depth"
            )


def _check_enum(file: OwnFile, number: int, enum: descriptor_pb2.EnumDescriptorProto) -> None:
    _documented(file, (_ENUM, number), enum.name)
    prefix = "".join("_" + c if c.isupper() else c for c in enum.name).strip("_").upper() + "_"
    for position, value in enumerate(enum.value):
        path = (_ENUM, number, _VALUE, position)
        if not value.name.startswith(prefix):
            raise SpecificationError(
                file.place(*path),
                f"{value.name} does not start with {prefix}",
                "enum values are scoped to the package: prefix them",
            )
        if position == 0 and value.name != f"{prefix}UNSPECIFIED":
            raise SpecificationError(
                file.place(*path),
                f"{enum.name} starts with {value.name}",
                f"start with {prefix}UNSPECIFIED = 0: it is what a field that nobody set says",
            )
        if position:
            _documented(file, path, value.name)


def _documented(file: OwnFile, path: tuple[int, ...], name: str) -> None:
    if not file.about(*path):
        raise SpecificationError(
            file.place(*path),
            f"{name} is not explained",
            "write what it means in a comment before or after it",
        )
