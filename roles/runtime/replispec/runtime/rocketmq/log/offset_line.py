"""An offset of a commit log in a file of one line, with a checksum."""

from __future__ import annotations

import zlib

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.store import FlushedOffset


def encoded(offset: int) -> bytes:
    """The line."""
    return FlushedOffset(offset, _sum_of(offset)).encode() + b"\n"


def decoded(data: bytes) -> int:
    """The offset of a line. Raises RemoteProtocolError."""
    if not data.endswith(b"\n"):
        raise RemoteProtocolError("no end of line", offset=len(data))
    found = FlushedOffset.decode(data[:-1])
    if found.offset < 0 or found.crc != _sum_of(found.offset):
        raise RemoteProtocolError("not the checksum of its offset", offset=0)
    return found.offset


def _sum_of(offset: int) -> int:
    return zlib.crc32(b"%d" % offset)
