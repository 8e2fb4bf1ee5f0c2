"""The mapping of a topic in the columns of RIP-21: broker, message queue, logical queue, status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.runtime.rocketmq.queues.model import LogicalQueue, Segment
from replispec.wire.rocketmq.codes import LogicalQueueState as State


def rows(queues: Iterable[LogicalQueue]) -> Iterator[tuple[str, str, str, str]]:
    """One for each segment, by broker and message queue. Intervals include their ends, as in the proposal."""
    every = [
        (each.queue, each.physical_start, queue.index, each) for queue in queues for each in queue.segments
    ]
    for queue, _start, index, segment in sorted(every, key=lambda each: each[:3]):
        interval = _interval(segment)
        yield queue.broker_name, str(queue.queue_id), f"{index}{interval}", STATE_NAMES[segment.state]


def _interval(segment: Segment) -> str:
    if segment.state == State.EXPIRED or not segment.is_decided:
        return "(-)"
    if segment.is_sealed:
        return f"({segment.logical_start}-{segment.logical_end - 1})"
    return f"({segment.logical_start}-)" if segment.logical_start else ""
