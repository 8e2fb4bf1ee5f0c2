"""A capture as a host with another clock would have written it.

The kernel stamps packets, and all namespaces of a machine share its clock: what a clock elsewhere would have
said is written over what this one said.

Source: the libpcap file format, classic form: a header of 24 bytes, then records, each with a header of 16.
"""

from __future__ import annotations

import struct
from pathlib import Path

from lab.merge import FILE_HEADER, RECORD_HEADER, MergeError

# Nanoseconds, little-endian.
MAGIC = 0xA1B23C4D
SECOND = 10**9


def by_another_clock(capture: Path, *, ahead_ns: int, drift: float) -> None:
    """Rewrite all times of a classic capture of nanoseconds: so much later, and later by `drift` of what has
    passed since its first packet. Raises MergeError for another kind of file."""
    data = bytearray(capture.read_bytes())
    if len(data) < FILE_HEADER or struct.unpack_from("<I", data)[0] != MAGIC:
        raise MergeError(f"{capture} is no capture of nanoseconds")
    at, first_ns = FILE_HEADER, None
    while at + RECORD_HEADER <= len(data):
        seconds, nanos, size = struct.unpack_from("<III", data, at)
        time_ns = seconds * SECOND + nanos
        first_ns = time_ns if first_ns is None else first_ns
        time_ns += ahead_ns + round((time_ns - first_ns) * drift)
        struct.pack_into("<II", data, at, *divmod(time_ns, SECOND))
        at += RECORD_HEADER + size
    capture.write_bytes(data)
