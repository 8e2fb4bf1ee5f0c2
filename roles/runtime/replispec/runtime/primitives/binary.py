"""What generated codecs need to read and write positions: bounds, integers, text, checksums.

All integers are big endian. Every function that reads takes the buffer, a position and the limit of
the frame, and blames the peer with that position when the bytes do not reach.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from struct import Struct, error
from typing import Any, Protocol, Self, TypeVar

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

Buffer = bytes | bytearray | memoryview
Value = TypeVar("Value")


class Written(Protocol):
    """An element of a list of messages."""

    @property
    def encode(self) -> Callable[..., bytes]:
        """Its bytes, when it is given the numbers that it depends on."""


class Identified(Protocol):
    """An element of a list in which no two are of one identity."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from the others."""


class IdentifiedAndWritten(Identified, Written, Protocol):
    """Such an element when it is written."""


IdentifiedValue = TypeVar("IdentifiedValue", bound=Identified)


class BinaryMessage:
    """A message whose bytes say all that reading them takes."""

    __slots__ = ()

    @classmethod
    def decode(cls, buffer: Buffer, at: int = 0, end: int | None = None) -> Self:
        """The message that fills `buffer[at:end]`. Raises RemoteProtocolError."""
        limit = len(buffer) if end is None else end
        message, position = cls.decode_at(buffer, at, limit)
        if position != limit:
            exactly(position, limit, cls.__name__)
        return message

    @classmethod
    def decode_at(cls, buffer: Buffer, at: int, end: int) -> tuple[Self, int]:
        """The message that starts at `buffer[at]`, and the position after it.

        Raises RemoteProtocolError when the bytes break the layout.
        """
        raise NotImplementedError

    def encode(self) -> bytes:
        """The bytes of the message. Raises LocalProtocolError when a value does not fit."""
        raise NotImplementedError


class EmptyMessage(BinaryMessage):
    """A message of no bytes: its code says all."""

    __slots__ = ()

    @classmethod
    def decode_at(cls, buffer: Buffer, at: int, end: int) -> tuple[Self, int]:
        """Nothing is read."""
        del buffer, end
        return cls(), at

    def encode(self) -> bytes:
        """No bytes."""
        return b""


class VersionedBinary:
    """A message whose fields depend on a version that is known from elsewhere."""

    __slots__ = ()

    @classmethod
    def decode(cls, buffer: Buffer, at: int = 0, end: int | None = None, *, version: int) -> Self:
        """The message that fills `buffer[at:end]`. Raises RemoteProtocolError."""
        limit = len(buffer) if end is None else end
        message, position = cls.decode_at(buffer, at, limit, version=version)
        if position != limit:
            exactly(position, limit, cls.__name__)
        return message

    @classmethod
    def decode_at(cls, buffer: Buffer, at: int, end: int, *, version: int) -> tuple[Self, int]:
        """The message that starts at `buffer[at]`, and the position after it.

        Raises RemoteProtocolError when the bytes break the layout.
        """
        raise NotImplementedError

    def encode(self, *, version: int) -> bytes:
        """Its bytes in this version. Raises LocalProtocolError when a value does not fit."""
        raise NotImplementedError


def need(at: int, size: int, end: int, what: str) -> None:
    """Make sure that `size` bytes lie between `at` and `end`. Raises RemoteProtocolError."""
    if not 0 <= size <= end - at:
        raise cut(at, size, end, what)


def cut(at: int, size: int, end: int, what: str) -> RemoteProtocolError:
    """The fault of bytes that do not reach: `size` of them are not between `at` and `end`."""
    if size < 0:
        return RemoteProtocolError(f"{what}: negative length {size}", offset=at)
    return RemoteProtocolError(f"{what}: {size} bytes needed, {max(end - at, 0)} left", offset=at)


def to_unsigned(value: int, size: int, what: str) -> bytes:
    """`value` as `size` bytes. Raises LocalProtocolError when it does not fit."""
    if not 0 <= value < 1 << 8 * size:
        raise LocalProtocolError(f"{what}: {value} does not fit {size} unsigned bytes")
    return value.to_bytes(size, "big")


def pack(layout: Struct, what: str, *values: Any) -> bytes:
    """The values in this layout. Raises LocalProtocolError when one does not fit its field."""
    try:
        return layout.pack(*values)
    except error as fault:
        raise LocalProtocolError(f"{what}: {fault}") from None


