"""Our learner behind a real Kafka: it is killed under a producer that waits for all of the ISR.

    VENV/bin/python -m lab.kafka.learned LIBS OUT

`LIBS` holds the jars of kafka_2.13 and kafka-tools 2.8.2. Our controller, our metastore, three real brokers
on 127.0.0.1, a topic of three partitions; the learner is killed twice (`kill -9`) and a leader once while the
producer works. What is exported is what was acknowledged, none twice. Prints a line of JSON; exit code 1 with
the first thing that is not as demanded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.kafka.controlled import (
    EACH_SECOND,
    MESSAGES,
    ControlledCluster,
    acknowledged,
    cluster_of,
    consumed,
    produce,
    wait,
)

TOPIC = "t"
PARTITIONS = 3
KILLS = 2


def start_learner(cluster: ControlledCluster) -> None:
    """Ours, on its folder."""
    cluster.ours(
        "learner",
        {
            "bootstrap.servers": cluster.bootstrap,
            "topics": TOPIC,
            "exportFolder": cluster.work / "learned",
        },
    )


def exported(cluster: ControlledCluster) -> list[dict[str, Any]]:
    """The lines of the export."""
    file = cluster.work / "learned" / "export.jsonl"
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def play(cluster: ControlledCluster) -> dict[str, object]:
    """Everything, in order. Raises LabError."""
    cluster.topics("--create", "--topic", TOPIC, "--partitions", str(PARTITIONS), "--replication-factor", "3")
    cluster.agree(TOPIC, PARTITIONS)
    start_learner(cluster)
    producer = produce(cluster, TOPIC)
    assert producer.stdout is not None
    producer.stdout.readline()
    before: list[int] = []
    for number in range(KILLS):
        time.sleep(MESSAGES / EACH_SECOND / (KILLS + 2))
        wait("an export that grows", lambda: len(exported(cluster)) > (before[-1] if before else 0))
        cluster.kill("learner")
        before.append(len(exported(cluster)))
        if number == 0:
            record = cluster.reader.record(TOPIC, 0)
            assert record is not None
            cluster.kill(f"broker-{record.leader}")
        start_learner(cluster)
    certain = acknowledged(producer)
    read = consumed(cluster, TOPIC, PARTITIONS)
    wait("all that is committed in the export", lambda: len(exported(cluster)) >= len(read))
    lines = exported(cluster)
    places = Counter((each["partition"], each["offset"]) for each in lines)
    values = Counter(each["value"] for each in lines)
    twice = [place for place, count in places.items() if count > 1]
    missing = certain - set(values)
    if twice or missing or values != Counter(read) or not certain:
        raise LabError(f"{len(twice)} twice, {len(missing)} missing, {len(lines)} of {len(read)} committed")
    return {
        "acknowledged": len(certain), "committed": len(read), "exported": len(lines),
        "exported_at_the_kills": before, "twice": 0, "missing": 0,
    }  # fmt: skip


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
        print(f"learned: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"store": arguments.store, "generation": arguments.generation, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
