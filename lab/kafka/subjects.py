"""Brokers and controllers beside a store, as the suite judges them: Apache Kafka's and ours, at both ways to
truncate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.kafka.programs import BROKER, KAFKA, OUR_ROLES, STORE, Kafka
from lab.kafka.reader import StoreReader, ask
from lab.ports import LOOPBACK
from lab.subjects.ours import OwnRoles
from lab.subjects.subject import Subject
from lab.zookeeper.question import serves
from replispec.wire.kafka import paths
from replispec.wire.kafka.codes import ApiKey

KAFKA_BROKER, KAFKA_CONTROLLER = "kafka-broker", "kafka-controller"
CONTROLLER: Final = "controller"
METASTORE: Final = "store"
SPEAKS: Final = "2.8.2"
# By epochs, and by high watermarks.
BY_EPOCH, BY_WATERMARK = "1.0", "0.11.0-IV1"
BROKER_ID: Final = 1
# Whoever is not of the cluster: as the suite, which is the controller.
SUITE_ID: Final = 30_000
# Cases wait until a follower lags, and until the session of a broker is over.
LAG_MS, SESSION_MS, TICK_MS = 5_000, 6_000, 1_500
START_S_MAXIMUM = 300.0


class KafkaSubject(Subject):
    """One implementation at one generation of what brokers say to each other."""

    speaks = SPEAKS
    kinds: Mapping[str, str] = {KAFKA_BROKER: BROKER, KAFKA_CONTROLLER: CONTROLLER}
    generation = BY_EPOCH
    usual = ""
    """The name at the usual generation."""

    @property
    def name(self) -> str:
        """With the generation where it is not the usual one."""
        return self.usual if self.generation == BY_EPOCH else f"{self.usual}-at-{self.generation}"

    @property
    def judged(self) -> Sequence[str]:
        """What a controller says differs by no generation."""
        return tuple(self.kinds) if self.generation == BY_EPOCH else (KAFKA_BROKER,)

    def serve(self, cluster: Cluster, kind: str) -> dict[str, object]:
        """One broker, or one controller, beside a store. See Subject.serve."""
        self._store(cluster)
        role = self.kinds[kind]
        if role not in cluster.processes:
            if kind == KAFKA_BROKER:
                # There is a controller: no broker becomes one.
                _make_controller(cluster)
            cluster.start(self, role, role, self.settings(cluster, role))
        if kind == KAFKA_BROKER:
            answers = partial(_answers, cluster.port(role))
            cluster.until(answers, "a broker that answers", patience_s=START_S_MAXIMUM)
        target = cluster.address(role if kind == KAFKA_BROKER else METASTORE)
        return {
            "kind": kind,
            "implementation": self.implementation,
            "release": self.release,
            "speaks": self.speaks,
            "target": target,
            "metastore": cluster.address(METASTORE),
            "pids": [process.pid for process in cluster.processes.values()],
        }

    def _store(self, cluster: Cluster) -> None:
        if METASTORE not in cluster.processes:
            settings = {
                "clientPort": cluster.port(METASTORE), "clientPortAddress": LOOPBACK,
                "dataDir": cluster.part("data", METASTORE), "tickTime": TICK_MS, "maxClientCnxns": 0,
            }  # fmt: skip
            self.start_store(cluster, settings)
        port = cluster.port(METASTORE)
        cluster.until(partial(serves, port), "a store that answers", patience_s=START_S_MAXIMUM)

    def start_store(self, cluster: Cluster, settings: Settings) -> None:
        """Start the store that it stands beside."""
        raise NotImplementedError

    def settings(self, cluster: Cluster, role: str) -> dict[str, object]:
        """The parameters that both have."""
        return {
            "broker.id": BROKER_ID, "listeners": f"PLAINTEXT://{cluster.address(role)}",
            "log.dirs": cluster.part("data", role), "zookeeper.connect": cluster.address(METASTORE),
            "zookeeper.session.timeout.ms": SESSION_MS, "min.insync.replicas": 2,
            "inter.broker.protocol.version": self.generation, "replica.lag.time.max.ms": LAG_MS,
        }  # fmt: skip

    def suite_options(self, ready: Mapping[str, object]) -> Mapping[str, object]:
        """Where the store is, beside a broker."""
        return {"--metastore": ready["metastore"]} if ready["kind"] == KAFKA_BROKER else {}


class RealKafka(KafkaSubject):
    """Apache Kafka; a broker that is the only one is the controller, too."""

    def __init__(self, program: Kafka, generation: str) -> None:
        self._program = program
        self.generation = generation
        self.release = program.release
        self.implementation = "kafka" if generation == BY_EPOCH else f"kafka-at-{generation}"
        self.usual = program.name

    def fetch(self) -> Path:
        """The folder of its jars, with those of the store beside it. See lab.pinned.fetch_pinned."""
        STORE.fetch()
        return self._program.fetch()

    def start_store(self, cluster: Cluster, settings: Settings) -> None:
        """Apache ZooKeeper."""
        cluster.start(STORE, "metastore", METASTORE, settings)

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A broker, whatever it is judged as."""
        if role not in self.kinds.values():
            raise LabError(f"{self.name} has no {role}")
        more = {
            "log.message.format.version": self.generation, "controlled.shutdown.enable": "false",
            "auto.create.topics.enable": "false", "offsets.topic.replication.factor": 1,
            "auto.leader.rebalance.enable": "false",
        }  # fmt: skip
        return self._program.command(cluster, BROKER, name, {**settings, **more})


class OurKafka(OwnRoles, KafkaSubject):
    """The roles of this checkout beside its metastore."""

    usual = "replispec-kafka"

    def __init__(self, generation: str) -> None:
        super().__init__()
        self.generation = generation

    name = KafkaSubject.name

    def start_store(self, cluster: Cluster, settings: Settings) -> None:
        """Our metastore."""
        cluster.start(OUR_ROLES, "metastore", METASTORE, settings)

    def settings(self, cluster: Cluster, role: str) -> dict[str, object]:
        """A controller is no broker: it listens nowhere."""
        every = super().settings(cluster, role)
        if role == BROKER:
            return every
        known = (
            "broker.id",
            "zookeeper.connect",
            "zookeeper.session.timeout.ms",
            "inter.broker.protocol.version",
        )
        return {**{name: every[name] for name in known}, "reassignmentInterval": 2000}


def _answers(port: int) -> bool:
    """Whether a broker says what it answers."""
    return bool(ask(port, ApiKey.API_VERSIONS, 0, b""))


def _make_controller(cluster: Cluster) -> None:
    """The node of a controller that ends with nobody's session, so that the suite is the controller."""
    node = {"version": 1, "brokerid": SUITE_ID, "timestamp": "1"}
    reader, path = StoreReader(cluster.port(METASTORE)), paths.APACHE_CONTROLLER.at()
    if reader.data(path) is None:
        reader.make(path, json.dumps(node).encode())


def subjects() -> Iterator[Subject]:
    """Ours and Apache Kafka, each at both ways to truncate."""
    for generation in (BY_EPOCH, BY_WATERMARK):
        yield OurKafka(generation)
        yield RealKafka(KAFKA, generation)
