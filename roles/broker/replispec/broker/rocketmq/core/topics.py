"""The topics of a broker: how many queues each has, and who may do what with them.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicConfigManager, TopicValidator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from replispec.broker.rocketmq.core.table_file import TableFile, later
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig, TopicConfigTable
from replispec.wire.rocketmq.codes import Permission

NAME: Final = re.compile(constants.TOPIC_NAME)
READ_WRITE: Final = Permission.READ | Permission.WRITE
TOPICS_MAX: Final = 20_000
_NOT_FOR_MESSAGES: Final = frozenset((constants.MAPPING_TOPIC, constants.SCHEDULE_TOPIC))
"""Topics that a broker alone writes to."""


Kept = Callable[[str, int], None]
"""Told that a topic is on the disk, or why it is not (empty when it is), and the time in milliseconds."""


@dataclass(slots=True)
class _Batch:
    """Topics that are written together, and who waits for them; `is_whole`: with all others."""

    topics: dict[str, TopicConfig] = field(default_factory=dict)
    waiting: list[Kept] = field(default_factory=list)
    is_whole: bool = False


class Topics:
    """All topics, kept in a file: one is served once it is on the disk. Raises StorageFailed when the file is
    there and cannot be read.

    One write is under way at a time; what is put meanwhile goes out together in the next. A write that is
    refused leaves all topics as they were, and the caller gets the reason. `state_version` is the
    masterEpoch: name servers let a table with a smaller one not replace another.
    """

    def __init__(
        self, files: FilesReader, writes: Writes, *, template_queues: int, auto_create: bool
    ) -> None:
        self._writes = writes
        self._auto_create = auto_create
        self._template = _config(constants.TEMPLATE_TOPIC, template_queues, READ_WRITE | Permission.INHERIT)
        self._version = DataVersion(0, 0, 0)
        self._counter = 0
        self._table: dict[str, TopicConfig] = {}
        # Topics of mappings, recorded last and kept.
        self._mapped: Callable[[str], TopicConfig | None] = lambda _name: None
        self._due_ms: int | None = None
        self._under_way: _Batch | None = None
        self._next = _Batch()
        self._file = TableFile(files, constants.TOPICS_FILE)
        self._read()
        # One topic alone is what name servers of Apache's refuse as a first registration.
        for config in (self._template, _config(constants.SELF_TEST_TOPIC, 1, READ_WRITE)):
            self._table.setdefault(config.topic_name or "", config)

    def __len__(self) -> int:
        return len(self._table)

    def is_name(self, name: str) -> bool:
        """Whether a text may name a topic of messages."""
        return NAME.fullmatch(name) is not None and name not in _NOT_FOR_MESSAGES

    def overlay(self, mapped: Callable[[str], TopicConfig | None]) -> None:
        """Have static topics be as this says; the log knows them."""
        self._mapped = mapped

    def get(self, name: str) -> TopicConfig | None:
        """A topic; None for one that is not there."""
        return self._mapped(name) or self._table.get(name)

    def table(self, state_version: int) -> TopicConfigTable:
        """All topics, as name servers and replicas are told of them."""
        version = DataVersion(self._version.counter, state_version, self._version.timestamp)
        empty = DataVersion(0, 0, 0)
        return TopicConfigTable(version, empty, dict(self._table), {}, {})

    def without_queues(self, name: str, perm: int | None) -> TopicConfig:
        """What a topic is that has no message queue yet; without permissions it is read and written."""
        return _config(name, 0, READ_WRITE if perm is None else perm)

    def for_message(self, name: str, wanted_queues: int) -> TopicConfig | None:
        """What a topic that is not there would be, by its first message; None when it is not to be made."""
        if not self.is_name(name) or len(self._table) + len(self._next.topics) >= TOPICS_MAX:
            return None
        if is_of_group(name):
            return _config(name, 1, READ_WRITE)
        if not self._auto_create:
            return None
        return _config(name, max(1, min(wanted_queues, self._template.write_queue_nums or 1)), READ_WRITE)

    def for_retries(self, group: str, now_ms: int) -> None:
        """See that a group of consumers has the topic of its retries, so that clients know of it before there
        is one; nobody waits. Half of the table stays for topics of messages."""
        name = constants.RETRY_TOPIC_PREFIX + group
        is_known = name in self._table or len(self._table) >= TOPICS_MAX // 2
        config = None if is_known or not group else self.for_message(name, 1)
        if config is not None:
            self.create(config, now_ms, lambda _reason, _now_ms: None)

    def create(self, config: TopicConfig, now_ms: int, kept: Kept) -> None:
        """Keep a topic unless one of this name is being kept already; `kept` is told when it is there."""
        name = config.topic_name or ""
        if self._under_way is not None and name in self._under_way.topics:
            self._under_way.waiting.append(kept)
        elif name in self._next.topics:
            self._next.waiting.append(kept)
        else:
            self.put(config, now_ms, kept)

    def put(self, config: TopicConfig, now_ms: int, kept: Kept) -> None:
        """Keep a topic, in the place of one of its name; `kept` is told when it is on the disk."""
        self._next.topics[config.topic_name or ""] = config
        self._next.waiting.append(kept)
        self._write(now_ms)

    def drop(self, name: str, now_ms: int, kept: Kept) -> None:
        """Forget a topic at once; `kept` is told when the disk has forgotten it, too."""
        for topics in (self._table, self._next.topics, self._under_way and self._under_way.topics):
            if topics:
                topics.pop(name, None)
        self._next.is_whole = True
        self._next.waiting.append(kept)
        self._version = self._next_version(now_ms)
        self._write(now_ms)

    def adopt(self, topics: Mapping[str, TopicConfig], now_ms: int, kept: Kept) -> None:
        """Take over a master's topics; `kept` is told when they are on the disk, if there is a change."""
        received = {name: topics[name] for name in islice(filter(self.is_name, topics), TOPICS_MAX)}
        changed = {name: config for name, config in received.items() if self._table.get(name) != config}
        if changed:
            self._next.topics.update(changed)
            self._next.waiting.append(kept)
            self._write(now_ms)

    def cover(self, queues: Iterable[tuple[str, int]], now_ms: int) -> None:
        """Have a topic for each of these queues: messages in the log outlive the table. These topics count at
        once, for the log tells of them again as long as it has their messages."""
        lacking: dict[str, int] = {}
        for name, queue in queues:
            if self.is_name(name) and self.get(name) is None:
                lacking[name] = max(lacking.get(name, 0), queue + 1)
        for name, count in lacking.items():
            self._table[name] = self._next.topics[name] = _config(name, count, READ_WRITE)
        if lacking:
            self._write(now_ms)

    def count_in(self, configs: Mapping[str, TopicConfig], now_ms: int) -> None:
        """Take over topics of mappings, which count at once: the log tells of them again. Name servers are to
        see another version, even of a mapping that changed alone."""
        self._table |= configs
        self._next.topics |= configs
        self._version = self._next_version(now_ms)
        if self._due_ms is None:
            self._due_ms = now_ms + constants.MAPPING_COPY_MS

    def ticked(self, now_ms: int) -> None:
        """Write topics of mappings, if it is time."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self._write(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms

    def _write(self, now_ms: int) -> None:
        self._due_ms = None
        if self._under_way is not None or not (self._next.topics or self._next.is_whole):
            return
        self._under_way, self._next = self._next, _Batch()
        changed, is_whole, file = self._under_way.topics, self._under_way.is_whole, self._file
        version = self._next_version(now_ms)
        if not is_whole and file.wants_part(len(changed), len(self._table), self._counter):
            data = TopicConfigTable(version, None, changed, None, None).encode()
            operations = file.part(len(changed), data)
        else:
            table = self._table | changed
            operations = file.whole(TopicConfigTable(version, None, table, None, None).encode())
        self._writes.persist(*operations, then=lambda event: self._written(version, event))

    def stop(self, now_ms: int) -> None:
        """The process ends: leave one file with all topics that were kept."""
        if self._file.has_parts or self._due_ms is not None:
            table = self._table | (self._under_way.topics if self._under_way is not None else {})
            data = TopicConfigTable(self._next_version(now_ms), None, table, None, None).encode()
            self._writes.persist(*self._file.whole(data), then=lambda _event: None)

    def _next_version(self, now_ms: int) -> DataVersion:
        """A later one than of any write before, of one that failed, too: it may be there in part."""
        self._counter = later(max(self._counter, self._version.counter or 0))
        return DataVersion(self._counter, 0, now_ms)

    def _written(self, version: DataVersion, event: Written) -> None:
        batch, self._under_way = self._under_way, None
        assert batch is not None, "topics were written that were not put"
        reason = "" if isinstance(event, Persisted) else event.reason
        if not reason:
            self._version = max(self._version, version, key=_number)
            self._table |= batch.topics
            self._file.is_written()
        for kept in batch.waiting:
            kept(reason, event.now_ms)
        self._write(event.now_ms)

    def _read(self) -> None:
        """Take what is on the disk: the whole table, and what was written of it later."""
        found, parts = self._file.read(TopicConfigTable.decode, "topics with messages are made again")
        whole = TopicConfigTable() if found is None else found
        self._version = whole.data_version or self._version
        for each in (whole, *sorted(parts, key=_counter)):
            if each is whole or _counter(each) > (self._version.counter or 0):
                self._version = each.data_version or self._version
                self._table |= each.topic_config_table or {}


def is_of_group(name: str) -> bool:
    """Whether a topic is that of a group's retries, or of what it gave up."""
    return name.startswith((constants.RETRY_TOPIC_PREFIX, constants.DEAD_TOPIC_PREFIX))


def _number(version: DataVersion) -> int:
    return version.counter or 0


def _counter(table: TopicConfigTable) -> int:
    return (table.data_version or DataVersion()).counter or 0


def _config(name: str, queues: int, perm: int) -> TopicConfig:
    return TopicConfig(
        attributes={},
        order=False,
        perm=perm,
        read_queue_nums=queues,
        topic_filter_type=constants.SINGLE_TAG,
        topic_name=name,
        topic_sys_flag=0,
        write_queue_nums=queues,
    )


class AskedTopic:
    """What a topic is while one request is read: nothing changes meanwhile."""

    __slots__ = ("_config", "_name", "_topics")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._name: str | None = None
        self._config: TopicConfig | None = None

    def begin(self) -> None:
        """Another request is read."""
        self._name = None

    def get(self, name: str) -> TopicConfig | None:
        """As `Topics.get`."""
        if name != self._name:
            self._name, self._config = name, self._topics.get(name)
        return self._config
