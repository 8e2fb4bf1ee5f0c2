"""One capture out of several that were written side by side, in the order of time.

Source: the libpcap file format, classic form: a header of 24 bytes, then records, each with a header of 16.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

FILE_HEADER, RECORD_HEADER = 24, 16
# Microseconds, little-endian: what our tap writes.
MAGIC = 0xA1B2C3D4


class MergeError(Exception):
    """A file is not what our tap writes."""


def merge(sources: Sequence[Path], target: Path) -> int:
    """Write all records of the sources into the target; returns how many. A record that is cut at the end of
    a file, as a killed process leaves it, is left out. Raises MergeError when the files cannot be one."""
    headers = {_header(path) for path in sources}
    if len(headers) != 1:
        raise MergeError(f"{len(headers)} different kinds of captures: {', '.join(map(str, sources))}")
    header = headers.pop()
    if len(header) != FILE_HEADER or struct.unpack_from("<I", header)[0] != MAGIC:
        raise MergeError(f"{sources[0]} is no capture of ours")
    count = 0
    with target.open("wb") as out:
        out.write(header)
        for _, record in heapq.merge(*(_records(path) for path in sources), key=lambda item: item[0]):
            out.write(record)
            count += 1
    return count


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_HEADER)


def _records(path: Path) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Time (seconds, microseconds) and bytes of each record, its header included."""
    with path.open("rb") as file:
        file.seek(FILE_HEADER)
        while len(head := file.read(RECORD_HEADER)) == RECORD_HEADER:
            seconds, micros, size, _ = struct.unpack("<IIII", head)
            body = file.read(size)
            if len(body) < size:
                return
            yield (seconds, micros), head + body
