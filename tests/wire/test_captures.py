"""Real bytes: every frame, log record and text file of the captures is read and written back as it was."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.primitives.commands import BodyType, HeaderType
from replispec.runtime.primitives.json_messages import JsonMessage
from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq import commands, ha, remoting, store, streams
from replispec.wire.rocketmq.codes import (
    HaConnectionState,
    LanguageCode,
    RemotingFlag,
    RequestCode,
    SerializeType,
)
from tests.wire.raw_frames import CAPTURES, MASTER, OWN, REMOTING, REPLICA, SHARED, RawFrame, raw_frames

GOLDEN = Path(__file__).parent / "golden"
EVERY = (*SHARED, *OWN)


def decode_header(frame: remoting.RemotingFrame) -> remoting.RemotingHeader:
    if frame.serialize_type == SerializeType.JSON:
        return remoting.RemotingHeader.decode_json(frame.header)
    return remoting.RemotingHeader.decode_binary(frame.header)


def remoting_frames(name: str) -> Iterator[tuple[RawFrame, remoting.RemotingFrame, remoting.RemotingHeader]]:
    for raw in raw_frames(name):
        if raw.kind == REMOTING:
            frame = remoting.RemotingFrame.decode(raw.data)
            yield raw, frame, decode_header(frame)


def ha_messages(name: str) -> Iterator[tuple[RawFrame, Any]]:
    for raw in raw_frames(name):
        if raw.kind in (REPLICA, MASTER):
            stream = streams.HA_REPLICA if raw.kind == REPLICA else streams.HA_MASTER
            yield raw, _decode(stream, ha, raw.data)


def _decode(stream: Stream, module: Any, data: bytes, at: int = 0) -> Any:
    """The message of the stream that starts at `data[at]`; it must be whole."""
    size = stream.measure(data, at, len(data))
    assert 0 < size <= len(data) - at
    form = stream.form_at(data, at, len(data))
    assert not isinstance(form, int)
    return getattr(module, form.message).decode(data, at, at + size)


def log_records(name: str) -> Iterator[tuple[bytes, Any]]:
    """Records in what each replication connection carried; its bytes start at a record and end at one."""
    logs: dict[str, bytearray] = {}
    for raw, message in ha_messages(name):
        if isinstance(message, ha.HaTransferHeader):
            logs.setdefault(raw.connection, bytearray()).extend(message.body)
    for log in logs.values():
        at = 0
        while at < len(log):
            record = _decode(streams.COMMIT_LOG, store, bytes(log), at)
            size = streams.COMMIT_LOG.measure(log, at, len(log))
            yield bytes(log[at : at + size]), record
            at += size


def test_the_shared_captures_hold_what_they_are_known_to_hold() -> None:
    frames = Counter(frame.kind for name in SHARED for frame in raw_frames(name))
    assert frames[REMOTING] == 6416
    assert frames[REPLICA] + frames[MASTER] == 320
    assert sum(1 for name in SHARED for _ in log_records(name)) == 494


@pytest.mark.parametrize("name", EVERY)
def test_every_remoting_frame_is_written_back_byte_for_byte(name: str) -> None:
    for raw, frame, header in remoting_frames(name):
        encoded = (
            header.encode_json() if frame.serialize_type == SerializeType.JSON else header.encode_binary()
        )
        assert encoded == frame.header
        assert remoting.RemotingFrame(frame.serialize_type, encoded, frame.body).encode() == raw.data
        assert header.unknown == {}


@pytest.mark.parametrize("name", EVERY)
def test_every_replication_frame_is_written_back_byte_for_byte(name: str) -> None:
    for raw, message in ha_messages(name):
        assert message.encode() == raw.data


@pytest.mark.parametrize("name", SHARED)
def test_every_log_record_is_written_back_and_its_checksum_is_ours(name: str) -> None:
    for data, record in log_records(name):
        assert record.encode() == data
        record.body_crc = None
        assert record.encode() == data


@pytest.mark.parametrize("name", EVERY)
def test_typed_headers_and_bodies_know_every_key_and_write_javas_bytes(name: str) -> None:
    asked = {}
    commands_seen = list(remoting_frames(name))
    for raw, _, header in commands_seen:
        if not header.flag & RemotingFlag.RESPONSE:
            asked[raw.source, raw.destination, raw.connection, header.opaque] = header.code
    for raw, frame, header in commands_seen:
        answer = bool(header.flag & RemotingFlag.RESPONSE)
        key = (raw.destination, raw.source, raw.connection, header.opaque)
        code = asked.get(key) if answer else header.code
        if code is not None:
            _check_header(
                header, frame, commands.RESPONSE_HEADERS if answer else commands.REQUEST_HEADERS, code
            )
            if header.code == 0 or not answer:
                _check_body(frame, commands.RESPONSE_BODIES if answer else commands.REQUEST_BODIES, code)


def _check_header(
    header: remoting.RemotingHeader, frame: remoting.RemotingFrame, table: dict[int, HeaderType], code: int
) -> None:
    if code in table and header.ext_fields is not None:
        typed = table[code].from_ext_fields(header.ext_fields)
        assert typed.unknown == {}
        written = typed.to_ext_fields(binary=frame.serialize_type == SerializeType.ROCKETMQ)
        # An empty text in a binary header reads as none, there as here.
        read = [(key, value) for key, value in header.ext_fields.items() if value is not None]
        assert list(written.items()) == read


def _check_body(frame: remoting.RemotingFrame, table: dict[int, BodyType], code: int) -> None:
    if code in table and frame.body:
        body: Any = table[code].decode(frame.body)
        assert getattr(body, "unknown", {}) == {}
        written = body.encode(bare_keys=True) if isinstance(body, JsonMessage) else body.encode()
        assert written == frame.body


@pytest.mark.parametrize("name", SHARED)
def test_values_equal_those_of_the_independent_decoder(name: str) -> None:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        golden = Counter(_canonical(json.loads(line)) for line in lines)
    found = [_remoting_values(frame, header) for _, frame, header in remoting_frames(name)]
    found += [_ha_values(message) for _, message in ha_messages(name)]
    assert Counter(map(_canonical, found)) == golden


def _canonical(values: dict[str, Any]) -> str:
    """The values that both decoders tell; the request's name of an answer is the other one's business."""
    values.pop("name", None)
    if "ext" in values:
        values["ext"] = json.loads(values["ext"])
    if isinstance(values.get("lang"), int):
        values["lang"] = LanguageCode(values["lang"]).name
    return json.dumps(values, sort_keys=True)


def _remoting_values(frame: remoting.RemotingFrame, header: remoting.RemotingHeader) -> dict[str, Any]:
    kinds = {0: "req", RemotingFlag.RESPONSE: "resp", RemotingFlag.ONEWAY: "1way"}
    values: dict[str, Any] = {
        "kind": kinds[header.flag],
        "code": header.code,
        "opq": header.opaque,
        "flag": header.flag,
        "ser": SerializeType(frame.serialize_type).name,
        "lang": header.language,
        "ver": header.version,
    }
    if header.remark:
        values["remark"] = header.remark[:120]
    if header.ext_fields:
        # A value of length 0 in a binary header is Java's null; the other decoder says empty text.
        values["ext"] = json.dumps({key: value or "" for key, value in header.ext_fields.items()})
    if frame.body:
        values["body"] = f"{len(frame.body)}B:" + frame.body[:160].decode("utf8", "replace")
    return values


def _ha_values(message: Any) -> dict[str, Any]:
    flags = {}
    if message.state == HaConnectionState.HANDSHAKE and not isinstance(message, ha.HaHandshakeAnswer):
        flags = {
            "syncFromLastFile": int(message.sync_from_last_file),
            "asyncLearner": int(message.async_learner),
        }
    match message:
        case ha.HaHandshakeId():
            own: dict[str, Any] = {"state": "HANDSHAKE", "slaveBrokerId": message.broker_id, **flags}
        case ha.HaHandshakeAddress():
            own = {"state": "HANDSHAKE", "slaveAddress": message.address, **flags}
        case ha.HaReport():
            own = {"state": "ACK", "maxOffset": message.max_offset}
        case ha.HaHandshakeAnswer():
            entries = [[entry.epoch, entry.start_offset] for entry in message.entries]
            own = {
                "state": "HANDSHAKE",
                "bodySize": message.body_size,
                "maxOffset": message.max_offset,
                "epoch": message.last_epoch,
                "entries": entries,
            }
        case _:
            own = {
                "state": "TRANSFER",
                "bodySize": message.body_size,
                "offset": message.offset,
                "epoch": message.epoch,
                "epochStart": message.epoch_start_offset,
                "confirm": message.confirm_offset,
            }
    return {"kind": "HA", **own}


@pytest.mark.parametrize("name", EVERY)
def test_the_text_files_of_the_brokers_are_written_back_byte_for_byte(name: str) -> None:
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text("utf-8"))
    for files in truth["end_state_files"].values():
        if files.get("brokerIdentity"):
            identity = files["brokerIdentity"].encode()
            assert store.BrokerIdentity.decode(identity).encode() == identity
        if files.get("epochFileCheckpoint"):
            text = files["epochFileCheckpoint"].encode()
            epochs = store.EpochFile.decode(text)
            assert epochs.encode() == text
            epochs.crc = None
            assert epochs.encode() == text


def test_every_code_in_the_captures_has_a_name() -> None:
    codes = {header.code for name in EVERY for _, _, header in remoting_frames(name) if not header.flag & 1}
    assert codes <= {code.value for code in RequestCode}
