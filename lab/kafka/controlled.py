"""Our controller over real brokers: Kafka's own tools create, move and delete, and a leader is killed.

    VENV/bin/python -m lab.kafka.controlled LIBS OUT [--store ours|zookeeper] [--generation 1.0]

`LIBS` holds the jars of kafka_2.13 and kafka-tools 2.8.2. Three brokers on 127.0.0.1, a producer that waits
for all of the ISR; what it was acknowledged is read back. Prints a line of JSON; exit code 1 with the first
thing that is not as demanded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.processes import StartedProcess, environment, kill, spawn, terminate
from replispec.runtime.kafka import batches
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.kafka import paths
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchRequest,
    ApacheFetchResponse,
    ApacheFetchTopic,
    ApacheMetadataRequest,
    ApacheMetadataResponse,
    ApacheMetadataTopic,
)
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.nodes import ApacheControllerNode, ApachePartitionStateNode
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_RESPONSES
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.connection import ConnectRequest, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.operations import (
    GetChildrenRequest,
    GetChildrenResponse,
    GetDataRequest,
    GetDataResponse,
)
from replispec.wire.zookeeper.streams import ANSWERS

PATIENCE_S = 120.0
TOOL_S = 180.0
CONTROLLER_ID = 100
BROKERS = (1, 2, 3)
MESSAGES = 1_500
EACH_SECOND = 150
LINE = re.compile(r"Partition: (\d+)\s+Leader: (\d+)")
VERSION = 5
FETCH_VERSION, FETCH_BYTES = 4, 1 << 20
Held = dict[int, tuple[int | None, set[int]]]
"""Leader and ISR of each partition."""


class StoreReader:
    """Reads nodes of a store, each time in a session of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def data(self, path: str) -> bytes | None:
        """What a node holds; None for no node."""
        answer = self._ask(OpCode.GET_DATA, GetDataRequest(path, False).encode())
        return None if answer is None else GetDataResponse.decode(answer).data

    def children(self, path: str) -> list[str]:
        """The names below a node; none for no node."""
        answer = self._ask(OpCode.GET_CHILDREN, GetChildrenRequest(path, False).encode())
        return [] if answer is None else sorted(GetChildrenResponse.decode(answer).children or ())

    def answers(self) -> bool:
        """Whether the store serves sessions."""
        return self._ask(OpCode.GET_CHILDREN, GetChildrenRequest("/", False).encode()) is not None

    def record(self, topic: str, partition: int) -> ApachePartitionStateNode | None:
        """Who leads a partition."""
        data = self.data(paths.APACHE_STATE.at(topic=topic, partition=partition))
        return None if data is None else ApachePartitionStateNode.decode(data)

    def _ask(self, code: int, body: bytes) -> bytes | None:
        hello = ConnectRequest(0, 0, 10_000, 0, bytes(16), False).encode()
        frames = [RequestFrame(1, code, body), RequestFrame(2, OpCode.CLOSE_SESSION, b"")]
        buffer, found = FrameBuffer(ANSWERS), list[bytes]()
        with contextlib.closing(socket.create_connection(("127.0.0.1", self._port), timeout=30)) as one:
            one.sendall(hello + b"".join(each.encode() for each in frames))
            while len(found) < 2:
                data = one.recv(65_536)
                if not data:
                    raise ConnectionError("the store hung up")
                found += buffer.receive(data)
        reply = ReplyFrame.decode(found[1])
        if reply.error != ErrorCode.OK:
            return None
        return bytes(reply.body)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait(what: str, done: Callable[[], Any]) -> Any:
    """What `done` gives once it is true. Raises LabError."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if found := done():
                return found
        time.sleep(0.1)
    raise LabError(f"{what}: not within {PATIENCE_S:.0f} s")


class ControlledCluster:
    """Three real brokers under our controller."""

    def __init__(self, libs: Path, work: Path, store: str, generation: str) -> None:
        self.libs = libs
        self.work = work
        self.generation = generation
        self.started: dict[str, StartedProcess] = {}
        self.store_port = free_port()
        self.ports = {broker: free_port() for broker in BROKERS}
        self.reader = StoreReader(self.store_port)
        self._store_kind = store

    def start(self) -> None:
        """Start all of them, the controller before the brokers: each of these is a candidate, too."""
        self._start_store(self._store_kind)
        wait("the store", self.reader.answers)
        self.start_controller()
        wait("the controller", lambda: self.controller_id() == CONTROLLER_ID)
        for broker in BROKERS:
            self.start_broker(broker)
        ids = [str(broker) for broker in BROKERS]
        wait("the brokers", lambda: self.reader.children("/brokers/ids") == ids)

    def controller_id(self) -> int | None:
        """Who is the controller, as the store says."""
        data = self.reader.data(paths.APACHE_CONTROLLER.at())
        return None if data is None else ApacheControllerNode.decode(data).broker_id

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def store(self) -> str:
        """HOST:PORT of the store."""
        return f"127.0.0.1:{self.store_port}"

    def _start_store(self, store: str) -> None:
        if store == "ours":
            settings = {"clientPort": self.store_port, "dataDir": self.work / "store", "tickTime": 500}
            self.ours("metastore", settings)
            return
        settings = {
            "dataDir": self.work / "store", "clientPort": self.store_port, "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false", "tickTime": 500, "maxClientCnxns": 0,
        }  # fmt: skip
        self._java("store", "org.apache.zookeeper.server.quorum.QuorumPeerMain", settings)

    def start_controller(self) -> None:
        """Ours, from a file with Kafka's names."""
        self.ours(
            "controller",
            {
                "broker.id": CONTROLLER_ID,
                "zookeeper.connect": self.store,
                "zookeeper.session.timeout.ms": 6000,
                "inter.broker.protocol.version": self.generation,
                "reassignmentInterval": 2000,
            },
        )

    def start_broker(self, broker: int) -> None:
        """A real one, on its folder."""
        settings = {
            "broker.id": broker, "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]}",
            "log.dirs": self.work / f"logs-{broker}", "zookeeper.connect": self.store,
            "zookeeper.session.timeout.ms": 6000, "inter.broker.protocol.version": self.generation,
            "log.message.format.version": self.generation, "controlled.shutdown.enable": "false",
            "auto.create.topics.enable": "false", "replica.lag.time.max.ms": 5000,
            "offsets.topic.replication.factor": 1, "min.insync.replicas": 2,
        }  # fmt: skip
        self._java(f"broker-{broker}", "kafka.Kafka", settings)

    def kill(self, name: str) -> None:
        """End one at once."""
        kill([self.started[name]])

    def end(self) -> None:
        """End all of them."""
        terminate(reversed(self.started.values()))

    def tool(self, main: str, *arguments: str) -> str:
        """What a tool of Kafka's prints. Raises LabError when it fails."""
        command = ["java", "-Xmx256m", "-cp", f"{self.libs}/*", main, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TOOL_S, check=False, env=environment()
        )
        if done.returncode:
            raise LabError(f"{main} {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def topics(self, *arguments: str) -> str:
        """What Kafka's TopicCommand says."""
        return self.tool("kafka.admin.TopicCommand", "--zookeeper", self.store, *arguments)

    def ask(self, broker: int, key: int, version: int, body: bytes) -> bytes:
        """What a broker answers."""
        frame = ApacheRequestFrame(key, version, 1, "lab", body)
        buffer, found = FrameBuffer(APACHE_RESPONSES), list[bytes]()
        with contextlib.closing(
            socket.create_connection(("127.0.0.1", self.ports[broker]), timeout=30)
        ) as one:
            one.sendall(frame.encode())
            while not found:
                data = one.recv(65_536)
                if not data:
                    raise ConnectionError(f"broker {broker} hung up")
                found += buffer.receive(data)
        return ApacheResponseFrame.decode(found[0]).body

    def told(self, broker: int, topic: str) -> Held:
        """Leader and ISR of each partition, as a broker tells clients."""
        asked = ApacheMetadataRequest([ApacheMetadataTopic(topic)], allow_auto_topic_creation=False)
        body = self.ask(broker, ApiKey.METADATA, VERSION, asked.encode(version=VERSION))
        (said,) = ApacheMetadataResponse.decode(body, version=VERSION).topics
        return {each.partition_index: (each.leader_id, set(each.isr_nodes)) for each in said.partitions}

    def agree(self, topic: str, partitions: int) -> None:
        """Demand that every broker tells what the store holds."""
        wait(f"every partition of {topic} led, by all", lambda: self._is_whole(topic, partitions))
        held: Held = {}
        for partition in range(partitions):
            record = self.reader.record(topic, partition)
            assert record is not None
            held[partition] = (record.leader, set(record.isr or ()))
        for broker in BROKERS:
            # A broker hears of it in a moment.
            wait(f"broker {broker} tells {held}", partial(self._tells, broker, topic, held))
        described = {int(found[1]): int(found[2]) for found in LINE.finditer(self._described(topic))}
        if described != {partition: leader for partition, (leader, _) in held.items()}:
            raise LabError(f"TopicCommand says {described}, the store holds {held}")

    def _tells(self, broker: int, topic: str, held: Held) -> bool:
        return self.told(broker, topic) == held

    def _described(self, topic: str) -> str:
        return self.topics("--describe", "--topic", topic)

    def _is_whole(self, topic: str, partitions: int) -> bool:
        records = [self.reader.record(topic, each) for each in range(partitions)]
        return all(each is not None and len(each.isr or ()) == len(BROKERS) for each in records)

    def _java(self, name: str, main: str, settings: dict[str, Any]) -> None:
        file = self.work / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = ["java", "-Xmx256m", "-cp", f"{self.libs}/*", main, str(file)]
        self.started[name] = spawn(name, command, log=self.work / f"{name}.out", variables=environment())

    def ours(self, role: str, settings: dict[str, Any]) -> None:
        """One of our roles, from a file with these settings."""
        file = self.work / f"{role}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [sys.executable, "-m", "replispec.cli", role, "-c", str(file)]
        self.started[role] = spawn(role, command, log=self.work / f"{role}.out", variables=environment())


@contextlib.contextmanager
def cluster_of(arguments: argparse.Namespace) -> Iterator[ControlledCluster]:
    """A cluster, and the end of all its processes."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    cluster = ControlledCluster(arguments.libs, arguments.out, arguments.store, arguments.generation)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def produce(cluster: ControlledCluster, topic: str) -> subprocess.Popen[str]:
    """A producer that waits for all of the ISR and says of each record whether it was acknowledged."""
    command = [
        "java", "-Xmx256m", "-cp", f"{cluster.libs}/*", "org.apache.kafka.tools.VerifiableProducer",
        "--topic", topic, "--bootstrap-server", cluster.bootstrap, "--max-messages", str(MESSAGES),
        "--throughput", str(EACH_SECOND), "--acks", "-1",
    ]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    )


def acknowledged(producer: subprocess.Popen[str]) -> set[str]:
    """What a producer was acknowledged, once it has ended."""
    said, _ = producer.communicate(timeout=PATIENCE_S + MESSAGES / EACH_SECOND)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {line["value"] for line in lines if line.get("name") == "producer_send_success"}


def consumed(cluster: ControlledCluster, topic: str, partitions: int) -> list[str]:
    """All committed records of a topic, from whoever leads."""
    return [value for each in range(partitions) for value in _read(cluster, topic, each)]


def _read(cluster: ControlledCluster, topic: str, partition: int) -> Iterator[str]:
    record = cluster.reader.record(topic, partition)
    assert record is not None
    assert record.leader is not None
    offset = 0
    while True:
        wanted = ApacheFetchPartition(partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        asked = ApacheFetchRequest(
            replica_id=-1, max_wait=0, max_bytes=FETCH_BYTES, topics=[ApacheFetchTopic(topic, [wanted])]
        )
        body = cluster.ask(record.leader, ApiKey.FETCH, FETCH_VERSION, asked.encode(version=FETCH_VERSION))
        (said,) = ApacheFetchResponse.decode(body, version=FETCH_VERSION).topics
        (found,) = said.partitions
        if found.error:
            raise LabError(f"{topic}-{partition}: error {found.error} at {offset}")
        if offset >= found.high_watermark:
            return
        data = bytes(found.records or b"")
        for batch in batches.batches_in(data, may_be_cut=True):
            offset = batches.next_offset(batch.head)
            yield from (bytes(each.value or b"").decode() for each in batches.records_of(data, batch))


def play(cluster: ControlledCluster) -> dict[str, object]:
    """Everything, in order. Raises LabError."""
    figures: dict[str, object] = {}
    cluster.topics("--create", "--topic", "t", "--partitions", "3", "--replication-factor", "3")
    cluster.agree("t", 3)
    record = cluster.reader.record("t", 0)
    assert record is not None
    assert record.leader is not None
    leader = record.leader
    producer = produce(cluster, "t")
    assert producer.stdout is not None
    producer.stdout.readline()
    time.sleep(MESSAGES / EACH_SECOND / 4)
    cluster.kill(f"broker-{leader}")
    killed_s = time.monotonic()

    def is_led() -> bool:
        found = cluster.reader.record("t", 0)
        return found is not None and found.leader not in (leader, -1)

    wait("another leader", is_led)
    figures["fail_over_s"] = round(time.monotonic() - killed_s, 2)
    certain = acknowledged(producer)
    found = consumed(cluster, "t", 3)
    lost = certain - set(found)
    figures |= {"acknowledged": len(certain), "read": len(found), "lost": len(lost)}
    if lost or not certain:
        raise LabError(f"acknowledged and lost: {sorted(lost)[:10]} of {len(certain)}")
    cluster.start_broker(leader)
    cluster.agree("t", 3)
    cluster.topics("--alter", "--topic", "t", "--partitions", "4")
    cluster.agree("t", 4)
    figures["moved_s"] = move(cluster)
    cluster.topics("--delete", "--topic", "t")
    wait("the topic's nodes gone", lambda: not cluster.reader.children("/brokers/topics"))
    wait("the topic's folders gone", lambda: not left_of(cluster, "t"))
    wait("the wish gone", lambda: not cluster.reader.children("/admin/delete_topics"))
    if cluster.controller_id() != CONTROLLER_ID:
        raise LabError("another one is the controller")
    return figures


def move(cluster: ControlledCluster) -> float:
    """A topic of one replica goes to another broker and takes a second one; how long it took."""
    cluster.topics("--create", "--topic", "m", "--replica-assignment", "1")
    wait("m led", lambda: cluster.reader.record("m", 0))
    plan = cluster.work / "plan.json"
    moves = [{"topic": "m", "partition": 0, "replicas": [3, 2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    began_s = time.monotonic()
    cluster.tool(
        "kafka.admin.ReassignPartitionsCommand", "--zookeeper", cluster.store,
        "--reassignment-json-file", str(plan), "--execute",
    )  # fmt: skip
    wait("the move done", lambda: cluster.reader.data(paths.APACHE_REASSIGNMENTS.at()) is None)
    took_s = time.monotonic() - began_s
    record = cluster.reader.record("m", 0)
    assert record is not None
    if set(record.isr or ()) != {2, 3} or record.leader != 3:
        raise LabError(f"after the move {record}")
    wait("the old folder gone", lambda: not (cluster.work / "logs-1" / "m-0").exists())
    cluster.topics("--delete", "--topic", "m")
    return round(took_s, 2)


def left_of(cluster: ControlledCluster, topic: str) -> Sequence[Path]:
    """Folders of a topic that brokers have."""
    return [
        found for broker in BROKERS for found in (cluster.work / f"logs-{broker}").glob(f"{topic}-*[0-9]")
    ]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--store", choices=("ours", "zookeeper"), default="ours")
    parser.add_argument("--generation", choices=("0.11.0-IV1", "1.0", "2.2", "2.6"), default="1.0")
    arguments = parser.parse_args()
    try:
        with cluster_of(arguments) as cluster:
            figures = play(cluster)
    except (LabError, OSError) as error:
        print(f"controlled: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"store": arguments.store, "generation": arguments.generation, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
