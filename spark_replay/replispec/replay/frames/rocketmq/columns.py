"""What the headers of commands and the messages of replication say, as columns of FRAMES."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain as flatten
from typing import Any

import numpy as np
import pyarrow as pa

from replispec.replay.frames.rocketmq.readers import AnswerFixed, AnswerMessage
from replispec.wire.rocketmq import ha

COMMAND_FIELDS = [
    pa.field("code", pa.int32()),
    pa.field("flag", pa.int32()),
    pa.field("opaque", pa.int32()),
    pa.field("language", pa.string()),
    pa.field("version", pa.int32()),
    pa.field("serialize_type", pa.int8()),
    pa.field("remark", pa.string()),
    pa.field("ext_fields", pa.map_(pa.string(), pa.string())),
]
REPLICATION_FIELDS = [
    pa.field("message", pa.string()),
    pa.field("state", pa.int32()),
    pa.field("sync_from_last_file", pa.bool_()),
    pa.field("async_learner", pa.bool_()),
    pa.field("broker_id", pa.int64()),
    pa.field("broker_address", pa.string()),
    pa.field("max_offset", pa.int64()),
    pa.field("last_epoch", pa.int32()),
    pa.field("epochs", pa.list_(pa.struct([("epoch", pa.int32()), ("start_offset", pa.int64())]))),
    pa.field("offset", pa.int64()),
    pa.field("epoch", pa.int32()),
    pa.field("epoch_start_offset", pa.int64()),
    pa.field("confirm_offset", pa.int64()),
]


class _NoHeader:
    """Stands for the header of a frame whose header has a hole: everything is null."""

    code = flag = opaque = language = version = remark = ext_fields = None


_NO_HEADER = _NoHeader()


def command_arrays(messages: Sequence[Any], encodings: Sequence[int | None]) -> list[pa.Array]:
    """The columns COMMAND_FIELDS of some headers."""
    headers = [_NO_HEADER if each is None else each for each in messages] if None in encodings else messages
    return [
        pa.array([each.code for each in headers], pa.int32()),
        pa.array([each.flag for each in headers], pa.int32()),
        pa.array([each.opaque for each in headers], pa.int32()),
        pa.array([each.language for each in headers], pa.string()),
        pa.array([each.version for each in headers], pa.int32()),
        pa.array(encodings, pa.int8()),
        pa.array([each.remark for each in headers], pa.string()),
        _maps([each.ext_fields for each in headers]),
    ]


def _maps(rows: list[dict[str, str | None] | None]) -> pa.Array:
    """A map column; a null row stays null."""
    filled = [row or {} for row in rows]
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, filled), np.int32, len(rows)), out=offsets[1:])
    missing = np.zeros(len(offsets), np.bool_)
    if None in rows:
        missing[:-1] = [row is None for row in rows]
    keys = pa.array(list(flatten.from_iterable(filled)), pa.string())
    items = pa.array(list(flatten.from_iterable(row.values() for row in filled)), pa.string())
    return pa.MapArray.from_arrays(pa.array(offsets, mask=missing), keys, items)


def replication_arrays(messages: Sequence[Any], encodings: Sequence[int | None]) -> list[pa.Array]:  # noqa: ARG001 (none has one)
    """The columns REPLICATION_FIELDS of some messages."""
    columns = zip(*map(_replication_row, messages), strict=True)
    return [pa.array(column, field.type) for column, field in zip(columns, REPLICATION_FIELDS, strict=True)]


def _replication_row(message: Any) -> tuple[Any, ...]:
    name = type(message).__name__.removesuffix("Fixed")
    flags: tuple[bool | None, bool | None] = (None, None)
    broker_id = address = max_offset = last_epoch = epochs = None
    transfer: tuple[int | None, ...] = (None,) * 4
    if isinstance(message, ha.HaHandshakeId | ha.HaHandshakeAddress):
        flags = (message.sync_from_last_file, message.async_learner)
        if isinstance(message, ha.HaHandshakeId):
            broker_id = message.broker_id
        else:
            address = message.address
    elif isinstance(message, ha.HaReport):
        max_offset = message.max_offset
    elif isinstance(message, AnswerMessage | AnswerFixed):
        max_offset, last_epoch = message.max_offset, message.last_epoch
        if isinstance(message, AnswerMessage):
            epochs = [{"epoch": item.epoch, "start_offset": item.start_offset} for item in message.entries]
    elif isinstance(message, ha.HaTransferHeaderFixed):
        transfer = message.offset, message.epoch, message.epoch_start_offset, message.confirm_offset
    else:
        raise TypeError(f"{name} is not decoded")
    return (name, message.state, *flags, broker_id, address, max_offset, last_epoch, epochs, *transfer)
