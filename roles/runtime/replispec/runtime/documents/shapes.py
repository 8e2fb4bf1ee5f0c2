"""What a message of ours may look like on the wire, and the walk that holds bytes to it.

Neither runtime of protobuf refuses enough by itself: betterproto takes truncated bytes and values of
another wire type, the official one puts a field of the wrong wire type aside as unknown. So the bytes
are walked first, by one walker for both; what it lets through, both runtimes read alike.

Stricter than protobuf itself, which every serialiser of protobuf stays within: a field that is not
repeated comes once, a oneof has one member, a packed list comes in one piece, an integer fits its type,
a bool is 0 or 1, groups do not exist.
Source: protobuf's language guide (proto3) and encoding document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

# Largest value of the varint of each kind of number, read as unsigned; a negative int32 is sign-extended
# to 64 bits. Negative enum values do not exist in our packages.
_LARGEST: Final = {
    "bool": 1,
    "enum": 2**31 - 1,
    "int32": 2**31 - 1,
    "int64": 2**64 - 1,
    "uint32": 2**32 - 1,
    "uint64": 2**64 - 1,
}
KINDS: Final = frozenset({*_LARGEST, "bytes", "string", "message"})
_NEGATIVE_INT32: Final = range(2**64 - 2**31, 2**64)
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED_SIZES: Final = {_FIXED_64: 8, _FIXED_32: 4}
_VARINT_BYTES_MAXIMUM: Final = 10
# Of the number of a field with its wire type, and of a length.
_SHORT_BYTES_MAXIMUM: Final = 5
_NUMBER_MAXIMUM: Final = 2**29 - 1
# Messages inside one document, entries of maps counted too: each costs a few bytes on the wire and
# hundreds in memory.
MESSAGES_MAXIMUM: Final = 65_536
# Unknown fields inside one document: one runtime copies all that it kept for each further one.
UNKNOWN_MAXIMUM: Final = 256


@dataclass(frozen=True, slots=True)
class Slot:
    """One field: its kind (a member of KINDS), the oneof that it belongs to, the shape of its messages."""

    name: str
    kind: str
    repeated: bool = False
    oneof: str | None = None
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """One message: its fields by number. A map is a repeated message with the fields key and value.

    `is_entry`: it is an entry of a map, which never has unknown fields: one runtime keeps the entry and
    drops the field, the other one puts the whole entry aside.
    """

    name: str
    slots: Mapping[int, Slot] = field(default_factory=dict)
    is_entry: bool = False

    def __post_init__(self) -> None:
        for slot in self.slots.values():
            if slot.kind not in KINDS or (slot.kind == "message") != (slot.shape is not None):
                raise LocalProtocolError(f"{self.name}.{slot.name}: {slot.kind} is no kind of our messages")


def check(shape: Shape, data: bytes, *, unknown_allowed: bool) -> None:
    """Walk `data` and raise RemoteProtocolError, with the place, at the first byte that breaks `shape`.

    `unknown_allowed`: fields that the shape does not have are walked over; else they are refused.
    """
    _Walk(data, unknown_allowed=unknown_allowed).message(shape, 0, len(data))


class _Walk:
    def __init__(self, data: bytes, *, unknown_allowed: bool) -> None:
        self._data = data
        self._unknown_allowed = unknown_allowed
        self._messages = 0
        self._unknowns = 0

    def message(self, shape: Shape, at: int, end: int) -> None:
        """Walk one message, which is the bytes from `at` to `end`."""
        self._messages += 1
        if self._messages > MESSAGES_MAXIMUM:
            raise RemoteProtocolError(f"more than {MESSAGES_MAXIMUM} messages in one document", offset=at)
        seen: set[str] = set()
        slots = shape.slots
        while at < end:
            start = at
            tag, at = self._varint(at, end, _SHORT_BYTES_MAXIMUM)
            slot, wire_type = slots.get(tag >> 3), tag & 7
            if slot is None:
                at = self._unknown(shape, tag, at, end, start)
                continue
            is_number = slot.kind in _LARGEST
            packed = slot.repeated and is_number and wire_type == _BYTES
            once = slot.oneof or slot.name
            if once in seen and (packed or not slot.repeated):
                raise RemoteProtocolError(f"{shape.name}.{once} comes twice", offset=start)
            seen.add(once)
            if is_number and wire_type == _VARINT:
                at = self._number(shape, slot, at, end)
            elif wire_type == _BYTES and (packed or not is_number):
                at = self._content(shape, slot, at, end)
            else:
                raise RemoteProtocolError(
                    f"{shape.name}.{slot.name} has wire type {wire_type} and is {slot.kind}", offset=start
                )

    def _content(self, shape: Shape, slot: Slot, at: int, end: int) -> int:
        """Walk what a length precedes; the position after it."""
        at, stop = self._span(at, end)
        if slot.shape is not None:
            self.message(slot.shape, at, stop)
        elif slot.kind in _LARGEST:
            while at < stop:
                at = self._number(shape, slot, at, stop)
        elif slot.kind == "string":
            try:
                str(self._data[at:stop], "utf-8")
            except UnicodeDecodeError as error:
                place = at + error.start
                raise RemoteProtocolError(f"{shape.name}.{slot.name} is not UTF-8", offset=place) from error
        return stop

    def _number(self, shape: Shape, slot: Slot, at: int, end: int) -> int:
        value, after = self._varint(at, end)
        if value > _LARGEST[slot.kind] and not (slot.kind == "int32" and value in _NEGATIVE_INT32):
            raise RemoteProtocolError(f"{shape.name}.{slot.name}: {value} is no {slot.kind}", offset=at)
        return after

    def _unknown(self, shape: Shape, tag: int, at: int, end: int, start: int) -> int:
        """Walk over a field that the shape does not have; the position after it."""
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _NUMBER_MAXIMUM:
            raise RemoteProtocolError(f"{shape.name} has a field of number {number}", offset=start)
        if shape.is_entry or not self._unknown_allowed:
            raise RemoteProtocolError(f"{shape.name} has the unknown field {number}", offset=start)
        self._unknowns += 1
        if self._unknowns > UNKNOWN_MAXIMUM:
            raise RemoteProtocolError(f"more than {UNKNOWN_MAXIMUM} unknown fields", offset=start)
        if wire_type == _VARINT:
            return self._varint(at, end)[1]
        if wire_type == _BYTES:
            return self._span(at, end)[1]
        size = _FIXED_SIZES.get(wire_type)
        if size is None:
            raise RemoteProtocolError(f"{shape.name} has a field of wire type {wire_type}", offset=start)
        if at + size > end:
            raise RemoteProtocolError(f"{shape.name} ends inside field {number}", offset=at)
        return at + size

    def _span(self, at: int, end: int) -> tuple[int, int]:
        """Read a length; first position and end of what it measures."""
        size, start = self._varint(at, end, _SHORT_BYTES_MAXIMUM)
        if size > end - start:
            raise RemoteProtocolError(f"{size} bytes announced, {end - start} left", offset=at)
        return start, start + size

    def _varint(self, at: int, end: int, most: int = _VARINT_BYTES_MAXIMUM) -> tuple[int, int]:
        """The unsigned value of a varint of at most `most` bytes, below 2^64, and what is behind it."""
        data = self._data
        if at < end and data[at] < 0x80:
            return data[at], at + 1
        value, shift = 0, 0
        for place in range(at, min(end, at + most)):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 2**64:
                    raise RemoteProtocolError("a number of more than 64 bits", offset=at)
                return value, place + 1
            shift += 7
        if end - at < most:
            raise RemoteProtocolError("the bytes end inside a number", offset=at)
        raise RemoteProtocolError(f"a number of more than {most} bytes", offset=at)
