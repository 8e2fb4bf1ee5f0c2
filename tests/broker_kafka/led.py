"""Brokers of ours under our controller in one process, and clients who ask them by bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from replispec.broker.kafka.process import members as broker_members
from replispec.runtime.kafka.batches import batch_of, batches_in, records_of
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.storage import Storage
from replispec.runtime.world import Closed, Connected, Effect, Event, Member, Outbox, Received, Started
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchRequest,
    ApacheFetchTopic,
    ApacheListOffsetsPartition,
    ApacheListOffsetsRequest,
    ApacheListOffsetsTopic,
    ApacheProducePartition,
    ApacheProduceRequest,
    ApacheProduceTopic,
)
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.options import KafkaBrokerOptions
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_RESPONSES
from tests.controller_kafka.simulated import STORE, SimulatedCluster

PORT = 9092
PATIENCE_MS = 20_000


class AskingClient:
    """Asks brokers over one connection each; answers come in order."""

    listeners: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.connections: dict[str, int] = {}
        self.buffers: dict[int, FrameBuffer] = {}
        self.open: dict[int, list[ApacheRequestFrame]] = {}
        self.unsent: dict[int, list[bytes]] = {}
        self.answers: list[Any] = []
        self.closed: list[str] = []

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Connected(connection):
                for data in self.unsent.pop(connection):
                    self.outbox.send(connection, data)
            case Received(connection, data):
                for frame in self.buffers[connection].receive(data):
                    asked = self.open[connection].pop(0)
                    answer = ApacheResponseFrame.decode(frame)
                    assert answer.correlation_id == asked.correlation_id
                    form = APACHE_RESPONSE_FRAME.form_of(asked.api_key, asked.api_version)
                    read: Any = answer.body if form is None else form.answer
                    if form is not None:
                        read = read.decode(answer.body, version=asked.api_version)
                    self.answers.append(read)
            case Closed(connection):
                for address, number in list(self.connections.items()):
                    if number == connection:
                        self.closed.append(address)
                        del self.connections[address]
            case Started():
                pass
            case _:
                pass
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        return None

    def ask(self, address: str, frame: ApacheRequestFrame, *, silent: bool = False) -> None:
        """Ask; what is `silent` has no answer."""
        if address not in self.connections:
            number = self.connections[address] = self.outbox.dial(address)
            self.buffers[number], self.open[number] = FrameBuffer(APACHE_RESPONSES), []
            self.unsent[number] = []
        number = self.connections[address]
        if not silent:
            self.open[number].append(frame)
        if number in self.unsent:
            self.unsent[number].append(frame.encode())
        else:
            self.outbox.send(number, frame.encode())


class LedCluster(SimulatedCluster):
    """`brokers` brokers of ours; `settings` are their options, `candidates` are who else controls."""

    def __init__(
        self,
        seed: int = 1,
        *,
        brokers: int = 1,
        candidates: int = 1,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = dict(settings or {})
        self.number = 0
        self.client = AskingClient()
        super().__init__(seed, brokers=brokers, candidates=candidates)
        self.world.add("client", "10.0.8.1", lambda _: [Member("client", self.client)])
        self.world.start("client")
        self.run(3_000)

    def broker(self, broker_id: int, storage: Storage) -> Sequence[Member]:
        host = f"10.0.2.{broker_id}"
        made = KafkaBrokerOptions(
            broker_id=broker_id,
            zookeeper_connect=STORE,
            listeners=f"PLAINTEXT://{host}:{PORT}",
            log_dirs="logs",
            **self.settings,
        )
        return broker_members(made, storage, broker_id)

    def node(self, broker_id: int = 1) -> Any:
        """The node of a broker, which comes first in its process."""
        life, *_ = self.world.processes[f"broker-{broker_id}"].lives
        return life.node

    def send(
        self, message: Any, version: int, *, broker: int = 1, key: int | None = None, silent: bool = False
    ) -> None:
        """Have a request leave; bytes are sent as they are under a `key`."""
        self.number += 1
        raw = isinstance(message, bytes)
        code = key if raw else type(message).CODES[0]
        body = message if raw else message.encode(version=version)
        assert code is not None
        frame = ApacheRequestFrame(code, version, self.number, "test", body)
        self.client.ask(f"10.0.2.{broker}:{PORT}", frame, silent=silent)
        (life,) = self.world.processes["client"].lives
        self.world.deliver(life, Started)

    def send_apart(self, message: Any, version: int) -> None:
        """The same over a connection of its own."""
        self.client.connections.clear()
        self.send(message, version)

    def ask(self, message: Any, version: int, *, broker: int = 1, key: int | None = None) -> Any:
        """What a broker answers."""
        before = len(self.client.answers)
        self.send(message, version, broker=broker, key=key)
        assert self.world.run_until(lambda: len(self.client.answers) > before, at_most_ms=PATIENCE_MS)
        return self.client.answers[-1]

    def run_until(self, is_so: Callable[[], bool]) -> bool:
        """Let time pass until something is so."""
        return self.world.run_until(is_so, at_most_ms=PATIENCE_MS)


def produce(
    *values: str, acks: int = -1, topic: str = "t", timeout: int = 1_000, data: bytes | None = None
) -> Any:
    """A request with one batch for the first partition: of these values, or these bytes."""
    if data is None:
        data = batch_of([(1_000 + n, None, value.encode()) for n, value in enumerate(values)])
    batch = data
    partition = ApacheProducePartition(0, batch)
    return ApacheProduceRequest(None, acks, timeout, [ApacheProduceTopic(topic, [partition])])


def fetch(
    offset: int,
    *,
    replica: int = -1,
    topic: str = "t",
    max_wait: int = 0,
    min_bytes: int = 1,
    epoch: int | None = None,
    most: int = 1 << 20,
) -> Any:
    """A request for the first partition, of version 4, or of version 9 with an epoch."""
    later = epoch is not None
    partition = ApacheFetchPartition(
        0,
        fetch_offset=offset,
        partition_max_bytes=most,
        current_leader_epoch=epoch,
        log_start_offset=0 if later else None,
    )
    return ApacheFetchRequest(
        replica_id=replica,
        max_wait=max_wait,
        min_bytes=min_bytes,
        max_bytes=most,
        session_id=0 if later else None,
        session_epoch=-1 if later else None,
        forgotten_topics=[] if later else None,
        topics=[ApacheFetchTopic(topic, [partition])],
    )


def list_offsets(time: int, *, replica: int = -1) -> Any:
    """A request of version 1 for the first partition."""
    asked = ApacheListOffsetsPartition(0, timestamp=time)
    return ApacheListOffsetsRequest(replica_id=replica, topics=[ApacheListOffsetsTopic("t", [asked])])


def only(answer: Any) -> Any:
    """What an answer says of its one partition."""
    (topic,) = answer.topics
    (partition,) = topic.partitions
    return partition


def values_in(data: bytes | None) -> list[str]:
    """The values of all records."""
    found = bytes(data or b"")
    return [
        bytes(record.value or b"").decode()
        for batch in batches_in(found, may_be_cut=True)
        for record in records_of(found, batch)
    ]
