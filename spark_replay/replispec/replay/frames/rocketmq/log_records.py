"""Messages in log bytes on their way to a replica: where each record starts, and the CRC-32 of its body.

A run of log bytes may begin and end within a record. A record is known by its magic number and by its own
place, which it holds; one that does not lie whole in the run is left out, as the rest of it is in another
frame. Places of fields are asked of the codec, once.

Source: apache/rocketmq rocketmq-all-5.4.0, CommitLog, AutoSwitchHAConnection.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final
from zlib import crc32

from replispec.replay.frames.readers import Record
from replispec.wire.rocketmq.codes import LogMagic, MessageFlag
from replispec.wire.rocketmq.store import LogRecord

_WIDE_BORN, _WIDE_STORE = int(MessageFlag.BORN_HOST_IPV6), int(MessageFlag.STORE_HOST_IPV6)
_WIDER: Final = _WIDE_BORN | _WIDE_STORE
_MAGICS: Final = tuple(int(magic) for magic in (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2))
_MARK: Final = b"\xff" * 8
"""What no number of an empty record is."""


def _record(flags: int = 0, place: int = 0, transaction: int = 0, body: bytes = b"") -> bytes:
    """A record as the codec writes it, with addresses as wide as its flags say."""
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        body_crc=0,
        sys_flag=flags,
        physical_offset=place,
        prepared_transaction_offset=transaction,
        born_ip=bytes(16 if flags & _WIDE_BORN else 4),
        store_ip=bytes(16 if flags & _WIDE_STORE else 4),
        body=body,
    ).encode()


def _first_difference(one: bytes, other: bytes) -> int:
    return next(at for at, (left, right) in enumerate(zip(one, other, strict=True)) if left != right)


_MAGIC_AT: Final = _record().index(LogMagic.MESSAGE_V1.to_bytes(4, "big", signed=True))
_PLACE_AT: Final = _first_difference(_record(), _record(place=-1))
_FLAGS_AT: Final = _first_difference(_record(), _record(flags=-1 << 31))
_HEAD: Final = Struct(f">i{_MAGIC_AT - 4}xi{_PLACE_AT - _MAGIC_AT - 4}xq{_FLAGS_AT - _PLACE_AT - 8}xi")
_LENGTH: Final = Struct(">i")
_BODY_AT: Final = {
    flags: _record(flags, body=_MARK).index(_MARK)
    for flags in (0, _WIDE_BORN, _WIDE_STORE, _WIDE_BORN | _WIDE_STORE)
}
"""Where a body begins, by the flags that say how wide the addresses before it are."""
_LEAST_BYTES: Final = len(_record())
_ANY_MAGIC: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big", signed=True)) for magic in _MAGICS)
)


def records_in(buffer: bytes, begin: int, end: int, offset: int) -> list[Record]:
    """The whole records in `buffer[begin:end]`, log bytes that lie at `offset`."""
    found: list[Record] = []
    view, last, away = memoryview(buffer), end - _LEAST_BYTES, offset - begin
    at = begin
    while at <= last:
        size, magic, place, flags = _HEAD.unpack_from(buffer, at)
        if place != at + away or magic not in _MAGICS or size < _LEAST_BYTES:
            # The end of a record, a blank one at the end of a file, or damage.
            magic_at = _ANY_MAGIC.search(buffer, at + _MAGIC_AT + 1, end)
            if magic_at is None:
                break
            at = magic_at.start() - _MAGIC_AT
            continue
        following = at + size
        if following > end:
            break
        body = at + _BODY_AT[flags & _WIDER]
        (length,) = _LENGTH.unpack_from(buffer, body - _LENGTH.size)
        if 0 <= length <= following - body:
            found.append((place, crc32(view[body : body + length])))
        at = following
    return found
