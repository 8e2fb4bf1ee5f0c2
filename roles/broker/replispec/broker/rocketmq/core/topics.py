"""The topics of a broker: how many queues each has, and who may do what with them.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicConfigManager, TopicValidator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import Files, StorageFailed
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig, TopicConfigTable

FILE: Final = "config/topics.json"
TEMPLATE: Final = "TBW102"
"""The topic whose permissions and queues a topic gets that is created by the first message to it."""
RETRY_PREFIX: Final = "%RETRY%"
NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")
READ, WRITE, INHERIT = 4, 2, 1
"""Bits of a topic's permissions."""
TOPICS_MAX: Final = 20_000
QUEUES_MAX: Final = 1_024


class Topics:
    """All topics, kept in a file. Raises StorageFailed when it is there and cannot be read.

    `state_version` is the masterEpoch: name servers let a table with a smaller one not replace another.
    """

    def __init__(self, files: Files, *, template_queues: int, auto_create: bool) -> None:
        self._files = files
        self._auto_create = auto_create
        self._template = _config(TEMPLATE, template_queues, READ | WRITE | INHERIT)
        self._version = DataVersion(0, 0, 0)
        self._table: dict[str, TopicConfig] = {}
        data = files.read(FILE)
        if data is not None:
            self._read(data)
        # One topic alone is what name servers of Apache's refuse as a first registration.
        for config in (self._template, _config("SELF_TEST_TOPIC", 1, READ | WRITE)):
            self._table.setdefault(config.topic_name or "", config)

    def __len__(self) -> int:
        return len(self._table)

    def get(self, name: str) -> TopicConfig | None:
        """A topic; None for one that is not there."""
        return self._table.get(name)

    def table(self, state_version: int) -> TopicConfigTable:
        """All topics, as name servers and replicas are told of them."""
        version = DataVersion(self._version.counter, state_version, self._version.timestamp)
        empty = DataVersion(0, 0, 0)
        return TopicConfigTable(version, empty, dict(self._table), {}, {})

    def for_message(self, name: str, wanted_queues: int, now_ms: int) -> TopicConfig | None:
        """The topic of a message, created when that is allowed. Raises StorageFailed when it cannot be."""
        found = self._table.get(name)
        if found is not None or not NAME.fullmatch(name) or len(self._table) >= TOPICS_MAX:
            return found
        if name.startswith(RETRY_PREFIX):
            return self.put(_config(name, 1, READ | WRITE), now_ms)
        if not self._auto_create:
            return None
        queues = max(1, min(wanted_queues, self._template.write_queue_nums or 1))
        return self.put(_config(name, queues, READ | WRITE), now_ms)

    def put(self, config: TopicConfig, now_ms: int) -> TopicConfig:
        """Keep a topic, on the disk too when this returns. Raises StorageFailed."""
        name = config.topic_name or ""
        before = self._table.get(name)
        self._table[name] = config
        try:
            self._keep(now_ms)
        except StorageFailed:
            if before is None:
                del self._table[name]
            else:
                self._table[name] = before
            raise
        return config

    def adopt(self, table: TopicConfigTable, now_ms: int) -> None:
        """Take over a master's topics. Raises StorageFailed."""
        told = table.topic_config_table or {}
        if any(self._table.get(name) != config for name, config in told.items()):
            self._table.update(list(told.items())[:TOPICS_MAX])
            self._keep(now_ms)

    def cover(self, queues: Iterable[tuple[str, int]], now_ms: int) -> None:
        """Have a topic for each of these queues: messages in the log outlive the table. Raises
        StorageFailed."""
        lacking: dict[str, int] = {}
        for name, queue in queues:
            if name not in self._table:
                lacking[name] = max(lacking.get(name, 0), queue + 1)
        for name, count in lacking.items():
            self._table[name] = _config(name, count, READ | WRITE)
        if lacking:
            self._keep(now_ms)

    def _keep(self, now_ms: int) -> None:
        self._version = DataVersion((self._version.counter or 0) + 1, 0, now_ms)
        self._files.replace(FILE, TopicConfigTable(self._version, None, self._table, None, None).encode())

    def _read(self, data: bytes) -> None:
        try:
            table = TopicConfigTable.decode(data)
        except RemoteProtocolError as error:
            raise StorageFailed(f"{FILE}: {error}") from error
        self._version = table.data_version or self._version
        self._table = dict(table.topic_config_table or {})


def _config(name: str, queues: int, perm: int) -> TopicConfig:
    return TopicConfig(
        attributes={},
        order=False,
        perm=perm,
        read_queue_nums=queues,
        topic_filter_type="SINGLE_TAG",
        topic_name=name,
        topic_sys_flag=0,
        write_queue_nums=queues,
    )
