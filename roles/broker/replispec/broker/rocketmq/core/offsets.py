"""How far each group of consumers has read each queue.

Source: apache/rocketmq rocketmq-all-5.4.0, ConsumerOffsetManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from replispec.broker.rocketmq.core.table_file import TableFile, later
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.rocketmq.remoting import Shares
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion
from replispec.wire.rocketmq.client import ConsumerOffsetTable, QueueOffsets

ENTRIES_MAX: Final = 100_000
"""Pairs of topic and group; beyond that the host that has most of them gives way to others. Pairs of longer
names than anybody needs are not kept."""
POSITIONS_MAX: Final = 500_000
"""Positions of all pairs and queues; likewise."""
MOVED_MAX: Final = 100_000
"""Queues of groups that were moved and of which no consumer has heard; those of further ones are not told,
and go on where they are."""
QueueOf = tuple[str, str, int]
"""A queue as a group reads it: the group, the topic, the number."""


class ConsumerOffsets:
    """Positions by topic and group, kept in a file every few seconds: a consumer that is told an older one
    reads again what it has read. What could not be written is written later. Raises StorageFailed when the
    file is there and cannot be read.

    A group may be moved: until a consumer has heard of it, by its next pull, what it says it has read counts
    for nothing. A restart forgets that, not where the group was moved to.

    A pair is of the host that said it first since the process began; of who did not, like those of another
    broker, it is nobody's, and gives way to nobody.
    """

    def __init__(self, outbox: Outbox, writes: Writes, files: FilesReader, interval_ms: int) -> None:
        self._outbox = outbox
        self._writes = writes
        self._interval_ms = interval_ms
        self._due_ms: int | None = None
        self._table: dict[str, dict[int, int]] = {}
        # Queues of groups that were moved, of which no consumer has heard.
        self._moved: set[QueueOf] = set()
        # Whose positions changed since they were last handed to the disk.
        self._changed: dict[str, None] = {}
        self._is_writing = False
        self._counter = 0
        self._file = TableFile(files, constants.CONSUMER_OFFSETS_FILE)
        self._read()
        self._positions = sum(map(len, self._table.values()))
        self._shares = Shares[str](POSITIONS_MAX)

    def get(self, group: str, topic: str, queue: int) -> int | None:
        """The next position that a group reads; None when it never said."""
        return self._table.get(f"{topic}{constants.TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue)

    def place(self, group: str, topic: str, queue: int) -> int | None:
        """The same where it counts: None also where a group was moved to older items of a static topic."""
        found = self.get(group, topic, queue)
        return None if found is None or found < 0 else found

    def put(self, queue_of: QueueOf, position: int, host: str, now_ms: int) -> None:
        """A group has read up to here; a client on this host says so."""
        if queue_of not in self._moved:
            self._put(queue_of, position, host, now_ms)

    def move(self, queue_of: QueueOf, position: int, host: str, now_ms: int) -> None:
        """A group is to read on from here, below 0 somewhere else; an administrator on this host says so."""
        self._put(queue_of, position, host, now_ms)
        if position < 0:
            self._moved.discard(queue_of)
        elif len(self._moved) < MOVED_MAX:
            self._moved.add(queue_of)

    def take_moved(self, queue_of: QueueOf) -> int | None:
        """Where a consumer of this group, that asks now, has to read on; None where it was not moved, or was
        told before."""
        if queue_of not in self._moved:
            return None
        self._moved.discard(queue_of)
        return self.get(*queue_of)

    def topics_of(self, group: str) -> list[str]:
        """The topics of which a group said how far it has read, ascending."""
        end = f"{constants.TOPIC_GROUP_SEPARATOR}{group}"
        return sorted(key.removesuffix(end) for key in self._table if key.endswith(end))

    def groups_of(self, topic: str) -> list[str]:
        """The groups that said how far they have read a topic, ascending."""
        begin = f"{topic}{constants.TOPIC_GROUP_SEPARATOR}"
        return sorted(key.removeprefix(begin) for key in self._table if key.startswith(begin))

    def _put(self, queue_of: QueueOf, position: int, host: str, now_ms: int) -> None:
        group, topic, queue = queue_of
        key = f"{topic}{constants.TOPIC_GROUP_SEPARATOR}{group}"
        queues = self._table.get(key, {})
        if queue not in queues and not self._admits(key, queue, host):
            return
        if key not in self._shares:
            self._shares.take(host, key, weight=max(1, len(queues)))
        if queue not in queues:
            self._positions += 1
            if queues:
                self._shares.grow(key)
        self._table.setdefault(key, queues)[queue] = position
        self._changed[key] = None
        self._keep_within(now_ms)

    def _keep_within(self, now_ms: int) -> None:
        if self._due_ms is None:
            self._due_ms = now_ms + self._interval_ms

    def _admits(self, key: str, queue: int, host: str) -> bool:
        is_known = key in self._table or len(key) <= 2 * TEXT_MAX
        if not is_known or not 0 <= queue < constants.QUEUES_MAX:
            return False
        if not self._is_full(key):
            return True
        going = self._shares.giving_way(host)
        if going is None or going == key:
            return False
        self._shares.drop(going)
        self._positions -= len(self._table.pop(going))
        self._changed[going] = None
        return not self._is_full(key)

    def _is_full(self, key: str) -> bool:
        return self._positions >= POSITIONS_MAX or (
            key not in self._table and len(self._table) >= ENTRIES_MAX
        )

    def positions(self) -> Iterator[tuple[str, str, int, int]]:
        """Topic, group, queue and position of each."""
        for key, queues in self._table.items():
            topic, _, group = key.partition(constants.TOPIC_GROUP_SEPARATOR)
            for queue, position in queues.items():
                yield topic, group, queue, position

    def table(self) -> ConsumerOffsetTable:
        """All of them, as replicas are told."""
        offsets = {key: QueueOffsets(dict(queues)) for key, queues in self._table.items()}
        return ConsumerOffsetTable(DataVersion(0, 0, 0), {}, offsets)

    def adopt(self, positions: Mapping[str, QueueOffsets], now_ms: int) -> None:
        """Take over a master's."""
        received = list(_plain(positions).items())[:ENTRIES_MAX]
        changed = {key: queues for key, queues in received if self._table.get(key) != queues}
        if changed:
            self._table.update(changed)
            self._changed.update(dict.fromkeys(changed))
            for key in changed:
                self._shares.drop(key)
            self._positions = sum(map(len, self._table.values()))
            self._keep_within(now_ms)

    def keep(self) -> None:
        """Have them written down now, if they changed; one write is under way at a time."""
        if self._due_ms is None or self._is_writing:
            return
        self._due_ms = None
        changed, self._changed = self._changed, {}
        self._is_writing = True
        # A later one than of any write before, of one that failed, too: it may be there in part.
        self._counter = later(self._counter)
        version = DataVersion(self._counter, 0, 0)
        if self._file.wants_part(len(changed), len(self._table), self._counter):
            operations = self._file.part(len(changed), self._encoded(changed, version))
        else:
            operations = self._file.whole(self._encoded(self._table, version))
        self._writes.persist(*operations, then=lambda event: self._written(changed, event))

    def stop(self) -> None:
        """The process ends: leave one file with all of them."""
        if self._changed or self._is_writing or self._file.has_parts:
            data = self._encoded(self._table, DataVersion(later(self._counter), 0, 0))
            self._writes.persist(*self._file.whole(data), then=lambda _event: None)

    def _encoded(self, keys: Iterable[str], version: DataVersion) -> bytes:
        # Of a pair that gave way the part says that it has no positions.
        offsets = {key: QueueOffsets(self._table.get(key, {})) for key in keys}
        return ConsumerOffsetTable(version, {}, offsets).encode()

    def _written(self, changed: Mapping[str, None], event: Written) -> None:
        self._is_writing = False
        if isinstance(event, Persisted):
            self._file.is_written()
            return
        self._outbox.note(Level.ERROR, "consumer offsets cannot be kept", reason=event.reason)
        self._changed = {**changed, **self._changed}
        self._keep_within(event.now_ms)

    def _read(self) -> None:
        """Take what is on the disk: the whole table, and what was written of it later."""
        found, parts = self._file.read(ConsumerOffsetTable.decode, "groups begin anew")
        whole = ConsumerOffsetTable() if found is None else found
        self._counter = _version_of(whole)
        for each in (whole, *sorted(parts, key=_version_of)):
            if each is whole or _version_of(each) > self._counter:
                self._counter = max(self._counter, _version_of(each))
                self._table.update(_plain(each.offset_table or {}))
        for key in [key for key, queues in self._table.items() if not queues]:
            del self._table[key]

    def deadline_ms(self) -> int | None:
        """When `keep` has something to do."""
        return None if self._is_writing else self._due_ms


def _plain(positions: Mapping[str, QueueOffsets]) -> dict[str, dict[int, int]]:
    return {key: dict(queues.offsets or {}) for key, queues in positions.items()}


def _version_of(table: ConsumerOffsetTable) -> int:
    return (table.data_version or DataVersion()).counter or 0
