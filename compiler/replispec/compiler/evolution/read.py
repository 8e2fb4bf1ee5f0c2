"""A folder of a specification in, a tree of every family out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2

from replispec.compiler.check.citations import check_citations
from replispec.compiler.check.messages import check_model
from replispec.compiler.check.own_messages import OwnFile, read_file
from replispec.compiler.evolution.declared import declared_parts
from replispec.compiler.evolution.walk import SpecNode, tree
from replispec.compiler.family import read_family
from replispec.compiler.model.invariant import EventStream
from replispec.compiler.model.message import Model, Place
from replispec.compiler.read.clauses import read_clauses
from replispec.compiler.read.coverage import read_coverage
from replispec.compiler.read.declared import check_declared, read_declared
from replispec.compiler.read.descriptors import proto_files, read_descriptors
from replispec.compiler.read.invariants import STREAMS_END, read_streams
from replispec.compiler.read.own_messages import own_packages
from replispec.compiler.read.protos import read_model
from replispec.compiler.read.yaml_source import read_yaml

_File = descriptor_pb2.FileDescriptorProto
_Kind = descriptor_pb2.FieldDescriptorProto
# What a family holds beside its objects: its name, and the bytes of its files.
_NOT_COMPARED: Final = ("configuration", "declared", "family", "model", "sources")
_MESSAGE, _ENUM, _PART = 4, 5, 2


class NoSpecification(Exception):
    """A folder or revision that holds no specification; the text says which and what is missing."""


@dataclass(frozen=True, slots=True)
class OwnField:
    """A field of one of our own messages, as protobuf's bytes know it."""

    name: str
    about: str
    place: Place
    number: int
    type: str
    label: str
    oneof: str


@dataclass(frozen=True, slots=True)
class OwnMessage:
    """One of our own messages."""

    name: str
    about: str
    place: Place
    fields: tuple[OwnField, ...]


@dataclass(frozen=True, slots=True)
class OwnValue:
    """A value of one of our own enums."""

    name: str
    about: str
    place: Place
    number: int


@dataclass(frozen=True, slots=True)
class OwnEnum:
    """One of our own enums."""

    name: str
    about: str
    place: Place
    values: tuple[OwnValue, ...]


def specification_folder(folder: Path) -> Path:
    """The folder with proto/ and statemachines/: `folder`, or spec/ in it. Raises NoSpecification."""
    for each in (folder, folder / "spec"):
        if (each / "proto" / "replispec").is_dir():
            return each
    raise NoSpecification(
        f"{folder}: no specification: neither proto/replispec nor spec/proto/replispec is there"
    )


def read_specification(spec: Path) -> dict[str, SpecNode]:
    """The tree of every family of the specification, our own packages among them, by name.

    Raises SpecificationError, with the place, for what does not compile.
    """
    own = own_packages(spec / "proto")
    names = sorted(path.name for path in (spec / "proto" / "replispec").iterdir() if path.is_dir())
    parsed = read_descriptors(spec / "proto", proto_files(spec / "proto"))
    trees = {name: _family(spec, parsed, name) for name in names if name not in {"options", *own}}
    return trees | {name: tree(name, parts) for name, parts in _own(parsed, own)}


def _family(spec: Path, parsed: Sequence[_File], name: str) -> SpecNode:
    model = read_model(parsed, name)
    declared = read_declared(spec, name)
    if (spec / declared.file).is_file():  # older specifications declare nothing
        check_declared(model, declared)
        model.declared = declared
    check_model(model)
    family = read_family(model, spec)
    parts: dict[str, Any] = {each.name: getattr(model, each.name) for each in fields(model)}
    parts |= {each.name: getattr(family, each.name) for each in fields(family)}
    parts["streams"] = _streams(spec, model) | {
        each.stream.name: each.stream for each in family.invariants.values()
    }
    trees = {
        path.as_posix(): read_yaml(path, spec) for path in sorted((spec / "clauses" / name).glob("*.yaml"))
    }
    covering = {path: trees.pop(path) for path in tuple(trees) if path.endswith("/coverage.yaml")}
    configuration = family.configuration
    parts |= {"roles": configuration.roles, "parameters": configuration.parameters}
    parts["groups"] = {each.title: replace(each, parameters=()) for each in configuration.groups}
    parts["ignored"] = {each.name: each for each in configuration.idle}
    parts["clauses"] = read_clauses(trees)
    parts["documents"] = {each.document: each for each in read_coverage(covering, parts["clauses"])}
    check_citations(
        parts["clauses"],
        model,
        family.machines,
        family.rules,
        family.invariants,
        family.examples,
        family.systems,
    )
    compared = {each: part for each, part in parts.items() if each not in _NOT_COMPARED}
    return tree(name, {**compared, **declared_parts(spec, name, declared)})


def _streams(spec: Path, model: Model) -> dict[str, EventStream]:
    """All streams of events, those too that no invariant watches."""
    paths = sorted((spec / "invariants" / model.family).glob(f"*{STREAMS_END}"))
    return {name: each for path in paths for name, each in read_streams(read_yaml(path, spec), model).items()}


def _own(parsed: Sequence[_File], packages: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for package in packages:
        inside = [read_file(each) for each in parsed if each.name.startswith(f"replispec/{package}/")]
        messages = [message for file in inside for message in _own_messages(file)]
        enums = [enum for file in inside for enum in _own_enums(file)]
        yield (
            package,
            {
                "messages": {each.name: each for each in messages},
                "enums": {each.name: each for each in enums},
            },
        )


def _own_messages(file: OwnFile) -> Iterator[OwnMessage]:
    for number, message in file.messages():
        here = (_MESSAGE, number)
        oneofs = [each.name for each in message.oneof_decl]
        found = tuple(
            OwnField(
                field.name,
                file.about(*here, _PART, at),
                file.place(*here, _PART, at),
                field.number,
                field.type_name.rsplit(".", 1)[-1] or _Kind.Type.Name(field.type),
                _Kind.Label.Name(field.label),
                oneofs[field.oneof_index] if field.HasField("oneof_index") else "",
            )
            for at, field in enumerate(message.field)
        )
        yield OwnMessage(message.name, file.about(*here), file.place(*here), found)


def _own_enums(file: OwnFile) -> Iterator[OwnEnum]:
    for number, enum in enumerate(file.parsed.enum_type):
        here = (_ENUM, number)
        values = tuple(
            OwnValue(value.name, file.about(*here, _PART, at), file.place(*here, _PART, at), value.number)
            for at, value in enumerate(enum.value)
        )
        yield OwnEnum(enum.name, file.about(*here), file.place(*here), values)
