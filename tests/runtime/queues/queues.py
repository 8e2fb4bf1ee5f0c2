"""Logical queues by chance: grown by the steps that brokers and administrators take."""

from __future__ import annotations

from hypothesis import strategies as st

from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Profile, Segment
from replispec.wire.rocketmq.codes import LogicalQueueState as State

BROKERS = ("b1", "b2", "b3")


def first(broker: str, queue_id: int, index: int, physical_start: int = 0) -> LogicalQueue:
    """A logical queue that was just mapped."""
    segment = Segment(PhysicalQueue(broker, queue_id), State.NORMAL, 0, physical_start)
    return LogicalQueue(index, (segment,))


def migrated(
    queue: LogicalQueue, profile: Profile, broker: str, queue_id: int, end: int, start: int = 0
) -> LogicalQueue:
    """After a migration: `end` and `start` are physical, of the source and of the target."""
    target = Segment(PhysicalQueue(broker, queue_id), State.WRITE_ONLY, physical_start=start)
    source = queue.writable
    assert source is not None
    both = queue.sealed(source.key, end, 0).continued(target)
    ends = next(each for each in both.segments if each.key == source.key)
    return both.decided(target.key, profile.start_after(ends.logical_end))


@st.composite
def grown(draw: st.DrawFn, profile: Profile) -> LogicalQueue:
    """A logical queue after up to five migrations, each to a new physical queue."""
    queue = first("b1", 0, 0)
    for number in range(1, draw(st.integers(0, 5)) + 1):
        messages = draw(st.integers(0, 20_000))
        broker = draw(st.sampled_from(BROKERS))
        start = draw(st.integers(0, 50)) if profile.takes_again else 0
        source = queue.writable
        assert source is not None
        queue = migrated(queue, profile, broker, number, source.physical_start + messages, start)
    return queue
