"""Classic pcap: the file header and the walk over its records.

Source: draft-ietf-opsawg-pcap-04. Integers are 32 bits in the byte order of the file's magic.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from replispec.replay.capture.records import (
    RECORD_BYTES_MAXIMUM,
    ByteOrder,
    CaptureError,
    CaptureWarning,
    Integers,
    Interface,
    Records,
    Split,
    Words,
    release,
)

MAGICS: dict[bytes, tuple[ByteOrder, int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
HEADER_SIZE = 24
RECORD_HEADER_SIZE = 16
LINK_TYPE_MASK = 0x03FFFFFF
# After so many bytes of records it is looked whether the last ones are alike, and so many count as that.
WALK_BYTES, ALIKE, ALIKE_MAXIMUM = 1 << 18, 64, 1 << 20


def whole(data: mmap.mmap, path: str, name: str) -> Split:
    """The split of all records. Raises CaptureError for a header that is cut or of another version."""
    if len(data) < HEADER_SIZE:
        raise CaptureError(name, len(data), "the file ends inside its pcap header")
    order, ticks = MAGICS[data[:4]]
    major = struct.unpack_from(order + "H", data, 4)[0]
    if major != 2:
        raise CaptureError(name, 4, f"pcap version {major} is not supported, only version 2")
    snap_length, link = struct.unpack_from(order + "II", data, 16)
    interface = Interface(link & LINK_TYPE_MASK, ticks, 0, snap_length)
    return Split(path, name, 0, HEADER_SIZE, len(data), "pcap", order, (interface,))


def offsets(data: mmap.mmap, split: Split, warnings: list[CaptureWarning]) -> array[int]:
    """File offsets of the pcap records of a split; a last record that was cut is among them."""
    length_at = struct.Struct(split.byte_order + "I").unpack_from
    at, size = split.start, len(data)
    last = size - RECORD_HEADER_SIZE
    found = array("q")
    captured = 0
    for_sure = min(split.end, last + 1)
    append = found.append
    while at < for_sure:
        pause = min(for_sure, at + WALK_BYTES)
        while at < pause:
            append(at)
            (captured,) = length_at(data, at + 8)
            at += RECORD_HEADER_SIZE + captured
        at = _passed_alike(data, split.byte_order, found, at, for_sure)
    if at > size and captured > RECORD_BYTES_MAXIMUM:
        warnings.append(
            CaptureWarning(split.name, found.pop(), f"a damaged record claims {captured} bytes", unread=True)
        )
    elif at > size:
        warnings.append(CaptureWarning(split.name, found[-1], "the file ends inside a packet", unread=True))
    elif last < at < split.end:
        warnings.append(CaptureWarning(split.name, at, "the file ends inside a record header", unread=True))
    return found


def _passed_alike(data: mmap.mmap, order: ByteOrder, found: array[int], at: int, end: int) -> int:
    """Add the records from `at` on that are as long as those before it, as many as surely begin and end
    before `end`; where the next one is. A file of many tiny records is walked by columns so."""
    size = found[-1] - found[-2] if len(found) >= ALIKE else 0
    if not size or at - found[-ALIKE] != ALIKE * size:
        return at
    rest = max(0, end - at) // size
    count = ALIKE
    while rest and count:
        count = min(rest, 2 * count, ALIKE_MAXIMUM)
        lengths = np.ndarray((count,), order + "u4", data, at + 8, (size,))
        others = np.flatnonzero(lengths != size - RECORD_HEADER_SIZE)
        same = int(others[0]) if len(others) else count
        found.frombytes(np.arange(at, at + same * size, size, dtype=np.int64).tobytes())
        at += same * size
        rest -= same
        if same < count:
            break
    return at


def stretches(
    data: mmap.mmap, whole: Split, size_bytes: int, warnings: list[CaptureWarning]
) -> Iterator[array[int]]:
    """As `offsets`, of stretches of about so many bytes each, none of them empty; one is held at a time."""
    at, known = whole.start, len(warnings)
    after = struct.Struct(whole.byte_order + "I").unpack_from
    while at < whole.end and len(warnings) == known:
        stretch = replace(whole, start=at, end=min(at + size_bytes, whole.end))
        found = offsets(data, stretch, warnings)
        if not found:
            return
        yield found
        release(data, at, found[-1])
        at = found[-1] + RECORD_HEADER_SIZE + int(after(data, found[-1] + 8)[0])


def borders(data: mmap.mmap, whole: Split, split_bytes: int, warnings: list[CaptureWarning]) -> Iterator[int]:
    """File offsets of records about `split_bytes` apart, the first one included."""
    return (found[0] for found in stretches(data, whole, split_bytes, warnings))


def columns(data: mmap.mmap, split: Split, at: Integers) -> Records:
    """The packet columns of the records at these file offsets."""
    interface = split.interfaces[0]
    words = Words(data, split.byte_order)
    data_offset = at + RECORD_HEADER_SIZE
    captured = np.minimum(words.at(at + 8), len(data) - data_offset)
    ticks = words.at(at + 4)
    time_ns = words.at(at) * 10**9 + ticks * (10**9 // interface.ticks_per_second)
    link_type = np.full(len(at), interface.link_type, np.int64)
    return Records(
        at, data_offset, captured, words.at(at + 12), time_ns, link_type, np.zeros(len(at), np.int64)
    )
