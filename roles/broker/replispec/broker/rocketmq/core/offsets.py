"""How far each group of consumers has read each queue.

Source: apache/rocketmq rocketmq-all-5.4.0, ConsumerOffsetManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import FilesReader, ReplaceFile, StorageFailed
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion
from replispec.wire.rocketmq.client import ConsumerOffsetTable, QueueOffsets

ENTRIES_MAX: Final = 100_000
"""Pairs of topic and group; those beyond are not kept, nor are pairs of longer names than anybody needs."""
POSITIONS_MAX: Final = 500_000
"""Positions of all pairs and queues; those beyond are not kept."""


class ConsumerOffsets:
    """Positions by topic and group, kept in a file every few seconds: a consumer that is told an older one
    reads again what it has read. What could not be written is written later. Raises StorageFailed when the
    file is there and cannot be read."""

    def __init__(self, outbox: Outbox, writes: Writes, files: FilesReader, interval_ms: int) -> None:
        self._outbox = outbox
        self._writes = writes
        self._interval_ms = interval_ms
        self._due_ms: int | None = None
        self._table: dict[str, dict[int, int]] = {}
        data = files.read(constants.CONSUMER_OFFSETS_FILE)
        if data is not None:
            try:
                self._table = _plain(ConsumerOffsetTable.decode(data).offset_table or {})
            except RemoteProtocolError as error:
                raise StorageFailed(
                    f"{constants.CONSUMER_OFFSETS_FILE}: {error}; move it aside, and groups begin anew"
                ) from error
        self._positions = sum(map(len, self._table.values()))

    def get(self, group: str, topic: str, queue: int) -> int | None:
        """The next position that a group reads; None when it never said."""
        return self._table.get(f"{topic}{constants.TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue)

    def put(self, group: str, topic: str, queue: int, position: int, now_ms: int) -> None:
        """A group has read up to here."""
        key = f"{topic}{constants.TOPIC_GROUP_SEPARATOR}{group}"
        if queue not in self._table.get(key, ()):
            if not self._admits(key, queue):
                return
            self._positions += 1
        self._table.setdefault(key, {})[queue] = position
        if self._due_ms is None:
            self._due_ms = now_ms + self._interval_ms

    def _admits(self, key: str, queue: int) -> bool:
        is_known = key in self._table or (len(self._table) < ENTRIES_MAX and len(key) <= 2 * TEXT_MAX)
        return is_known and 0 <= queue < constants.QUEUES_MAX and self._positions < POSITIONS_MAX

    def table(self) -> ConsumerOffsetTable:
        """All of them, as replicas are told."""
        offsets = {key: QueueOffsets(dict(queues)) for key, queues in self._table.items()}
        return ConsumerOffsetTable(DataVersion(0, 0, 0), {}, offsets)

    def adopt(self, positions: Mapping[str, QueueOffsets], now_ms: int) -> None:
        """Take over a master's."""
        received = _plain(positions)
        if any(self._table.get(key) != queues for key, queues in received.items()):
            self._table.update(list(received.items())[:ENTRIES_MAX])
            self._positions = sum(map(len, self._table.values()))
            if self._due_ms is None:
                self._due_ms = now_ms + self._interval_ms

    def keep(self) -> None:
        """Have them written down now, if they changed."""
        if self._due_ms is not None:
            self._due_ms = None
            self._writes.persist(
                ReplaceFile(constants.CONSUMER_OFFSETS_FILE, self.table().encode()), then=self._written
            )

    def _written(self, event: Written) -> None:
        if isinstance(event, Persisted):
            return
        self._outbox.note(Level.ERROR, "consumer offsets cannot be kept", reason=event.reason)
        if self._due_ms is None:
            self._due_ms = event.now_ms + self._interval_ms

    def deadline_ms(self) -> int | None:
        """When `keep` has something to do."""
        return self._due_ms


def _plain(positions: Mapping[str, QueueOffsets]) -> dict[str, dict[int, int]]:
    return {key: dict(queues.offsets or {}) for key, queues in positions.items()}
