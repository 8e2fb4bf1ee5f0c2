"""What must hold of logical queues, whoever says them. Every check is linear in what it is given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from replispec.runtime.rocketmq.queues.model import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.profiles import Profile
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import (
    LOGICAL_QUEUES_MAX,
    MAPPING_SEGMENTS_MAX,
    OFFSET_MAX,
    QUEUE_ID_MAX,
    QUEUE_SEGMENTS_MAX,
    UNDECIDED,
)


def fault_of_topic(queues: Collection[LogicalQueue], profile: Profile) -> str | None:
    """What is wrong with the logical queues of one topic, in a few words; None: nothing."""
    if (fault := fault_of_count(sum(len(each.segments) for each in queues))) is not None:
        return fault
    faults = (f"queue {each.index}: {found}" for each in queues if (found := fault_of(each, profile)))
    every = (each for queue in queues for each in queue.segments)
    return next(faults, None) or fault_of_message_queues(every, profile)


def fault_of_count(segments: int) -> str | None:
    """Whether a topic has more segments than anybody reads."""
    return f"more than {MAPPING_SEGMENTS_MAX} segments" if segments > MAPPING_SEGMENTS_MAX else None


def fault_of(queue: LogicalQueue, profile: Profile) -> str | None:
    """What is wrong with one logical queue."""
    if not 0 <= queue.index < LOGICAL_QUEUES_MAX:
        return f"no index is {queue.index}"
    if len(queue.segments) > QUEUE_SEGMENTS_MAX:
        return f"more than {QUEUE_SEGMENTS_MAX} segments"
    return next(_faults(queue.segments, profile), None)


def _faults(segments: Sequence[Segment], profile: Profile) -> Iterator[str]:
    for each in segments:
        yield from _faults_of_numbers(each, profile)
    for one, two in pairwise(segments):
        yield from _faults_between(one, two, profile)
    if sum(each.state == State.NORMAL for each in segments) > 1 or _has_two_targets(segments, profile):
        yield "two segments that are written"
    physical = fault_of_message_queues(segments, profile)
    if physical is not None:
        yield physical


def _has_two_targets(segments: Sequence[Segment], profile: Profile) -> bool:
    """Whether more segments wait for a start than may. Where each broker keeps its own, administrators who
    work at once have each one made, which follow one after the other in the end."""
    waiting = [each.queue.broker_name for each in segments if each.state == State.WRITE_ONLY]
    return len(waiting) > (1 if profile.leader_keeps_all else len({*waiting}))


def _faults_of_numbers(segment: Segment, profile: Profile) -> Iterator[str]:
    start, end = segment.physical_start, segment.physical_end
    if not segment.queue.broker_name or not 0 <= segment.queue.queue_id <= QUEUE_ID_MAX:
        yield "no physical queue"
    if segment.logical_start < UNDECIDED or start < 0 or end < UNDECIDED:
        yield "an offset below 0"
    if segment.is_sealed and end < start:
        yield f"an end {end} before the start {start}"
    if segment.logical_end > OFFSET_MAX:
        yield "an end beyond all offsets"
    if profile.first_start is not None and start != profile.first_start:
        yield f"a physical start {start}"
    if segment.is_decided == (segment.state == State.WRITE_ONLY):
        yield "a start that does not fit its state"
    if profile.is_contiguous and segment.is_sealed == segment.is_writable:
        yield "an end that does not fit its state"


def _faults_between(one: Segment, two: Segment, profile: Profile) -> Iterator[str]:
    if not one.is_decided:
        if two.is_decided or profile.leader_keeps_all:
            yield "an undecided segment that is not the last"
    elif two.is_decided and max(one.logical_end, one.logical_start) > two.logical_start:
        yield f"segments that overlap at {two.logical_start}"
    elif two.is_decided and one.logical_start == two.logical_start and not _is_empty(one, profile):
        yield f"two segments from {one.logical_start} on"
    elif two.is_decided and profile.is_contiguous and not one.is_sealed:
        yield "an open segment that is not the last"


def _is_empty(segment: Segment, profile: Profile) -> bool:
    """Whether a segment of no message may begin where the next one does."""
    return profile.is_contiguous and segment.logical_end == segment.logical_start


def fault_of_message_queues(segments: Iterable[Segment], profile: Profile) -> str | None:
    """No message of a physical queue belongs to two segments, and no queue of a static topic serves twice."""
    last: dict[PhysicalQueue, Segment] = {}
    for each in sorted(segments, key=lambda segment: (segment.queue, segment.physical_start)):
        before = last.get(each.queue)
        is_over = before is not None and before.is_sealed and before.physical_end <= each.physical_start
        if before is not None and not (profile.takes_again and is_over):
            return f"the queue {each.queue.queue_id} of {each.queue.broker_name[:40]} serves twice"
        last[each.queue] = each
    return None
