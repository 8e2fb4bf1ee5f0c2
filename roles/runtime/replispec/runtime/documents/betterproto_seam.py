"""The only module that knows betterproto, so that it can be replaced by changing this one.

betterproto gives typed dataclasses, and is used where people write messages by hand and few of them
travel. What it lacks is added here: bytes are held to the message's shape before they are parsed
(it takes truncated bytes, and values of another wire type), and what was written is read again (it
writes numbers that do not fit their field, and drops a map's entry from an empty text to an empty one).
Source: betterproto 2.0.0b7.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final, TypeVar

import betterproto  # noqa: TID251  this module is the seam

from replispec.runtime.documents.delimited import DOCUMENT_BYTES_MAXIMUM
from replispec.runtime.documents.shapes import Shape, Slot, check
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

M = TypeVar("M", bound=betterproto.Message)
_MAP: Final = "map"


def encode(message: betterproto.Message, *, limit_bytes: int = DOCUMENT_BYTES_MAXIMUM) -> bytes:
    """The message's bytes, maps in the order of their keys' insertion.

    Raises LocalProtocolError when a value does not fit its field, or the bytes do not fit the limit.
    """
    try:
        data = bytes(message)
        same = decode(type(message), data, unknown_allowed=True, limit_bytes=limit_bytes) == message
    except (RemoteProtocolError, ValueError, TypeError, AttributeError) as error:
        raise LocalProtocolError(f"{type(message).__name__} cannot be written: {error}") from error
    if not same:
        raise LocalProtocolError(f"{type(message).__name__} is not what would be read: a value does not fit")
    return data


def decode(
    kind: type[M], data: bytes, *, unknown_allowed: bool, limit_bytes: int = DOCUMENT_BYTES_MAXIMUM
) -> M:
    """The message of class `kind` that all of `data` is.

    Raises RemoteProtocolError when it is none, for truncated bytes too. Unknown fields are refused, or
    kept and written again. An enum's number without a name is kept as a number.
    """
    if len(data) > limit_bytes:
        raise RemoteProtocolError(f"{len(data)} bytes in one document, {limit_bytes} allowed")
    check(shape_of(kind), data, unknown_allowed=unknown_allowed)
    return kind().parse(data)


def chosen(message: betterproto.Message, group: str) -> betterproto.Message | None:
    """The member of a oneof that is set, where all of them are messages; None when none is."""
    found = betterproto.which_one_of(message, group)[1]
    return found if isinstance(found, betterproto.Message) else None


@cache
def shape_of(kind: type[betterproto.Message]) -> Shape:
    """The shape of a class of messages, from the metadata that betterproto keeps about it."""
    known = betterproto.ProtoClassMetadata(kind)
    slots = {}
    for name, meta in known.meta_by_field_name.items():
        held: type[betterproto.Message] = known.cls_by_field[name]
        mapped = meta.proto_type == _MAP
        is_message = mapped or meta.proto_type == "message"
        slots[meta.number] = Slot(
            name=name,
            kind="message" if is_message else meta.proto_type,
            repeated=mapped or known.default_gen[name] is list,
            oneof=None if meta.optional else meta.group,
            shape=replace(shape_of(held), is_entry=mapped) if is_message else None,
        )
    return Shape(kind.__name__, slots)
