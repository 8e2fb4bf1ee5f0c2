"""Edits of log bytes on their way to a replica, and of the requests that their messages came with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replispec.wire.rocketmq import broker, ha
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.store import LogRecord
from tests.replay.faults import Frames, commands, put, transfers, with_fields


def _with_record(frames: Frames, edit: Callable[[LogRecord], LogRecord]) -> Frames:
    """The frames with another first record in the last run that begins with one; its size stays."""
    at = transfers(frames)[-1]
    header = ha.HaTransferHeader.decode(frames[at].data)
    body = bytes(header.body)
    record, end = LogRecord.decode_at(body, 0, len(body))
    made = edit(record).encode()
    assert len(made) == end
    assert made != body[:end]
    return put(frames, at, replace(frames[at], data=replace(header, body=made + body[end:]).encode()))


def _turned(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def bit_of_a_body(frames: Frames) -> Frames:
    """One bit of a body differs from what the producer sent; the record's checksum is the old one."""
    return _with_record(frames, lambda each: replace(each, body=_turned(bytes(each.body))))


def another_message(frames: Frames) -> Frames:
    """A sound record of another body of the same size lies at an acknowledged place."""
    return _with_record(
        frames, lambda record: replace(record, body=_turned(bytes(record.body)), body_crc=None)
    )


def properties_of_the_broker(frames: Frames) -> Frames:
    """A record has other properties than the request: brokers add some."""
    return _with_record(frames, lambda each: replace(each, properties=_turned(bytes(each.properties))))


def message_of_a_batch(frames: Frames) -> Frames:
    """The message at the place of other bytes came in a batch, whose body no record has."""
    before = ha.HaTransferHeader.decode(frames[transfers(frames)[-1]].data).body
    record, _ = LogRecord.decode_at(before, 0, len(before))
    sends = commands(frames, RequestCode.SEND_MESSAGE_V2, answers=False)
    (at,) = [at for at in sends if frames[at].data.endswith(bytes(record.body))]
    as_batch = with_fields(frames[at], broker.SendMessageV2Request, batch=True)
    return bit_of_a_body(put(frames, at, as_batch))
