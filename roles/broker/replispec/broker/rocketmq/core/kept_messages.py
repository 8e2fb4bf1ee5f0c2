"""Messages of the log by their offset, as consumers name them that give one back.

Source: apache/rocketmq rocketmq-all-5.4.0, AbstractSendMessageProcessor.consumerSendMsgBack.
"""

from __future__ import annotations

from typing import Final

from replispec.broker.rocketmq.core.subscription_groups import SubscriptionGroups
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.rocketmq.log import MessageStore, Placed
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.store import LogRecord


class KeptMessages:
    """Messages that consumers may have seen; see `local` of the machine `broker_sends`. The one that was
    asked for last is at hand: one request asks for it piece by piece."""

    def __init__(self, store: MessageStore, topics: Topics, groups: SubscriptionGroups) -> None:
        self.retries_max: Final = groups.retries_max
        self._store = store
        self._topics = topics
        self._kept_offset = constants.UNDECIDED
        self._kept: LogRecord | None = None

    def forget_kept(self) -> None:
        """Another request is read: the log may be another one."""
        self._kept_offset, self._kept = constants.UNDECIDED, None

    def is_kept(self, offset: int, /) -> bool:
        """Whether a message begins there in the log that consumers are shown, whatever the bytes there look
        like."""
        return self._kept_at(offset) is not None

    def kept_record(self, offset: int, /) -> bytes:
        """Its record, as consumers are sent it; nothing where none begins."""
        kept = self._placed(offset)
        return b"" if kept is None else self._store.log.read(offset, kept.size) or b""

    def kept_topic(self, offset: int, /) -> str:
        """Its topic."""
        return self._said(offset).topic

    def kept_properties(self, offset: int, /) -> str:
        """Its properties."""
        return self._said(offset).properties.decode(errors="replace")

    def kept_body(self, offset: int, /) -> bytes:
        """Its body."""
        return self._said(offset).body

    def kept_sys_flag(self, offset: int, /) -> int:
        """Its sysFlag."""
        return self._said(offset).sys_flag

    def kept_flag(self, offset: int, /) -> int:
        """Its flag."""
        return self._said(offset).flag

    def kept_born(self, offset: int, /) -> int:
        """When its producer sent it."""
        return self._said(offset).born_timestamp

    def kept_times(self, offset: int, /) -> int:
        """How often it was tried again."""
        return self._said(offset).reconsume_times

    def _said(self, offset: int) -> LogRecord:
        return self._kept_at(offset) or LogRecord()

    def _kept_at(self, offset: int) -> LogRecord | None:
        if offset != self._kept_offset:
            self._kept_offset, self._kept = offset, self._read(offset)
        return self._kept

    def _read(self, offset: int) -> LogRecord | None:
        placed = self._placed(offset)
        return None if placed is None else placed.record

    def _placed(self, offset: int) -> Placed | None:
        log = self._store.log
        if not log.first <= offset < log.end:
            return None
        placed = next(log.records(offset, log.end), None)
        if placed is None or placed.offset != offset:
            return None
        record = placed.record
        queue = self._store.index.queues.get((record.topic, record.queue_id))
        entry = None if queue is None else queue.at(record.queue_offset)
        is_one = entry is not None and (entry.offset, entry.size) == (offset, placed.size)
        return placed if is_one and self._topics.is_name(record.topic) else None
