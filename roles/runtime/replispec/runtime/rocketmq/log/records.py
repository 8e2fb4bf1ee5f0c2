"""Records of a commit log as they lie one after the other: which bytes are one, and where the next begins.

Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog.checkMessageAndReturnSize.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.constants import TORN_END
from replispec.wire.rocketmq.store import LogBlank, LogBlankFixed, LogRecord

BLANK_HEAD: Final = len(LogBlank().encode())
"""Bytes that tell size and kind of any record."""
_MAGIC_AT: Final = BLANK_HEAD // 2
_MAGIC: Final = re.compile(
    b"|".join(
        re.escape(LogBlankFixed(0, magic).encode()[_MAGIC_AT:])
        for magic in (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2)
    )
)
_TORN: Final = TORN_END.encode()
_WINDOW_BYTES_MAX: Final = 1024 * 1024
_SEARCHED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes behind a damage that are read because they look like records."""

View = Callable[[int, int], memoryview]
"""Given an offset and how many bytes at most: what is there, none after the end of a file."""


class Placed(NamedTuple):
    """A record, the offset of its first byte and its size in bytes."""

    offset: int
    size: int
    record: LogRecord


def walk(view: View, at: int, end: int, *, torn_from: int | None = None) -> Iterator[Placed | int]:
    """All records that are whole and right from `at` on, a blank as the offset after it.

    A record of which the disk kept only the beginning ends with zeros, and its checksum is of the body
    alone: from `torn_from` on what may be such a one counts as none. Before it nothing was lost, so that the
    content of a message decides nothing.
    """
    while at < end:
        found = view(at, end - at)
        size = record_size(found)
        if size == 0:
            return
        if is_blank(found):
            at += size
            yield at
            continue
        record = decoded(found[:size], at)
        if record is None or (torn_from is not None and at >= torn_from and may_be_torn(record)):
            return
        yield Placed(at, size, record)
        at += size


def record_size(view: memoryview) -> int:
    """The size of the record or blank that starts here; 0 when no whole one does."""
    if len(view) < BLANK_HEAD:
        return 0
    head = LogBlankFixed.decode(view)
    return head.total_size if is_known(head.magic) and BLANK_HEAD <= head.total_size <= len(view) else 0


def is_known(magic: int) -> bool:
    """Whether a record or a blank begins so."""
    return magic in (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2, LogMagic.BLANK)


def is_blank(view: memoryview) -> bool:
    """Whether the rest of a file is unused."""
    return LogBlankFixed.decode(view).magic == LogMagic.BLANK


def decoded(view: memoryview, offset: int) -> LogRecord | None:
    """The record that these bytes are, if they are what was written at this offset; no blank is. Its size
    has to be the sum of its parts: a size that is too long would lead over the records behind it."""
    try:
        record = LogRecord.decode(view)
    except RemoteProtocolError:
        return None
    is_right = not record.tail and record.physical_offset == offset and record.body_crc_holds
    return record if is_right else None


def ends_as_torn(properties: bytes) -> bool:
    """Whether properties end as those do of which the end is missing."""
    return properties.endswith(_TORN)


def may_be_torn(record: LogRecord) -> bool:
    """Whether the end of a record may be missing."""
    return not record.topic or TORN_END in record.topic or ends_as_torn(record.properties)


def _is_whole(view: memoryview, offset: int) -> bool:
    record = None if is_blank(view) else decoded(view, offset)
    return record is not None and not may_be_torn(record)


def next_record(view: View, at: int, end: int) -> int | None:
    """Where the next whole and right record begins, wherever it may; within one file. None when none is
    found, or what looks like records is more than is worth reading."""
    first, budget = at, _SEARCHED_BYTES_MAX
    while at < end:
        window = bytes(view(at, min(_WINDOW_BYTES_MAX, end - at)))
        for match in _MAGIC.finditer(window):
            place = at + match.start() - _MAGIC_AT
            found = view(place, end - place) if place >= first else memoryview(b"")
            size = record_size(found)
            budget -= size
            if budget < 0:
                return None
            if size and _is_whole(found[:size], place):
                return place
        if len(window) < _WINDOW_BYTES_MAX:
            return None
        at += len(window) - _MAGIC_AT
    return None
