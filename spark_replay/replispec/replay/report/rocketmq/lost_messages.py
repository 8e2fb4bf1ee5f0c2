"""Which messages were lost: each acknowledgement that a loss is about, and the request that it answered.

An acknowledgement names the broker and the offset, its request the topic, the properties and who sent it.
Both are looked up for what was lost alone. Source of the properties: apache/rocketmq rocketmq-all-5.4.0,
MessageDecoder.string2messageProperties, MessageConst.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Rows
from replispec.replay.events.observation import Observation
from replispec.replay.events.rocketmq.runs import are_different, message_of
from replispec.replay.judges.sends import LossRow, LostAt
from replispec.replay.report.frame_rows import Place, Row, frames_at, frames_with_opaque
from replispec.replay.report.model import LostMessage, LostSend, OtherSend
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import broker
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from replispec.wire.rocketmq.constants import (
    KEYS_PROPERTY,
    PROPERTY_NAME_END,
    PROPERTY_VALUE_END,
    TAG_PROPERTY,
    UNIQUE_KEY_PROPERTY,
)

_COLUMNS: Final = ("time_ns", "record_offset", "source", "code", "flag", "opaque", "ext_fields", "body_size")
_SEND_HEADERS: Final[Mapping[int, type[broker.SendMessageRequest | broker.SendMessageV2Request]]] = {
    RequestCode.SEND_MESSAGE: broker.SendMessageRequest,
    RequestCode.SEND_MESSAGE_V2: broker.SendMessageV2Request,
    RequestCode.SEND_BATCH_MESSAGE: broker.SendMessageV2Request,
}

ROWS_AT_ONCE: Final = 1 << 14
OTHERS_MAXIMUM: Final = 16
"""How many messages that may have been lost instead of one are named with it."""


def lost_sends(file: str, acknowledged: Columns, losses: Sequence[LossRow], lost: LostAt) -> list[LostSend]:
    """The acknowledgements of each loss, in the order of losses and offsets; `lost`: which these are."""
    sends = acknowledged.take(lost.each)
    others = dict(_others(acknowledged, lost.in_doubt))
    group, epoch, connection = (sends.coded(name) for name in ("group", "epoch", "connection"))
    names = np.argsort(np.argsort(np.array(connection.values, np.str_), kind="stable"))[connection.codes]
    keys = [sends.numbers(name).numbers for name in ("index", "sequence", "direction")]
    order = np.lexsort((*keys, names, sends.numbers("offset").numbers))
    found = []
    for loss in losses:
        own = order[(group.where(loss.group) & epoch.where(loss.epoch))[order]]
        for at in range(0, len(own), ROWS_AT_ONCE):
            part = own[at : at + ROWS_AT_ONCE]
            rows = zip(sends.rows(part), lost.each[part].tolist(), strict=True)
            found += [_lost_send(file, loss, row, others.get(place)) for row, place in rows]
    return found


def _others(sends: Columns, in_doubt: Rows) -> Iterator[tuple[int, tuple[OtherSend, ...]]]:
    """Of messages that are in doubt, by their places here, the others that got their place of the log."""
    offsets = sends.numbers("offset").numbers
    perhaps = np.flatnonzero(np.isin(offsets, offsets[in_doubt]))
    rows = dict(zip(perhaps.tolist(), sends.rows(perhaps), strict=True))
    alike: dict[tuple[Any, ...], list[Observation]] = defaultdict(list)
    for row in rows.values():
        alike[row.group, row.epoch, row.offset].append(row)
    for place in in_doubt.tolist():
        own = rows[place]
        same = alike[own.group, own.epoch, own.offset]
        message = message_of(own)
        found = [each for each in same if each is not own and are_different(message_of(each), message)]
        places = sorted((each.connection, each.direction, each.sequence) for each in found)
        yield place, tuple(OtherSend(*each) for each in places[:OTHERS_MAXIMUM])


def _lost_send(file: str, loss: LossRow, row: Observation, instead: tuple[OtherSend, ...] | None) -> LostSend:
    place = (file, row.connection, row.direction, row.sequence)
    offset, address = row.offset or 0, row.address or ""
    return LostSend(place, loss.group, loss.epoch, offset, address, row.time_ns, row.duration_ns, instead)


def lost_messages(frames: Path, sends: Sequence[LostSend]) -> Iterator[LostMessage]:
    """What is known of each lost message, in the order of the sends; bodies where `frames` kept them.

    `frames`: frames.parquet of the replay. A request that was not captured leaves its fields empty.
    """
    answers = frames_at(frames, [send.place for send in sends], ("opaque", "ext_fields", "record_offset"))
    requests = _requests(frames, answers)
    for send in sends:
        answer = answers.get(send.place)
        asked = [] if answer is None else requests.get((*_other_side(send.place), answer["opaque"]), [])
        yield _message(send, answer, _answered(send, answer, asked))


def _other_side(place: Place) -> tuple[str, str, int]:
    return place[0], place[1], 1 - place[2]


def _requests(
    frames: Path, answers: Mapping[Place, Row]
) -> Mapping[tuple[str, str, int, int], Sequence[Row]]:
    """The sends with the numbers of these answers, by capture, connection, direction and number."""
    found: dict[tuple[str, str, int, int], list[Row]] = defaultdict(list)
    opaques = {answer["opaque"] for answer in answers.values()}
    for row in frames_with_opaque(frames, answers, opaques, (*_COLUMNS, "body")):
        if row["code"] in _SEND_HEADERS and not row["flag"] & RemotingFlag.RESPONSE:
            found[row["capture"], row["connection"], row["direction"], row["opaque"]].append(row)
    return found


def _answered(send: LostSend, answer: Row | None, asked: Sequence[Row]) -> Row | None:
    """Of the requests with an answer's number the one that it was paired with; None when not captured."""
    if answer is None or send.waited_ns is None:
        return None
    sent_ns = send.time_ns - send.waited_ns
    return min(asked, key=lambda row: (abs(row["time_ns"] - sent_ns), -row["sequence"]), default=None)


