"""What is kept of bodies: the heads of batches stand for the batches.

What an answer means its request tells, which lies in the other direction and maybe in another part of the
capture. So bodies are kept until both are known, but no record is: of each batch its first bytes remain,
which say where it lies, of which epoch it is, and the checksum of its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka.clients import ApacheFetchResponse
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.records import RecordBatchFixed
from replispec.wire.kafka.requests import ApacheRequestFrame
from replispec.wire.kafka.streams import SEGMENT

KEPT_BYTES_MAX: Final = 1 << 20
"""What is longer without its records is not kept."""
HEAD_BYTES: Final = sum(max(RecordBatchFixed.places().values()))
_FETCHED: Final = next(each for each in APACHE_RESPONSE_FRAME.forms if each.answer is ApacheFetchResponse)


def kept_request(frame: ApacheRequestFrame) -> bytes | None:
    """The body of a request without records; None where it is too long. Never raises for what it holds."""
    if frame.api_key != ApiKey.PRODUCE:
        return _short(frame.body)
    try:
        message: Any = APACHE_RESPONSE_FRAME.read_request(frame)
        if message is None:
            return _short(frame.body)
        _cut_down(message)
        return _short(bytes(message.encode(version=frame.api_version)))
    except RemoteProtocolError:
        return _short(frame.body)


def kept_answer(body: bytes) -> bytes | None:
    """The body of an answer without records; None where it is too long. Batches stand in answers to fetches
    alone, whose forms no other answer with a batch in it fits."""
    if len(body) > HEAD_BYTES:
        for version in range(_FETCHED.first, _FETCHED.last + 1):
            message = _as_fetched(body, version)
            if message is not None:
                return _short(bytes(message.encode(version=version)))
    return _short(body)


def heads_of(records: bytes | None) -> Iterator[RecordBatchFixed]:
    """The heads in a field of records that was cut down."""
    data = records or b""
    for at in range(0, len(data) - HEAD_BYTES + 1, HEAD_BYTES):
        yield RecordBatchFixed.decode(data, at)


def _as_fetched(body: bytes, version: int) -> ApacheFetchResponse | None:
    try:
        message = ApacheFetchResponse.decode(body, version=version)
        return message if _cut_down(message) else None
    except RemoteProtocolError:
        return None


def _cut_down(message: Any) -> bool:
    """Leave the heads of batches of every partition; whether there were any. Raises RemoteProtocolError."""
    found = False
    for topic in message.topics:
        for partition in topic.partitions:
            if partition.records:
                partition.records = _heads(partition.records)
                found = found or bool(partition.records)
    return found


def _heads(records: bytes) -> bytes:
    """The first bytes of each whole batch. Raises RemoteProtocolError for what is no batch."""
    found, at = [], 0
    while at < len(records):
        size = SEGMENT.measure(records, at, len(records))
        if size < 0 or at + size > len(records):
            break
        found.append(records[at : at + HEAD_BYTES])
        at += size
    return b"".join(found)


def _short(body: bytes) -> bytes | None:
    return bytes(body) if len(body) <= KEPT_BYTES_MAX else None
