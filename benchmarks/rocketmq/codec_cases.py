"""Messages whose decoding is measured: those that generate_capture.py sends."""

from __future__ import annotations

import orjson

from benchmarks.family import CodecCase
from benchmarks.rocketmq import generated_frames
from replispec.wire.rocketmq.broker import SendMessageV2Request
from replispec.wire.rocketmq.codes import LogMagic, SerializeType
from replispec.wire.rocketmq.ha import HaTransferHeader, HaTransferHeaderFixed
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingHeader
from replispec.wire.rocketmq.store import LogRecord

BODY_BYTES, RECORDS = 500, 4


def cases() -> dict[str, tuple[CodecCase, int]]:
    """What is measured, by name, with the bytes that it reads; the bare parse of a header first."""
    frame, transfer = _first_frames()
    header = RemotingFrame.decode(frame).header
    binary = RemotingHeader.decode_json(header).encode_binary()
    in_binary = RemotingFrame(SerializeType.ROCKETMQ, binary, RemotingFrame.decode(frame).body).encode()
    record, _ = LogRecord.decode_at(transfer.body, 0, len(transfer.body))
    record_bytes, transfer_bytes = record.encode(), transfer.encode()
    assert record.magic == LogMagic.MESSAGE_V1

    def generic() -> RemotingHeader:
        return RemotingHeader.decode_json(RemotingFrame.decode(frame).header)

    def typed() -> SendMessageV2Request:
        return SendMessageV2Request.from_ext_fields(generic().ext_fields or {})

    def generic_binary() -> RemotingHeader:
        return RemotingHeader.decode_binary(RemotingFrame.decode(in_binary).header)

    return {
        "orjson parse of the header": (lambda: orjson.loads(header), len(header)),
        "frame": (lambda: RemotingFrame.decode(frame), len(frame)),
        "frame, generic header (JSON)": (generic, len(frame)),
        "frame, generic and typed header (JSON)": (typed, len(frame)),
        "frame, generic header (binary)": (generic_binary, len(in_binary)),
        "HA transfer, fixed fields": (lambda: HaTransferHeaderFixed.decode(transfer_bytes), 36),
        "HA transfer with its body": (lambda: HaTransferHeader.decode(transfer_bytes), len(transfer_bytes)),
        "log record": (lambda: LogRecord.decode(record_bytes), len(record_bytes)),
    }


def _first_frames() -> tuple[bytes, HaTransferHeader]:
    """A request, and a transfer of a few records, as a generated capture has them."""
    body = bytes(at % 26 + 97 for at in range(BODY_BYTES))
    size = len(generated_frames.record(0, body))
    run = b"".join(generated_frames.record(at * size, body) for at in range(RECORDS))
    return generated_frames.request(0, body), HaTransferHeader(epoch=1, confirm_offset=len(run), body=run)
