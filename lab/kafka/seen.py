"""What a real Kafka leaves: the files of its folder of logs and the nodes of its store, for tests/wire_kafka.

    VENV/bin/python lab/kafka/seen.py LIBS OUT

`LIBS` holds the jars of kafka_2.13 2.8.2; kazoo 2.11.0 and kafka-python 3.0.12 must be
importable. One ZooKeeper and one broker on 127.0.0.1, a topic, eight messages in four segments.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

DEADLINE_S = 60
ROOTS = ("/brokers", "/controller", "/controller_epoch", "/cluster", "/admin", "/config")
FILES = ("replication-offset-checkpoint", "meta.properties")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait(what: str, done: Any) -> Any:
    """What `done` gives once it is true. Raises TimeoutError."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        with contextlib.suppress(Exception):
            found = done()
            if found:
                return found
        time.sleep(0.2)
    raise TimeoutError(what)


def start(libs: Path, work: Path, main: str, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A process of Java with these settings."""
    file = work / f"{main.rsplit('.', 1)[-1]}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    output = (work / f"{file.stem}.out").open("wb")
    command = ["java", "-Xmx256m", "-cp", f"{libs}/*", main, str(file)]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


def nodes(store: Any, path: str) -> list[dict[str, Any]]:
    """Every node below a path with what it holds."""
    data, stat = store.get(path)
    found = [
        {"path": path, "value": None if data is None else data.decode(), "owner": stat.ephemeralOwner != 0}
    ]
    for child in sorted(store.get_children(path)):
        found += nodes(store, f"{path.rstrip('/')}/{child}")
    return found


def main(libs: Path, out: Path) -> None:
    """Start both, let them work, take what they leave."""
    work = Path(tempfile.mkdtemp(prefix="replispec-kafka-"))
    keeper, broker = free_port(), free_port()
    zookeeper = {
        "dataDir": work / "zk", "clientPort": keeper, "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false", "tickTime": 500,
    }  # fmt: skip
    kafka = {
        "broker.id": 1, "listeners": f"PLAINTEXT://127.0.0.1:{broker}", "log.dirs": work / "logs",
        "zookeeper.connect": f"127.0.0.1:{keeper}", "inter.broker.protocol.version": "1.0",
        "log.message.format.version": "1.0", "controlled.shutdown.enable": "false",
        "auto.create.topics.enable": "false", "log.segment.bytes": 300,
        "replica.high.watermark.checkpoint.interval.ms": 200,
    }  # fmt: skip
    processes = [start(libs, work, "org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper)]
    try:
        store = import_module("kazoo.client").KazooClient(f"127.0.0.1:{keeper}")
        store.start(timeout=DEADLINE_S)
        processes.append(start(libs, work, "kafka.Kafka", kafka))
        wait("the broker", lambda: store.get_children("/brokers/ids"))
        store.create("/brokers/topics/t", b'{"version":1,"partitions":{"0":[1],"1":[1]}}')
        wait("a leader", lambda: store.exists("/brokers/topics/t/partitions/1/state"))
        producer = wait("a producer", lambda: import_module("kafka").KafkaProducer(
            bootstrap_servers=f"127.0.0.1:{broker}", enable_idempotence=False, acks="all",
        ))  # fmt: skip
        for number in range(8):
            producer.send("t", bytes(60 + number), partition=0, headers=[("n", b"%d" % number)]).get(30)
        producer.close()
        wait("the checkpoint", lambda: "t 0 8" in (work / "logs" / FILES[0]).read_text())
        store.create(
            "/admin/reassign_partitions",
            b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[1,9]}]}',
        )
        time.sleep(1)
        seen = [each for root in ROOTS for each in nodes(store, root)]
        (out / "nodes.jsonl").write_text("".join(json.dumps(each) + "\n" for each in seen))
        store.stop()
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)
    target = out / "folder"
    shutil.rmtree(target, ignore_errors=True)
    (target / "t-0").mkdir(parents=True)
    for name in FILES:
        shutil.copy(work / "logs" / name, target / name)
    for file in sorted((work / "logs" / "t-0").iterdir()):
        if file.suffix == ".log" or file.name == "leader-epoch-checkpoint":
            shutil.copy(file, target / "t-0" / file.name)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
