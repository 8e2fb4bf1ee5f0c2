"""A client of all brokers: it produces with each kind of acks, reads what is committed, and follows leaders.

It sends each record once and never again; a consumer of each partition reads from the beginning, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from replispec.runtime.kafka.asking import AskedBroker
from replispec.runtime.kafka.batches import batch_of, batches_in, records_of
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.world import Closed, Connected, Effect, Event, Outbox, Received, Ticked
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchRequest,
    ApacheFetchTopic,
    ApacheMetadataRequest,
    ApacheProducePartition,
    ApacheProduceRequest,
    ApacheProduceTopic,
)
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.requests import ApacheRequestFrame
from tests.sim_kafka.history import PartitionName, PartitionsHistory, RecordPlace, SentRecord

PRODUCE_VERSION: Final = 3
FETCH_VERSION: Final = 4
METADATA_VERSION: Final = 1
TIMEOUT_MS: Final = 2_500
PAUSE_MS: Final = 200
LINGER_MS: Final = 1_000
"""How long the connection of a record without acknowledgement stays open."""


class AskingLink(AskedBroker):
    """A connection to a broker whose questions are asked when it is time, not when it is free."""

    def __init__(self, outbox: Outbox, address: str) -> None:
        super().__init__(outbox, address, "simulated", self, timeout_ms=TIMEOUT_MS, pause_ms=PAUSE_MS)

    def may_ask(self, now_ms: int) -> None:
        """See `AskingHolder`."""

    def not_answered(self, now_ms: int) -> None:
        """See `AskingHolder`."""


class PartitionsClient:
    """See the module. `brokers`: their addresses by id; `generation_of` a topic is asked when something is
    sent and when it is answered; `misread` is told whom a consumer asked, and what it should not have got."""

    listeners: Mapping[str, str] = {}

    def __init__(
        self,
        history: PartitionsHistory,
        rng: Rng,
        brokers: Mapping[int, str],
        generation_of: Callable[[str], int],
    ) -> None:
        self.misread: Callable[[int, RecordPlace, str], None] = lambda *_: None
        self.history = history
        self.is_sending = True
        self.positions: dict[tuple[PartitionName, int], int] = {}
        self.leaders: dict[PartitionName, int] = {}
        self._rng = rng
        self._generation_of = generation_of
        self._outbox = Outbox()
        self._writing = {each: AskingLink(self._outbox, at) for each, at in brokers.items()}
        self._reading = {each: AskingLink(self._outbox, at) for each, at in brokers.items()}
        self._addresses = brokers
        self._unsent: dict[int, bytes] = {}
        self._close_at: dict[int, int] = {}
        self._look_at_ms = self._send_at_ms = self._read_at_ms = 0
        self._now_ms = 0

    # A node

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self._now_ms = event.now_ms
        match event:
            case Connected() | Received() | Closed():
                self._on_connection(event)
            case Ticked():
                for link in self._links():
                    link.ticked(event.now_ms)
                self._act()
            case _:
                for link in self._links():
                    link.dial(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When time matters."""
        times = [self._look_at_ms, self._send_at_ms, self._read_at_ms, *self._close_at.values()]
        times += [each for each in (link.deadline_ms() for link in self._links()) if each is not None]
        return min(times)

    def _links(self) -> Sequence[AskingLink]:
        return (*self._writing.values(), *self._reading.values())

    def _on_connection(self, event: Connected | Received | Closed) -> None:
        link = next((each for each in self._links() if each.owns(event.connection)), None)
        match event:
            case Connected(connection) if link is None:
                self._outbox.send(connection, self._unsent.pop(connection))
                self._close_at[connection] = self._now_ms + LINGER_MS
            case Closed(connection) if link is None:
                self._unsent.pop(connection, None)
                self._close_at.pop(connection, None)
            case Connected() if link is not None:
                link.connected(event)
            case Received() if link is not None:
                link.received(event)
            case Closed() if link is not None:
                link.closed(event)

    def _act(self) -> None:
        now_ms = self._now_ms
        for connection in [each for each, at_ms in self._close_at.items() if at_ms <= now_ms]:
            del self._close_at[connection]
            self._outbox.close(connection)
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + self._rng.between(200, 600)
            self._look()
        if now_ms >= self._send_at_ms:
            self._send_at_ms = now_ms + self._rng.between(20, 120)
            if self.is_sending and self.leaders:
                self._send(self._rng.one_of(sorted(self.leaders)))
        if now_ms >= self._read_at_ms:
            self._read_at_ms = now_ms + self._rng.between(40, 160)
            self._read()

    # Who leads

    def _look(self) -> None:
        free = [each for each in self._writing.values() if each.is_free]
        if free:
            asked: Any = ApacheMetadataRequest(None)
            self._rng.one_of(free).ask(asked, METADATA_VERSION, self._looked, self._now_ms)

    def _looked(self, answer: Any, _now_ms: int) -> None:
        self.leaders = {
            (topic.name, each.partition_index): each.leader_id
            for topic in answer.topics
            for each in topic.partitions
            if each.leader_id in self._addresses
        }

    # Producing

    def _send(self, key: PartitionName) -> None:
        leader = self.leaders[key]
        acks = self._rng.one_of((-1, -1, -1, 1, 0))
        link = self._writing[leader]
        if acks and not link.is_free:
            return
        value = f"{key[0]}-{key[1]}.{len(self.history.sent)}"
        self.history.sent[value] = SentRecord(key, self._generation_of(key[0]), acks)
        batch = batch_of([(self._now_ms, None, value.encode())])
        partition = ApacheProducePartition(key[1], batch)
        request: Any = ApacheProduceRequest(None, acks, 1_500, [ApacheProduceTopic(key[0], [partition])])
        if acks:
            link.ask(request, PRODUCE_VERSION, partial(self._produced, value, acks), self._now_ms)
        else:
            body = request.encode(version=PRODUCE_VERSION)
            frame = ApacheRequestFrame(ApiKey.PRODUCE, PRODUCE_VERSION, 1, "silent", body)
            self._unsent[self._outbox.dial(self._addresses[leader])] = frame.encode()

    def _produced(self, value: str, acks: int, answer: Any, _now_ms: int) -> None:
        (topic,) = answer.topics
        (said,) = topic.partitions
        sent = self.history.sent[value]
        if said.error:
            self.history.refuse(said.error)
        elif acks == -1 and sent.generation and sent.generation == self._generation_of(sent.key[0]):
            self.history.acknowledge(value, said.base_offset)

    # Reading

    def _read(self) -> None:
        asked: dict[int, list[tuple[PartitionName, int, int]]] = {}
        for key, leader in self.leaders.items():
            generation = self._generation_of(key[0])
            position = self.positions.get((key, generation), 0)
            asked.setdefault(leader, []).append((key, generation, position))
        for leader, parts in asked.items():
            link = self._reading[leader]
            if link.is_free:
                link.ask(_fetch(parts), FETCH_VERSION, partial(self._got, leader, parts), self._now_ms)

    def _got(
        self, leader: int, parts: Sequence[tuple[PartitionName, int, int]], answer: Any, _now_ms: int
    ) -> None:
        asked = {key: (generation, position) for key, generation, position in parts}
        for topic in answer.topics:
            for said in topic.partitions:
                key = (topic.topic, said.partition)
                generation, position = asked[key]
                if generation and generation == self._generation_of(key[0]):
                    self._take(leader, RecordPlace(key, generation, position), said)

    def _take(self, leader: int, at: RecordPlace, said: Any) -> None:
        if said.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.misread(leader, at, "out of range")
        if said.error:
            self.history.refuse(said.error)
            return
        data = bytes(said.records or b"")
        for batch in batches_in(data, may_be_cut=True):
            for record in records_of(data, batch):
                place = at._replace(offset=batch.head.base_offset + record.offset_delta)
                which = (at.key, at.generation)
                if place.offset < self.positions.get(which, 0):
                    continue
                if place.offset > self.positions.get(which, 0):
                    self.misread(leader, place, f"after {self.positions.get(which, 0)}")
                self.positions[which] = place.offset + 1
                value = bytes(record.value or b"").decode()
                if not self.history.see(place, value):
                    self.misread(leader, place, f"{value} instead of {self.history.read[place]}")


def _fetch(parts: Sequence[tuple[PartitionName, int, int]]) -> Any:
    topics: dict[str, list[ApacheFetchPartition]] = {}
    for (topic, number), _, position in parts:
        each = ApacheFetchPartition(number, fetch_offset=position, partition_max_bytes=1 << 16)
        topics.setdefault(topic, []).append(each)
    return ApacheFetchRequest(
        replica_id=-1,
        max_wait=100,
        min_bytes=1,
        max_bytes=1 << 18,
        topics=[ApacheFetchTopic(name, found) for name, found in topics.items()],
    )
