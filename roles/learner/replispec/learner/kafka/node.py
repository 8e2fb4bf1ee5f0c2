"""A learner: it reads committed records of topics from whoever leads, and exports each of them once.

It is in no ISR and nobody waits for it: it asks as a reader does, with the replica id -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.learner.kafka.core.export import PartitionName, RecordExport
from replispec.learner.kafka.core.finding import LeaderFinder, LeaderPlaces
from replispec.learner.kafka.core.reading import LeaderReading, ReadPartition
from replispec.learner.kafka.view import LogReaderView
from replispec.runtime.kafka.asking import AskedBroker
from replispec.runtime.storage import FoldersReader
from replispec.runtime.world import (
    Closed,
    Connected,
    Effect,
    Event,
    Level,
    Outbox,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Ticked,
    Writes,
)
from replispec.wire.kafka.options import KafkaLearnerOptions


class LogReaderNode:
    """See `replispec.runtime.world.Node`. Raises StorageFailed when its folder cannot be used."""

    listeners: Mapping[str, str] = {}

    def __init__(
        self,
        options: KafkaLearnerOptions,
        servers: Sequence[str],
        topics: Sequence[str],
        files: FoldersReader,
    ) -> None:
        self._options = options
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.export: Final = RecordExport(self._writes, files, self._went_on, self._refused, self._failed)
        self._finder: Final = LeaderFinder(
            self._outbox,
            servers,
            topics,
            self._found,
            timeout_ms=options.follower.replica_socket_timeout_ms,
            pause_ms=options.follower.replica_fetch_backoff_ms,
        )
        self.partitions: Final[dict[PartitionName, ReadPartition]] = {}
        self.readings: Final[dict[str, LeaderReading]] = {}
        self._retry_ms: int | None = None
        self._now_ms = 0
        self.view = LogReaderView(self)

    @property
    def has_room(self) -> bool:
        """See `RecordsTaken`."""
        return self.export.waiting_bytes < self._options.export_bytes_max

    def put(self, partition: PartitionName, end: int, line: bytes) -> None:
        """See `RecordsTaken`."""
        self.export.put(partition, end, line)

    def look_again(self, now_ms: int) -> None:
        """See `RecordsTaken`."""
        self._finder.ask_at(now_ms + self._options.follower.replica_fetch_backoff_ms)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self._now_ms = event.now_ms
        match event:
            case Started():
                self.export.begin()
                self._finder.ask_at(event.now_ms)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Connected():
                if (broker := self._broker_of(event.connection)) is not None:
                    broker.connected(event)
            case Received():
                if (broker := self._broker_of(event.connection)) is not None:
                    broker.received(event)
            case Closed():
                if (broker := self._broker_of(event.connection)) is not None:
                    broker.closed(event)
            case Ticked():
                self._ticked(event.now_ms)
            case _:
                pass
        if self._retry_ms is None:
            self.export.retry()
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When time matters."""
        times = [self._retry_ms, self._finder.deadline_ms()]
        for reading in self.readings.values():
            times += [reading.deadline_ms(), reading.broker.deadline_ms()]
        return min((each for each in times if each is not None), default=None)

    def _broker_of(self, connection: int) -> AskedBroker | None:
        brokers = (self._finder.broker, *(each.broker for each in self.readings.values()))
        return next((each for each in brokers if each.owns(connection)), None)

    def _ticked(self, now_ms: int) -> None:
        if self._retry_ms is not None and now_ms >= self._retry_ms:
            self._retry_ms = None
        self._finder.ticked(now_ms)
        for reading in tuple(self.readings.values()):
            reading.broker.ticked(now_ms)
            reading.may_ask(now_ms)

    # Whom it reads

    def _found(self, places: LeaderPlaces, now_ms: int) -> None:
        self._finder.ask_at(now_ms + self._options.metadata_max_age_ms)
        for name, address in places.items():
            each = self.partitions.get(name)
            if each is None:
                each = self.partitions[name] = ReadPartition(name, self.export.positions.get(name, 0))
            self._read_at(each, address, now_ms)
        for address, reading in tuple(self.readings.items()):
            if not reading.partitions:
                del self.readings[address]
                reading.broker.end()
            else:
                reading.may_ask(now_ms)

    def _read_at(self, each: ReadPartition, address: str | None, now_ms: int) -> None:
        for at, other in self.readings.items():
            if at != address:
                other.leave(each)
        if address is None:
            return
        if address not in self.readings:
            made = self.readings[address] = LeaderReading(self._outbox, address, self, self._options.follower)
            made.broker.dial(now_ms)
        self.readings[address].partitions[each.name] = each

    # What it exports

    def _went_on(self, now_ms: int) -> None:
        for reading in self.readings.values():
            reading.may_ask(now_ms)

    def _refused(self, reason: str) -> None:
        self._outbox.note(Level.ERROR, "records cannot be exported", reason=reason)
        self._retry_ms = self._now_ms + self._options.follower.replica_fetch_backoff_ms

    def _failed(self, reason: str) -> None:
        self._outbox.halt(f"the disk refused what cannot be left undone: {reason}")
