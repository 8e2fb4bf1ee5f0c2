"""Where the messages of each queue lie in the commit log: what Apache RocketMQ calls the consume queue.

It is made of the log and kept in memory, 20 bytes a message; checkpoints keep parts of it.
Source: apache/rocketmq rocketmq-all-5.4.0, ConsumeQueue.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from replispec.runtime.rocketmq.log.properties import tags_code
from replispec.runtime.rocketmq.log.records import Placed
from replispec.wire.rocketmq.constants import POSITION_MAX, QUEUE_ID_MAX
from replispec.wire.rocketmq.store import Checkpoint, CheckpointQueue, LogRecord


class QueueEntry(NamedTuple):
    """One message of a queue: offset and size of its record, in bytes, and the code of its tag."""

    offset: int
    size: int
    tags_code: int


class QueueBounds(NamedTuple):
    """Positions of a queue: of its first message, after the last one that is shown, after the last one."""

    first: int
    next: int
    end: int


class Queue:
    """One queue of one topic. Positions count its messages; they start at `first`. Consumers are shown those
    before `next`; after them, up to `end`, lie messages that are stored and not confirmed."""

    def __init__(self, first: int) -> None:
        self.first = first
        self._shown = 0
        self._offsets = array("q")
        self._sizes = array("i")
        self._tags = array("q")

    @property
    def next(self) -> int:
        """The position of the next message that consumers will be shown."""
        return self.first + self._shown

    @property
    def end(self) -> int:
        """The position of the next message that will be stored."""
        return self.first + len(self._offsets)

    def at(self, position: int) -> QueueEntry | None:
        """The message at a position; None when it is not, or no longer, shown."""
        return self.stored(position) if position < self.next else None

    def stored(self, position: int) -> QueueEntry | None:
        """Likewise, shown or not."""
        number = position - self.first
        if not 0 <= number < len(self._offsets):
            return None
        return QueueEntry(self._offsets[number], self._sizes[number], self._tags[number])

    def put(self, position: int, entry: QueueEntry) -> None:
        """Note the message at a position. After a gap the queue begins anew: what a master deleted before
        we copied cannot be read here. A position that is there already stays as it is."""
        if position > self.end:
            self._cut(0)
            self.first = position
        if position == self.end:
            self._offsets.append(entry.offset)
            self._sizes.append(entry.size)
            self._tags.append(entry.tags_code)

    def show(self, offset: int) -> bool:
        """Show all messages that end at or before an offset of the log; whether others are left."""
        count = bisect_left(self._offsets, offset)
        if count and self._offsets[count - 1] + self._sizes[count - 1] > offset:
            count -= 1
        self._shown = max(self._shown, count)
        return self._shown < len(self._offsets)

    def truncate(self, offset: int) -> None:
        """Forget all messages at or after an offset of the log."""
        self._cut(bisect_left(self._offsets, offset))

    def delete_before(self, offset: int) -> None:
        """Forget all messages before an offset of the log; positions stay."""
        gone = bisect_left(self._offsets, offset)
        self.first += gone
        self._shown = max(0, self._shown - gone)
        for values in (self._offsets, self._sizes, self._tags):
            del values[:gone]

    def part(self, start: int, end: int) -> tuple[int, bytes, bytes, bytes] | None:
        """Of the messages that begin from one offset of the log to before another: the position of the first,
        and offsets, sizes and codes, big-endian. None when nothing is known before the end."""
        low, high = bisect_left(self._offsets, start), bisect_left(self._offsets, end)
        if not high and self._offsets:
            return None
        columns = (self._offsets[low:high], self._sizes[low:high], self._tags[low:high])
        offsets, sizes, tags = (_swapped(each).tobytes() for each in columns)
        return self.first + low, offsets, sizes, tags

    def load(self, position: int, columns: tuple[array[int], array[int], array[int]], first: int) -> None:
        """Note messages of which `part` told, but for those before an offset of the log. See `put`."""
        gone = bisect_left(columns[0], first)
        position += gone
        if position > self.end:
            self._cut(0)
            self.first = position
        gone += self.end - position
        for values, more in zip((self._offsets, self._sizes, self._tags), columns, strict=True):
            values.extend(more[gone:])

    def _cut(self, count: int) -> None:
        self._shown = min(self._shown, count)
        for values in (self._offsets, self._sizes, self._tags):
            del values[count:]


class QueueIndex:
    """All queues. `read` is the offset of the first record that is in none yet, `count` how many were put."""

    def __init__(self) -> None:
        self.read = 0
        self.count = 0
        self.cuts = 0
        """How often records were forgotten because the log was cut."""
        self.unknown = 0
        """Where a queue goes on of which no message is known."""
        self._queues: dict[tuple[str, int], Queue] = {}
        # In the order in which they got messages: what follows is the same in every run.
        self._hiding: dict[tuple[str, int], None] = {}
        # Queues that show more since this was last asked.
        self._grown: dict[tuple[str, int], None] = {}

    @property
    def queues(self) -> Mapping[tuple[str, int], Queue]:
        """All queues, by topic and queue id."""
        return self._queues

    def bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Where a queue begins and ends, whether it has messages or not."""
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            return QueueBounds(self.unknown, self.unknown, self.unknown)
        return QueueBounds(queue.first, queue.next, queue.end)

    def put(self, placed: Placed) -> None:
        """Index the next record of the log; consumers do not see it yet. One at a place that no queue has, of
        other software, is in none."""
        record = placed.record
        self.read = placed.offset + placed.size
        self.count += 1
        if not _has_a_place(record):
            return
        key = (record.topic, record.queue_id)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = Queue(record.queue_offset)
        entry = QueueEntry(placed.offset, placed.size, tags_code(record.properties))
        queue.put(record.queue_offset, entry)
        self._hiding[key] = None

    def part(self, start: int, end: int) -> list[CheckpointQueue]:
        """The messages that begin from one offset of the log to before another, and the next positions of
        queues that have none there."""
        found = []
        for (topic, queue_id), queue in self._queues.items():
            part = queue.part(start, end)
            if part is not None:
                found.append(CheckpointQueue(topic, queue_id, *part))
        return found

    def load(self, checkpoint: Checkpoint, first: int) -> bool:
        """Index the next records of the log, but for those before an offset, as a checkpoint has them; False
        when it has not."""
        columns = [found for each in checkpoint.queues if (found := _columns(each)) is not None]
        if len(columns) != len(checkpoint.queues):
            return False
        for each, found in zip(checkpoint.queues, columns, strict=True):
            key = (each.topic, each.queue_id)
            queue = self._queues.get(key) or self._queues.setdefault(key, Queue(each.position))
            queue.load(each.position, found, first)
            self._hiding[key] = None
        self.read = checkpoint.until
        self.count = checkpoint.messages
        return True

    def show(self, offset: int) -> None:
        """Show consumers all records that end at or before an offset."""
        hiding: dict[tuple[str, int], None] = {}
        for key in self._hiding:
            queue = self._queues[key]
            shown = queue.next
            if queue.show(offset):
                hiding[key] = None
            if queue.next > shown:
                self._grown[key] = None
        self._hiding = hiding

    def take_grown(self) -> list[tuple[str, int]]:
        """The queues that show more than when this was last asked."""
        grown, self._grown = self._grown, {}
        return list(grown)

    def truncate(self, offset: int) -> None:
        """Forget all records at or after an offset; a queue without messages left is forgotten whole."""
        if offset >= self.read:
            return
        self.read = offset
        self.cuts += 1
        for key, queue in tuple(self._queues.items()):
            queue.truncate(offset)
            if queue.end == 0:
                del self._queues[key]
                self._hiding.pop(key, None)

    def delete_before(self, offset: int) -> None:
        """Forget all records before an offset."""
        self.read = max(self.read, offset)
        for queue in self._queues.values():
            queue.delete_before(offset)


def _has_a_place(record: LogRecord) -> bool:
    """Whether what comes after it can be numbered: a queue, and a message in this one."""
    return 0 <= record.queue_offset < POSITION_MAX and 0 <= record.queue_id < QUEUE_ID_MAX


def _columns(queue: CheckpointQueue) -> tuple[array[int], array[int], array[int]] | None:
    """Offsets, sizes and codes of a queue's messages; None when they are not of the same messages."""
    offsets, sizes, tags = array("q"), array("i"), array("q")
    columns = ((offsets, queue.offsets), (sizes, queue.sizes), (tags, queue.tag_codes))
    count = len(queue.offsets) // offsets.itemsize
    if any(len(data) != count * values.itemsize for values, data in columns):
        return None
    for values, data in columns:
        values.frombytes(data)
    return _swapped(offsets), _swapped(sizes), _swapped(tags)


def _swapped(values: array[int]) -> array[int]:
    """Numbers of this machine as they are on the disk, and the other way round; the same array."""
    if sys.byteorder == "little":
        values.byteswap()
    return values
