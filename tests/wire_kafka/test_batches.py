"""Batches of records: those that Kafka's own classes wrote, any that we write, and hostile ones."""

from __future__ import annotations

import contextlib
import gzip
import json
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.runtime.kafka import batches
from replispec.runtime.kafka.batches import Batch, batch_of, batches_in, fault_of, place, records_of
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.kafka import constants
from replispec.wire.kafka.codes import BatchAttribute, Compression, ErrorCode
from replispec.wire.kafka.records import Record, RecordBatch, RecordBatchFixed, RecordHeader
from replispec.wire.kafka.streams import SEGMENT
from tests.wire_kafka.written import FOLDER

WRITTEN = [json.loads(line) for line in (FOLDER / "batches.jsonl").read_text("utf-8").splitlines()]
written = pytest.mark.parametrize("said", WRITTEN, ids=[str(number) for number in range(len(WRITTEN))])
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
MAYBE = st.none() | st.binary(max_size=200)
RECORDS = st.builds(
    Record,
    attributes=st.integers(-128, 127),
    timestamp_delta=INT64,
    offset_delta=st.integers(0, (1 << 31) - 1),
    key=MAYBE,
    value=MAYBE,
    headers=st.lists(st.builds(RecordHeader, key=st.text(max_size=70), value=MAYBE), max_size=3),
)


def the(data: bytes) -> Batch:
    """The only batch of these bytes."""
    (found,) = batches_in(data, may_be_cut=False)
    return found


# ---- what Kafka wrote ----------------------------------------------------------------------------


@written
def test_kafkas_batch_is_read_as_kafka_means_it(said: dict[str, Any]) -> None:
    data = bytes.fromhex(said["bytes"])
    batch = the(data)
    head = batch.head
    assert (head.base_offset, head.partition_leader_epoch, head.crc, head.records_count) == (
        said["base_offset"], said["leader_epoch"], said["crc"], said["count"]
    )  # fmt: skip
    assert (head.producer_id, head.producer_epoch, head.base_sequence, head.max_timestamp) == (
        said["producer_id"], said["producer_epoch"], said["base_sequence"], said["max_timestamp"]
    )  # fmt: skip
    assert batches.next_offset(head) == said["last_offset"] + 1
    assert batches.compression_of(head) == said["compression"]
    assert bool(head.attributes & BatchAttribute.APPEND_TIME) == said["append_time"]
    assert bool(head.attributes & BatchAttribute.TRANSACTION) == said["transactional"]
    assert [_said(head, each) for each in records_of(data, batch)] == said["records"]


def _said(head: RecordBatchFixed, record: Record) -> dict[str, Any]:
    """A record in Kafka's words."""
    is_appended = head.attributes & BatchAttribute.APPEND_TIME
    return {
        "offset": head.base_offset + record.offset_delta,
        "timestamp": head.max_timestamp if is_appended else head.first_timestamp + record.timestamp_delta,
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": [[each.key, None if each.value is None else each.value.hex()] for each in record.headers],
    }


@written
def test_kafkas_batch_is_written_back_byte_for_byte_with_a_checksum_of_our_own(said: dict[str, Any]) -> None:
    data = bytes.fromhex(said["bytes"])
    batch = RecordBatch.decode(data)
    assert batch.crc_holds
    assert RecordBatchFixed.crc_holds(data, 0, len(data))
    batch.crc = None
    if the(data).head.attributes & BatchAttribute.COMPRESSION == Compression.NONE:
        batch.records = b"".join(each.encode() for each in records_of(data, the(data)))
    assert batch.encode() == data


@written
def test_a_batch_cut_anywhere_is_left_out_or_blamed(said: dict[str, Any]) -> None:
    data = bytes.fromhex(said["bytes"])
    for cut in range(len(data)):
        assert list(batches_in(data + data[:cut], may_be_cut=True)) == [the(data)]
        if cut:
            with pytest.raises(RemoteProtocolError, match="the last batch is cut"):
                list(batches_in(data + data[:cut], may_be_cut=False))


@written
def test_a_bit_that_turned_after_the_checksum_is_noticed(said: dict[str, Any]) -> None:
    data = bytearray.fromhex(said["bytes"])
    for at in range(RecordBatchFixed.places()["attributes"][0], len(data)):
        data[at] ^= 4
        assert not RecordBatchFixed.crc_holds(data, 0, len(data))
        data[at] ^= 4


# ---- a leader ------------------------------------------------------------------------------------


@written
def test_a_leader_places_a_batch_without_touching_anything_else(said: dict[str, Any]) -> None:
    before = bytes.fromhex(said["bytes"])
    data = bytearray(before * 2)
    second = list(batches_in(data, may_be_cut=False))[1]
    place(data, second, base_offset=1 << 40, leader_epoch=7)
    assert bytes(data[: len(before)]) == before
    placed = list(batches_in(data, may_be_cut=False))[1]
    assert placed.head == second.head._replace(base_offset=1 << 40, partition_leader_epoch=7)
    assert data[placed.start + 16 :] == before[16:]
    assert RecordBatchFixed.crc_holds(data, placed.start, placed.end)


