"""Requests to brokers with their answers, each partition of one a row.

An answer is read by its request's key and version. A request of which the specification does not know the
version is no row: it is told as one that was not read, where it matters to who judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from replispec.replay.events.columns import Observed
from replispec.replay.events.directions import FoundFrame, frames_of, hidden, of_kinds
from replispec.replay.events.kafka.told import (
    appended,
    epoch_ends,
    fetched,
    led,
    published,
    stopped,
)
from replispec.replay.events.observation import Observation, Undecodable
from replispec.replay.frames.kafka.readers import ANSWERS, REQUESTS
from replispec.replay.pairing.in_order import pair_in_order
from replispec.replay.pairing.pairs import ANSWER, REQUEST
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame

KINDS: Final = (REQUESTS, ANSWERS)
_COLUMNS: Final = (
    *("time_ns", "sequence", "index", "protocol", "source", "destination"),
    *("api_key", "api_version", "correlation_id", "kept_body", "size"),
)
_TOLD: Final[Mapping[int, Callable[[Any, Any], Iterator[tuple[type[Any], dict[str, Any]]]]]] = {
    ApiKey.PRODUCE: appended,
    ApiKey.FETCH: fetched,
    ApiKey.LEADER_AND_ISR: led,
    ApiKey.STOP_REPLICA: stopped,
    ApiKey.UPDATE_METADATA: published,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: epoch_ends,
}
"""What is told of requests that the rules are about."""
_TOLD_UNANSWERED: Final = (
    ApiKey.FETCH, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA,
)  # fmt: skip
"""What says something even where no answer was seen."""


def observe_requests(frames: pa.Table, holes: pa.Table, streams: pa.Table) -> Observed:
    """What requests and their answers say in FRAMES, and what of them was not seen."""
    own = of_kinds(frames, streams, KINDS)
    found: list[Observation] = [*hidden(holes, streams, KINDS)]
    if not len(own):
        return found, []
    rows = frames_of(own, _COLUMNS)
    roles = [REQUEST if each.said["protocol"] == REQUESTS else ANSWER for each in rows]
    asked = pair_in_order(own, roles, [each.said["correlation_id"] for each in rows]).tolist()
    answers = {request: at for at, request in enumerate(asked) if request >= 0}
    for at, row in enumerate(rows):
        if roles[at] == REQUEST and row.said["api_key"] in _TOLD:
            answer = rows[answers[at]] if at in answers else None
            if answer is not None or row.said["api_key"] in _TOLD_UNANSWERED:
                found += _observed(row, answer)
    return found, []


def _observed(request: FoundFrame, answer: FoundFrame | None) -> Iterator[Observation]:
    place = (answer or request).place
    said = request.said
    try:
        asked, told = _messages(said, None if answer is None else answer.said)
    except RemoteProtocolError as fault:
        yield Undecodable(*place, code=said["api_key"], text=str(fault)[:200])
        return
    since = None if answer is None else place.time_ns - request.place.time_ns
    for kind, fields in _TOLD[said["api_key"]](asked, told):
        yield kind(
            *place,
            duration_ns=since,
            address=said["destination"],
            request_order=request.place.order,
            **fields,
        )


def _messages(request: Mapping[str, Any], answer: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """The request and its answer. Raises RemoteProtocolError when one of them cannot be read."""
    key, version = request["api_key"], request["api_version"]
    form = APACHE_RESPONSE_FRAME.form_of(key, version)
    if form is None:
        raise RemoteProtocolError(f"{ApiKey(key).name} of version {version} is not specified")
    frame = ApacheRequestFrame(key, version, request["correlation_id"], None, _kept(request))
    asked = APACHE_RESPONSE_FRAME.read_request(frame)
    if answer is None:
        return asked, None
    reply = ApacheResponseFrame(answer["correlation_id"], _kept(answer))
    return asked, APACHE_RESPONSE_FRAME.read_answer(reply, APACHE_RESPONSE_FRAME.asked(frame))


def _kept(said: Mapping[str, Any]) -> bytes:
    if said["kept_body"] is None:
        raise RemoteProtocolError(f"the body of a frame of {said['size']} bytes is not kept")
    return bytes(said["kept_body"])
