"""The demo's cluster: a metastore, three brokers that stand for the controller, a learner; clients of others.

The controller's process and the leader of a partition end at once, under load, and come back.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import Story
from lab.kafka.programs import OUR_ROLES
from lab.kafka.stage import KafkaStage, StartedProducer

BROKERS: Final = (1, 2, 3)
TOPIC: Final = "orders"
REPLICAS: Final = ((2, 3, 1), (3, 1, 2), (1, 2, 3))
"""The first broker that starts is the controller, and leads neither of the first two partitions."""
LIBRARY: Final = "kafka-python"
RECORDS, KILLED_AFTER = 1_500, 300
# Each question to the store is a session in the capture.
POLL_S: Final = 0.1


def play(cluster: Cluster, story: Story) -> None:
    """Nothing acknowledged is lost or out of order. Raises LabError."""
    cluster.poll_s = POLL_S
    demo = _Demo(cluster, KafkaStage(cluster, "1.0", "demo"), story)
    demo.start()
    producers = demo.produce()
    for each in producers:
        each.wait_for(KILLED_AFTER)
    demo.kill_two(producers)
    demo.judge([each.acknowledged() for each in producers])
    demo.stage.end()


@dataclass(frozen=True, slots=True)
class _Demo:
    cluster: Cluster
    stage: KafkaStage
    story: Story

    def start(self) -> None:
        """All processes, and the topic."""
        stage = self.stage
        stage.start_store(ours=True, more=self._tap("store"))
        for each in BROKERS:
            self._start_broker(each)
            stage.wait("a controller", stage.reader.controller_id)
        stage.wait_registered(BROKERS)
        self.story.tell(
            f"a metastore and brokers 1, 2, 3; broker {stage.reader.controller_id()} controls them"
        )
        stage.make_quietly(TOPIC, REPLICAS)
        settings = {
            "bootstrap.servers": stage.bootstrap(BROKERS), "topics": TOPIC,
            "exportFolder": self._exports, **self._tap("learner"),
        }  # fmt: skip
        self.cluster.start(OUR_ROLES, "learner", "learner", settings)
        leaders = ", ".join(str(stage.leader(TOPIC, each)) for each in range(len(REPLICAS)))
        self.story.tell(
            f"topic {TOPIC}: partitions led by {leaders}, three replicas each; a learner exports it"
        )

    def _start_broker(self, broker: int) -> None:
        more = {"controllerCandidate": "true", **self._tap(f"broker-{broker}")}
        self.stage.start_broker(broker, ours=True, more=more)

    def _tap(self, name: str) -> Mapping[str, object]:
        return {"tapFile": self.cluster.part("tap") / f"{name}.pcap", "tapSide": "ACCEPTED"}

    @property
    def _exports(self) -> Path:
        return self.stage.data / "learned"

    def produce(self) -> Sequence[StartedProducer]:
        """A client of somebody else writes to each partition."""
        found = [
            self.stage.producer(
                LIBRARY, TOPIC, RECORDS, self.stage.bootstrap(BROKERS), prefix=f"p{each}", partition=each
            )
            for each in range(len(REPLICAS))
        ]
        self.story.tell(f"{len(found)} producers of {LIBRARY} write some 100 records a second each, acks=all")
        return found

    def kill_two(self, producers: Sequence[StartedProducer]) -> None:
        """The controller's process and another one that leads end at once, and come back."""
        stage, began_s = self.stage, time.monotonic()
        controller, leader = stage.reader.controller_id(), stage.leader(TOPIC)
        if controller == leader or controller is None:
            raise LabError(f"broker {leader} leads and is the controller, too")
        killed = {controller, leader}
        for each in killed:
            stage.kill(each)
        self.story.tell(f"kill -9 of the controller, {controller}, and of a leader, {leader}, at once")
        (left,) = set(BROKERS) - killed
        stage.wait("another controller", lambda: stage.reader.controller_id() == left)
        self._told("the one that is left is the controller", began_s)
        self._everywhere("leads all partitions", began_s, lambda each: stage.leader(TOPIC, each) == left)
        before = sum(each.so_far for each in producers)
        for each in killed:
            self._start_broker(each)
        stage.wait("records acknowledged again", lambda: sum(each.so_far for each in producers) > before)
        self._told("both are started again, and records are acknowledged", began_s)
        whole = set(BROKERS)
        self._everywhere("all three are in sync", began_s, lambda each: stage.isr(TOPIC, each) == whole)

    def _everywhere(self, what: str, began_s: float, holds: Callable[[int], bool]) -> None:
        self.stage.wait(what, lambda: all(holds(each) for each in range(len(REPLICAS))))
        self._told(what, began_s)

    def _told(self, what: str, began_s: float) -> None:
        self.story.tell(f"{what}, {time.monotonic() - began_s:.1f} s after the kill")

    def judge(self, certain: Sequence[set[str]]) -> None:
        """What was acknowledged is read in the order in which it was written. Raises LabError."""
        count = sum(map(len, certain))
        self.story.tell(f"{count} of {RECORDS * len(certain)} records were acknowledged")
        exported = self._exported(certain)
        committed = 0
        for partition, acknowledged in enumerate(certain):
            read = self.stage.consumed(LIBRARY, TOPIC, self.stage.bootstrap(BROKERS), 0, partition)
            demand_in_order(partition, acknowledged, read)
            if exported[partition] != read:
                raise LabError(f"partition {partition}: the learner exported something else than is read")
            committed += len(read)
        twice = committed - len({value for each in exported for value in each})
        self.story.tell(
            f"{LIBRARY} reads {committed} records, {twice} of them twice: every acknowledged one, in order; "
            "the learner exported the same"
        )
        self.stage.wait("equal logs", lambda: len({self._digest(each) for each in BROKERS}) == 1)
        self.story.tell(f"the logs of all three brokers are the same (sha256 {self._digest(1)[:16]})")

    def _exported(self, certain: Sequence[set[str]]) -> list[list[str]]:
        def found() -> list[list[str]] | None:
            values: list[list[str]] = [[] for _ in certain]
            for line in _whole_lines(self._exports / "export.jsonl"):
                values[line["partition"]].append(line["value"])
            return values if all(map(set.issubset, certain, map(set, values))) else None

        return self.stage.wait("an export of all that was acknowledged", found) or []

    def _digest(self, broker: int) -> str:
        partitions = range(len(REPLICAS))
        logs = [self.stage.logs(TOPIC, [broker], each)[broker] for each in partitions]
        return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in logs)).hexdigest()


def demand_in_order(partition: int, acknowledged: set[str], read: Sequence[str]) -> None:
    """Demand that all acknowledged records are read, each first as its number says. Producers that are not
    idempotent may write one twice. Raises LabError."""
    missing = acknowledged - set(read)
    if not acknowledged or missing:
        raise LabError(f"partition {partition}: {len(missing)} of {len(acknowledged)} records are not read")
    numbers = [int(each.rpartition("-")[2]) for each in dict.fromkeys(read)]
    if numbers != sorted(numbers):
        raise LabError(f"partition {partition}: records are out of order")


def _whole_lines(file: Path) -> list[dict[str, Any]]:
    # The last line may be on its way.
    whole, _, _ = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
    return [json.loads(line) for line in whole.splitlines()]
