"""Mappings of topics, as the commit log has them: the newest record of a topic is its mapping.

Nothing else decides it, so that what is cut of the log never was, and whoever has the log has the mappings.
A file is written after them. Static topics (`mappings`) and logical queues (`logical_mappings`) say what a
record holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from replispec.broker.rocketmq.core.table_file import TableFile, later
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import MessageStore, Queue
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig
from replispec.wire.rocketmq.store import LogRecord


class RecordedMapping(Protocol):
    """A mapping, and where its record lies in the log; one that no record holds came when the log ended at
    `offset`, and has no end."""

    @property
    def offset(self) -> int:
        """Where its record begins."""
        ...

    @property
    def end(self) -> int:
        """Where it ends."""
        ...

    @property
    def base(self) -> int:
        """Where the log has to begin at the latest, so that it can be read."""
        ...

    @property
    def config(self) -> TopicConfig | None:
        """The topic as the record has it."""
        ...

    @property
    def is_recorded(self) -> bool:
        """Whether the log has it."""
        ...

    @property
    def is_gone(self) -> bool:
        """The record says that the topic was deleted."""
        ...


MappedT = TypeVar("MappedT", bound=RecordedMapping)


class RecordedMappings(ABC, Generic[MappedT]):
    """What the log says in one queue of records. Raises StorageFailed when the file is there and cannot be
    read.

    `newest` is what was recorded last, `kept` what cannot be undone any more.
    """

    def __init__(
        self, outbox: Outbox, writes: Writes, files: FilesReader, store: MessageStore, queue: int, file: str
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._store = store
        self.queue: Final = queue
        # Of each topic the last record that is kept, and those after it.
        self._records: dict[str, list[MappedT]] = {}
        # What no record holds.
        self._unrecorded: dict[str, MappedT] = {}
        self._position = 0
        self._cuts = store.index.cuts
        self._kept_to = 0
        # Where the first record ends that is not kept, and the last one that is there.
        self._open_end: int | None = None
        self._last_end = 0
        self.version = 0
        """Counts what changed of the mappings that are kept."""
        self._on_disk = self._asked = 0
        self._is_writing = False
        self._due_ms: int | None = None
        self._file = TableFile(files, file)
        self._read_file()
        self._wanted_from = 0
        # Where the log ended when this process began.
        self._began_at = store.log.end

    @abstractmethod
    def _mapped(self, body: bytes, offset: int, end: int) -> tuple[str, MappedT] | None:
        """What a record, and those before it, come to, and the topic that it is of; None for one of which
        the log has no longer what it rests on. Raises RemoteProtocolError for one of another broker set."""

    @abstractmethod
    def _read_file(self) -> None:
        """Take what counts of the file, and its version."""

    @abstractmethod
    def _file_bytes(self) -> bytes:
        """What the file is to hold."""

    # What there is

    def knows(self, topic: str | None) -> bool:
        """Whether there may be one of a topic: most requests are about others."""
        return topic in self._records or topic in self._unrecorded

    def newest(self, topic: str) -> MappedT | None:
        """The mapping that was recorded last."""
        found = self._newest(topic)
        return None if found is None or found.is_gone else found

    def kept(self, topic: str) -> MappedT | None:
        """The mapping that cannot be undone any more."""
        found = self._kept(topic)
        return None if found is None or found.is_gone else found

    def forgotten(self, topics: Iterable[str]) -> list[str]:
        """Those of topics that were deleted since this process began."""
        found = ((topic, self._kept(topic)) for topic in sorted(topics))
        return [topic for topic, each in found if each and each.is_gone and each.offset >= self._began_at]

    def lives(self, topic: str, queue: Queue) -> bool:
        """Whether a queue has a message that is younger than the deletion of its topic."""
        found = self._newest(topic)
        last = queue.stored(queue.end - 1)
        return found is None or not found.is_gone or (last is not None and last.offset > found.offset)

    def _newest(self, topic: str) -> MappedT | None:
        records = self._records.get(topic)
        last = records[-1] if records else None
        if not self._unrecorded:
            return last
        other = self._unrecorded.get(topic)
        return other if last is None or (other is not None and other.offset > last.offset) else last

    def _kept(self, topic: str) -> MappedT | None:
        records = self._records.get(topic)
        first = records[0] if records and records[0].end <= self._kept_to else None
        if not self._unrecorded:
            return first
        other = self._unrecorded.get(topic)
        return other if first is None or (other is not None and other.offset > first.offset) else first

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._records and not self._unrecorded

    @property
    def topics(self) -> Iterator[str]:
        """The topics that have one, ascending."""
        return iter(sorted(self._records.keys() | self._unrecorded.keys()))

    def configs(self) -> dict[str, TopicConfig]:
        """The topics of those that are kept and recorded."""
        found = ((topic, self.kept(topic)) for topic in self.topics)
        return {topic: each.config for topic, each in found if each is not None and each.config is not None}

    def config(self, topic: str) -> TopicConfig | None:
        """The topic of the mapping that was recorded last; None for one that no record holds."""
        found = self.newest(topic)
        return None if found is None else found.config

    def is_unsure(self, topic: str) -> bool:
        """Whether a topic has a mapping, and none is known to be kept: it is a plain one to nobody."""
        return self.newest(topic) is not None and self.kept(topic) is None

    @property
    def unsure(self) -> list[str]:
        """Those topics."""
        return [topic for topic in self.topics if self.is_unsure(topic)]

    def is_of_before(self, topic: str) -> bool:
        """Whether the newest mapping of a topic was in the log when this process began."""
        found = self.newest(topic)
        return found is not None and found.offset < self._began_at

    @property
    def data_version(self) -> DataVersion:
        """The version of all that are kept."""
        return DataVersion(self.version, 0, 0)

    # What the log says

    def follow(self, kept_to: int, now_ms: int) -> frozenset[str]:
        """Take what came to the log or was cut, and that it is kept up to an offset; returns the topics of
        which another mapping is kept."""
        if not self._has_changed(kept_to):
            return frozenset()
        before = {topic: self._kept(topic) for topic in self._touched()}
        self.catch_up()
        self._kept_to = kept_to
        for topic in self._touched():
            before.setdefault(topic, None)
            self._drop_older(topic)
        ends = [each.end for records in self._records.values() for each in records]
        self._open_end = min((end for end in ends if end > kept_to), default=None)
        self._last_end = max(ends, default=0)
        changed = frozenset(topic for topic, was in before.items() if self._kept(topic) != was)
        if changed:
            # Its file may be of before: there are at least as many changes as records.
            self.version = max(later(self.version), self._position)
            if self._due_ms is None:
                self._due_ms = now_ms + constants.MAPPING_COPY_MS
        return changed

    def _has_changed(self, kept_to: int) -> bool:
        index = self._store.index
        queue = index.queues.get((constants.MAPPING_TOPIC, self.queue))
        grew = queue is not None and queue.end > self._position
        has_more = self._open_end is not None and self._open_end <= kept_to
        has_less = kept_to < self._kept_to and kept_to < self._last_end
        return grew or index.cuts != self._cuts or has_more or has_less

    def _touched(self) -> list[str]:
        return list(self._records.keys() | self._unrecorded.keys())

    def catch_up(self) -> None:
        """Take what came to the log."""
        index = self._store.index
        if index.cuts != self._cuts:
            self._cuts = index.cuts
            self._records.clear()
            self._position = 0
        queue = index.queues.get((constants.MAPPING_TOPIC, self.queue))
        if queue is None:
            return
        self._position = max(self._position, queue.first)
        while (entry := queue.stored(self._position)) is not None:
            self._position += 1
            data = self._store.log.read(entry.offset, entry.size)
            if data is not None:
                self._take(data, entry.offset, entry.offset + entry.size)

    def _take(self, data: bytes, offset: int, end: int) -> None:
        try:
            found = self._mapped(LogRecord.decode(data).body, offset, end)
        except RemoteProtocolError as error:
            self._outbox.note(
                Level.WARNING, "a record of a mapping cannot be read", offset=offset, reason=str(error)
            )
            return
        if found is None:
            return
        topic, mapped = found
        self._records.setdefault(topic, []).append(mapped)
        self._last_end = max(self._last_end, end)
        if self._open_end is None and end > self._kept_to:
            self._open_end = end

    def _drop_older(self, topic: str) -> None:
        records = self._records.get(topic, [])
        kept = [number for number, each in enumerate(records) if each.end <= self._kept_to]
        if kept:
            del records[: kept[-1]]
            other = self._unrecorded.get(topic)
            if other is not None and other.offset <= records[0].offset:
                del self._unrecorded[topic]

    # So that the log has them as long as it goes on

    def hold(self, end: int) -> int:
        """The log is to begin at an offset: up to where it may be deleted before mappings are recorded again,
        which `unsafe` names then."""
        oldest = min((each[0].base for each in self._records.values() if not each[0].is_gone), default=end)
        if oldest < end:
            self._wanted_from = max(self._wanted_from, end)
        return min(oldest, end)

    @property
    def is_safe(self) -> bool:
        """Whether a master has to record none of them, as far as is known."""
        return not self._unrecorded and not self._wanted_from

    def unsafe(self) -> Iterator[tuple[str, MappedT]]:
        """Topics that a master has to record: no record holds them, or theirs is about to be deleted."""
        if self.is_safe:
            return
        is_safe = True
        for topic in self.topics:
            found = self.newest(topic)
            if found is not None and (not found.is_recorded or found.base < self._wanted_from):
                is_safe = False
                yield topic, found
        if is_safe:
            self._wanted_from = 0

    # The file

    def ticked(self, now_ms: int) -> None:
        """Write it, if it is time."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self.keep()

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms

    def keep(self) -> None:
        """Write what changed now."""
        self._due_ms = None
        self._write()

    def _write(self) -> None:
        if self._is_writing or self.version == self._on_disk:
            return
        self._is_writing = True
        self._asked = self.version
        self._writes.persist(*self._file.whole(self._file_bytes()), then=self._written)

    def _written(self, event: Written) -> None:
        self._is_writing = False
        if isinstance(event, Persisted):
            self._file.is_written()
            self._on_disk = self._asked
            self._write()
        else:
            # The log has them: the next change is written with this one.
            self._outbox.note(Level.ERROR, "the file of mappings cannot be written", reason=event.reason)
