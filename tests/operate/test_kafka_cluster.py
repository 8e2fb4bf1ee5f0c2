"""The page of a cluster of Kafka's replication, followed: its files, commands and topic; two of three end.

A client of ours sends what the page's client sends: libraries of others are not there in every environment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lab.cluster import Cluster
from lab.kafka.stage import KafkaStage
from replispec.runtime.configuration import parse
from replispec.runtime.kafka.batches import batch_of
from replispec.wire.kafka.clients import (
    ApacheProducePartition,
    ApacheProduceRequest,
    ApacheProduceResponse,
    ApacheProduceTopic,
)
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.parameters import ROLES
from replispec.wire.zookeeper.parameters import ROLES as STORE_ROLES
from tests.house.tree import ROOT

PAGE: Final = (ROOT / "docs/kafka-cluster.md").read_text()
FILES: Final = dict(re.findall(r"```properties (\w+)\n(.*?)```", PAGE, re.DOTALL))
COMMANDS: Final = re.findall(r"^replispec (\w+) -c (\S+)\.properties &$", PAGE, re.MULTILINE)
((PATH, DATA),) = re.findall(r"store\.create\(\"(\S+)\", b'(\S+)'\)", PAGE)
BROKERS, TOPIC, PARTITIONS = (1, 2, 3), "orders", 3
PORTS: Final = {"2181": "store", "9092": "broker-1", "9093": "broker-2", "9094": "broker-3"}
FOLDERS: Final = re.compile(r"^(dataDir|log\.dirs|exportFolder)=", re.MULTILINE)
PRODUCE_VERSION: Final = 3


@pytest.mark.parametrize(("role", "text"), FILES.items(), ids=list(FILES))
def test_a_file_of_the_page_is_taken_without_notes(role: str, text: str) -> None:
    assert parse(text, {**STORE_ROLES, **ROLES}[role]).notes == ()


def test_the_page_starts_each_process_that_it_configures() -> None:
    assert [role for role, _ in COMMANDS] == ["metastore", "broker", "broker", "broker", "learner"]
    assert [file for _, file in COMMANDS] == ["metastore", *(f"broker-{each}" for each in BROKERS), "learner"]


class Followed:
    """What the page makes, in a folder with ports of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.stage = KafkaStage(cluster, "1.0", "page")
        self.folder = cluster.part("page")
        self.sent = 0
        self.acknowledged: list[str] = []
        for role, text in FILES.items():
            self._write(role, text)
        for number in BROKERS:
            port = f"PLAINTEXT://127.0.0.1:{9091 + number}"
            named = FILES["broker"].replace("broker.id=1", f"broker.id={number}")
            named = named.replace("broker-1-logs", f"broker-{number}-logs")
            self._write(f"broker-{number}", named.replace("PLAINTEXT://127.0.0.1:9092", port))

    def _write(self, name: str, text: str) -> None:
        for port, process in PORTS.items():
            text = re.sub(rf"\b{port}\b", f"PORT-{process}", text)
        for process in PORTS.values():
            text = text.replace(f"PORT-{process}", str(self.cluster.port(process)))
        text = FOLDERS.sub(rf"\1={self.folder}/", text)
        (self.folder / f"{name}.properties").write_text(text)

    def start(self, role: str, file: str) -> None:
        """Type one of the page's commands."""
        command = [sys.executable, "-P", "-m", "replispec.cli", role, "-c"]
        name = "store" if role == "metastore" else file
        self.cluster.launch(name, [*command, str(self.folder / f"{file}.properties")])

    def send(self, count: int) -> None:
        """So many records are acknowledged by all, each sent until it is."""
        for _ in range(count):
            self.stage.wait("a record that is acknowledged", self._sent)
            self.sent += 1

    def _sent(self) -> bool:
        partition, value = self.sent % PARTITIONS, f"order-{self.sent}"
        leader = self.stage.leader(TOPIC, partition)
        batch = batch_of([(0, None, value.encode())])
        sent = ApacheProduceTopic(TOPIC, [ApacheProducePartition(partition, batch)])
        body = ApacheProduceRequest(None, -1, 5_000, [sent]).encode(version=PRODUCE_VERSION)
        answer = self.stage.ask(leader, ApiKey.PRODUCE, PRODUCE_VERSION, body)
        (topic,) = ApacheProduceResponse.decode(answer, version=PRODUCE_VERSION).topics
        is_taken = topic.partitions[0].error == ErrorCode.NONE
        if is_taken:
            self.acknowledged.append(value)
        return is_taken

    def exported(self) -> set[str]:
        """What the learner has written."""
        file = self.folder / "learned/export.jsonl"
        whole, _, _ = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
        return {json.loads(line)["value"] for line in whole.splitlines()}


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    with Cluster(tmp_path / "cluster") as cluster:
        yield Followed(cluster)


def test_the_page_is_followed_and_nothing_acknowledged_is_lost_when_two_of_three_end(
    followed: Followed,
) -> None:
    stage = followed.stage
    for role, file in COMMANDS[:4]:
        followed.start(role, file)
        if role == "metastore":
            stage.wait("a store", lambda: stage.reader.children("/") is not None)
    stage.wait_registered(BROKERS)
    stage.wait("a controller", stage.reader.controller_id)
    stage.reader.make(PATH, DATA.encode())
    stage.wait("all in sync", lambda: all(stage.isr(TOPIC, each) == {*BROKERS} for each in range(PARTITIONS)))
    followed.start(*COMMANDS[4])
    followed.send(30)
    controller = stage.wait("a controller", stage.reader.controller_id) or 0
    leaders = [stage.leader(TOPIC, each) for each in range(PARTITIONS)]
    ended = {controller, next(each for each in leaders if each != controller)}
    for each in ended:
        stage.kill(each)
    (left,) = {*BROKERS} - ended
    stage.wait("another controller", lambda: stage.reader.controller_id() == left)
    stage.wait("other leaders", lambda: all(stage.leader(TOPIC, each) == left for each in range(PARTITIONS)))
    for each in ended:
        followed.start("broker", f"broker-{each}")
    followed.send(30)
    stage.wait("all in sync", lambda: all(stage.isr(TOPIC, each) == {*BROKERS} for each in range(PARTITIONS)))
    assert {*followed.acknowledged} <= {*stage.committed(TOPIC, PARTITIONS)}
    stage.wait("an export of all", lambda: {*followed.acknowledged} <= followed.exported())
