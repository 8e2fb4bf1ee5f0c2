"""The only module outside the compiler that knows the official runtime of protobuf.

It is used where many messages travel: the controllers' log and traces. It refuses truncated bytes by
itself; the walk before it refuses what it would put aside as unknown, and bounds what a document holds.
Source: protobuf 7.36 for Python.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeVar

from google.protobuf import message as official  # noqa: TID251  this module is the seam
from google.protobuf.descriptor import Descriptor, FieldDescriptor  # noqa: TID251

from replispec.runtime.documents.delimited import DOCUMENT_BYTES_MAXIMUM
from replispec.runtime.documents.shapes import Shape, Slot, check
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

M = TypeVar("M", bound=official.Message)
_KINDS: Final = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_MESSAGE: "message",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def encode(message: official.Message, *, limit_bytes: int = DOCUMENT_BYTES_MAXIMUM) -> bytes:
    """The message's bytes, the same for equal messages: maps are sorted by their keys.

    Raises LocalProtocolError when the bytes do not fit the limit. Values were checked when they were set.
    """
    data: bytes = message.SerializeToString(deterministic=True)
    if len(data) > limit_bytes:
        name = message.DESCRIPTOR.name
        raise LocalProtocolError(f"{name} has {len(data)} bytes, {limit_bytes} allowed")
    return data


def decode(
    kind: type[M], data: bytes, *, unknown_allowed: bool, limit_bytes: int = DOCUMENT_BYTES_MAXIMUM
) -> M:
    """The message of class `kind` that all of `data` is.

    Raises RemoteProtocolError when it is none. Unknown fields are refused, or kept and written again.
    """
    if len(data) > limit_bytes:
        raise RemoteProtocolError(f"{len(data)} bytes in one document, {limit_bytes} allowed")
    check(shape_of(kind), data, unknown_allowed=unknown_allowed)
    try:
        return kind.FromString(data)
    except official.DecodeError as error:
        raise RemoteProtocolError(f"no {kind.DESCRIPTOR.name}: {error}") from error


def shape_of(kind: type[official.Message]) -> Shape:
    """The shape of a class of messages, from its descriptor."""
    return _shape(kind.DESCRIPTOR)


@cache
def _shape(descriptor: Descriptor) -> Shape:
    slots = {}
    for item in descriptor.fields:
        oneof = item.containing_oneof
        slots[item.number] = Slot(
            name=item.name,
            kind=_KINDS.get(item.type, f"type {item.type}"),
            repeated=item.is_repeated,
            oneof=oneof.name if oneof and len(oneof.fields) > 1 else None,
            shape=_shape(item.message_type) if item.message_type else None,
        )
    is_entry = descriptor.GetOptions().map_entry
    return Shape("Entry" if is_entry else descriptor.name, slots, is_entry)
