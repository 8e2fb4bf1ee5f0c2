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
from replispec.wire.rocketmq.codes import Release, RequestCode
from replispec.wire.rocketmq.constants import (
    MOCK_BROKER_PREFIX,
    PROPERTY_NAME_END,
    PROPERTY_VALUE_END,
    TAG_PROPERTY,
)
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
_PROPERTIES_KEYS: Final = tuple(
    each.key
    for header in (SendMessageRequest, SendMessageV2Request)
    for each in declared(header)
    if each.name == "properties"
)
_LOGICAL_KEY: Final = next(each.key for each in declared(SendMessageRequest) if each.name == "lo")
_NO: Final = str(False).lower()
_ONE_MESSAGE: Final = (int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_MESSAGE_V2))
# Milliseconds, as many digits as are a 64-bit number whichever they are.
_MOMENT: Final = "^[0-9]{1,18}$"
_QUEUE: Final = "^[0-9]{1,9}$"
# The last pair of this name counts, and what is no pair is none.
_TAGGED: Final = (
    f"(?s)^(?:.*{PROPERTY_VALUE_END}|){TAG_PROPERTY}{PROPERTY_NAME_END}"
    f"(?P<tag>[^{PROPERTY_NAME_END}{PROPERTY_VALUE_END}]*)(?:{PROPERTY_VALUE_END}|$)"
)
# Who says this release or a later one names the broker of a logical queue.
_KNOWING: Final = int(Release.V5_0_0)
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
        "queue_id": _taken_by(header).take(pa.array(at)),
        "queue_offset": header.text("queue_offset").take(pa.array(at)),
        "physical": _physical(frames, request_of[kept]),
        "tag_code": _tags(frames, request_of[kept]),
    }
    return table_of(ObservationKind.ACKNOWLEDGED, columns, len(kept)), np.delete(answers, at)


def born_ms(ext_fields: Mapping[str, str | None]) -> int | None:
    """When a request says that its message was made; None where it does not, or breaks its type."""
    said = (ext_fields.get(key) for key in _BORN_KEYS)
    told = next((each for each in said if each is not None), "")
    return int(told) if re.fullmatch(_MOMENT, told, re.ASCII) else None


def message_of(ext_fields: Mapping[str, str | None], version: int | None) -> dict[str, Any]:
    """The topic in a request of this version, and whether it asks for a physical queue; None where it may.

    Older clients name no broker, or the one that they ask: brokers of ours and of Java's differ on what they
    mean.
    """
    said = (ext_fields.get(key) for key in _TOPIC_KEYS)
    names = (ext_fields.get(key) for key in _BROKER_KEYS)
    named = next((each for each in names if each is not None), None)
    physical = ext_fields.get(_LOGICAL_KEY) == _NO
    surely = named is not None and ((version or 0) >= _KNOWING or named.startswith(MOCK_BROKER_PREFIX))
    return {
        "topic": next((each for each in said if each is not None), None),
        "physical": physical if physical or surely else None,
    }


def tag_code(code: int | None, ext_fields: Mapping[str, str | None]) -> int | None:
    """The hash of the tag of the one message in a request; None where it may hold several."""
    if not _is_alone(code, ext_fields):
        return None
    said = (ext_fields.get(key) for key in _PROPERTIES_KEYS)
    found = re.match(_TAGGED, next((each for each in said if each is not None), ""))
    return rules.string_hash("" if found is None else found["tag"])


def _tags(frames: Delivered, requests: Integers) -> pa.Array:
    """The same of the requests at some places. There are few tags beside messages."""
    asks = frames.rows[requests]
    said = pc.coalesce(*(text_of(key, frames.frames, asks) for key in _PROPERTIES_KEYS))
    listed = pa.chunked_array([said]) if isinstance(said, pa.Array) else said
    tagged = pc.struct_field(pc.extract_regex(listed, _TAGGED), "tag").combine_chunks()
    distinct = pc.dictionary_encode(pc.fill_null(tagged, ""))
    hashes = pa.array([rules.string_hash(each) for each in distinct.dictionary.to_pylist()], pa.int32())
    return pc.if_else(pa.array(_alone(frames, requests)), hashes.take(distinct.indices), None)


def _physical(frames: Delivered, requests: Integers) -> pa.Array:
    """The same of the requests at some places."""
    asks = frames.rows[requests]
    physical = pc.fill_null(pc.equal(text_of(_LOGICAL_KEY, frames.frames, asks), _NO), False)
    named = pc.coalesce(*(text_of(key, frames.frames, asks) for key in _BROKER_KEYS))
    knowing = pc.fill_null(pc.greater_equal(frames.values("version", requests), _KNOWING), False)
    surely = pc.and_(pc.is_valid(named), pc.or_(knowing, pc.starts_with(named, MOCK_BROKER_PREFIX)))
    return pc.if_else(pc.or_(physical, pc.fill_null(surely, False)), physical, None)


def queue_of(answer: SendMessageResponse) -> int | None:
    """The queue that took a message: an older client's is answered under the one that it asked for."""
    taken = answer.forward_queue_id or ""
    return int(taken) if re.fullmatch(_QUEUE, taken, re.ASCII) else answer.queue_id


def _taken_by(header: HeaderColumns) -> pa.Array:
    """The same of many answers."""
    taken = header.text("forward_queue_id")
    is_queue = pc.fill_null(pc.match_substring_regex(taken, _QUEUE), False)
    return pc.if_else(is_queue, taken, header.text("queue_id"))


def body_crc(code: int | None, ext_fields: Mapping[str, str | None], body_digest: int | None) -> int | None:
    """The CRC-32 of the body of a request that holds one message; None where it may hold several."""
    return crc_of(body_digest) if _is_alone(code, ext_fields) and body_digest is not None else None


def _is_alone(code: int | None, ext_fields: Mapping[str, str | None]) -> bool:
    return code in _ONE_MESSAGE and all(ext_fields.get(key) in (None, _NO) for key in _BATCH_KEYS)


def _crcs(frames: Delivered, requests: Integers) -> pa.Array:
    """The same of the requests at some places."""
    digests = frames.values("body_digest", requests)
    known = np.asarray(pc.is_valid(digests)) & _alone(frames, requests)
    return pa.array(crcs_of(np.asarray(pc.fill_null(digests, 0))), mask=~known)


def _alone(frames: Delivered, requests: Integers) -> npt.NDArray[np.bool_]:
    """Which of the requests at some places hold one message."""
    alone: npt.NDArray[np.bool_] = np.isin(frames.integers("code", requests), _ONE_MESSAGE)
    for key in _BATCH_KEYS:
        said = text_of(key, frames.frames, frames.rows[requests])
        alone &= np.asarray(pc.fill_null(pc.equal(said, _NO), True))
    return alone


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
