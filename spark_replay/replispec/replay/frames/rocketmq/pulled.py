"""Messages in the answers to pulls: which one is at which offset of its queue, and where it was stored.

An answer has no topic and no code of its request: what tells it is the offset from which to go on. Places of
fields are asked of the codec, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

from replispec.replay.frames.family import HeldBodies
from replispec.replay.frames.readers import Pulled
from replispec.replay.frames.rocketmq.log_records import (
    BODY_AT,
    LEAST_BYTES,
    MAGIC_AT,
    MAGIC_END,
    MAGICS,
    PLACE_AT,
    PLACE_END,
    QUEUE_AT,
    QUEUE_OFFSET_AT,
    STORED_AT,
    STORED_BYTES,
    widths_of,
)
from replispec.replay.frames.rocketmq.readers import REMOTING
from replispec.runtime.primitives.keyed import declared
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import PullMessageResponse
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode

_RESPONSE, _SUCCESS = int(RemotingFlag.RESPONSE), int(ResponseCode.SUCCESS)
_NEXT: Final = next(each.key for each in declared(PullMessageResponse) if each.name == "next_begin_offset")
_INT32, _INT64 = 4, 8
_KEPT: Final = 1_024


def _holding(messages: Sequence[Any]) -> Iterable[int]:
    for at, each in enumerate(messages):
        if each is None or each.code != _SUCCESS or not each.flag & _RESPONSE:
            continue
        if each.ext_fields and _NEXT in each.ext_fields:
            yield at


def _read(_: Any, buffer: bytes, begin: int, end: int) -> Sequence[Pulled] | None:
    """The messages in a body, in its order; None when it is no run of records."""
    found: list[Pulled] = []
    number, view, at = int.from_bytes, memoryview(buffer), begin
    while at < end:
        size = number(buffer[at : at + MAGIC_AT], "big")
        following = at + size
        if size < LEAST_BYTES or following > end or buffer[at + MAGIC_AT : at + MAGIC_END] not in MAGICS:
            return None
        widths = widths_of(buffer, at)
        stored, body = at + STORED_AT[widths], at + BODY_AT[widths]
        length = number(buffer[body - _INT32 : body], "big")
        host = _stored_at(buffer[stored : stored + STORED_BYTES[widths]])
        if host is None or length > following - body:
            return None
        queue, offset = at + QUEUE_AT, at + QUEUE_OFFSET_AT
        found.append(
            (
                number(buffer[queue : queue + _INT32], "big", signed=True),
                number(buffer[offset : offset + _INT64], "big", signed=True),
                host,
                number(buffer[at + PLACE_AT : at + PLACE_END], "big", signed=True),
                crc32(view[body : body + length]),
            )
        )
        at = following
    return found


@lru_cache(maxsize=_KEPT)
def _stored_at(place: bytes) -> str | None:
    """The address of a broker, as the ids of its messages have it: these bytes, and an offset."""
    return rules.message_broker((place + bytes(_INT64)).hex().upper())


PULLED: Final = HeldBodies(REMOTING, "pulled", _holding, _read)
