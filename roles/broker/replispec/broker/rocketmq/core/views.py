"""How whoever asks a static topic counts, where its messages lie in a physical queue of this broker, or of
another one that was asked.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingContext.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.wire.rocketmq.constants import UNDECIDED

Bounds = Callable[[int], tuple[int, int]]
"""Where a physical queue of this broker begins and ends."""


@dataclass(frozen=True, slots=True)
class LogicalView:
    """One logical queue, and the segment of it that a request is about."""

    topic: str
    index: int
    segment: Segment
    oldest: Segment
    """The first one that is read."""
    newest: Segment
    """The last one that is read."""
    border: int
    """The logical offset from which on another segment holds the messages; UNDECIDED while none does."""
    broker_name: str
    following: Segment | None = None
    """The segment that begins there."""
    is_handed_on: bool = False
    """Whether the queue that was asked for is another one than where the messages go."""
    queue: LogicalQueue | None = None
    """All its segments."""
    told: int | None = None
    """What other brokers told, in offsets of the logical queue; UNDECIDED: that there is none."""

    def is_here(self, segment: Segment) -> bool:
        """Whether a segment is one of this broker."""
        return segment.queue.broker_name == self.broker_name

    def bounds(self, bounds_of: Bounds) -> tuple[int, int]:
        """Where the segment begins and the logical queue ends, given the same of a physical queue here; of
        what another broker has, where its item begins."""
        return self.begin_of(self.segment, bounds_of), self.end(bounds_of)

    def told_of(self, oldest: int, end: int, bounds_of: Bounds) -> tuple[int, int]:
        """The same, given where the queue of the segment begins and ends, which is here."""
        delta = self.segment.offset_delta
        begin = oldest + delta if self.border == UNDECIDED else min(oldest + delta, self.border)
        return begin, end + delta if self.newest is self.segment else self.end(bounds_of)

    def begin_of(self, segment: Segment, bounds_of: Bounds) -> int:
        """The oldest message of a segment, where that is here; else where it begins. One without messages
        ends where the next one begins: whoever copied a log from its middle on counts such a queue from
        anywhere."""
        if not self.is_here(segment):
            return segment.logical_start
        border = self.border if segment is self.segment else self._border_of(segment)
        found = segment.logical_of(bounds_of(segment.queue.queue_id)[0])
        return found if border == UNDECIDED else min(found, border)

    def _border_of(self, segment: Segment) -> int:
        return UNDECIDED if self.queue is None else self.queue.border_of(segment)

    def end(self, bounds_of: Bounds) -> int:
        """Where the logical queue ends, as far as that is known here."""
        if not self.is_here(self.newest):
            return self.newest.logical_start
        return self.newest.logical_of(bounds_of(self.newest.queue.queue_id)[1])
