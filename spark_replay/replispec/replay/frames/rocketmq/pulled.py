"""Messages in the answers to pulls: which one is at which offset of its queue, and where it was stored.

An answer has no topic and no code of its request: what tells it is the offset from which to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

from replispec.replay.frames.family import HeldBodies
from replispec.replay.frames.readers import Pulled
from replispec.replay.frames.rocketmq.readers import REMOTING
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.keyed import declared
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.broker import PullMessageResponse
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.store import LogRecord, OffsetMessageId, OffsetMessageIdV6

_RESPONSE, _SUCCESS = int(RemotingFlag.RESPONSE), int(ResponseCode.SUCCESS)
_NEXT: Final = next(each.key for each in declared(PullMessageResponse) if each.name == "next_begin_offset")
_NARROW: Final = 4
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
    at = begin
    try:
        while at < end:
            record, at = LogRecord.decode_at(buffer, at, end)
            address = _stored_at(record.store_ip, record.store_port)
            if address is None:
                return None
            place = record.queue_id, record.queue_offset
            found.append((*place, address, record.physical_offset, crc32(record.body)))
    except RemoteProtocolError:
        return None
    return found


@lru_cache(maxsize=_KEPT)
def _stored_at(host: bytes, port: int) -> str | None:
    """The address of a broker, as the ids of its messages have it."""
    kind = OffsetMessageId if len(host) == _NARROW else OffsetMessageIdV6
    return rules.message_broker(kind(host, port, 0).encode().hex().upper())


PULLED: Final = HeldBodies(REMOTING, "pulled", _holding, _read)
