"""From protobuf descriptors to the model: what protoc parsed, with our options and comments.

The options are read through a descriptor pool of their own, made from the request, so that the
compiler needs no generated module of the options and a copy of the specification may change them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from replispec.compiler.check.python_names import check_word
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import (
    AnswersFrame,
    Checksum,
    Enum,
    EnumValue,
    Field,
    Given,
    Message,
    Model,
    NeededRight,
    Place,
    SpecificationError,
    When,
    Wider,
)
from replispec.compiler.model.versions import parse_versions

_Kind = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    _Kind.TYPE_INT32: "int32",
    _Kind.TYPE_INT64: "int64",
    _Kind.TYPE_DOUBLE: "double",
    _Kind.TYPE_UINT32: "uint32",
    _Kind.TYPE_BOOL: "bool",
    _Kind.TYPE_STRING: "string",
    _Kind.TYPE_BYTES: "bytes",
}
_VALUE = re.compile(r"[A-Z][A-Z0-9_]*")
_MESSAGE_FIELD, _MESSAGE_ENUM, _ENUM_VALUE, _FILE_MESSAGE, _FILE_ENUM = 2, 4, 2, 4, 5


class OptionReader:
    """Reads our options from descriptors that were parsed without knowing them."""

    def __init__(self, files: Iterable[descriptor_pb2.FileDescriptorProto]) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files:
            self._pool.Add(file)

    def read(self, options: Any, extension: str) -> Any:
        """The option message `replispec.<extension>` of a descriptor's `options`; empty when absent."""
        kind = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        known: Any = message_factory.GetMessageClass(kind).FromString(options.SerializeToString())
        return _Option(known.Extensions[self._pool.FindExtensionByName(f"replispec.{extension}")])


class _Option:
    """An option message. The language of an older specification may lack a part that is read today."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._message, name)
        except AttributeError:
            kind = self._message.DESCRIPTOR
            place = f"proto/{kind.file.name}"
            raise SpecificationError(
                place, f"{kind.name} has no {name!r}", "declare it: it is part of the language"
            ) from None


class _Comments:
    """Comments and lines of one file, by the path of descriptor.proto."""

    def __init__(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        self._file = file.name
        self._locations = {tuple(place.path): place for place in file.source_code_info.location}

    def place(self, path: tuple[int, ...]) -> Place:
        location = self._locations.get(path)
        return Place(f"proto/{self._file}", location.span[0] + 1 if location else 0)

    def about(self, path: tuple[int, ...]) -> str:
        location = self._locations.get(path)
        if location is None:
            return ""
        text = location.leading_comments or location.trailing_comments
        return " ".join(text.split())


def read_model(files: Iterable[descriptor_pb2.FileDescriptorProto], family: str) -> Model:
    """The model of the files that lie under `replispec/<family>/`; the others only define options.

    Raises SpecificationError for a construct that the language does not have.
    """
    everything = list(files)
    options = OptionReader(everything)
    model = Model(family)
    for file in everything:
        if file.name.startswith(f"replispec/{family}/"):
            _FileReader(file, options).read_into(model)
    for name, message in model.messages.items():
        fields = tuple(replace(field, passes=_wanted(field, model)) for field in message.fields)
        model.messages[name] = replace(message, fields=fields)
    return model


def fingerprints(files: Iterable[descriptor_pb2.FileDescriptorProto], family: str) -> dict[str, bytes]:
    """What the certificates of birth hash of the family's files: the descriptors without their positions.

    A moved line changes nothing, a changed word of a comment does, as it stands in the docstrings.
    """
    return {f"proto/{file.name}": _fingerprint(file) for file in files if f"/{family}/" in file.name}


def _fingerprint(file: descriptor_pb2.FileDescriptorProto) -> bytes:
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(file)
    for place in copy.source_code_info.location:
        place.ClearField("span")
    return copy.SerializeToString(deterministic=True)


def _wanted(field: Field, model: Model) -> tuple[str, ...]:
    """The names of the numbers that the field's message must be given."""
    element = model.messages.get(field.type) if field.is_message else None
    return tuple(given.name for given in element.given) if element else ()


