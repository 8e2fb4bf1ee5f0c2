"""Batches of records where they lie: found, judged, placed in a log, and read only by who wants the records.

Source: apache/kafka 2.8.2, DefaultRecordBatch, LogValidator. A leader writes two fields of a batch, which no
checksum covers, and passes everything else on as it came: nothing here copies a batch or unpacks it, but
`records_of`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from replispec.runtime.primitives.binary import Buffer
from replispec.runtime.primitives.checksums import crc32c
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka import constants
from replispec.wire.kafka.codes import BatchAttribute, Compression, ErrorCode
from replispec.wire.kafka.records import Record, RecordBatch, RecordBatchFixed
from replispec.wire.kafka.streams import SEGMENT

__all__ = [
    "Batch",
    "batch_of",
    "batches_in",
    "compression_of",
    "fault_of",
    "next_offset",
    "place",
    "records_of",
    "set_append_time",
]

_PLACES: Final = RecordBatchFixed.places()


class Batch(NamedTuple):
    """A whole batch at `buffer[start:end]`, of which nothing but the head was read."""

    start: int
    end: int
    head: RecordBatchFixed


def batches_in(buffer: Buffer, at: int = 0, end: int | None = None, *, may_be_cut: bool) -> Iterator[Batch]:
    """The batches that follow one another in `buffer[at:end]`; their checksums are not looked at.

    With `may_be_cut` a last one that is not whole is left out, as at the end of the answer to a fetch or of a
    file that was being written. Raises RemoteProtocolError for one that is cut otherwise, of another format
    than 2, or shorter than its head.
    """
    limit = len(buffer) if end is None else end
    while at < limit:
        size = SEGMENT.measure(buffer, at, limit)
        if size < 0 or at + size > limit:
            if may_be_cut:
                return
            raise RemoteProtocolError("the last batch is cut", offset=at)
        yield Batch(at, at + size, RecordBatchFixed.decode(buffer, at))
        at += size


def fault_of(data: Buffer) -> ErrorCode:
    """Why what a producer sends for one partition cannot be appended; NONE when it can.

    One whole batch is taken, with its own checksum, as many records as its offsets say, and no producer id:
    producers that are idempotent or transactional are not served.
    """
    try:
        found = list(batches_in(data, may_be_cut=False))
    except RemoteProtocolError:
        is_old = len(data) > _PLACES["magic"][0] and _magic(data) != RecordBatch.magic
        return ErrorCode.INVALID_RECORD if is_old else ErrorCode.CORRUPT_MESSAGE
    if len(found) != 1:
        return ErrorCode.INVALID_RECORD
    batch = found[0]
    if not RecordBatchFixed.crc_holds(data, batch.start, batch.end):
        return ErrorCode.CORRUPT_MESSAGE
    if batch.head.producer_id != constants.NO_PRODUCER:
        return ErrorCode.INVALID_REQUEST
    if batch.head.records_count < 1 or batch.head.records_count != batch.head.last_offset_delta + 1:
        return ErrorCode.INVALID_RECORD
    if batch.head.attributes & BatchAttribute.CONTROL:
        return ErrorCode.INVALID_RECORD
    if compression_of(batch.head) is None:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def _magic(data: Buffer) -> int:
    return int(data[_PLACES["magic"][0]])


def compression_of(head: RecordBatchFixed) -> Compression | None:
    """How the records are compressed; None for a number that has no meaning."""
    number = head.attributes & BatchAttribute.COMPRESSION
    return Compression(number) if number in Compression._value2member_map_ else None


def next_offset(head: RecordBatchFixed) -> int:
    """The offset after the last one of the batch."""
    return head.base_offset + head.last_offset_delta + 1


def place(buffer: bytearray | memoryview, batch: Batch, base_offset: int, leader_epoch: int) -> None:
    """Write into a batch, where it lies, the offset at which it begins and the leader epoch of this log."""
    for name, value in (("base_offset", base_offset), ("partition_leader_epoch", leader_epoch)):
        _write(buffer, batch, name, value)


def set_append_time(buffer: bytearray, batch: Batch, now_ms: int) -> None:
    """Write into a batch, where it lies, that its records were appended at this time, and its checksum."""
    attributes = batch.head.attributes | BatchAttribute.APPEND_TIME
    for name, value in (("attributes", attributes), ("max_timestamp", now_ms)):
        _write(buffer, batch, name, value)
    checksum_end = batch.start + sum(_PLACES["crc"])
    _write(
        buffer, batch, "crc", crc32c(memoryview(buffer)[checksum_end : batch.end], constants.BATCH_CRC_MASK)
    )


def _write(buffer: bytearray | memoryview, batch: Batch, name: str, value: int) -> None:
    at, size = _PLACES[name]
    start = batch.start + at
    buffer[start : start + size] = value.to_bytes(size, "big", signed=name != "crc")


def records_of(buffer: Buffer, batch: Batch) -> list[Record]:
    """The records of a batch. What gzip compressed is unpacked; other ways are not known here.

    Raises RemoteProtocolError when they are not as many as the head says, do not end where the batch does, or
    cannot be unpacked.
    """
    data: Buffer = memoryview(buffer)[batch.start + len(batch.head.encode()) : batch.end]
    compression = compression_of(batch.head)
    if compression is Compression.GZIP:
        data = _unpacked(data)
    elif compression is not Compression.NONE:
        raise RemoteProtocolError(f"records that are compressed in the way {compression!r} are not read")
    records, at = [], 0
    for _ in range(batch.head.records_count):
        record, at = Record.decode_at(data, at, len(data))
        records.append(record)
    if at != len(data):
        raise RemoteProtocolError(f"{len(data) - at} bytes after the last record of a batch", offset=at)
    return records


def _unpacked(data: Buffer) -> bytes:
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        found = reader.decompress(data, constants.UNPACKED_BYTES_MAX)
    except zlib.error as fault:
        raise RemoteProtocolError(f"records of a batch are no gzip: {fault}") from None
    if not reader.eof:
        raise RemoteProtocolError(
            f"records of a batch are cut, or more than {constants.UNPACKED_BYTES_MAX} bytes"
        )
    return found


def batch_of(records: Sequence[tuple[int, bytes | None, bytes | None]], **said: int) -> bytes:
    """A batch as a producer sends it, of (time in ms, key, value); `said` is what else its head says.

    Raises LocalProtocolError when something does not fit, ValueError without any record.
    """
    if not records:
        raise ValueError("a batch has a record at least")
    first = records[0][0]
    made = [
        Record(timestamp_delta=time - first, offset_delta=number, key=key, value=value)
        for number, (time, key, value) in enumerate(records)
    ]
    return RecordBatch(
        partition_leader_epoch=said.get("partition_leader_epoch", -1),
        base_offset=said.get("base_offset", 0),
        last_offset_delta=len(made) - 1,
        first_timestamp=first,
        max_timestamp=max(time for time, _, _ in records),
        producer_id=constants.NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=len(made),
        records=b"".join(each.encode() for each in made),
    ).encode()
