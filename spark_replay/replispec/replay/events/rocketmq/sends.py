"""What producers were told is stored, from columns of frames: nearly every answer of a busy capture is one.

An answer that is not plain (a batch with several ids, fields that may break their types) is left to the
reader of single commands: both tell the same of what is plain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.columns import named, places, table_of
from replispec.replay.events.observation import ObservationKind
from replispec.replay.frames.digests import crc_of, crcs_of
from replispec.replay.frames.ext_fields import HeaderColumns, text_of
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.keyed import declared
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import SendMessageRequest, SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.store import OffsetMessageId

_BORN_KEYS: Final = tuple(
    each.key
    for header in (SendMessageRequest, SendMessageV2Request)
    for each in declared(header)
    if each.name == "born_timestamp"
)
_BATCH_KEYS: Final = tuple(
    each.key
    for header in (SendMessageRequest, SendMessageV2Request)
    for each in declared(header)
    if each.name == "batch"
)
_TOPIC_KEYS: Final = tuple(
    each.key
    for header in (SendMessageRequest, SendMessageV2Request)
    for each in declared(header)
    if each.name == "topic"
)
_BROKER_KEYS: Final = tuple(
    each.key
    for header in (SendMessageRequest, SendMessageV2Request)
    for each in declared(header)
    if each.name in ("bname", "broker_name")
)
_LOGICAL_KEY: Final = next(each.key for each in declared(SendMessageRequest) if each.name == "lo")
_NO: Final = str(False).lower()
_ONE_MESSAGE: Final = (int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_MESSAGE_V2))
# Milliseconds, as many digits as are a 64-bit number whichever they are.
_MOMENT: Final = "^[0-9]{1,18}$"
# A message queue that a message was handed on to, in the words of a property.
_QUEUE: Final = "^[0-9]{1,9}$"
_ID_DIGITS = 2 * len(OffsetMessageId().encode())
_OFFSET_DIGITS = 16
_NO_DIGIT = 16
_VALUES = np.full(256, _NO_DIGIT, np.uint8)
for _value in range(_NO_DIGIT):
    _VALUES[[ord(f"{_value:x}"), ord(f"{_value:X}")]] = _value


def acknowledged(
    frames: Delivered, answers: Integers, request_of: Integers, durations_ns: Integers
) -> tuple[pa.Table, Integers]:
    """The observations of the plain ones among answers to sends (places in `frames`); the other answers.

    `request_of`, `durations_ns`: of every frame the place of its request, and how long that waited.
    """
    header = HeaderColumns(SendMessageResponse, frames.frames, frames.rows[answers])
    ids = header.text("msg_id")
    sized = np.asarray(pc.fill_null(pc.equal(pc.binary_length(ids), _ID_DIGITS), False))
    at = np.flatnonzero(header.plain & sized)
    digits = _digits(ids.take(pa.array(at)))
    brokers, which = np.unique(_numbers(digits[:, :-_OFFSET_DIGITS]), return_inverse=True)
    addresses = [_broker(number) for number in brokers.tolist()]
    sound = (digits < _NO_DIGIT).all(axis=1) & np.array([each is not None for each in addresses], np.bool_)[
        which
    ]
    at, kept = at[sound], answers[at[sound]]
    text = header.text("transaction_id").take(pa.array(at))
    asks = frames.rows[request_of[kept]]
    columns = {
        **places(frames, kept),
        "address": named(pa.array(addresses, pa.string()), which[sound]),
        "offset": _numbers(digits[sound, -_OFFSET_DIGITS:]),
        "text": text,
        "request_order": frames.order[request_of[kept]],
        "duration_ns": durations_ns[kept],
        "born_ms": _born(frames, request_of[kept], np.asarray(pc.is_null(text))),
        "body_digest": frames.values("body_digest", request_of[kept]),
        "body_crc": _crcs(frames, request_of[kept]),
        "topic": pc.coalesce(*(text_of(key, frames.frames, asks) for key in _TOPIC_KEYS)),
        "queue_id": _storing_queues(header).take(pa.array(at)),
        "queue_offset": header.text("queue_offset").take(pa.array(at)),
        "physical": _physical(frames, asks),
    }
    return table_of(ObservationKind.ACKNOWLEDGED, columns, len(kept)), np.delete(answers, at)


def born_ms(ext_fields: Mapping[str, str | None]) -> int | None:
    """When a request says that its message was made; None where it does not, or breaks its type."""
    said = (ext_fields.get(key) for key in _BORN_KEYS)
    told = next((each for each in said if each is not None), "")
    return int(told) if re.fullmatch(_MOMENT, told, re.ASCII) else None


def storing_queue(answer: SendMessageResponse) -> int | None:
    """The queue whose offset an answer tells: an older client is told the one that it asked for, though its
    message was handed on to another one, which stands beside."""
    told = answer.forward_queue_id or ""
    return int(told) if re.fullmatch(_QUEUE, told, re.ASCII) else answer.queue_id


def _storing_queues(header: HeaderColumns) -> pa.ChunkedArray:
    """The same of all answers, in text."""
    told = header.text("forward_queue_id")
    is_told = pc.fill_null(pc.match_substring_regex(told, _QUEUE), False)
    return pc.if_else(is_told, told, header.text("queue_id"))


def message_of(ext_fields: Mapping[str, str | None]) -> dict[str, Any]:
    """The topic in a request, and whether it asks for a physical queue: older clients name no broker, and may
    or may not."""
    said = (ext_fields.get(key) for key in _TOPIC_KEYS)
    physical = ext_fields.get(_LOGICAL_KEY) == _NO
    named = any(ext_fields.get(key) is not None for key in _BROKER_KEYS)
    return {
        "topic": next((each for each in said if each is not None), None),
        "physical": physical if physical or named else None,
    }


def _physical(frames: Delivered, asks: Integers) -> pa.Array:
    """The same of the requests at some rows."""
    physical = pc.fill_null(pc.equal(text_of(_LOGICAL_KEY, frames.frames, asks), _NO), False)
    named = pc.is_valid(pc.coalesce(*(text_of(key, frames.frames, asks) for key in _BROKER_KEYS)))
    return pc.if_else(pc.or_(physical, named), physical, None)


def body_crc(code: int | None, ext_fields: Mapping[str, str | None], body_digest: int | None) -> int | None:
    """The CRC-32 of the body of a request that holds one message; None where it may hold several."""
    alone = code in _ONE_MESSAGE and all(ext_fields.get(key) in (None, _NO) for key in _BATCH_KEYS)
    return crc_of(body_digest) if alone and body_digest is not None else None


def _crcs(frames: Delivered, requests: Integers) -> pa.Array:
    """The same of the requests at some places."""
    alone = np.isin(frames.integers("code", requests), _ONE_MESSAGE)
    for key in _BATCH_KEYS:
        said = text_of(key, frames.frames, frames.rows[requests])
        alone &= np.asarray(pc.fill_null(pc.equal(said, _NO), True))
    digests = frames.values("body_digest", requests)
    known = np.asarray(pc.is_valid(digests)) & alone
    return pa.array(crcs_of(np.asarray(pc.fill_null(digests, 0))), mask=~known)


def _born(frames: Delivered, requests: Integers, asked: npt.NDArray[np.bool_]) -> pa.Array:
    """The same of the requests at some places, null for None and where it is not asked."""
    if not asked.any():
        return pa.nulls(len(requests), pa.int64())
    told = pc.coalesce(*(text_of(key, frames.frames, frames.rows[requests]) for key in _BORN_KEYS))
    is_moment = pc.and_(pa.array(asked), pc.match_substring_regex(told, _MOMENT))
    return pc.if_else(is_moment, told, None).cast(pa.int64())


def _digits(ids: pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The value of each hexadecimal digit, a row an id; _NO_DIGIT for what is none. Ids are equally long."""
    text = ids.cast(pa.binary()).cast(pa.binary(_ID_DIGITS)).combine_chunks()
    data = np.frombuffer(text.buffers()[1], np.uint8, len(text) * _ID_DIGITS, text.offset * _ID_DIGITS)
    return _VALUES[data].reshape(-1, _ID_DIGITS)


def _numbers(digits: npt.NDArray[np.uint8]) -> Integers:
    """The 64-bit number, signed, that the 16 digits of each row are."""
    octets = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    return octets.view(">i8").ravel().astype(np.int64)


def _broker(number: int) -> str | None:
    """The broker whose ids begin with this number; None for what may be none."""
    digits = f"{number & 2**64 - 1:0{_ID_DIGITS - _OFFSET_DIGITS}X}"
    try:
        return rules.message_broker(digits + "0" * _OFFSET_DIGITS)
    except RemoteProtocolError:
        return None
