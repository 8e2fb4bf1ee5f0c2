"""A store, brokers and controllers on loopback, real ones and ours, and Kafka's own tools."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from lab.cluster import Cluster
from lab.errors import LabError
from lab.kafka.programs import KAFKA, OUR_ROLES, STORE, client_python
from lab.kafka.reader import StoreReader, ask
from lab.processes import environment
from lab.zookeeper.question import serves
from replispec.runtime.kafka import batches
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
from replispec.wire.kafka.constants import TOPIC_NODE_VERSION
from replispec.wire.kafka.nodes import ApacheTopicNode, BrokerIds

PATIENCE_S: Final = 180.0
CONTROLLER_ID: Final = 100
SESSION_MS: Final = 8_000
LAG_MS: Final = 8_000
TICK_MS: Final = 500
METADATA_VERSION, FETCH_VERSION, FETCH_BYTES = 5, 4, 1 << 20
LIBRARIES: Final = ("librdkafka", "aiokafka", "kafka-python")
JAVA: Final = "java"
Held = dict[int, tuple[int | None, set[int]]]
"""Leader and ISR of each partition."""
Found = TypeVar("Found")
Wait = Callable[[str, Callable[[], bool]], object]
"""Waits for something, which it is told by name."""


class KafkaStage:
    """`generation` is the inter.broker.protocol.version of all brokers; `label` names the folder of data."""

    kafka, zookeeper, tick_ms = KAFKA, STORE, TICK_MS

    def __init__(self, cluster: Cluster, generation: str, label: str) -> None:
        self.cluster = cluster
        self.generation = generation
        self.data = cluster.part("data", label)
        self.reader: Final = StoreReader(cluster.port("store"))
        self._producers = 0

    @property
    def store(self) -> str:
        """HOST:PORT of the store."""
        return self.cluster.address("store")

    def wait(self, what: str, done: Callable[[], Found]) -> Found:
        """What `done` gives once it is true. Raises LabError."""
        return self.cluster.until(lambda: done() or None, what, patience_s=PATIENCE_S)

    # Processes

    def start_store(self, *, ours: bool, more: Mapping[str, object] | None = None) -> None:
        """ZooKeeper, or our metastore; `more` is what else it is told."""
        settings = {
            "clientPort": self.cluster.port("store"), "clientPortAddress": "127.0.0.1",
            "dataDir": self.data / "store", "tickTime": self.tick_ms, "maxClientCnxns": 0,
        }  # fmt: skip
        program = OUR_ROLES if ours else self.zookeeper
        self.cluster.start(program, "metastore", "store", {**settings, **(more or {})})
        self.wait("the store", partial(serves, self.cluster.port("store")))

    def start_controller(self) -> None:
        """Ours, which is no broker."""
        settings = {
            "broker.id": CONTROLLER_ID, "zookeeper.connect": self.store,
            "zookeeper.session.timeout.ms": SESSION_MS, "reassignmentInterval": 2000,
            "inter.broker.protocol.version": self.generation,
        }  # fmt: skip
        self.cluster.start(OUR_ROLES, "controller", "controller", settings)

    def start_broker(
        self, broker: int, *, ours: bool, least: int = 2, more: Mapping[str, object] | None = None
    ) -> None:
        """A broker on its folder; `least` is its min.insync.replicas, `more` what else it is told."""
        name = _broker(broker)
        settings: dict[str, object] = {
            "broker.id": broker, "listeners": f"PLAINTEXT://{self.cluster.address(name)}",
            "log.dirs": self.folder(broker), "zookeeper.connect": self.store,
            "zookeeper.session.timeout.ms": SESSION_MS, "min.insync.replicas": least,
            "inter.broker.protocol.version": self.generation, "replica.lag.time.max.ms": LAG_MS,
        }  # fmt: skip
        if not ours:
            settings |= {
                "log.message.format.version": self.generation, "controlled.shutdown.enable": "false",
                "auto.create.topics.enable": "false", "offsets.topic.replication.factor": 1,
            }  # fmt: skip
        program = OUR_ROLES if ours else self.kafka
        self.cluster.start(program, "broker", name, {**settings, **(more or {})})

    def kill(self, broker: int) -> float:
        """End a broker at once; the moment of it."""
        return self.cluster.kill(_broker(broker))

    def stop(self, *names: str) -> None:
        """End processes in order."""
        for each in names:
            self.cluster.stop(each)

    def end(self) -> None:
        """End everything but the capture, brokers before the store."""
        names = [each for each in self.cluster.processes if each.startswith(("broker", "contr", "learner"))]
        self.stop(*names, "store")

    def wait_registered(self, brokers: Iterable[int]) -> None:
        """Wait until exactly these brokers are known to the store."""
        wanted, path = sorted(map(str, brokers)), paths.APACHE_BROKERS.at()
        self.wait(f"brokers {wanted}", lambda: self.reader.children(path) == wanted)

    def wait_controller(self, broker: int) -> None:
        """Wait until this one is the controller."""
        self.wait(f"controller {broker}", lambda: self.reader.controller_id() == broker)

    def folder(self, broker: int) -> Path:
        """The folder of a broker's logs."""
        return self.data / f"logs-{broker}"

    def bootstrap(self, brokers: Iterable[int]) -> str:
        """Where clients begin."""
        return ",".join(self.cluster.address(_broker(each)) for each in brokers)

    # Kafka's tools

    def tool(self, main: str, *arguments: str) -> str:
        """What a tool of Kafka's prints. Raises LabError when it fails."""
        return _output([*KAFKA.run(main), *arguments], main)

    def make_quietly(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        """A topic with these replicas of each partition, made without Kafka's tools, and its leaders."""
        assigned = {str(number): BrokerIds(list(each)) for number, each in enumerate(replicas)}
        node = ApacheTopicNode(assigned, version=TOPIC_NODE_VERSION)
        self.reader.make(paths.APACHE_TOPIC.at(topic=topic), node.encode())
        wanted = {number: (each[0], set(each)) for number, each in enumerate(replicas)}
        brokers = {each for one in replicas for each in one}
        self.wait(
            f"{topic}, led and in sync", lambda: all(self.told(each, topic) == wanted for each in brokers)
        )

    def topics(self, *arguments: str) -> str:
        """What Kafka's TopicCommand says."""
        return self.tool("kafka.admin.TopicCommand", "--zookeeper", self.store, *arguments)

    def make(self, topic: str, replicas: str) -> None:
        """A topic of one partition on these brokers, as in 2:1:3, and its leader."""
        self.topics("--create", "--topic", topic, "--replica-assignment", replicas)
        wanted = set(map(int, replicas.split(":")))
        self.wait(f"the ISR of {topic}", lambda: self.isr(topic) == wanted)
        self.wait(f"brokers that tell of {topic}", lambda: all(self.tells(each, topic) for each in wanted))

    # What is recorded, and told

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        """Who is in sync, as the store has it; nobody where there is no record."""
        record = self.reader.record(topic, partition)
        return set(() if record is None else record.isr or ())

    def leader(self, topic: str, partition: int = 0) -> int:
        """Who leads, as the store has it; -1 for nobody."""
        record = self.reader.record(topic, partition)
        return -1 if record is None or record.leader is None else record.leader

    def wait_led(self, topic: str, but: int, partition: int = 0) -> int:
        """Wait until another one leads than that; who."""

        def other() -> int:
            found = self.leader(topic, partition)
            return found if found not in (but, -1) else 0

        return self.wait(f"a leader of {topic} that is not {but}", other)

    def told(self, broker: int, topic: str) -> Held:
        """Leader and ISR of each partition, as a broker tells clients. Raises OSError."""
        asked = ApacheMetadataRequest([ApacheMetadataTopic(topic)], allow_auto_topic_creation=False)
        body = self.ask(broker, ApiKey.METADATA, METADATA_VERSION, asked.encode(version=METADATA_VERSION))
        (said,) = ApacheMetadataResponse.decode(body, version=METADATA_VERSION).topics
        return {each.partition_index: (each.leader_id, set(each.isr_nodes)) for each in said.partitions}

    def tells(self, broker: int, topic: str) -> bool:
        """Whether a broker tells of the partitions of a topic what the store has."""
        told = self.told(broker, topic)
        return bool(told) and all(
            held == (self.leader(topic, each), self.isr(topic, each)) for each, held in told.items()
        )

    def ask(self, broker: int, key: int, version: int, body: bytes) -> bytes:
        """What a broker answers. Raises OSError."""
        return ask(self.cluster.port(_broker(broker)), key, version, body)

    def committed(self, topic: str, partitions: int = 1) -> list[str]:
        """All committed records of a topic, from whoever leads. Raises LabError."""
        return [value for each in range(partitions) for value in self._read(topic, each)]

    def _read(self, topic: str, partition: int) -> Iterator[str]:
        leader, offset = self.leader(topic, partition), 0
        while True:
            wanted = ApacheFetchPartition(partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            asked = ApacheFetchRequest(
                replica_id=-1, max_wait=0, max_bytes=FETCH_BYTES, topics=[ApacheFetchTopic(topic, [wanted])]
            )
            body = self.ask(leader, ApiKey.FETCH, FETCH_VERSION, asked.encode(version=FETCH_VERSION))
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

    def logs(self, topic: str, brokers: Iterable[int], partition: int = 0) -> Mapping[int, bytes]:
        """The bytes of a partition's files of records, one after the other, in each broker's folder."""
        found = {}
        for broker in brokers:
            files = sorted((self.folder(broker) / f"{topic}-{partition}").glob("*.log"))
            found[broker] = b"".join(each.read_bytes() for each in files)
        return found

    # Clients

    def producer(
        self,
        library: str,
        topic: str,
        count: int,
        bootstrap: str,
        acks: str = "all",
        prefix: str = "",
        partition: int = 0,
    ) -> StartedProducer:
        """A producer that says of each record that it was acknowledged, some 100 a second. `prefix` tells its
        records from those of others; Java's take none, and choose partitions themselves."""
        if library == JAVA:
            command = KAFKA.run(
                *("org.apache.kafka.tools.VerifiableProducer", "--topic", topic),
                *("--bootstrap-server", bootstrap, "--max-messages", str(count), "--throughput", "100"),
                *("--acks", "-1" if acks == "all" else acks),
            )
        else:
            begin = prefix or library
            more = (begin, str(count), acks, str(partition))
            command = _client(library, "produce", bootstrap, topic, *more)
        self._producers += 1
        return StartedProducer(library, command, self.data / f"producer-{self._producers}.out", self.wait)

    def consumed(self, library: str, topic: str, bootstrap: str, count: int, partition: int = 0) -> list[str]:
        """What a client reads of a partition from its begin; Java is told how many records there are."""
        if library == JAVA:
            return self.tool(
                *("kafka.tools.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic),
                *("--partition", str(partition), "--offset", "earliest", "--max-messages", str(count)),
                *("--timeout-ms", "60000"),
            ).splitlines()
        return _output(_client(library, "consume", bootstrap, topic, str(partition)), library).splitlines()


class StartedProducer:
    """A process that tells, a line each, what it was acknowledged; `file` holds its lines."""

    def __init__(self, library: str, command: Sequence[str], file: Path, wait: Wait) -> None:
        self._library = library
        self._file = file
        self._wait = wait
        with file.open("wb") as told, file.with_suffix(".errors").open("wb") as errors:
            self._process = subprocess.Popen(command, stdout=told, stderr=errors, env=environment())

    def wait_for(self, count: int) -> None:
        """Wait until so many records were acknowledged. Raises LabError."""
        self._wait(f"{count} acknowledged records", lambda: self.so_far >= count)

    @property
    def so_far(self) -> int:
        """How many records it was acknowledged until now."""
        return len(self._said())

    def acknowledged(self) -> set[str]:
        """The values of all records that it was acknowledged, once it has ended. Raises LabError."""
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            raise LabError(f"{self._library} did not end within {PATIENCE_S:.0f} s") from error
        return self._said()

    def _said(self) -> set[str]:
        # The last line may be on its way.
        lines = self._file.read_text().rpartition("\n")[0].splitlines()
        if self._library != JAVA:
            return {each.strip() for each in lines}
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return {each["value"] for each in told if each.get("name") == "producer_send_success"}


def _client(library: str, *arguments: str) -> list[str]:
    return [str(client_python()), str(Path(__file__).with_name("clients.py")), library, *arguments]


def _output(command: list[str], name: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env=environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{name}: not within {PATIENCE_S:.0f} s") from error
    if done.returncode:
        raise LabError(f"{name} {' '.join(command[-4:])}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def _broker(broker: int) -> str:
    return f"broker-{broker}"
