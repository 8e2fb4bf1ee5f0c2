"""A cluster in which brokers are commanded as the design has it; they hold no records, and join no ISR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.storage import Storage
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Effect,
    Event,
    Member,
    Outbox,
    Received,
    Started,
    Ticked,
)
from replispec.runtime.zookeeper.client import MetastoreClient, SessionStanding
from replispec.wire.kafka import paths
from replispec.wire.kafka.commands import DESIGN_RESPONSE_FRAME
from replispec.wire.kafka.design import (
    DesignLeaderAndIsr,
    DesignLeaderAndIsrRequest,
    DesignLeaderAndIsrResponse,
    DesignPartitionError,
    DesignStopReplicaResponse,
)
from replispec.wire.kafka.nodes import (
    BrokerIds,
    DecimalNode,
    DesignBrokerNode,
    DesignLeaderAndIsrNode,
    DesignTopicNode,
)
from replispec.wire.kafka.requests import DesignRequestFrame, DesignResponseFrame
from replispec.wire.kafka.streams import DESIGN_REQUESTS
from replispec.wire.zookeeper.codes import CreateFlags
from tests.controller_kafka.simulated import STORE, Key, Record, SimulatedCluster

PORT = 9092


class DesignDouble:
    """A broker of the design without records: it does what it is told, and deletes what INIT leaves out."""

    def __init__(self, broker_id: int, host: str) -> None:
        self.broker_id = broker_id
        self.listeners: Mapping[str, str] = {"clients": f"{host}:{PORT}"}
        self.host = host
        self.outbox = Outbox()
        self.client = MetastoreClient(self.outbox, [STORE], 6_000, stands=self._stands)
        self.buffers: dict[int, FrameBuffer] = {}
        self.replicas: dict[Key, DesignLeaderAndIsr] = {}
        self.commands: list[Any] = []
        self.versions: set[int] = set()
        self.error = 0
        self._begins_again = False

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Started():
                self.client.begin(event.now_ms)
            case Accepted():
                self.buffers[event.connection] = FrameBuffer(DESIGN_REQUESTS)
            case Connected():
                self.client.connected(event)
            case Received():
                if not self.client.received(event):
                    for frame in self.buffers[event.connection].receive(event.data):
                        self._take(event.connection, DesignRequestFrame.decode(frame))
            case Closed():
                self.client.closed(event)
            case Ticked():
                self.client.ticked(event.now_ms)
            case _:
                pass
        if self._begins_again:
            self._begins_again = False
            self.client.begin(event.now_ms)
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        return self.client.deadline_ms()

    def _stands(self, standing: SessionStanding) -> None:
        if standing is SessionStanding.LOST:
            self._begins_again = True
        elif standing is SessionStanding.CONNECTED:
            node = DesignBrokerNode(self.host, PORT).encode()
            path = paths.DESIGN_BROKER.at(broker_id=self.broker_id)
            self.client.create(path, node, lambda _: None, flags=CreateFlags.EPHEMERAL)

    def _take(self, connection: int, frame: DesignRequestFrame) -> None:
        request: Any = DESIGN_RESPONSE_FRAME.read_request(frame)
        self.commands.append(request)
        self.versions.add(frame.version_id)
        named = {(each.topic, each.partition_id): each for each in request.partitions}
        errors = [DesignPartitionError(*key, self.error) for key in named]
        answer: DesignLeaderAndIsrResponse | DesignStopReplicaResponse
        if isinstance(request, DesignLeaderAndIsrRequest):
            if request.is_init:
                self.replicas = {key: each for key, each in self.replicas.items() if key in named}
            self.replicas |= named
            answer = DesignLeaderAndIsrResponse(errors)
        else:
            for key in named:
                self.replicas.pop(key, None)
            answer = DesignStopReplicaResponse(errors)
        body = answer.encode(version=frame.version_id)
        self.outbox.send(connection, DesignResponseFrame(frame.version_id, body).encode())


class DesignedCluster(SimulatedCluster):
    """`version` is that of the design's messages."""

    def __init__(self, version: int, *, candidates: int = 1, brokers: int = 3, **options: Any) -> None:
        self.designs: dict[int, DesignDouble] = {}
        profile = f"design@3 version {version}"
        super().__init__(candidates=candidates, brokers=brokers, replication_profile=profile, **options)

    def broker(self, broker_id: int, _storage: Storage) -> Sequence[Member]:
        double = DesignDouble(broker_id, f"10.0.2.{broker_id}")
        if broker_id in self.designs:
            # What is on the disk outlives the process.
            double.replicas = self.designs[broker_id].replicas
        self.designs[broker_id] = double
        return [Member("broker", double)]

    def create(self, topic: str, *replicas: list[int]) -> None:
        """Make a topic, of which the administrator says who has a replica."""
        assigned = {number: BrokerIds(list(each)) for number, each in enumerate(replicas)}
        path, node = paths.DESIGN_TOPIC.at(topic=topic), DesignTopicNode(assigned).encode()
        self.administrator.client.create(path, node, lambda _: None)

    def write(self, path: str, data: bytes) -> None:
        """Have a node hold something."""
        self.administrator.client.set_data(path, data, -1, lambda _: None)

    def delete(self, *gone: str) -> None:
        """Have nodes removed."""
        for path in gone:
            self.administrator.client.delete(path, -1, lambda _: None)

    def record(self, topic: str = "t", partition: int = 0) -> Record | None:
        found = self.store.find(paths.DESIGN_LEADER_AND_ISR.at(topic=topic, partition=partition))
        if found is None:
            return None
        node = DesignLeaderAndIsrNode.decode(found.data)
        assert node.leader is not None
        assert node.leader_epoch is not None
        return Record(node.leader, node.leader_epoch, node.isr or [], found.version)

    @property
    def controller_id(self) -> int | None:
        """Who is the controller, as the store has it."""
        data = self.data(paths.DESIGN_CONTROLLER.at())
        return None if data is None else DecimalNode.decode(data).number
