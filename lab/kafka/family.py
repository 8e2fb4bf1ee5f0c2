"""What the lab asks of Kafka's replication."""

from __future__ import annotations

from lab.cluster import Cluster
from lab.family import Demo, Interop, LabFamily
from lab.kafka import demo
from lab.kafka.interop.scenarios import SCENARIOS
from lab.kafka.programs import KAFKA, fetch
from lab.kafka.stage import CONTROLLER_ID, KafkaStage
from lab.kafka.subjects import subjects


def smoke(cluster: Cluster) -> str:
    """A controller of ours is elected on a metastore of ours."""
    stage = KafkaStage(cluster, "1.0", "smoke")
    stage.start_store(ours=True)
    stage.start_controller()
    stage.wait_controller(CONTROLLER_ID)
    return "a controller is elected on a metastore"


FAMILY = LabFamily(
    subjects=subjects,
    smoke=smoke,
    demo=Demo(demo.play, is_replayed=False),
    interop=Interop(f"Apache Kafka {KAFKA.release}", fetch, SCENARIOS),
)
