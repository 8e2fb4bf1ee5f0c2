"""Clusters that are measured: each program as it is run for work, not with the small heaps of the lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from lab.cluster import Cluster
from lab.kafka.programs import Kafka
from lab.kafka.stage import KafkaStage
from lab.processes import usage
from lab.zookeeper.subjects import ZooKeeper

JVM: Final = ("-Xms512m", "-Xmx1g", "-XX:-UsePerfData")
KAFKA: Final = Kafka("2.8.2", JVM)
ZOOKEEPER: Final = ZooKeeper("3.5.9", JVM)
TICK_MS: Final = 3_000
"""Sessions may be kept for a minute."""


class BenchStage(KafkaStage):
    """See `KafkaStage`."""

    kafka = KAFKA
    zookeeper = ZOOKEEPER
    tick_ms = TICK_MS

    def __init__(self, cluster: Cluster, generation: str, label: str) -> None:
        super().__init__(cluster, generation, label)

    def port(self, name: str) -> int:
        """See `Cluster.port`."""
        return self.cluster.port(name)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used: CPU seconds so far, and the most memory in MB."""

    cpu_s: float
    peak_mb: float

    @classmethod
    def of(cls, stage: KafkaStage, name: str) -> Self:
        """Of a process of the cluster."""
        used = usage(stage.cluster.processes[name].pid)
        return cls(sum(each.cpu_s for each in used), max(each.peak_mb for each in used))