class _FileReader:
    def __init__(self, file: descriptor_pb2.FileDescriptorProto, options: OptionReader) -> None:
        self._file = file
        self._options = options
        self._comments = _Comments(file)
        self._module = file.name.rsplit("/", 1)[-1].removesuffix(".proto")

    def read_into(self, model: Model) -> None:
        for number, enum in enumerate(self._file.enum_type):
            with attempt(enum.name):
                model.enums[enum.name] = self._enum(enum, (_FILE_ENUM, number))
        for number, message in enumerate(self._file.message_type):
            with attempt(message.name):
                model.messages[message.name] = self._message(message, (_FILE_MESSAGE, number))

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto, path: tuple[int, ...]) -> Enum:
        prefix = "".join("_" + c if c.isupper() else c for c in enum.name).strip("_").upper() + "_"
        values = []
        for number, value in enumerate(enum.value):
            here = (*path, _ENUM_VALUE, number)
            place = self._comments.place(here)
            if not value.name.startswith(prefix):
                raise SpecificationError(
                    place,
                    f"{value.name} does not start with {prefix}",
                    "enum values are scoped to the package: prefix them",
                )
            named = self._options.read(value.options, "named")
            name = value.name.removeprefix(prefix)
            if name == "UNSPECIFIED":
                continue
            if not _VALUE.fullmatch(name):
                raise SpecificationError(
                    place, f"{name!r} is no name of a value", f"use capital words joined by _ after {prefix}"
                )
            versions = parse_versions(named.versions, place)
            about = self._comments.about(here)
            clauses = tuple(named.clause)
            values.append(EnumValue(name, value.number, named.wire or name, about, place, versions, clauses))
        return Enum(
            enum.name,
            self._module,
            self._comments.about(path),
            self._comments.place(path),
            tuple(values),
            codes=self._options.read(enum.options, "numbers").codes,
        )

    def _message(self, message: descriptor_pb2.DescriptorProto, path: tuple[int, ...]) -> Message:
        place = self._comments.place(path)
        wire = self._options.read(message.options, "on_wire")
        entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        fields = tuple(
            self._field(field, entries, (*path, _MESSAGE_FIELD, number))
            for number, field in enumerate(message.field)
        )
        return Message(
            name=message.name,
            module=self._module,
            about=self._comments.about(path),
            place=place,
            layout=_enum_name(wire, "layout"),
            fields=fields,
            also=_enum_name(wire, "also"),
            codes=tuple(wire.code),
            kind=_enum_name(wire, "kind"),
            sender=_word(wire, "sender"),
            receiver=_word(wire, "receiver"),
            order=_word(wire, "order"),
            binary_order=_word(wire, "binary_order"),
            bodies=tuple(body.type for body in wire.body),
            bare=wire.bare,
            fixed=wire.fixed,
            streams=tuple(wire.stream),
            versions=parse_versions(wire.versions, place),
            separator=wire.text.separator,
            lines=wire.text.lines,
            end_of_line=wire.text.end_of_line,
            properties=wire.text.properties,
            given=tuple(Given(given.name, given.first, given.last) for given in wire.given),
            clauses=tuple(wire.clause),
            hot=wire.hot,
            head=wire.head,
            places=wire.places,
            needs=tuple(NeededRight(need.right, need.of, need.when) for need in wire.need),
            audited=wire.audited,
            opens=wire.opens,
            answers=_answers(wire),
            number=_given_number(wire),
        )

    def _field(
        self,
        field: descriptor_pb2.FieldDescriptorProto,
        entries: Mapping[str, descriptor_pb2.DescriptorProto],
        path: tuple[int, ...],
    ) -> Field:
        place = self._comments.place(path)
        check_word(field.name, place)
        if field.HasField("oneof_index"):
            raise SpecificationError(
                place, f"{field.name} is in a oneof, which no layout has", "write (wire) = {optional: true}"
            )
        wire = self._options.read(field.options, "wire")
        kind, map_key, map_value = self._type(field, entries, place)
        optional = {
            name: getattr(wire, name) for name in ("minimum", "maximum", "equals") if wire.HasField(name)
        }
        return Field(
            name=field.name,
            number=field.number,
            type=kind,
            about=self._comments.about(path),
            place=place,
            repeated=field.label == _Kind.LABEL_REPEATED and kind != "map",
            map_key=map_key,
            map_value=map_value,
            is_message=field.type == _Kind.TYPE_MESSAGE and kind != "map",
            is_enum=field.type == _Kind.TYPE_ENUM,
            key=wire.key or field.json_name,
            versions=parse_versions(wire.versions, place),
            optional=wire.optional,
            size=wire.size,
            prefix=wire.prefix,
            key_prefix=wire.key_prefix,
            value_prefix=wire.value_prefix,
            length=wire.length,
            count=wire.count,
            measures=wire.measures,
            **optional,
            tells=wire.tells or wire.HasField("equals"),
            wider=_wider(wire),
            when=_when(wire),
            nullable=wire.nullable,
            distinct=wire.distinct,
            identifies=wire.identifies,
            checksum=_checksum(wire),
            counts=wire.counts,
            until=wire.until,
            zigzag=wire.zigzag,
            among=tuple(wire.among),
            unquoted_keys=wire.unquoted_keys,
            object_keys=wire.object_keys,
            json_only=wire.json_only,
            name_in_json=wire.name_in_json,
            words=tuple(wire.word),
            holds=wire.holds,
            enum=wire.enum or (kind if field.type == _Kind.TYPE_ENUM else ""),
            unit=_enum_name(wire, "unit"),
            clauses=tuple(wire.clause),
        )

    def _type(
        self,
        field: descriptor_pb2.FieldDescriptorProto,
        entries: Mapping[str, descriptor_pb2.DescriptorProto],
        place: Place,
    ) -> tuple[str, str, str]:
        """The model's type name, with key and value types for a map."""
        if field.type in _SCALARS:
            return _SCALARS[field.type], "", ""
        if field.type not in (_Kind.TYPE_MESSAGE, _Kind.TYPE_ENUM):
            allowed = ", ".join(_SCALARS.values())
            raise SpecificationError(
                place, f"{field.name} has a type the language does not have", f"use {allowed}"
            )
        name = field.type_name.rsplit(".", 1)[-1]
        entry = entries.get(name)
        if entry is None:
            return name, "", ""
        key, value = (self._type(part, {}, place)[0] for part in entry.field)
        return "map", key, value