def _message(send: LostSend, answer: Row | None, request: Row | None) -> LostMessage:
    known: dict[str, Any] = {} if answer is None else _told_by_answer(send, dict(answer["ext_fields"] or ()))
    if request is not None:
        known |= _told_by_request(request, known.get("part"))
    capture, connection, direction, sequence = send.place
    return LostMessage(
        file=capture,
        group=send.group,
        epoch=send.epoch,
        offset=send.offset,
        broker=send.broker,
        acknowledged_ns=send.time_ns,
        connection=connection,
        direction=direction,
        sequence=sequence,
        instead=send.instead,
        **known,
    )


def _told_by_answer(send: LostSend, fields: Mapping[str, str | None]) -> dict[str, Any]:
    """Ids and place in the queue; of a batch `part` counts its messages from 0."""
    try:
        header = broker.SendMessageResponse.from_ext_fields(fields)
        ids = (header.msg_id or "").split(",")
        at = next((at for at, each in enumerate(ids) if rules.message_offset(each) == send.offset), 0)
    except RemoteProtocolError:
        return {}
    unique = (header.transaction_id or "").split(",")
    return {
        "message_id": ids[at],
        "queue": header.queue_id,
        "queue_offset": None if header.queue_offset is None else header.queue_offset + at,
        "unique_key": unique[at] if len(unique) == len(ids) else "",
        "part": at if len(ids) > 1 else None,
    }


def _told_by_request(request: Row, part: int | None) -> dict[str, Any]:
    told: dict[str, Any] = {"producer": request["source"], "body_size": request["body_size"]}
    try:
        header = _SEND_HEADERS[request["code"]].from_ext_fields(dict(request["ext_fields"] or ()))
        body = b"" if request["body_size"] == 0 else request["body"]
        flag, text = header.flag, header.properties or ""
        if part is not None and body is not None:
            inner = _inner(body, part)
            body, flag, text = inner.body, inner.flag, inner.properties.decode(errors="replace")
            told["body_size"] = len(body)
    except RemoteProtocolError:
        return told
    named = properties_in(text)
    told |= {
        "topic": header.topic or "",
        "producer_group": header.producer_group or "",
        "properties": named,
        "keys": named.get(KEYS_PROPERTY, ""),
        "tags": named.get(TAG_PROPERTY, ""),
        "flag": flag,
        "sys_flag": header.sys_flag,
        "born_ms": header.born_timestamp,
        "body": None if body is None else base64.b64encode(body).decode(),
    }
    if part is None and UNIQUE_KEY_PROPERTY in named:
        told["unique_key"] = named[UNIQUE_KEY_PROPERTY]
    return told


def _inner(body: bytes, part: int) -> BatchMessage:
    """The message of this number in the body of a batch. Raises RemoteProtocolError."""
    at, number = 0, 0
    while True:
        message, at = BatchMessage.decode_at(body, at, len(body))
        if number == part:
            return message
        number += 1


def properties_in(text: str) -> dict[str, str]:
    """Names and values of a message's properties; what is no pair is left out, as Apache RocketMQ does."""
    pairs = (each.split(PROPERTY_NAME_END) for each in text.split(PROPERTY_VALUE_END))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
