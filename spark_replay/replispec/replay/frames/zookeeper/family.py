"""The streams of ZooKeeper's clients and servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from replispec.replay.frames.family import FramesFamily, MessageColumns
from replispec.replay.frames.zookeeper.readers import ANSWERS, REQUESTS, ConnectionReader
from replispec.wire.zookeeper import connection
from replispec.wire.zookeeper.codes import OpCode

BODY_BYTES_SHOWN: Final = 1 << 20
"""A longer body of a frame is not a column; its size is."""
FIELDS = [
    pa.field("said", pa.string()),
    pa.field("xid", pa.int32()),
    pa.field("op_code", pa.int32()),
    pa.field("zxid", pa.int64()),
    pa.field("error", pa.int32()),
    pa.field("timeout", pa.int32()),
    pa.field("session_id", pa.int64()),
    pa.field("body_hex", pa.string()),
]


def _arrays(messages: Sequence[Any], encodings: Sequence[int | None]) -> list[pa.Array]:  # noqa: ARG001 (none has one)
    rows = [*map(_row, messages)]
    return [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(FIELDS)]


def _row(message: Any) -> tuple[Any, ...]:
    name = type(message).__name__
    if isinstance(message, connection.AdminWordFrame):
        return (name, None, message.word, *([None] * 5))
    if isinstance(message, connection.ConnectRequest):
        zxid = message.last_zxid_seen
        return (name, None, None, zxid, None, message.timeout, message.session_id, None)
    if isinstance(message, connection.ConnectResponse):
        return (name, None, None, None, None, message.timeout, message.session_id, None)
    body = message.body.hex() if len(message.body) <= BODY_BYTES_SHOWN else None
    if isinstance(message, connection.RequestFrame):
        # Credentials are nobody's business but the server's.
        body = None if message.op_code == OpCode.AUTH else body
        return (name, message.xid, message.op_code, None, None, None, None, body)
    return (name, message.xid, None, message.zxid, message.error, None, None, body)


def _kinds(initiator: bool | None) -> tuple[str, ...]:
    if initiator is None:
        return (REQUESTS, ANSWERS)
    return (REQUESTS,) if initiator else ()


FAMILY = FramesFamily(
    readers=lambda _: {REQUESTS: ConnectionReader(REQUESTS), ANSWERS: ConnectionReader(ANSWERS)},
    kinds=_kinds,
    told=lambda *_: (),
    peers={REQUESTS: ANSWERS, ANSWERS: REQUESTS},
    columns=(MessageColumns(frozenset({REQUESTS, ANSWERS}), FIELDS, _arrays),),
)
