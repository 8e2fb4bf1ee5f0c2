"""Two of our brokers and a real one under the real controller: four clients, and each broker is killed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Final

from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import Rounds
from lab.interop.measured import Measured
from lab.kafka.stage import JAVA, LIBRARIES, KafkaStage

CONTROLLER, REAL, OURS = 4, 1, (2, 3)
BROKERS: Final = (REAL, *OURS)
ORDER: Final = f"{OURS[0]}:{REAL}:{OURS[1]}"
RECORDS: Final = 600
KILLED_AFTER: Final = 150
TOPIC: Final = "t"


def play(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:  # noqa: ARG001
    """With epochs; a real broker that has no replica is the controller, so that it is never killed."""
    stage = KafkaStage(cluster, "1.0", "mixed")
    stage.start_store(ours=False)
    stage.start_broker(CONTROLLER, ours=False)
    stage.wait_controller(CONTROLLER)
    for each in BROKERS:
        stage.start_broker(each, ours=each in OURS)
    stage.wait_registered((*BROKERS, CONTROLLER))
    stage.make(TOPIC, ORDER)
    certain: dict[str, set[str]] = {}
    for library, killed in zip((JAVA, *LIBRARIES), (OURS[0], REAL, OURS[1], 0), strict=True):
        # The last one is whoever leads then.
        certain[library] = _produce(stage, measured, library, killed or stage.leader(TOPIC))
    _read_by_all(stage, measured, certain)
    stage.wait("no more records", lambda: len(set(_digests(stage, BROKERS))) == 1)
    stage.end()
    measured.demand(len(set(_digests(stage, BROKERS))) == 1, "three logs with one SHA-256", True)


def _produce(stage: KafkaStage, measured: Measured, library: str, killed: int) -> set[str]:
    """What was acknowledged to a client while a broker was killed, and came back."""
    who = f"{library}, {'ours' if killed in OURS else 'the real one'} ({killed}) killed"
    producer = stage.producer(library, TOPIC, RECORDS, stage.bootstrap(BROKERS))
    producer.wait_for(KILLED_AFTER)
    led = stage.leader(TOPIC) == killed
    killed_s = stage.kill(killed)
    if led:
        stage.wait_led(TOPIC, killed)
        measured.note(f"{who}, until another leads", f"{time.monotonic() - killed_s:.2f} s")
    stage.wait(f"an ISR without {killed}", lambda: killed not in stage.isr(TOPIC))
    stage.start_broker(killed, ours=killed in OURS)
    certain = producer.acknowledged()
    stage.wait("an ISR of three", lambda: stage.isr(TOPIC) == set(BROKERS))
    measured.demand(len(certain) > RECORDS // 2, f"{who}, acknowledged of {RECORDS}", len(certain))
    return certain


def _read_by_all(stage: KafkaStage, measured: Measured, certain: dict[str, set[str]]) -> None:
    everything = stage.committed(TOPIC)
    every = set().union(*certain.values())
    measured.demand(every <= set(everything), "acknowledged and lost", len(every - set(everything)))
    measured.note("committed", f"{len(everything)}, {len(set(everything))} different ones")
    for library in (JAVA, *LIBRARIES):
        found = stage.consumed(library, TOPIC, stage.bootstrap(OURS), len(everything))
        if found != everything:
            raise LabError(f"{library} read {len(found)} records, not the {len(everything)} in their order")
        measured.note(f"read by {library}", len(found))


def _digests(stage: KafkaStage, brokers: Iterable[int]) -> list[str]:
    return [hashlib.sha256(each).hexdigest() for each in stage.logs(TOPIC, brokers).values()]
