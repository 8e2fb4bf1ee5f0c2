"""Our controller over three real brokers: Kafka's tools create, move and delete, and a leader is killed."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Final

from lab.cluster import Cluster
from lab.family import Rounds
from lab.interop.measured import Measured
from lab.kafka.stage import CONTROLLER_ID, JAVA, KafkaStage
from replispec.wire.kafka import paths

BROKERS: Final = (1, 2, 3)
GENERATIONS: Final = ("0.11.0-IV1", "1.0", "2.6")
RECORDS: Final = 1_000
_LINE: Final = re.compile(r"Partition: (\d+)\s+Leader: (\d+)")


def play(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:  # noqa: ARG001
    """Each generation on our metastore, the last one on ZooKeeper, too."""
    for generation, own_store in [*((each, True) for each in GENERATIONS), (GENERATIONS[-1], False)]:
        name = f"{generation} on {'our metastore' if own_store else 'ZooKeeper'}"
        stage = KafkaStage(cluster, generation, name.replace(" ", "-"))
        _started(stage, own_store=own_store)
        _fail_over(stage, measured, name)
        _partitions(stage, measured, name)
        stage.end()


def _started(stage: KafkaStage, *, own_store: bool) -> None:
    stage.start_store(ours=own_store)
    stage.start_controller()
    stage.wait_controller(CONTROLLER_ID)
    for each in BROKERS:
        stage.start_broker(each, ours=False)
    stage.wait_registered(BROKERS)


def _whole(stage: KafkaStage, topic: str, partitions: int) -> bool:
    return all(
        len(stage.isr(topic, each)) == len(BROKERS) and stage.leader(topic, each) > 0
        for each in range(partitions)
    )


def _agree(stage: KafkaStage, measured: Measured, topic: str, partitions: int, when: str) -> None:
    """Every broker tells what the store holds, and so does Kafka's tool."""
    stage.wait(f"every partition of {topic} led, by all", lambda: _whole(stage, topic, partitions))
    for broker in BROKERS:
        stage.wait(f"broker {broker} that tells so", lambda each=broker: stage.tells(each, topic))  # type: ignore[misc]
    said = stage.topics("--describe", "--topic", topic)
    described = {int(found[1]): int(found[2]) for found in _LINE.finditer(said)}
    held = {each: stage.leader(topic, each) for each in range(partitions)}
    measured.demand(described == held, f"{when}: brokers, store and TopicCommand agree", described == held)


def _fail_over(stage: KafkaStage, measured: Measured, name: str) -> None:
    stage.topics("--create", "--topic", "t", "--partitions", "3", "--replication-factor", "3")
    _agree(stage, measured, "t", 3, f"{name}, created")
    leader = stage.leader("t")
    producer = stage.producer(JAVA, "t", RECORDS, stage.bootstrap(BROKERS))
    producer.wait_for(RECORDS // 4)
    killed_s = stage.kill(leader)
    stage.wait_led("t", leader)
    measured.note(f"{name}, kill until another leads", f"{time.monotonic() - killed_s:.2f} s")
    certain = producer.acknowledged()
    found = stage.committed("t", 3)
    lost = certain - set(found)
    measured.note(f"{name}, acknowledged", len(certain))
    measured.demand(bool(certain) and not lost, f"{name}, lost", len(lost))
    stage.start_broker(leader, ours=False)
    _agree(stage, measured, "t", 3, f"{name}, returned")


def _partitions(stage: KafkaStage, measured: Measured, name: str) -> None:
    stage.topics("--alter", "--topic", "t", "--partitions", "4")
    _agree(stage, measured, "t", 4, f"{name}, a partition added")
    measured.note(f"{name}, a move by ReassignPartitionsCommand", f"{_move(stage, measured, name):.1f} s")
    stage.topics("--delete", "--topic", "t")
    stage.wait("the topic's nodes gone", lambda: not stage.reader.children(paths.APACHE_TOPICS.at()))
    stage.wait("the topic's folders gone", lambda: not _left_of(stage, "t"))
    stage.wait("the wish gone", lambda: not stage.reader.children(paths.APACHE_TOPICS_DELETED.at()))
    is_ours = stage.reader.controller_id() == CONTROLLER_ID
    measured.demand(is_ours, f"{name}, ours is the controller to the end", is_ours)


def _move(stage: KafkaStage, measured: Measured, name: str) -> float:
    """A topic of one replica goes to another broker and takes a second one; how long it took, in s."""
    stage.make("m", "1")
    plan = stage.data / "plan.json"
    moves = [{"topic": "m", "partition": 0, "replicas": [3, 2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    began_s = time.monotonic()
    stage.tool(
        "kafka.admin.ReassignPartitionsCommand", "--zookeeper", stage.store,
        "--reassignment-json-file", str(plan), "--execute",
    )  # fmt: skip
    stage.wait("the move", lambda: stage.reader.data(paths.APACHE_REASSIGNMENTS.at()) is None)
    took_s = time.monotonic() - began_s
    seen = (stage.leader("m"), stage.isr("m"))
    measured.demand(seen == (3, {2, 3}), f"{name}, moved to", seen)
    stage.wait("the old folder gone", lambda: not (stage.folder(1) / "m-0").exists())
    stage.topics("--delete", "--topic", "m")
    return took_s


def _left_of(stage: KafkaStage, topic: str) -> list[Path]:
    return [found for each in BROKERS for found in stage.folder(each).glob(f"{topic}-*[0-9]")]
