"""Messages in log bytes on their way to a replica: where each record starts, and the CRC-32 of its body.

A run of log bytes may begin and end within a record. A record is known by its magic number and by its own
place, which it holds; one that does not lie whole in the run is left out, as the rest of it is in another
frame. Places of fields are asked of the codec, once.

Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog, AutoSwitchHAConnection.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

from replispec.replay.frames.readers import Record
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag
from replispec.wire.rocketmq.store import LogRecord

_WIDE_BORN, _WIDE_STORE = int(MessageFlag.BORN_HOST_IPV6), int(MessageFlag.STORE_HOST_IPV6)
_WIDER: Final = _WIDE_BORN | _WIDE_STORE
MAGICS: Final = tuple(
    magic.to_bytes(4, "big", signed=True) for magic in (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2)
)
_WORD_BYTES: Final = len(MAGICS[0])
_MARK: Final = b"\xff" * (2 * _WORD_BYTES)
"""What no number of an empty record is."""


def _record(flags: int = 0, place: int = 0, body: bytes = b"", **fields: Any) -> bytes:
    """A record as the codec writes it, with addresses as wide as its flags say."""
    record = LogRecord(
        magic=LogMagic.MESSAGE_V1,
        body_crc=0,
        sys_flag=flags,
        physical_offset=place,
        born_ip=bytes(16 if flags & _WIDE_BORN else 4),
        store_ip=bytes(16 if flags & _WIDE_STORE else 4),
        body=body,
    )
    return replace(record, **fields).encode()


def _first_difference(one: bytes, other: bytes) -> int:
    return next(at for at, (left, right) in enumerate(zip(one, other, strict=True)) if left != right)


MAGIC_AT: Final = _record().index(MAGICS[0])
MAGIC_END: Final = MAGIC_AT + _WORD_BYTES
PLACE_AT: Final = _first_difference(_record(), _record(place=-1))
PLACE_END: Final = PLACE_AT + len(_MARK)
_FLAGS_LAST: Final = _first_difference(_record(), _record(flags=1))
"""The byte with the flags that matter, the last one of their number."""
_WIDTHS: Final = (0, _WIDE_BORN, _WIDE_STORE, _WIDER)
BODY_AT: Final = {flags: _record(flags, body=_MARK).index(_MARK) for flags in _WIDTHS}
"""Where a body begins, by the flags that say how wide the addresses before it are."""
LEAST_BYTES: Final = len(_record())
QUEUE_AT: Final = _first_difference(_record(), _record(queue_id=-1))
QUEUE_OFFSET_AT: Final = _first_difference(_record(), _record(queue_offset=-1))
_HOST_BYTES: Final = {flags: 16 if flags & _WIDE_STORE else 4 for flags in _WIDTHS}
STORED_AT: Final = {
    flags: _record(flags, store_ip=_MARK * 2 if size > _WORD_BYTES else _MARK[:size]).index(_MARK[:size])
    for flags, size in _HOST_BYTES.items()
}
"""Where the host begins that stored it, by the same."""
STORED_BYTES: Final = {flags: size + _WORD_BYTES for flags, size in _HOST_BYTES.items()}
"""How many bytes that host and its port are."""
_ANY_MAGIC: Final = re.compile(b"|".join(map(re.escape, MAGICS)))


def widths_of(buffer: bytes, at: int) -> int:
    """Of the record there, the flags that say how wide addresses are."""
    return buffer[at + _FLAGS_LAST] & _WIDER


def records_in(buffer: bytes, begin: int, end: int, offset: int) -> list[Record]:
    """The whole records in `buffer[begin:end]`, log bytes that lie at `offset`."""
    found: list[Record] = []
    number, view, last, away = int.from_bytes, memoryview(buffer), end - LEAST_BYTES, offset - begin
    at = begin
    while at <= last:
        magic_at = at + MAGIC_AT
        size = number(buffer[at:magic_at], "big")
        place = number(buffer[at + PLACE_AT : at + PLACE_END], "big")
        is_message = buffer[magic_at : at + MAGIC_END] in MAGICS
        if place != at + away or not is_message or size < LEAST_BYTES:
            # The end of a record, a blank one at the end of a file, or damage.
            magic = _ANY_MAGIC.search(buffer, magic_at + 1, end)
            if magic is None:
                break
            at = magic.start() - MAGIC_AT
            continue
        following = at + size
        if following > end:
            break
        body = at + BODY_AT[widths_of(buffer, at)]
        length = number(buffer[body - _WORD_BYTES : body], "big")
        if length <= following - body:
            found.append((place, crc32(view[body : body + length])))
        at = following
    return found
