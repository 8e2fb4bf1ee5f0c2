"""Numbers that take as many bytes as they need: seven bits in each, the lowest first, the sign in the lowest.

The last byte of a number is below 128. Source: Protocol Buffers, "Encoding", sint32 and sint64.
"""

from __future__ import annotations

from replispec.runtime.primitives.binary import Buffer, cut
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError


def read_zigzag(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """The number at `at`, which fits `size` bytes, and the position after it.

    Raises RemoteProtocolError when it is cut, does not fit, or is not in its shortest form.
    """
    if at < end and (byte := buffer[at]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, place = 0, at
    for shift in range(0, 8 * size, 7):
        if place >= end:
            raise cut(at, place - at + 1, end, what)
        byte = buffer[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    if byte >= 0x80 or value >> 8 * size:
        raise RemoteProtocolError(f"{what}: a number does not fit {size} bytes", offset=at)
    if byte == 0:
        raise RemoteProtocolError(f"{what}: a number is longer than it need be", offset=at)
    return (value >> 1) ^ -(value & 1), place


def read_zigzag_length(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """A length or count that fits `size` bytes, and the position after it.

    Raises RemoteProtocolError when it is cut, negative, or more than the bytes that are left.
    """
    length, place = read_zigzag(buffer, at, size, end, what)
    if not 0 <= length <= end - place:
        raise cut(place, length, end, what)
    return length, place


def read_zigzag_nullable(buffer: Buffer, at: int, size: int, end: int, what: str) -> tuple[int, int]:
    """As read_zigzag_length, but -1 says that there is none. Raises RemoteProtocolError."""
    length, place = read_zigzag(buffer, at, size, end, what)
    if not -1 <= length <= end - place:
        raise cut(place, length, end, what)
    return length, place


def write_zigzag(value: int, size: int, what: str) -> bytes:
    """The bytes of a number that fits `size` bytes. Raises LocalProtocolError when it does not."""
    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
        raise LocalProtocolError(f"{what}: {value} does not fit {size} bytes")
    left = value << 1 if value >= 0 else (-value << 1) - 1
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
