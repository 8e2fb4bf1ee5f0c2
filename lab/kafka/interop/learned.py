"""Our learner behind real brokers: it is killed, and so is a leader, while a producer works."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from lab.cluster import Cluster
from lab.family import Rounds
from lab.interop.measured import Measured
from lab.kafka.programs import OUR_ROLES
from lab.kafka.stage import JAVA, KafkaStage

BROKERS: Final = (1, 2, 3)
PARTITIONS: Final = 3
RECORDS: Final = 1_500
KILLS: Final = 2
TOPIC: Final = "t"


def play(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:  # noqa: ARG001
    """What is exported is what is committed, each record once."""
    stage = KafkaStage(cluster, "2.2", "learned")
    stage.start_store(ours=False)
    for each in BROKERS:
        stage.start_broker(each, ours=False)
    stage.wait_registered(BROKERS)
    stage.topics("--create", "--topic", TOPIC, "--partitions", str(PARTITIONS), "--replication-factor", "3")
    stage.wait("all in sync", lambda: all(len(stage.isr(TOPIC, each)) == 3 for each in range(PARTITIONS)))
    _start(stage)
    producer = stage.producer(JAVA, TOPIC, RECORDS, stage.bootstrap(BROKERS))
    before = [0]
    for number in range(KILLS):
        producer.wait_for((number + 1) * RECORDS // (KILLS + 2))
        stage.wait("an export that grows", lambda: len(_exported(stage)) > before[-1])
        cluster.kill("learner")
        before.append(len(_exported(stage)))
        if number == 0:
            stage.kill(stage.leader(TOPIC))
        _start(stage)
    certain = producer.acknowledged()
    committed = stage.committed(TOPIC, PARTITIONS)
    stage.wait("all that is committed in the export", lambda: len(_exported(stage)) >= len(committed))
    lines = _exported(stage)
    places = Counter((each["partition"], each["offset"]) for each in lines)
    measured.note("exported when the learner was killed", before[1:])
    measured.note("acknowledged, committed, exported", (len(certain), len(committed), len(lines)))
    twice = sum(count > 1 for count in places.values())
    measured.demand(not twice, "places that are exported twice", twice)
    missing = len(certain - {each["value"] for each in lines})
    measured.demand(bool(certain) and not missing, "acknowledged and not exported", missing)
    same = Counter(each["value"] for each in lines) == Counter(committed)
    measured.demand(same, "the export is what is committed", same)
    stage.end()


def _start(stage: KafkaStage) -> None:
    settings = {
        "bootstrap.servers": stage.bootstrap(BROKERS), "topics": TOPIC,
        "exportFolder": stage.data / "learned",
    }  # fmt: skip
    stage.cluster.start(OUR_ROLES, "learner", "learner", settings)


def _exported(stage: KafkaStage) -> list[dict[str, Any]]:
    file = stage.data / "learned" / "export.jsonl"
    # The last line may be on its way.
    whole, _, _ = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
    return [json.loads(line) for line in whole.splitlines()]
