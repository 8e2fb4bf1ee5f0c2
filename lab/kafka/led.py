"""Our broker under a real controller: Kafka's own clients write to it and read from it.

    VENV/bin/python -m lab.kafka.led LIBS OUT [--generation 1.0]

`LIBS` holds the jars of kafka_2.13 and kafka-tools 2.8.2. A real ZooKeeper, a real broker, which is the
controller, and ours. Kafka's TopicCommand makes a topic that ours leads alone, and one that ours leads while
the real broker follows; ConsoleProducer writes, ConsoleConsumer reads, VerifiableProducer waits for all of
the ISR. Prints a line of JSON; exit code 1 with the first thing that is not as demanded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.kafka.controlled import ControlledCluster, acknowledged, consumed, produce, wait
from lab.processes import environment
from replispec.wire.kafka import paths

REAL, OURS = 1, 2
LINES = 200


class UnderRealController(ControlledCluster):
    """A real broker, which is the controller, and ours."""

    def start(self) -> None:
        """Start them one after the other."""
        self._start_store("zookeeper")
        wait("the store", self.reader.answers)
        self.start_broker(REAL)
        wait("the controller", lambda: self.controller_id() == REAL)
        self.start_ours()
        wait("our broker", lambda: str(OURS) in self.reader.children(paths.APACHE_BROKERS.at()))

    def start_ours(self) -> None:
        """Ours, from a file as Kafka's brokers have it."""
        settings = {
            "broker.id": OURS, "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[OURS]}",
            "log.dirs": self.work / f"logs-{OURS}", "zookeeper.connect": self.store,
            "zookeeper.session.timeout.ms": 6000, "inter.broker.protocol.version": self.generation,
            "log.message.format.version": self.generation, "replica.lag.time.max.ms": 5000,
            "num.network.threads": 3, "stopTimeoutMillis": 2000,
        }  # fmt: skip
        self.ours("broker", settings)

    def make(self, topic: str, replicas: str) -> None:
        """A topic of one partition on these brokers, by Kafka's tool."""
        self.topics("--create", "--topic", topic, "--replica-assignment", replicas)

    def console(self, topic: str, lines: list[str]) -> list[str]:
        """What ConsoleConsumer reads of what ConsoleProducer wrote."""
        java = ["java", "-Xmx256m", "-cp", f"{self.libs}/*"]
        said = subprocess.run(
            [*java, "kafka.tools.ConsoleProducer", "--bootstrap-server", self.bootstrap_ours,
             "--topic", topic, "--request-required-acks", "all"],
            input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, timeout=120,
            check=False, env=environment(),
        )  # fmt: skip
        if said.returncode:
            raise LabError(f"ConsoleProducer: {said.stderr[-2000:]}")
        read = subprocess.run(
            [*java, "kafka.tools.ConsoleConsumer", "--bootstrap-server", self.bootstrap_ours,
             "--topic", topic, "--partition", "0", "--offset", "earliest",
             "--max-messages", str(len(lines)), "--timeout-ms", "60000"],
            capture_output=True, text=True, timeout=120, check=False, env=environment(),
        )  # fmt: skip
        return read.stdout.splitlines()

    @property
    def bootstrap_ours(self) -> str:
        """Where clients begin that know ours alone."""
        return f"127.0.0.1:{self.ports[OURS]}"

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self.ports[REAL]},{self.bootstrap_ours}"


def by_kafka_python(cluster: UnderRealController, topic: str) -> list[str]:
    """What a client library in Python reads of what it wrote."""
    kafka = __import__("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap_ours, acks="all", enable_idempotence=False
    )
    for number in range(LINES):
        producer.send(topic, f"p{number}".encode()).get(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_ours, enable_auto_commit=False, consumer_timeout_ms=10_000
    )
    place = kafka.TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    found = [record.value.decode() for _, record in zip(range(LINES), consumer, strict=False)]
    consumer.close()
    return found


def run(cluster: UnderRealController) -> dict[str, Any]:
    """Play the scenario. Raises LabError."""
    found: dict[str, Any] = {"generation": cluster.generation}
    cluster.make("alone", str(OURS))
    wait("alone is led", lambda: _leads(cluster, "alone"))
    lines = [f"line {number}" for number in range(LINES)]
    read = cluster.console("alone", lines)
    if read != lines:
        raise LabError(f"ConsoleConsumer read {len(read)} of {len(lines)} lines")
    found["console"] = len(read)
    with contextlib.suppress(ImportError):
        cluster.make("library", str(OURS))
        wait("library is led", lambda: _leads(cluster, "library"))
        read = by_kafka_python(cluster, "library")
        if read != [f"p{number}" for number in range(LINES)]:
            raise LabError(f"kafka-python read {len(read)} of {LINES} records")
        found["kafka_python"] = len(read)
    cluster.make("both", f"{OURS}:{REAL}")
    wait("both is led", lambda: _leads(cluster, "both"))
    written = acknowledged(produce(cluster, "both"))
    lost = written - set(consumed(cluster, "both", 1))
    if lost or not written:
        raise LabError(f"{len(lost)} of {len(written)} acknowledged records are lost")
    found["acknowledged"], found["lost"] = len(written), len(lost)
    cluster.kill(f"broker-{REAL}")
    wait("the real one is out", lambda: _isr(cluster, "both") in ([OURS], [OURS, REAL]))
    return found


def _leads(cluster: UnderRealController, topic: str) -> bool:
    record = cluster.reader.record(topic, 0)
    return record is not None and record.leader == OURS and cluster.told(OURS, topic)[0][0] == OURS


def _isr(cluster: UnderRealController, topic: str) -> list[int]:
    record = cluster.reader.record(topic, 0)
    return sorted(() if record is None else record.isr or ())


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--generation", default="1.0", choices=("0.11.0-IV1", "1.0", "2.2", "2.6"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cluster = UnderRealController(arguments.libs, arguments.out, "zookeeper", arguments.generation)
    try:
        cluster.start()
        print(json.dumps(run(cluster)))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        cluster.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
