"""Kafka's messages as Wireshark's own dissector reads them: a judge that knows nothing of ours.

It knows Apache Kafka's bytes; the replication design V3 was never dissected by anybody. Every key is asked
and answered in every version, with messages that Kafka's own classes wrote and batches of theirs in them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.kafka.batches import Batch, batches_in, records_of
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from tests.replay.pcap_writer import Conversation, pcap
from tests.wire_kafka.written import FOLDER, WRITTEN
from tests.wireshark.tshark_run import run_tshark

# Kafka's port, by which tshark knows the protocol.
PORT = 9092
# What tshark 4.0 misreads: it looks for offline replicas, which version 4 brought.
MISREAD = {(6, 3)}
# Wireshark's names of what our attributes hold, where it has one.
FILTERS = {
    "acks": "required_acks",
    "broker_id": "node_id",
    "controller_id": "node_id",
    "delete_partitions": "delete_partitions",
    "end_offset": "offset",
    "fetch_offset": "offset",
    "host_name": "host",
    "include_cluster_authorized_operations": "include_cluster_authorized_ops",
    "include_topic_authorized_operations": "include_topic_authorized_ops",
    "cluster_authorized_operations": "cluster_authorized_ops",
    "topic_authorized_operations": "topic_authorized_ops",
    "index": "partition_id",
    "is_new": "is_new_replica",
    "isr": "isr_id",
    "isr_nodes": "isr_id",
    "leader": "leader_id",
    "listener": "listener_name",
    "log_append_time": "offset_time",
    "max_wait": "max_wait_time",
    "min_version": "api_versions.min_version",
    "max_version": "api_versions.max_version",
    "name": "topic_name",
    "offline_replicas": "offline_id",
    "partition": "partition_id",
    "partition_index": "partition_id",
    "partition_indexes": "partition_id",
    "partition_max_bytes": "max_bytes",
    "base_offset": "offset",
    "preferred_read_replica": "replica_id",
    "rack_id": "rack",
    "replica_nodes": "replica_id",
    "replicas": "replica_id",
    "security_protocol": "broker_security_protocol_type",
    "session_epoch": "fetch_session_epoch",
    "session_id": "fetch_session_id",
    "timestamp": "offset_time",
    "topic": "topic_name",
}
# The same, where an attribute of this message has another one.
OF_MESSAGES = {
    ("ApacheApiVersion", "api_key"): "api_versions.api_key",
    ("ApacheFetchPartition", "current_leader_epoch"): "leader_epoch",
    ("ApacheListOffsetsPartition", "current_leader_epoch"): "leader_epoch",
    ("ApacheFetchPartitionResponse", "high_watermark"): "offset",
    ("ApacheUpdateMetadataPartition", "isr"): "replica_id",
    ("ApacheUpdateMetadataPartition", "offline_replicas"): "replica_id",
    ("ApacheFetchForgottenTopic", "topic"): "forgotten_topic_name",
    ("ApacheFetchForgottenTopic", "partitions"): "forgotten_topic_partition",
}
# Numbers that tshark takes for unsigned, and how it writes them.
UNSIGNED = {
    "batch_index": "{}",
    "cluster_authorized_ops": "0x{:08x}",
    "topic_authorized_ops": "0x{:08x}",
}
# What tshark says of a text that is not there; ours is None, as what its version does not have.
NULL = "[ Null ]"
# What it adds of its own, and a time that it prints as one of the calendar.
ADDED = (
    *("len", "request_key", "response_key", "request.version", "response.version"),
    *("request_frame", "response_frame", "unknown_api_key"),
    *("batch_codec", "batch_timestamp_type", "batch_transactional", "batch_control_batch"),
    *("batch_first_timestamp", "batch_last_timestamp", "message_timestamp"),
)
Seen = dict[str, list[str]]
Row = tuple[str, str]


def values(message: Any) -> Iterator[Row]:
    """(filter, value as tshark writes it) of a message and its elements, in the order of the bytes."""
    kind = type(message).__name__
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        name = OF_MESSAGES.get((kind, field.name), FILTERS.get(field.name, field.name))
        if field.name == "body":
            continue
        if field.name == "records":
            for batch in batches_in(value, may_be_cut=False):
                yield from batch_values(value, batch)
            continue
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            if dataclasses.is_dataclass(one):
                yield from values(one)
            else:
                yield name, UNSIGNED[name].format(one & 0xFFFFFFFF) if name in UNSIGNED else _text(one)


def batch_values(data: bytes, batch: Batch) -> Iterator[Row]:
    """The same of a batch and its records."""
    head = batch.head
    yield "offset", str(head.base_offset)
    yield "message_size", str(head.batch_length)
    yield "leader_epoch", str(head.partition_leader_epoch)
    yield "message_magic", str(head.magic)
    yield "batch_crc", f"0x{head.crc:08x}"
    yield "batch_last_offset_delta", str(head.last_offset_delta)
    yield "producer_id", str(head.producer_id)
    yield "producer_epoch", str(head.producer_epoch)
    yield "batch_base_sequence", str(head.base_sequence)
    yield "batch_size", str(head.records_count)
    for record in records_of(data, batch):
        yield "record_attributes", str(record.attributes)
        yield "offset", str(head.base_offset + record.offset_delta)
        yield "message_key", _text(record.key or b"")
        yield "message_value", _text(record.value or b"")
        for header in record.headers:
            # An empty text at this place is NULL for tshark.
            yield "header_key", header.key or NULL
            yield "header_value", _text(header.value or b"")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex(":")
    return str(int(value)) if isinstance(value, bool | int) else str(value)


def expected(*messages: Any) -> Seen:
    """Filter -> values in order."""
    seen: Seen = {}
    for message in messages:
        for name, value in values(message):
            seen.setdefault(f"kafka.{name}", []).append(value)
    return seen


def _read(layer: list[tuple[str, Any]], seen: Seen) -> Seen:
    """What tshark says below one layer."""
    for name, value in layer:
        if isinstance(value, list):
            _read(value, seen)
        elif name.startswith("kafka.") and name.removeprefix("kafka.") not in ADDED:
            seen.setdefault(name, []).append(str(value))
        assert "malformed" not in name
        assert "request_missing" not in name
    return seen


def _with_batches(message: Any, batches: Iterator[bytes]) -> None:
    """Put batches where there are random bytes."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "records":
            message.records = next(batches)
        # tshark loses its place after an empty one.
        if field.name == "transactional_id":
            message.transactional_id = value or None
        for one in value if isinstance(value, list) else []:
            if dataclasses.is_dataclass(one):
                _with_batches(one, batches)


