"""A cluster in one process: a metastore, candidates, brokers that do as they are told, and who administers.

Brokers hold no records: whoever follows the leader of its epoch is taken into the ISR soon after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from replispec.controller.kafka.process import members as controller_members
from replispec.metastore.zookeeper.process import members as metastore_members
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.sim import World
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
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsr,
    ApacheLeaderAndIsrRequest,
    ApacheLeaderAndIsrResponse,
    ApachePartitionError,
    ApacheStopReplicaRequest,
    ApacheStopReplicaResponse,
    ApacheUpdateMetadataPartition,
    ApacheUpdateMetadataRequest,
    ApacheUpdateMetadataResponse,
)
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.nodes import (
    ApacheBrokerNode,
    ApacheIsrChangeNode,
    ApachePartitionStateNode,
    ApacheReassignedPartition,
    ApacheReassignmentNode,
    ApacheTopicNode,
    ApacheTopicPartition,
    BrokerIds,
)
from replispec.wire.kafka.options import KafkaControllerOptions
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS
from replispec.wire.zookeeper.codes import CreateFlags
from replispec.wire.zookeeper.options import MetastoreOptions

STORE = "10.0.0.1:2181"
ISR_MS = 300
"""How often a leader looks who has caught up."""
Key = tuple[str, int]


class BrokerDouble:
    """A broker without records. `others`: all brokers by their ids, as leaders know their followers."""

    def __init__(self, broker_id: int, host: str, others: Mapping[int, BrokerDouble]) -> None:
        self.broker_id = broker_id
        self.listeners = {"clients": f"{host}:9092"}
        self.host = host
        self.others = others
        self.outbox = Outbox()
        self.client = MetastoreClient(self.outbox, [STORE], 6_000, stands=self._stands)
        self.buffers: dict[int, FrameBuffer] = {}
        self.replicas: dict[Key, ApacheLeaderAndIsr] = {}
        self.seen: dict[Key, ApacheUpdateMetadataPartition] = {}
        self.live: set[int] = set()
        self.commands: list[Any] = []
        self.controller_epoch = 0
        self.is_silent = False
        self.refuses_to_delete = False
        self.now_ms = 0
        self._look_at_ms = 0
        self._begins_again = False

    def receive(self, event: Event) -> Sequence[Effect]:
        self.now_ms = event.now_ms
        match event:
            case Started():
                self.client.begin(event.now_ms)
            case Accepted():
                self.buffers[event.connection] = FrameBuffer(APACHE_REQUESTS)
            case Connected():
                self.client.connected(event)
            case Received():
                if not self.client.received(event):
                    for frame in self.buffers[event.connection].receive(event.data):
                        self._take(event.connection, ApacheRequestFrame.decode(frame))
            case Closed():
                self.client.closed(event)
            case Ticked():
                self.client.ticked(event.now_ms)
                self._grow_isr()
            case _:
                pass
        if self._begins_again:
            self._begins_again = False
            self.client.begin(event.now_ms)
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        deadline_ms = self.client.deadline_ms()
        return self._look_at_ms if deadline_ms is None else min(self._look_at_ms, deadline_ms)

    def _stands(self, standing: SessionStanding) -> None:
        if standing is SessionStanding.LOST:
            self._begins_again = True
        elif standing is SessionStanding.CONNECTED:
            node = ApacheBrokerNode(
                listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
                endpoints=[f"PLAINTEXT://{self.host}:9092"],
                jmx_port=-1,
                host=self.host,
                port=9092,
                version=4,
                timestamp="0",
            )
            path = paths.APACHE_BROKER.at(broker_id=self.broker_id)
            self.client.create(path, node.encode(), lambda _: None, flags=CreateFlags.EPHEMERAL)

    def _take(self, connection: int, frame: ApacheRequestFrame) -> None:
        request: Any = APACHE_RESPONSE_FRAME.read_request(frame)
        if self.is_silent:
            return
        self.commands.append(request)
        if request.controller_epoch < self.controller_epoch:
            answer: Any = self._refuse(request)
        else:
            self.controller_epoch = request.controller_epoch
            answer = self._carry_out(request)
        body = answer.encode(version=frame.api_version)
        self.outbox.send(connection, ApacheResponseFrame(frame.correlation_id, body).encode())

    def _refuse(self, request: Any) -> Any:
        match request:
            case ApacheLeaderAndIsrRequest():
                return ApacheLeaderAndIsrResponse(ErrorCode.STALE_EPOCH, [])
            case ApacheStopReplicaRequest():
                return ApacheStopReplicaResponse(ErrorCode.STALE_EPOCH, [])
        return ApacheUpdateMetadataResponse(ErrorCode.STALE_EPOCH)

    def _carry_out(self, request: Any) -> Any:
        match request:
            case ApacheLeaderAndIsrRequest():
                errors = [self._led(*each) for each in _named(request)]
                return ApacheLeaderAndIsrResponse(ErrorCode.NONE, errors)
            case ApacheStopReplicaRequest():
                keys = [(each.topic_name, each.partition_index) for each in request.partitions or ()]
                keys += [
                    (each.name, number) for each in request.topics or () for number in each.partition_indexes
                ]
                error = ErrorCode.STORAGE_ERROR if self.refuses_to_delete else ErrorCode.NONE
                for key in keys:
                    if not self.refuses_to_delete:
                        self.replicas.pop(key, None)
                errors = [ApachePartitionError(*key, error) for key in keys]
                return ApacheStopReplicaResponse(ErrorCode.NONE, errors)
            case ApacheUpdateMetadataRequest():
                self.live = {each.broker_id for each in request.live_brokers}
                for key, state in _named(request):
                    if state.leader == -2:
                        self.seen.pop(key, None)
                    else:
                        self.seen[key] = state
        return ApacheUpdateMetadataResponse(ErrorCode.NONE)

    def _led(self, key: Key, state: ApacheLeaderAndIsr) -> ApachePartitionError:
        known = self.replicas.get(key)
        if known is not None and state.leader_epoch <= known.leader_epoch:
            return ApachePartitionError(*key, ErrorCode.STALE_EPOCH)
        # A real broker does not follow whom it does not know.
        if state.leader >= 0 and state.leader not in self.live:
            return ApachePartitionError(*key, ErrorCode.NONE)
        self.replicas[key] = state
        return ApachePartitionError(*key, ErrorCode.NONE)

    def _grow_isr(self) -> None:
        if self.now_ms < self._look_at_ms:
            return
        self._look_at_ms = self.now_ms + ISR_MS
        for key, state in self.replicas.items():
            if state.leader == self.broker_id and not self.is_silent:
                caught_up = [each for each in state.replicas if self._follows(each, key, state)]
                wanted = [*state.isr, *(each for each in caught_up if each not in state.isr)]
                if wanted != state.isr:
                    self._write_isr(key, state, wanted)

    def _follows(self, broker_id: int, key: Key, state: ApacheLeaderAndIsr) -> bool:
        other = self.others.get(broker_id)
        mine = None if other is None else other.replicas.get(key)
        return mine is not None and mine.leader_epoch == state.leader_epoch and not other.is_silent  # type: ignore[union-attr]

    def _write_isr(self, key: Key, state: ApacheLeaderAndIsr, wanted: list[int]) -> None:
        record = ApachePartitionStateNode(
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            version=1,
            leader_epoch=state.leader_epoch,
            isr=wanted,
        )
        path = paths.APACHE_STATE.at(topic=key[0], partition=key[1])
        told = partial(self._isr_written, key, state, wanted)
        self.client.set_data(path, record.encode(), state.zk_version, told)

    def _isr_written(self, key: Key, state: ApacheLeaderAndIsr, wanted: list[int], answer: Any) -> None:
        if answer.error == 0 and self.replicas.get(key) is state:
            self.replicas[key] = replace(state, isr=wanted, zk_version=state.zk_version + 1)
            notice = ApacheIsrChangeNode(1, [ApacheTopicPartition(*key)]).encode()
            path = "/isr_change_notification/isr_change_"
            self.client.create(path, notice, lambda _: None, flags=CreateFlags.PERSISTENT_SEQUENTIAL)


def _named(request: Any) -> list[tuple[Key, Any]]:
    """Each partition of a request with its name, in whatever form it has."""
    found = [((each.topic_name, each.partition_index), each) for each in request.partitions or ()]
    for topic in request.topics or ():
        found += [((topic.topic_name, each.partition_index), each) for each in topic.partitions]
    return found


class Administrator:
    """Who makes and deletes topics, by the store alone."""

    listeners: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.client = MetastoreClient(self.outbox, [STORE], 6_000)

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Started():
                self.client.begin(event.now_ms)
                self.make("/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics")
                self.make("/config", "/config/topics", "/isr_change_notification")
            case Connected():
                self.client.connected(event)
            case Received():
                self.client.received(event)
            case Closed():
                self.client.closed(event)
            case Ticked():
                self.client.ticked(event.now_ms)
            case _:
                pass
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        return self.client.deadline_ms()

    def make(self, *made: str) -> None:
        """Make empty nodes."""
        for path in made:
            self.client.create(path, None, lambda _: None)

    def create(self, topic: str, *replicas: list[int]) -> None:
        """Make a topic; so many partitions as there are lists of brokers."""
        self.client.create(paths.APACHE_TOPIC_CONFIG.at(topic=topic), b"{}", lambda _: None)
        self.client.create(paths.APACHE_TOPIC.at(topic=topic), topic_node(*replicas), lambda _: None)

    def grow(self, topic: str, *replicas: list[int]) -> None:
        """Say again which partitions a topic has."""
        self.client.set_data(paths.APACHE_TOPIC.at(topic=topic), topic_node(*replicas), -1, lambda _: None)

    def delete(self, topic: str) -> None:
        """Wish a topic away."""
        self.make(paths.APACHE_TOPIC_DELETED.at(topic=topic))

    def move(self, *moves: tuple[str, int, list[int]]) -> None:
        """Wish partitions elsewhere."""
        node = ApacheReassignmentNode(1, [ApacheReassignedPartition(*each) for each in moves])
        self.client.create(paths.APACHE_REASSIGNMENTS.at(), node.encode(), lambda _: None)


def topic_node(*replicas: list[int]) -> bytes:
    """What the node of a topic holds."""
    partitions = {str(number): BrokerIds(list(each)) for number, each in enumerate(replicas)}
    return ApacheTopicNode(partitions=partitions, version=1).encode()


@dataclass(frozen=True)
class Record:
    """What the store holds of a partition."""

    leader: int
    epoch: int
    isr: list[int]
    version: int


class SimulatedCluster:
    """A metastore, `candidates` controllers from id 100 on, `brokers` brokers from id 1 on."""

    def __init__(self, seed: int = 1, *, brokers: int = 3, candidates: int = 1, **options: Any) -> None:
        self.world = World(seed)
        self.doubles: dict[int, BrokerDouble] = {}
        kept = MetastoreOptions(
            client_port_address="10.0.0.1", client_port=2181, data_dir="m", tick_time_ms=500
        )
        self.world.add("metastore", "10.0.0.1", lambda storage: metastore_members(kept, storage, seed))
        self.world.start("metastore")
        self.administrator = Administrator()
        self.world.add("administrator", "10.0.9.1", lambda _: [Member("administrator", self.administrator)])
        self.world.start("administrator")
        self.run(500)
        for number in range(candidates):
            made = KafkaControllerOptions(broker_id=100 + number, zookeeper_connect=STORE, **options)

            def make(storage: Storage, made: KafkaControllerOptions = made) -> Sequence[Member]:
                return controller_members(made, storage, seed)

            self.world.add(f"controller-{number}", f"10.0.1.{number + 1}", make)
            self.world.start(f"controller-{number}")
            self.run(200)
        for broker_id in range(1, brokers + 1):
            self.world.add(f"broker-{broker_id}", f"10.0.2.{broker_id}", partial(self.broker, broker_id))
            self.start(broker_id)
        self.run(1_000)

    def broker(self, broker_id: int, _storage: Storage) -> Sequence[Member]:
        """The process of a broker, which knows nothing yet."""
        double = self.doubles[broker_id] = BrokerDouble(broker_id, f"10.0.2.{broker_id}", self.doubles)
        return [Member("broker", double)]

    def start(self, broker_id: int) -> None:
        """A broker begins, or begins again."""
        self.world.start(f"broker-{broker_id}")

    def kill(self, broker_id: int) -> None:
        """A broker ends at once."""
        self.world.kill(f"broker-{broker_id}")

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        self.world.run_for(milliseconds)

    @property
    def store(self) -> Any:
        """The tree of the metastore."""
        (life,) = self.world.processes["metastore"].lives
        return life.node.tree  # type: ignore[attr-defined]

    def data(self, path: str) -> bytes | None:
        """What a node holds; None for no node."""
        found = self.store.find(path)
        return None if found is None else found.data or b""

    def record(self, topic: str = "t", partition: int = 0) -> Record | None:
        """What the store holds of a partition."""
        path = paths.APACHE_STATE.at(topic=topic, partition=partition)
        found = self.store.find(path)
        if found is None:
            return None
        node = ApachePartitionStateNode.decode(found.data)
        assert node.leader is not None
        assert node.leader_epoch is not None
        return Record(node.leader, node.leader_epoch, node.isr or [], found.version)

    def controller(self, number: int = 0) -> Any:
        """The node of a candidate."""
        (life,) = self.world.processes[f"controller-{number}"].lives
        return life.node