def _word(wire: Any, field: str) -> str:
    """A word that the family declares; specifications that are older than that have an enum."""
    found = getattr(wire, field)
    return found if isinstance(found, str) else _enum_name(wire, field)


def _enum_name(wire: Any, field: str) -> str:
    """The name of an enum option's value; empty when unspecified."""
    value = getattr(wire, field)
    return (
        ""
        if value == 0
        else str(wire.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[value].name)
    )


def _wider(wire: Any) -> Wider | None:
    if not wire.HasField("wider"):
        return None
    return Wider(wire.wider.field, wire.wider.mask, wire.wider.equals, wire.wider.size)


def _when(wire: Any) -> When | None:
    if not wire.HasField("when"):
        return None
    low, high = (
        getattr(wire.when, name) if wire.when.HasField(name) else None for name in ("minimum", "maximum")
    )
    return When(wire.when.field, low, high)


def _given_number(wire: Any) -> int | None:
    number = wire.number
    return int(number) if wire.HasField("number") else None


def _answers(wire: Any) -> AnswersFrame | None:
    said = wire.answers
    if not wire.HasField("answers"):
        return None
    return AnswersFrame(said.frame, said.number, said.code, said.version, said.failed)


def _checksum(wire: Any) -> Checksum | None:
    if not wire.HasField("checksum"):
        return None
    said = wire.checksum
    kind = said.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number[said.kind].name
    return Checksum(said.over, said.mask, said.zero_unchecked, str(kind))
