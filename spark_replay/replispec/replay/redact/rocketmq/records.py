"""Messages in stores and batches, replaced field by field; sizes, places and numbers stay.

What does not decode becomes zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from replispec.replay.frames.rocketmq.log_records import MAGIC_AT, MAGIC_END, MAGICS, PLACE_AT, PLACE_END
from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.constants import KEYS_PROPERTY, TAG_PROPERTY, UNIQUE_KEY_PROPERTY
from replispec.wire.rocketmq.store import LogBlank, LogRecord, OffsetMessageId, OffsetMessageIdV6

# The properties that a replay tells of, by their names.
_PROPERTIES: Final = frozenset(name.encode() for name in (KEYS_PROPERTY, TAG_PROPERTY, UNIQUE_KEY_PROPERTY))
_ENDS: Final = re.compile(rb"(\x01|\x02|\\u000[12])")
_HEX: Final = re.compile(r"(?:[0-9A-F]{32}|[0-9A-F]{56}|[0-9a-f]{32}|[0-9a-f]{56})")
_NUMBERS: Final = re.compile(rb"[0-9]{1,20}(?:[;,][0-9]{1,20})*[;,]?")
_V4_ID_CHARACTERS: Final = 32
HEAD_BYTES: Final = MAGIC_END
"""What tells how long a record is: its size, then its magic number."""
_RECORD_BYTES_MAXIMUM: Final = 16_777_216
_BLANK_BYTES_MAXIMUM: Final = 1 << 30
_BLANK_MAGIC: Final = LogBlank.magic.to_bytes(MAGIC_END - MAGIC_AT, "big", signed=True)


class Records:
    """Replaces what records hold."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names

    def held(self, holds: str, text: bytes) -> bytes | None:
        """What a text becomes that holds something else than names; None where it does not hold it."""
        if holds == "PROPERTIES":
            return self.properties(text)
        if holds == "NUMBERS":
            return text if _NUMBERS.fullmatch(text) else None
        if holds == "MESSAGE_IDS":
            ids = text.decode("latin-1").split(",")
            if all(_HEX.fullmatch(each) for each in ids):
                return ",".join(map(self._message_id, ids)).encode()
        return None

    def _message_id(self, text: str) -> str:
        kind = OffsetMessageId if len(text) == _V4_ID_CHARACTERS else OffsetMessageIdV6
        found = kind.decode(bytes.fromhex(text))
        made = replace(found, store_ip=self._names.address(found.store_ip)).encode().hex()
        return made.upper() if text.upper() == text else made

    def properties(self, text: bytes) -> bytes:
        """Names and values, each closed by a control character, as it is or escaped for JSON."""
        parts = _ENDS.split(text)
        for at in range(0, len(parts), 2):
            if parts[at] not in _PROPERTIES:
                parts[at] = self._names.escaped(parts[at])
        return b"".join(parts)

    def batch(self, body: bytes) -> bytes:
        """The messages of a batch; zeros from the first on that is none."""
        return self._run(body, self._batch_message)

    def run(self, body: bytes) -> bytes:
        """Whole records one after the other; zeros from the first on that is none."""
        return self._run(body, self._one)

    def _run(self, body: bytes, read: Callable[[bytes, int], tuple[bytes, int]]) -> bytes:
        at, made = 0, b""
        try:
            while at < len(body):
                part, at = read(body, at)
                made += part
        except RemoteProtocolError:
            pass
        return made + bytes(len(body) - len(made))

    def _batch_message(self, body: bytes, at: int) -> tuple[bytes, int]:
        message, end = BatchMessage.decode_at(body, at, len(body))
        shown = replace(
            message,
            body=self._names.content(message.body),
            properties=self.properties(message.properties),
        )
        return _same_size(shown.encode(), end - at), end

    def _one(self, body: bytes, at: int) -> tuple[bytes, int]:
        if body[at + MAGIC_AT : at + HEAD_BYTES] not in MAGICS:
            _, end = LogBlank.decode_at(body, at, len(body))
            return LogBlank(bytes(end - at - HEAD_BYTES)).encode(), end
        record, end = LogRecord.decode_at(body, at, len(body))
        shown = replace(
            record,
            body=self._names.content(record.body),
            body_crc=None,
            topic=self._names.text(record.topic.encode()).decode(),
            properties=self.properties(record.properties),
            born_ip=self._names.address(record.born_ip),
            store_ip=self._names.address(record.store_ip),
            tail=bytes(len(record.tail)),
        )
        return _same_size(shown.encode(), end - at), end

    def record(self, log: bytes) -> bytes:
        """One whole record, replaced. Raises RemoteProtocolError when it is none."""
        return self._one(log, 0)[0]


def size_told(head: bytes | bytearray) -> int:
    """How many bytes the record has that begins so, or has to show before that is told.

    Raises RemoteProtocolError when no record begins so.
    """
    if len(head) < HEAD_BYTES:
        return HEAD_BYTES
    size = int.from_bytes(head[:MAGIC_AT], "big")
    is_message = bytes(head[MAGIC_AT:HEAD_BYTES]) in MAGICS
    if not HEAD_BYTES <= size <= (_RECORD_BYTES_MAXIMUM if is_message else _BLANK_BYTES_MAXIMUM):
        raise RemoteProtocolError("no record starts here")
    if not is_message and head[MAGIC_AT:HEAD_BYTES] != _BLANK_MAGIC:
        raise RemoteProtocolError("no record starts here")
    return size


def next_record(log: bytes | bytearray, offset: int) -> int | None:
    """Where in bytes of a log that lie at `offset` a record starts which knows its own place."""
    for at in sorted(_magic_places(log)):
        place = int.from_bytes(log[at + PLACE_AT : at + PLACE_END], "big")
        if place == offset + at:
            return at
    return None


def _magic_places(log: bytes | bytearray) -> list[int]:
    found = []
    for magic in MAGICS:
        at = log.find(magic, MAGIC_AT)
        while at >= 0:
            found.append(at - MAGIC_AT)
            at = log.find(magic, at + 1)
    return found


def _same_size(made: bytes, size: int) -> bytes:
    if len(made) != size:
        raise RemoteProtocolError(f"{size} bytes became {len(made)}")
    return made
