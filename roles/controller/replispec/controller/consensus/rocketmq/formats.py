"""What the records and the state of a controller's log are on its disk."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.controller.consensus.interface import LogDamaged
from replispec.event.v1.event_pb2 import ControllerEvent, MemberState
from replispec.runtime.documents.official_seam import decode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.constants import (
    EVENT_FORMAT,
    EVENT_GROUP_FORMAT,
    LOG_FORMAT,
    LOG_GROUP_FORMAT,
)


def event_of(index: int, data: bytes) -> ControllerEvent:
    """What a record says. Raises LogDamaged, with its place."""
    try:
        event = decode(ControllerEvent, data, unknown_allowed=False)
    except RemoteProtocolError as error:
        raise LogDamaged(f"record {index} of the log: {error}") from error
    known = EVENT_GROUP_FORMAT if event.HasField("group_places") else EVENT_FORMAT
    if event.format != known:
        raise LogDamaged(f"record {index} of the log is of format {event.format}, this release reads {known}")
    return event


def check_order(places: Sequence[tuple[int, int]], replaced: int, term: int) -> None:
    """Whether records, each of a place and a term, follow each other after a place and its term.

    Raises LogDamaged, with the place.
    """
    for place, (index, of_term) in enumerate(places, start=replaced + 1):
        if index != place:
            raise LogDamaged(f"record {place} of the log is missing: the next one is {index}")
        if of_term < term:
            raise LogDamaged(f"record {place} of the log is of term {of_term}, behind {term}")
        term = of_term


def state_of(data: bytes | None) -> MemberState | None:
    """What a member remembers beside its log. Raises LogDamaged."""
    if data is None:
        return None
    try:
        state = decode(MemberState, data, unknown_allowed=False)
    except RemoteProtocolError as error:
        raise LogDamaged(f"the state of the member: {error}") from error
    if state.format not in (LOG_FORMAT, LOG_GROUP_FORMAT):
        raise LogDamaged(
            f"the state of the member is of format {state.format}, this release reads {LOG_FORMAT} and "
            f"{LOG_GROUP_FORMAT}"
        )
    return state


def check_term(last: int, known: int) -> None:
    """Whether a member knows the term of its last record. Raises LogDamaged."""
    if last > known:
        raise LogDamaged(f"the log is of term {last}, the member knows only {known}")


def is_of_a_group(data: bytes | None) -> bool:
    """Whether this is the state of a member of a group; of what cannot be read the start says why."""
    try:
        known = state_of(data)
    except LogDamaged:
        return False
    return known is not None and known.format == LOG_GROUP_FORMAT
