"""Whose the queues of groups are that read in order.

The log says to whom a master gave a queue, before the client is told: whoever takes office next gives it to
nobody else for as long as the client may believe that it has it.

Source: apache/rocketmq rocketmq-all-5.4.0, AdminBrokerProcessor, RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.broker.rocketmq.core.recorder import Kept, Recorder
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting import Shares
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import QueueLocks
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.store import LogRecord

LOCKS_MAX: Final = 100_000
"""Queues of groups that clients have; beyond that the host that has most of them gives way to others."""
FOUND_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of records that whoever takes office reads, the last ones; what older ones say is not known."""

LockKey = tuple[str, str, int]
"""The group, the topic, the number of the queue."""


@dataclass(slots=True)
class _Lock:
    """Who has a queue, when it asked for it last, and where among the records it is said; UNDECIDED while it
    is not known that such a record is kept."""

    client: str
    asked_ms: int
    said_at: int


class Locks:
    """By group and queue. A client has a queue from when it is given it until it gives it back, or has not
    asked for it for LOCK_EXPIRY_MS. What of it is given back is not recorded: after a change of master it is
    free a minute later."""

    def __init__(self, store: MessageStore, recorder: Recorder) -> None:
        self.queue: Final = constants.LOCKS_QUEUE
        self._store = store
        self._recorder = recorder
        # Those that were not asked for longest come first.
        self._locks: dict[LockKey, _Lock] = {}
        self._shares = Shares[LockKey](LOCKS_MAX)
        # Until then a queue of which nothing is known may be somebody's.
        self._unknown_until_ms = 0

    def catch_up(self) -> None:
        """Of what it recorded itself a master has nothing to learn."""

    def lock(
        self, group: str, client: str, queues: Sequence[MessageQueue], host: str, now_ms: int
    ) -> list[MessageQueue]:
        """Give a client on this host the queues that it may have; who it has to be is for `keep` to say."""
        self._expire(now_ms)
        if not client or max(len(group), len(client)) > TEXT_MAX:
            return []
        taken = [each for each in queues if self._take(_key(group, each), client, host, now_ms)]
        # Taking one may have cost the client another that it has by another host.
        return [each for each in taken if self._is_of(_key(group, each), client)]

    def keep(
        self,
        group: str,
        client: str,
        queues: Sequence[MessageQueue],
        now_ms: int,
        kept: Callable[[Sequence[MessageQueue], str, int], None],
        again: Callable[[Kept], Kept],
    ) -> None:
        """Have the log say that these queues, which `lock` gave, are the client's. `kept` is told which of
        them still are when the SyncStateSet has that, at once where it was said before; `again` has the
        request asked anew, when the log has room again."""
        bounds = self._store.index.bounds(constants.MAPPING_TOPIC, self.queue)
        oldest = max(bounds.first, bounds.end - constants.LOCKS_REMEMBERED // 2)
        unsaid = [each for each in queues if self._locks[_key(group, each)].said_at < oldest]
        if not unsaid:
            kept(queues, "", now_ms)
            return

        def said(reason: str, at_ms: int) -> None:
            mine = [each for each in queues if self._is_of(_key(group, each), client)]
            for each in [] if reason else unsaid:
                if self._is_of(key := _key(group, each), client):
                    self._locks[key].said_at = bounds.end
            kept(mine, reason, at_ms)

        body = QueueLocks(client_id=client, consumer_group=group, mq_set=unsaid).encode()
        self._recorder.record(self, body, now_ms, said, again(said))

    def unlock(self, group: str, client: str, queues: Sequence[MessageQueue]) -> None:
        """A client gives queues back; those of others stay with them."""
        for key in (_key(group, each) for each in queues):
            if self._is_of(key, client):
                self._drop(key)

    def office_taken(self, now_ms: int) -> None:
        """Find in the log who was given what; each counts as if it had asked just now. Where more was said
        within a minute than is read, what is not known is somebody's for as long as he may believe it."""
        self.office_left()
        bounds = self._store.index.bounds(constants.MAPPING_TOPIC, self.queue)
        reached = recent = bounds.end
        newest_ms: int | None = None
        for position, record in self._last_records():
            newest_ms = record.store_timestamp if newest_ms is None else newest_ms
            if record.store_timestamp > newest_ms - constants.LOCK_EXPIRY_MS:
                recent = position
            reached = position
            self._believe(position, _said(record), now_ms)
        # Whoever asked within the minute had it said again unless it was among the last ones then.
        if reached > max(bounds.first, recent - constants.LOCKS_REMEMBERED // 2) or self._shares.is_full:
            self._unknown_until_ms = now_ms + constants.LOCK_EXPIRY_MS

    def _last_records(self) -> Iterator[tuple[int, LogRecord]]:
        """The records that count, and where among them each is, the newest first."""
        queue = self._store.index.queues.get((constants.MAPPING_TOPIC, self.queue))
        left = FOUND_BYTES_MAX
        if queue is None:
            return
        first = max(queue.first, queue.end - constants.LOCKS_REMEMBERED)
        for position in range(queue.end - 1, first - 1, -1):
            entry = queue.stored(position)
            if entry is None or left < entry.size:
                return
            data = self._store.log.read(entry.offset, entry.size)
            if data is None:
                return
            left -= entry.size
            yield position, LogRecord.decode(data)

    def office_left(self) -> None:
        """Who has what is another broker's to say."""
        self._locks.clear()
        self._shares = Shares(LOCKS_MAX)
        self._unknown_until_ms = 0

    def _believe(self, position: int, said: QueueLocks, now_ms: int) -> None:
        """What a record says, of which no later one says something else."""
        client = said.client_id or ""
        for queue in said.mq_set or ():
            key = _key(said.consumer_group or "", queue)
            if key not in self._locks and not self._shares.is_full:
                self._shares.take("", key)
                self._locks[key] = _Lock(client, now_ms, position)

    def _take(self, key: LockKey, client: str, host: str, now_ms: int) -> bool:
        known = self._locks.get(key)
        holder, asked_ms = (None, 0) if known is None else (known.client, known.asked_ms)
        if not rules.may_lock(holder, asked_ms, client, now_ms):
            return False
        if known is not None and holder == client:
            known.asked_ms = now_ms
            self._locks[key] = self._locks.pop(key)
            return True
        if (known is None and now_ms < self._unknown_until_ms) or not self._admits(key, host):
            return False
        self._shares.take(host, key)
        self._locks[key] = _Lock(client, now_ms, constants.UNDECIDED)
        return True

    def _admits(self, key: LockKey, host: str) -> bool:
        if len(key[1]) > TEXT_MAX or not 0 <= key[2] < constants.QUEUES_MAX:
            return False
        going = self._shares.giving_way(host) if self._shares.is_full else None
        if going is not None:
            self._drop(going)
        return not self._shares.is_full

    def _is_of(self, key: LockKey, client: str) -> bool:
        found = self._locks.get(key)
        return found is not None and found.client == client

    def _expire(self, now_ms: int) -> None:
        while self._locks:
            key, oldest = next(iter(self._locks.items()))
            if not rules.may_lock(oldest.client, oldest.asked_ms, "", now_ms):
                return
            self._drop(key)

    def _drop(self, key: LockKey) -> None:
        del self._locks[key]
        self._shares.drop(key)


def _key(group: str, queue: MessageQueue) -> LockKey:
    return group, queue.topic or "", queue.queue_id or 0


def _said(record: LogRecord) -> QueueLocks:
    """What a record says; nothing for one that cannot be read."""
    try:
        return QueueLocks.decode(record.body)
    except RemoteProtocolError:
        return QueueLocks()
