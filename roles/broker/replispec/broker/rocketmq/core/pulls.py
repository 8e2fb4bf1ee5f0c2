"""Messages for consumers, at once or as soon as there are some, and where queues begin and end.

Source: RIP-44 "ConfirmOffset"; apache/rocketmq rocketmq-all-5.4.0, PullMessageProcessor,
PullRequestHoldService, AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import MessageStore, Queue
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageRequest, PullMessageResponse
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
)
from replispec.wire.rocketmq.codes import Permission, PullFlag, ResponseCode
from replispec.wire.rocketmq.store import LogRecord

ANSWER_BYTES_MAX: Final = 256 * 1024
MESSAGES_MAX: Final = 1_024
HELD_MAX: Final = 10_000
"""Requests that wait for a message; further ones are answered at once that there is none."""
HELD_MS_MAX: Final = 60_000


@dataclass(slots=True)
class _Held:
    request: Request
    header: PullMessageRequest
    until_ms: int


class Pulls:
    """Answers pulls. Nothing that is not in the store's index is ever shown."""

    def __init__(self, store: MessageStore, topics: Topics, offsets: ConsumerOffsets) -> None:
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._held: dict[tuple[str, int], list[_Held]] = {}
        self._held_count = 0
        self.given_count = 0

    def take(self, request: Request) -> None:
        """Answer a pull, or hold it. Raises RemoteProtocolError when it cannot be read."""
        header = PullMessageRequest.from_ext_fields(request.command.header.ext_fields or {})
        topic, queue_id = header.topic or "", header.queue_id or 0
        refusal = self._refusal(header, topic, queue_id)
        if refusal is not None:
            request.answer(refusal[0], remark=refusal[1])
            return
        flags = header.sys_flag or 0
        if flags & PullFlag.COMMIT_OFFSET and (header.commit_offset or 0) > 0:
            group, position = header.consumer_group or "", header.commit_offset or 0
            self._offsets.put(group, topic, queue_id, position, request.now_ms)
        wait_ms = min(header.suspend_timeout_millis or 0, HELD_MS_MAX) if flags & PullFlag.SUSPEND else 0
        if self._answer(request, header) or wait_ms <= 0 or self._held_count >= HELD_MAX:
            if not request.answered:
                self._none(request, header)
            return
        held = _Held(request, header, request.now_ms + wait_ms)
        self._held.setdefault((topic, queue_id), []).append(held)
        self._held_count += 1

    def shown(self) -> None:
        """More messages may be shown: answer those that waited for them."""
        for key, waiting in tuple(self._held.items()):
            queue = self._store.index.queues.get(key)
            if queue is not None and any((one.header.queue_offset or 0) < queue.next for one in waiting):
                self._keep(key, [one for one in waiting if not self._answer(one.request, one.header)])

    def closed(self, connection: int) -> None:
        """A connection is gone; no pull waits on it any more."""
        for key, waiting in tuple(self._held.items()):
            self._keep(key, [one for one in waiting if one.request.connection != connection])

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited long enough that there is nothing."""
        for key, waiting in tuple(self._held.items()):
            late = [one for one in waiting if now_ms >= one.until_ms]
            if late:
                self._keep(key, [one for one in waiting if now_ms < one.until_ms])
                for one in late:
                    self._none(one.request, one.header)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return min((one.until_ms for waiting in self._held.values() for one in waiting), default=None)

    def max_offset(self, request: Request) -> None:
        """Where the next message of a queue that is shown goes. Raises RemoteProtocolError."""
        header = GetMaxOffsetRequest.from_ext_fields(request.command.header.ext_fields or {})
        _, end = self._bounds(header.topic or "", header.queue_id or 0)
        request.answer(ResponseCode.SUCCESS, ext_fields=GetMaxOffsetResponse(end).to_ext_fields())

    def min_offset(self, request: Request) -> None:
        """Where the oldest message of a queue is. Raises RemoteProtocolError."""
        header = GetMinOffsetRequest.from_ext_fields(request.command.header.ext_fields or {})
        first, _ = self._bounds(header.topic or "", header.queue_id or 0)
        request.answer(ResponseCode.SUCCESS, ext_fields=GetMinOffsetResponse(first).to_ext_fields())

    def search_offset(self, request: Request) -> None:
        """Where the first message is that was stored at a time or later. Raises RemoteProtocolError."""
        header = SearchOffsetRequest.from_ext_fields(request.command.header.ext_fields or {})
        queue = self._store.index.queues.get((header.topic or "", header.queue_id or 0))
        found = 0 if queue is None else self._first_at(queue, header.timestamp or 0)
        request.answer(ResponseCode.SUCCESS, ext_fields=SearchOffsetResponse(found).to_ext_fields())

    def oldest(self, topic: str, queue_id: int) -> int:
        """The position of the oldest message of a queue."""
        return self._bounds(topic, queue_id)[0]

    def _refusal(
        self, header: PullMessageRequest, topic: str, queue_id: int
    ) -> tuple[ResponseCode, str] | None:
        config = self._topics.get(topic)
        if config is None:
            return ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic[:200]}] not exist"
        if not (config.perm or 0) & Permission.READ:
            return ResponseCode.NO_PERMISSION, f"the topic[{topic}] pulling message is forbidden"
        if not 0 <= queue_id < (config.read_queue_nums or 0):
            return ResponseCode.SYSTEM_ERROR, f"queueId[{queue_id}] is illegal"
        if (header.expression_type or constants.TAG_FILTER) != constants.TAG_FILTER:
            return ResponseCode.SYSTEM_ERROR, "the broker does not support filters but tags"
        return None

    def _bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        queue = self._store.index.queues.get((topic, queue_id))
        return (0, 0) if queue is None else (queue.first, queue.next)

    def _answer(self, request: Request, header: PullMessageRequest) -> bool:
        """Answer unless there is nothing yet at the position asked for."""
        topic, queue_id = header.topic or "", header.queue_id or 0
        first, end = self._bounds(topic, queue_id)
        position = header.queue_offset or 0
        if position == end:
            return False
        if not first <= position < end:
            self._moved(request, first if position < first else end, first, end)
            return True
        queue = self._store.index.queues[topic, queue_id]
        bodies = self._records(queue, position, header)
        if not bodies:
            self._moved(request, first, first, end)
            return True
        self.given_count += len(bodies)
        answer = PullMessageResponse(constants.MASTER_ID, position + len(bodies), first, end)
        request.answer(ResponseCode.SUCCESS, ext_fields=answer.to_ext_fields(), body=b"".join(bodies))
        return True

    def _records(self, queue: Queue, position: int, header: PullMessageRequest) -> list[bytes]:
        """Records from a position on, as many as fit into one answer, at least one that is there."""
        count_max = max(1, min(header.max_msg_nums or 1, MESSAGES_MAX))
        bytes_max = min(header.max_msg_bytes or ANSWER_BYTES_MAX, ANSWER_BYTES_MAX)
        found: list[bytes] = []
        size = 0
        while len(found) < count_max and (entry := queue.at(position + len(found))) is not None:
            size += entry.size
            record = self._store.log.read(entry.offset, entry.size)
            if record is None or (found and size > bytes_max):
                break
            found.append(record)
        return found

    def _moved(self, request: Request, to: int, first: int, end: int) -> None:
        answer = PullMessageResponse(constants.MASTER_ID, to, first, end)
        request.answer(ResponseCode.PULL_OFFSET_MOVED, ext_fields=answer.to_ext_fields())

    def _none(self, request: Request, header: PullMessageRequest) -> None:
        first, end = self._bounds(header.topic or "", header.queue_id or 0)
        answer = PullMessageResponse(constants.MASTER_ID, header.queue_offset or 0, first, end)
        request.answer(ResponseCode.PULL_NOT_FOUND, ext_fields=answer.to_ext_fields())

    def _keep(self, key: tuple[str, int], waiting: list[_Held]) -> None:
        self._held_count += len(waiting) - len(self._held[key])
        if waiting:
            self._held[key] = waiting
        else:
            del self._held[key]

    def _first_at(self, queue: Queue, timestamp: int) -> int:
        return _bisect(
            queue.first, queue.next, lambda position: self._stored_at(queue, position) >= timestamp
        )

    def _stored_at(self, queue: Queue, position: int) -> int:
        entry = queue.at(position)
        data = None if entry is None else self._store.log.read(entry.offset, entry.size)
        if data is None:
            return 0
        try:
            return LogRecord.decode(data).store_timestamp
        except RemoteProtocolError:
            return 0


def _bisect(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number for which `holds`; `high` when it holds for none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
