"""A folder of logs changes hands: ours wrote it and Kafka goes on with it, and the other way round."""

from __future__ import annotations

from typing import Final

from lab.cluster import Cluster
from lab.family import Rounds
from lab.interop.measured import Measured
from lab.kafka.stage import JAVA, LIBRARIES, KafkaStage

CONTROLLER, BROKER = 2, 1
RECORDS: Final = 200
TOPIC: Final = "t"
LIBRARY: Final = LIBRARIES[0]


def play(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:  # noqa: ARG001
    """Ours, real, ours, real; each ends in order but the last two, which are killed."""
    stage = KafkaStage(cluster, "1.0", "handed")
    stage.start_store(ours=False)
    stage.start_broker(CONTROLLER, ours=False, least=1)
    stage.wait_controller(CONTROLLER)
    written: list[str] = []
    for turn, (ours, ends_in_order) in enumerate(
        ((True, True), (False, True), (True, False), (False, False))
    ):
        stage.start_broker(BROKER, ours=ours, least=1)
        stage.wait_registered((BROKER, CONTROLLER))
        if not turn:
            stage.make(TOPIC, str(BROKER))
        stage.wait("a leader", lambda: stage.leader(TOPIC) == BROKER and stage.tells(BROKER, TOPIC))
        who = f"{'ours' if ours else 'the real one'}, turn {turn + 1}"
        found = stage.committed(TOPIC)
        measured.demand(found == written, f"{who}: found as written, records", len(found))
        producer = stage.producer(LIBRARY, TOPIC, RECORDS, stage.bootstrap([BROKER]), "all", f"turn{turn}")
        certain = producer.acknowledged()
        measured.demand(len(certain) == RECORDS, f"{who}: acknowledged", len(certain))
        written = stage.committed(TOPIC)
        seen = stage.consumed(JAVA, TOPIC, stage.bootstrap([BROKER]), len(written))
        measured.demand(seen == written, f"{who}: read by Java", len(seen))
        if ends_in_order:
            stage.stop(f"broker-{BROKER}")
        else:
            stage.kill(BROKER)
        stage.wait_registered((CONTROLLER,))
    stage.end()
