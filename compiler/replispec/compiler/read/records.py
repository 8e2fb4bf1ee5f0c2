"""What records may hold: the messages and enums of our own packages, by name."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.check.own_messages import KINDS
from replispec.compiler.model.record import RecordField, RecordMessage
from replispec.compiler.read.own_messages import own_packages, parse_own


def read_records(proto: Path) -> dict[str, RecordMessage]:
    """The messages and enums of all own packages below `proto`. Raises SpecificationError."""
    found: dict[str, RecordMessage] = {}
    for file in parse_own(proto, own_packages(proto)):
        for message in file.message_type:
            found[message.name] = RecordMessage(message.name, _fields(message))
        for enum in file.enum_type:
            values = {value.name: value.number for value in enum.value}
            found[enum.name] = RecordMessage(enum.name, {}, values)
    return found


def _fields(message: descriptor_pb2.DescriptorProto) -> dict[str, RecordField]:
    return {
        each.name: RecordField(
            each.name,
            KINDS.get(each.type, "unknown"),
            each.label == each.LABEL_REPEATED,
            each.proto3_optional,
            each.type_name.rpartition(".")[2],
            message.oneof_decl[each.oneof_index].name
            if each.HasField("oneof_index") and not each.proto3_optional
            else "",
        )
        for each in message.field
    }