def test_a_segment_is_a_stream_of_batches() -> None:
    whole = b"".join(bytes.fromhex(said["bytes"]) for said in WRITTEN)
    buffer = FrameBuffer(SEGMENT)
    found = [frame for at in range(0, len(whole), 97) for frame in buffer.receive(whole[at : at + 97])]
    assert found == [whole[each.start : each.end] for each in batches_in(whole, may_be_cut=False)]


PLAIN = batch_of([(1_000, b"k", b"v"), (1_005, None, b"")])


def edited(**fields: Any) -> bytes:
    """The plain batch with other fields, and a checksum that fits."""
    batch = RecordBatch.decode(PLAIN)
    batch.crc = None
    for name, value in fields.items():
        setattr(batch, name, value)
    return batch.encode()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (PLAIN, ErrorCode.NONE),
        (b"", ErrorCode.INVALID_RECORD),
        (PLAIN * 2, ErrorCode.INVALID_RECORD),
        (PLAIN[:-1], ErrorCode.CORRUPT_MESSAGE),
        (PLAIN[:5], ErrorCode.CORRUPT_MESSAGE),
        (PLAIN[:11] + b"\x01" + PLAIN[12:], ErrorCode.CORRUPT_MESSAGE),
        (PLAIN[:8] + b"\x7f\xff\xff\xff" + PLAIN[12:], ErrorCode.CORRUPT_MESSAGE),
        (PLAIN[:-1] + b"\x05", ErrorCode.CORRUPT_MESSAGE),
        (PLAIN[:16] + b"\x01" + PLAIN[17:], ErrorCode.INVALID_RECORD),
        (PLAIN[:16] + b"\x00" + PLAIN[17:], ErrorCode.INVALID_RECORD),
        (edited(producer_id=5), ErrorCode.INVALID_REQUEST),
        (edited(records_count=1), ErrorCode.INVALID_RECORD),
        (edited(records_count=0), ErrorCode.INVALID_RECORD),
        (edited(attributes=int(BatchAttribute.CONTROL)), ErrorCode.INVALID_RECORD),
        (edited(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (edited(attributes=int(Compression.ZSTD)), ErrorCode.NONE),
    ],
)
def test_a_producer_is_told_what_is_wrong_with_its_batch(data: bytes, code: ErrorCode) -> None:
    assert fault_of(data) is code


# ---- any batch, any garbage ----------------------------------------------------------------------


@given(record=RECORDS)
def test_a_record_is_read_back_and_ends_where_it_ends(record: Record) -> None:
    data = record.encode()
    assert Record.decode_at(b"\1" + data + b"\2", 1, len(data) + 2) == (record, len(data) + 1)
    for cut in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            Record.decode(data[:cut])


@settings(max_examples=300)
@given(garbage=st.binary(max_size=60), size=st.integers(0, 40))
def test_garbage_is_a_record_or_blamed_on_the_peer(garbage: bytes, size: int) -> None:
    data = bytes([size]) + garbage
    with contextlib.suppress(RemoteProtocolError):
        assert Record.decode(data).encode() == data


def test_counts_and_lengths_that_promise_gigabytes_are_refused_before_room_is_made() -> None:
    huge = bytes.fromhex("feffffff0f")
    for data in (huge, b"\x10\0\0\0" + huge, b"\x12\0\0\0\1" + huge, b"\x14\0\0\0\1\1" + huge):
        with pytest.raises(RemoteProtocolError, match=r"2147483647 bytes needed"):
            Record.decode(data)


def test_gzip_that_grows_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = edited(attributes=int(Compression.GZIP), records=gzip.compress(bytes(10_000)))
    monkeypatch.setattr(constants, "UNPACKED_BYTES_MAX", 9_999)
    with pytest.raises(RemoteProtocolError, match="more than 9999 bytes"):
        records_of(data, the(data))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"records_count": 3}, r"Record\.length: 1 bytes needed, 0 left"),
        ({"records_count": 1}, r"bytes after the last record of a batch"),
        ({"attributes": int(Compression.LZ4)}, r"are not read"),
        ({"attributes": int(Compression.GZIP)}, r"are no gzip"),
    ],
)
def test_records_that_are_not_what_the_head_says_are_blamed(fields: dict[str, Any], says: str) -> None:
    data = edited(**fields)
    with pytest.raises(RemoteProtocolError, match=says):
        records_of(data, the(data))


def test_what_does_not_fit_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match=r"Record\.offset_delta: 2147483648 does not fit 4 bytes"):
        Record(offset_delta=1 << 31).encode()
    with pytest.raises(ValueError, match="a record at least"):
        batch_of([])


def test_the_checksum_is_that_of_castagnoli_and_computed_in_compiled_code() -> None:
    assert google_crc32c.value(b"123456789") == 0xE3069283
    assert google_crc32c.implementation == "c"
