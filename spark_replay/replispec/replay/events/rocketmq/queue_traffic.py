"""What is read, kept and asked of queues: pulls, positions of consumer groups, limits of queues.

Of pulls only those are told that may be about logical queues: the request says so by its broker's name, by
`lo` or a flag, or its answer by the distance of the offsets; or its client is of a release without marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.observation import Observation
from replispec.replay.events.queue_observations import Limit, Position, Pulled
from replispec.replay.events.rocketmq.command import Command
from replispec.replay.events.rocketmq.subscriptions import Wanted, codes_of, wanted_of
from replispec.replay.frames.ext_fields import text_of
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.keyed import declared
from replispec.wire.rocketmq import broker, client
from replispec.wire.rocketmq.codes import PullFlag, Release, RemotingFlag, RequestCode, RouteFlag
from replispec.wire.rocketmq.constants import MOCK_BROKER_PREFIX

_PULLS: Final = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_UNMARKED: Final = int(Release.V5_0_0)


def _key(header: type[Header], name: str) -> str:
    return next(each.key for each in declared(header) if each.name == name)


_BROKER, _LOGICAL, _FLAGS = (_key(broker.PullMessageRequest, name) for name in ("bname", "lo", "sys_flag"))
_DELTA, _REDIRECT = (_key(broker.PullMessageResponse, name) for name in ("offset_delta", "redirect"))


def of_logical_queues(frames: Delivered, at: Integers, request_of: Integers) -> Integers:
    """Those of the commands at some places that are no pulls, or may be about a logical queue."""
    codes = frames.integers("code")
    is_answer = (frames.integers("flag", at) & RemotingFlag.RESPONSE) != 0
    asks = np.where(is_answer & (request_of[at] >= 0), request_of[at], at)
    mine = np.isin(codes[asks], _PULLS)
    if not mine.any():
        return at
    told = np.flatnonzero(mine)
    wanted = np.ones(len(at), np.bool_)
    wanted[told] = _is_logical(frames, at[told], asks[told])
    return at[wanted]


def _is_logical(frames: Delivered, at: Integers, asks: Integers) -> npt.NDArray[np.bool_]:
    def said(key: str, places: Integers) -> pa.ChunkedArray:
        return text_of(key, frames.frames, frames.rows[places])

    named = pc.fill_null(pc.starts_with(said(_BROKER, asks), MOCK_BROKER_PREFIX), False)
    found: npt.NDArray[np.bool_] = np.asarray(named) | np.asarray(pc.is_valid(said(_LOGICAL, asks)))
    # Who asks brokers for segments of logical queues says so, too.
    flags = pc.match_substring_regex(said(_FLAGS, asks), "^[0-9]{1,9}$")
    plain = pc.if_else(pc.fill_null(flags, False), said(_FLAGS, asks), "0").cast(pa.int32())
    found |= (np.asarray(plain) & RouteFlag.LOGICAL_QUEUE) != 0
    found |= np.asarray(pc.fill_null(pc.equal(frames.values("version", asks), _UNMARKED), False))
    for key in (_DELTA, _REDIRECT):
        found |= np.asarray(pc.is_valid(said(key, at)))
    return found


def traffic_of(command: Command) -> Iterator[Observation]:
    """What one command tells. Raises RemoteProtocolError."""
    asked = command.asked
    if asked is None or asked not in TRAFFIC:
        return
    if command.is_answer or asked == RequestCode.UPDATE_CONSUMER_OFFSET:
        yield from TRAFFIC[asked](command)


def _place(command: Command, header: Any) -> dict[str, Any]:
    """What every row has. `header`: of the request."""
    request = command if command.request is None else command.request
    return {
        "duration_ns": command.duration_ns,
        "topic": header.topic,
        "queue_id": header.queue_id,
        "name": header.bname,
        "address": command.source if command.is_answer else command.destination,
        "code": command.code if command.is_answer else None,
        "language": command.language if command.is_answer else None,
        "logical": header.lo,
        "request_order": request.place.order,
    }


def _pulled(answer: Command) -> Iterator[Observation]:
    assert answer.request is not None
    asked = answer.request.header(broker.PullMessageRequest)
    told = answer.header(broker.PullMessageResponse)
    is_filtered, tags = _filter(asked)
    yield Pulled(
        *answer.place,
        **_place(answer, asked),
        consumer_group=asked.consumer_group,
        asked=asked.queue_offset,
        next_begin=told.next_begin_offset,
        min_offset=told.min_offset,
        end_offset=told.max_offset,
        offset_delta=told.offset_delta,
        filtered=is_filtered,
        sub_version=asked.sub_version,
        tag_codes=tags,
        redirected=told.redirect is not None,
        carried=asked.commit_offset if (asked.sys_flag or 0) & PullFlag.COMMIT_OFFSET else None,
        pulled=answer.pulled if answer.body_size else [],
    )


def _filter(asked: broker.PullMessageRequest) -> tuple[bool | None, Sequence[int] | None]:
    """Whether a pull says that its group does not want all, and which tags it wants then. Who says nothing
    has said it in a heartbeat."""
    said = asked.subscription
    if said is None:
        return None, None
    wanted = wanted_of(said, asked.expression_type)
    return wanted != Wanted.ALL, codes_of(said) if wanted == Wanted.TAGS else None


def _committed(command: Command) -> Iterator[Observation]:
    """A commit that is answered tells itself by its answer."""
    if not command.is_answer and not command.flag & RemotingFlag.ONEWAY:
        return
    request = command if command.request is None else command.request
    header = request.header(client.UpdateConsumerOffsetRequest)
    yield Position(
        *command.place,
        **_place(command, header),
        consumer_group=header.consumer_group,
        queue_offset=header.commit_offset,
        committed=True,
    )


def _kept(answer: Command) -> Iterator[Observation]:
    assert answer.request is not None
    header = answer.request.header(client.QueryConsumerOffsetRequest)
    yield Position(
        *answer.place,
        **_place(answer, header),
        consumer_group=header.consumer_group,
        queue_offset=answer.header(client.QueryConsumerOffsetResponse).offset,
        committed=False,
    )


def _limit(
    asks: type[client.GetMaxOffsetRequest | client.GetMinOffsetRequest | client.SearchOffsetRequest],
    tells: type[client.GetMaxOffsetResponse | client.GetMinOffsetResponse | client.SearchOffsetResponse],
) -> Callable[[Command], Iterator[Observation]]:
    def told(answer: Command) -> Iterator[Observation]:
        assert answer.request is not None
        header = answer.request.header(asks)
        committed = header.committed if isinstance(header, client.GetMaxOffsetRequest) else None
        offset = answer.header(tells).offset
        yield Limit(
            *answer.place,
            **_place(answer, header),
            asked_code=answer.asked,
            queue_offset=offset,
            committed=committed,
        )

    return told


TRAFFIC: Final[Mapping[int, Callable[[Command], Iterator[Observation]]]] = {
    **dict.fromkeys(_PULLS, _pulled),
    RequestCode.UPDATE_CONSUMER_OFFSET: _committed,
    RequestCode.QUERY_CONSUMER_OFFSET: _kept,
    RequestCode.GET_MAX_OFFSET: _limit(client.GetMaxOffsetRequest, client.GetMaxOffsetResponse),
    RequestCode.GET_MIN_OFFSET: _limit(client.GetMinOffsetRequest, client.GetMinOffsetResponse),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _limit(client.SearchOffsetRequest, client.SearchOffsetResponse),
}
"""The requests about queues, and what is told of each."""