def _batches() -> Iterator[bytes]:
    """Batches of Kafka's without compression, again and again."""
    lines = (FOLDER / "batches.jsonl").read_text("utf-8").splitlines()
    plain = [bytes.fromhex(said["bytes"]) for said in map(json.loads, lines) if said["compression"] == 0]
    while True:
        yield from plain


@pytest.fixture(scope="module")
def dissected(tshark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Seen, Seen]]:
    """For each frame what was written, and what tshark reads."""
    talk = Conversation(("10.0.0.1", 40000), ("10.0.0.2", PORT)).open()
    batches = _batches()
    expectations: list[Seen] = []
    pairs = zip(WRITTEN[::2], WRITTEN[1::2], strict=True)
    for number, (asked, told) in enumerate(
        pair for pair in pairs if (pair[0].key, pair[0].version) not in MISREAD
    ):
        key, version = asked.key, asked.version
        request = asked.kind.decode(asked.data, version=version)
        answer = told.kind.decode(told.data, version=version)
        _with_batches(request, batches)
        _with_batches(answer, batches)
        frame = ApacheRequestFrame(key, version, number, "a client", request.encode(version=version))
        back = ApacheResponseFrame(number, answer.encode(version=version))
        talk.send(frame.encode(), from_client=True).send(back.encode(), from_client=False)
        # tshark repeats in an answer which request it belongs to.
        written = expected(back, answer)
        written.setdefault("kafka.api_key", []).append(str(key))
        expectations += [expected(frame, request), written]
    capture = tmp_path_factory.mktemp("kafka") / "kafka.pcap"
    capture.write_bytes(pcap(talk.packets))
    shown = run_tshark(capture, tshark_home, "-Y", "kafka", "-T", "json", "-J", "kafka")
    packets = json.loads(shown, object_pairs_hook=list)
    layers = [dict(dict(packet)["_source"])["layers"] for packet in packets]
    return list(zip(expectations, [_read(each, {}) for each in layers], strict=True))


def test_wireshark_reads_what_was_written_frame_by_frame(dissected: list[tuple[Seen, Seen]]) -> None:
    for written, read in dissected:
        said = {name: [each for each in found if each != NULL] for name, found in read.items()}
        mine = {name: [each for each in found if each != NULL] for name, found in written.items()}
        assert {name: each for name, each in said.items() if each} == {
            name: each for name, each in mine.items() if each
        }


def test_every_key_and_version_was_compared(dissected: list[tuple[Seen, Seen]]) -> None:
    requests = {
        (written["kafka.api_key"][0], written["kafka.api_version"][0]) for written, _ in dissected[::2]
    }
    assert {(int(key), int(version)) for key, version in requests} | MISREAD == {
        (each.key, each.version) for each in WRITTEN
    }
