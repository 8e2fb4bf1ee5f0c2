"""Where the messages of each queue lie in the commit log: what Apache RocketMQ calls the consume queue.

It is made of the log and kept in memory alone, 20 bytes a message.
Source: apache/rocketmq rocketmq-all-5.4.0, ConsumeQueue.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from replispec.runtime.log.commit_log import Placed
from replispec.runtime.log.properties import tags_code


class QueueEntry(NamedTuple):
    """One message of a queue: offset and size of its record, in bytes, and the code of its tag."""

    offset: int
    size: int
    tags_code: int


class Queue:
    """One queue of one topic. Positions count its messages; they start at `first`."""

    def __init__(self, first: int) -> None:
        self.first = first
        self._offsets = array("q")
        self._sizes = array("i")
        self._tags = array("q")

    @property
    def next(self) -> int:
        """The position of the next message."""
        return self.first + len(self._offsets)

    def at(self, position: int) -> QueueEntry | None:
        """The message at a position; None when it is not, or no longer, there."""
        number = position - self.first
        if not 0 <= number < len(self._offsets):
            return None
        return QueueEntry(self._offsets[number], self._sizes[number], self._tags[number])

    def put(self, position: int, entry: QueueEntry) -> None:
        """Note the message at a position. Behind a gap the queue begins anew: what a master deleted before
        we copied cannot be read here. A position that is there already stays as it is."""
        if position > self.next:
            self._cut(0)
            self.first = position
        if position == self.next:
            self._offsets.append(entry.offset)
            self._sizes.append(entry.size)
            self._tags.append(entry.tags_code)

    def truncate(self, offset: int) -> None:
        """Forget all messages at or behind an offset of the log."""
        self._cut(bisect_left(self._offsets, offset))

    def delete_before(self, offset: int) -> None:
        """Forget all messages before an offset of the log; positions stay."""
        gone = bisect_left(self._offsets, offset)
        self.first += gone
        for values in (self._offsets, self._sizes, self._tags):
            del values[:gone]

    def _cut(self, count: int) -> None:
        for values in (self._offsets, self._sizes, self._tags):
            del values[count:]


class QueueIndex:
    """All queues, up to `end`: the offset of the first record that is not in it yet."""

    def __init__(self, start: int) -> None:
        self.end = start
        self._queues: dict[tuple[str, int], Queue] = {}

    @property
    def queues(self) -> Mapping[tuple[str, int], Queue]:
        """All queues, by topic and queue id."""
        return self._queues

    def put(self, placed: Placed) -> None:
        """Note the next record of the log."""
        record = placed.record
        key = (record.topic, record.queue_id)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = Queue(record.queue_offset)
        entry = QueueEntry(placed.offset, placed.size, tags_code(record.properties))
        queue.put(record.queue_offset, entry)
        self.end = placed.offset + placed.size

    def truncate(self, offset: int) -> None:
        """Forget all records at or behind an offset; a queue without messages left is forgotten whole."""
        if offset >= self.end:
            return
        self.end = offset
        for key, queue in tuple(self._queues.items()):
            queue.truncate(offset)
            if queue.at(queue.first) is None and queue.first == 0:
                del self._queues[key]

    def delete_before(self, offset: int) -> None:
        """Forget all records before an offset."""
        self.end = max(self.end, offset)
        for queue in self._queues.values():
            queue.delete_before(offset)