def unpack(layout: Struct, buffer: Buffer, at: int, end: int, what: str) -> tuple[tuple[Any, ...], int]:
    """The values at `at` in this layout, and the position after them. Raises RemoteProtocolError when cut."""
    need(at, layout.size, end, what)
    return layout.unpack_from(buffer, at), at + layout.size


def read_bytes(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[bytes, int]:
    """`size` bytes at `at`, and the position after them. Raises RemoteProtocolError when they are cut."""
    need(at, size, end, what)
    return bytes(buffer[at : at + size]), at + size


def read_string(buffer: Buffer, at: int, prefix: int, end: int, what: str) -> tuple[str, int]:
    """The text after its length of `prefix` bytes, and the position after it. Raises RemoteProtocolError."""
    size, at = read_prefix(buffer, at, prefix, end, what)
    need(at, size, end, what)
    return read_text(buffer, at, size, what), at + size


def write_string(text: str, prefix: int, what: str) -> bytes:
    """The inverse of read_string. Raises LocalProtocolError when the text is too long."""
    content = text.encode()
    return write_prefix(len(content), prefix, what) + content


def read_text(buffer: Buffer, at: int, size: int, what: str) -> str:
    """`size` bytes of UTF-8 at `at`. Raises RemoteProtocolError when they are not UTF-8."""
    try:
        return bytes(buffer[at : at + size]).decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError(f"{what}: not UTF-8", offset=at) from None


def check_range(value: int, minimum: int, maximum: int, at: int, what: str) -> None:
    """Raises RemoteProtocolError when `value` lies outside minimum..maximum."""
    if not minimum <= value <= maximum:
        raise outside(value, minimum, maximum, at, what)


def outside(value: int, minimum: int, maximum: int, at: int, what: str) -> RemoteProtocolError:
    """The fault of a value that does not lie in minimum..maximum."""
    return RemoteProtocolError(f"{what}: {value} is outside {minimum}..{maximum}", offset=at)


def crc32(data: Buffer, mask: int) -> int:
    """CRC-32 (IEEE 802.3) of `data`, masked."""
    return zlib.crc32(data) & mask


def exactly(position: int, end: int, what: str) -> None:
    """Raises RemoteProtocolError when bytes are left between `position` and `end`."""
    if position != end:
        raise RemoteProtocolError(f"{what}: {end - position} bytes are left over", offset=position)


def read_prefix(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """The length of `size` bytes at `at` (one byte: unsigned, else signed), and the position after it.

    Raises RemoteProtocolError when it is cut or negative.
    """
    need(at, size, end, what)
    length = int.from_bytes(buffer[at : at + size], "big", signed=size > 1)
    if length < 0:
        raise RemoteProtocolError(f"{what}: negative length {length}", offset=at)
    return length, at + size


def read_count(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """The number of elements that follow, likewise; each needs a byte at least, so `end` bounds it."""
    count, position = read_prefix(buffer, at, size, end, what)
    need(position, count, end, what)
    return count, position


def read_nullable(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """A signed length or count of `size` bytes (-1: there is none), and the position after it.

    Raises RemoteProtocolError when it is cut or smaller.
    """
    need(at, size, end, what)
    length = int.from_bytes(buffer[at : at + size], "big", signed=True)
    if length < -1:
        raise RemoteProtocolError(f"{what}: negative length {length}", offset=at)
    return length, at + size


def read_number(buffer: Buffer, at: int, size: int, signed: bool, end: int, what: str) -> tuple[int, int]:
    """The number of `size` bytes at `at`, and the position after it. Raises RemoteProtocolError when cut."""
    need(at, size, end, what)
    return int.from_bytes(buffer[at : at + size], "big", signed=signed), at + size


def read_numbers(
    buffer: Buffer, at: int, count: int, size: int, signed: bool, end: int, what: str
) -> tuple[list[int], int]:
    """`count` numbers of `size` bytes, and the position after them. Raises RemoteProtocolError."""
    need(at, count * size, end, what)
    end = at + count * size
    numbers = [
        int.from_bytes(buffer[place : place + size], "big", signed=signed) for place in range(at, end, size)
    ]
    return numbers, end


def read_list(
    read: Callable[..., tuple[Value, int]],
    buffer: Buffer,
    at: int,
    size: int,
    end: int,
    what: str,
    **given: int,
) -> tuple[list[Value], int]:
    """A count of `size` bytes and as many elements, and the position after them.

    Each is read by `read`, which gets the numbers that are given. Raises RemoteProtocolError.
    """
    count, at = read_count(buffer, at, size, end, what)
    elements = []
    for _ in range(count):
        element, at = read(buffer, at, end, **given)
        elements.append(element)
    return elements, at


def read_distinct(
    read: Callable[..., tuple[IdentifiedValue, int]],
    buffer: Buffer,
    at: int,
    size: int,
    end: int,
    what: str,
    **given: int,
) -> tuple[list[IdentifiedValue], int]:
    """As read_list. Raises RemoteProtocolError also when two elements are of one identity."""
    elements, at = read_list(read, buffer, at, size, end, what, **given)
    check_distinct([element.identity for element in elements], at, what)
    return elements, at


def read_block(
    read: Callable[[Buffer, int, int], tuple[Value, int]],
    buffer: Buffer,
    at: int,
    size: int,
    end: int,
    what: str,
) -> tuple[list[Value], int]:
    """The elements that fill `size` bytes, and the position after them. Raises RemoteProtocolError."""
    need(at, size, end, what)
    elements, block_end = [], at + size
    while at < block_end:
        element, at = read(buffer, at, block_end)
        elements.append(element)
    return elements, at


def write_list(elements: Collection[Written], size: int, what: str, **given: int) -> bytes:
    """The elements after their count of `size` bytes. Raises LocalProtocolError when one does not fit."""
    content = b"".join([element.encode(**given) for element in elements])
    return write_prefix(len(elements), size, what) + content


def write_distinct(elements: Collection[IdentifiedAndWritten], size: int, what: str, **given: int) -> bytes:
    """As write_list. Raises LocalProtocolError also when two elements are of one identity."""
    must_be_distinct([element.identity for element in elements], what)
    return write_list(elements, size, what, **given)


def read_number_list(
    buffer: Buffer, at: int, count_size: int, size: int, signed: bool, end: int, what: str
) -> tuple[list[int], int]:
    """Numbers of `size` bytes after their count, and the position after them. Raises RemoteProtocolError."""
    count, at = read_count(buffer, at, count_size, end, what)
    return read_numbers(buffer, at, count, size, signed, end, what)


def write_number_list(values: Collection[int], count_size: int, size: int, signed: bool, what: str) -> bytes:
    """The inverse of read_number_list. Raises LocalProtocolError when a number does not fit."""
    numbers = write_numbers(values, size, signed, what)
    return write_prefix(len(values), count_size, what) + numbers


def read_strings(
    buffer: Buffer, at: int, count: int, prefix: int, end: int, what: str
) -> tuple[list[str], int]:
    """`count` texts, each after its length, and the position after them. Raises RemoteProtocolError."""
    need(at, count * prefix, end, what)
    texts = []
    for _ in range(count):
        text, at = read_string(buffer, at, prefix, end, what)
        texts.append(text)
    return texts, at


def read_string_list(
    buffer: Buffer, at: int, count_size: int, prefix: int, end: int, what: str
) -> tuple[list[str], int]:
    """Texts after their count, and the position after them. Raises RemoteProtocolError."""
    count, at = read_count(buffer, at, count_size, end, what)
    return read_strings(buffer, at, count, prefix, end, what)


def write_string_list(texts: Collection[str], count_size: int, prefix: int, what: str) -> bytes:
    """The inverse of read_string_list. Raises LocalProtocolError when a text is too long."""
    content = [write_string(text, prefix, what) for text in texts]
    return b"".join([write_prefix(len(texts), count_size, what), *content])


def write_numbers(values: Iterable[int], size: int, signed: bool, what: str) -> bytes:
    """The numbers, `size` bytes each. Raises LocalProtocolError when one does not fit."""
    try:
        return b"".join([value.to_bytes(size, "big", signed=signed) for value in values])
    except OverflowError as fault:
        raise LocalProtocolError(f"{what}: {fault}") from None


def write_none(size: int) -> bytes:
    """The length or count of `size` bytes that says that there is none: -1."""
    return (-1).to_bytes(size, "big", signed=True)


def in_this_form(value: Value | None, has_it: bool, what: str) -> Value | None:
    """The value of a field that only some forms of the message have.

    Raises LocalProtocolError when this form has the field and the value is None, and the other way round.
    """
    if not has_it:
        excluded(value, what)
    elif value is None:
        raise LocalProtocolError(f"{what}: this form of the message has it, but it is None")
    return value


def excluded(value: object, what: str) -> None:
    """Raises LocalProtocolError when a value is given that this form of the message does not have."""
    if value is not None:
        raise LocalProtocolError(f"{what}: this form of the message has no room for it")


def must_be_in(value: int, minimum: int, maximum: int, what: str) -> None:
    """Raises LocalProtocolError when `value` lies outside minimum..maximum."""
    if not minimum <= value <= maximum:
        raise LocalProtocolError(f"{what}: {value} is outside {minimum}..{maximum}")


def check_among(value: int, among: Collection[int], at: int, what: str) -> None:
    """Raises RemoteProtocolError when `value` is none of those that it may be."""
    if value not in among:
        raise RemoteProtocolError(f"{what}: {value} is none of {', '.join(map(str, among))}", offset=at)


def must_be_among(value: int, among: Collection[int], what: str) -> None:
    """Raises LocalProtocolError when `value` is none of those that it may be."""
    if value not in among:
        raise LocalProtocolError(f"{what}: {value} is none of {', '.join(map(str, among))}")


def check_distinct(identities: Collection[object], at: int, what: str) -> None:
    """Raises RemoteProtocolError when two of the identities are equal."""
    if len(set(identities)) != len(identities):
        raise RemoteProtocolError(f"{what}: an element stands twice", offset=at)


def must_be_distinct(identities: Collection[object], what: str) -> None:
    """Raises LocalProtocolError when two of the identities are equal."""
    if len(set(identities)) != len(identities):
        raise LocalProtocolError(f"{what}: an element stands twice")


def write_prefix(length: int, size: int, what: str) -> bytes:
    """A length as `size` bytes. Raises LocalProtocolError when it does not fit (one byte: unsigned)."""
    if length >> (8 if size == 1 else 8 * size - 1):
        raise LocalProtocolError(f"{what}: length {length} does not fit {size} bytes")
    return length.to_bytes(size, "big")


def read_text_map(
    buffer: Buffer, at: int, end: int, key_prefix: int, value_prefix: int, what: str
) -> tuple[dict[str, str | None], int]:
    """Keys and values up to `end`, each with its length before it; a value of length 0 is None.

    Raises RemoteProtocolError when an entry is cut or not UTF-8.
    """
    entries: dict[str, str | None] = {}
    data = bytes(buffer[at:end])
    number, key_signed, value_signed = int.from_bytes, key_prefix > 1, value_prefix > 1
    place, end = 0, len(data)
    while place < end:
        # Every header has a dozen entries: what a sound one needs stands here, faults are found again below.
        key_at = place + key_prefix
        key_end = key_at + number(data[place:key_at], "big", signed=key_signed)
        value_at = key_end + value_prefix
        value_end = value_at + number(data[key_end:value_at], "big", signed=value_signed)
        if not key_at <= key_end < value_at <= value_end <= end:
            break
        try:
            entries[data[key_at:key_end].decode()] = data[value_at:value_end].decode() or None
        except UnicodeDecodeError:
            break
        place = value_end
    at += place
    while at < end:
        size, at = read_prefix(buffer, at, key_prefix, end, what)
        need(at, size, end, what)
        key = read_text(buffer, at, size, what)
        size, at = read_prefix(buffer, at + size, value_prefix, end, what)
        need(at, size, end, what)
        entries[key] = read_text(buffer, at, size, what) if size else None
        at += size
    return entries, at


def write_text_map(entries: Mapping[str, str | None], key_prefix: int, value_prefix: int, what: str) -> bytes:
    """The inverse of read_text_map. Raises LocalProtocolError when a key or value is too long."""
    parts: list[bytes] = []
    for key, value in entries.items():
        name, content = key.encode(), (value or "").encode()
        parts += (write_prefix(len(name), key_prefix, what), name)
        parts += (write_prefix(len(content), value_prefix, what), content)
    return b"".join(parts)


def check_known(value: int, names: type[IntEnum], at: int, what: str) -> None:
    """Raises RemoteProtocolError when `value` is no member of the enum."""
    if value not in names._value2member_map_:
        raise RemoteProtocolError(f"{what}: {value} has no meaning", offset=at)
