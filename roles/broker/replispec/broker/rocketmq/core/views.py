"""How whoever asks a static topic counts, where its messages lie in a physical queue of this broker.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingContext.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replispec.runtime.rocketmq.queues import Segment


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

    def bounds(self, bounds_of: Callable[[int], tuple[int, int]]) -> tuple[int, int]:
        """Where the logical queue begins and ends, given the same of a physical queue here; of what another
        broker has, where its item begins."""
        oldest, newest = self.oldest, self.newest
        low, end = oldest.logical_start, newest.logical_start
        if oldest.queue.broker_name == self.broker_name:
            low = oldest.logical_of(bounds_of(oldest.queue.queue_id)[0])
        if newest.queue.broker_name == self.broker_name:
            end = newest.logical_of(bounds_of(newest.queue.queue_id)[1])
        return low, end
