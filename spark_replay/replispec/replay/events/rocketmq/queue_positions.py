"""What consumer groups commit of logical queues, and what they are told that they had committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from replispec.replay.events.queue_observations import Position, Pulled
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.stream_event import StreamEvent
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import UNDECIDED

_TOLD: Final = {ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND}


class _Commit(NamedTuple):
    """A position that a group commits. `order`: of the answer, or of a commit that has none of itself."""

    order: int
    connection: str
    offset: int
    answered: bool


def position_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """What groups are told. Another order of connections is another last commit: it is sure on one alone."""
    commits = _commits(seen)
    for row in seen.positions:
        queue = _queue(seen, row)
        if row.committed or row.code not in _TOLD or queue is None:
            continue
        own = commits.get((row.consumer_group or "", queue), ())
        asked = row.order if row.request_order is None else row.request_order
        before = [each for each in own if each.order < asked]
        last = before[-1] if before else None
        found = row.queue_offset if row.code == ResponseCode.SUCCESS else None
        yield seen.event(
            "positions",
            "told",
            row,
            queue=queue,
            reader=row.consumer_group or "",
            offset=UNDECIDED if found is None else found,
            floor=None if last is None else last.offset,
            surely=all(each.answered and each.connection == row.connection for each in own),
            in_doubt=seen.in_doubt,
        )


def _queue(seen: SeenTopic, row: Position | Pulled) -> str | None:
    """The queue of which a group has a position: a logical one, or, where clients of logical queues keep it,
    the physical one of a segment. None of what brokers ask each other."""
    if row.queue_id is None:
        return None
    if seen.is_logical(row):
        return f"logical queue {row.queue_id}"
    broker = seen.brokers.get(row.address or "")
    return None if seen.mapping.form != LOGICAL or broker is None else f"{broker}/{row.queue_id}"


def _commits(seen: SeenTopic) -> dict[tuple[str, str], Sequence[_Commit]]:
    """By groups and queues, in the order of the capture."""
    found: dict[tuple[str, str], list[_Commit]] = defaultdict(list)
    for row in seen.positions:
        taken = row.committed and (row.code is None or row.code == ResponseCode.SUCCESS)
        queue = _queue(seen, row)
        if taken and row.queue_offset is not None and queue is not None:
            commit = _Commit(row.order, row.connection, row.queue_offset, row.code is not None)
            found[row.consumer_group or "", queue].append(commit)
    for pull in seen.pulled:
        queue = _queue(seen, pull)
        if pull.carried is not None and queue is not None:
            commit = _Commit(pull.order, pull.connection, pull.carried, False)
            found[pull.consumer_group or "", queue].append(commit)
    return {key: sorted(own) for key, own in found.items()}
