"""A leader that ends with records that nobody else has: real, then ours, then real, in both ways to cut."""

from __future__ import annotations

from typing import Final

from lab.cluster import Cluster
from lab.family import Rounds
from lab.interop.measured import LOST, Measured, Row
from lab.kafka.stage import LIBRARIES, KafkaStage

CONTROLLER, REAL, OURS = 3, 1, 2
GENERATIONS: Final = ("0.11.0-IV1", "1.0", "2.2")
TAIL: Final = 20
TOPIC: Final = "t"
LIBRARY: Final = LIBRARIES[0]


def play(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:  # noqa: ARG001
    """Each generation on a store of its own."""
    measured.excuses.append(_alone)
    for generation in GENERATIONS:
        stage = KafkaStage(cluster, generation, f"tails-{generation}")
        stage.start_store(ours=False)
        stage.start_broker(CONTROLLER, ours=False, least=1)
        stage.wait_controller(CONTROLLER)
        for each in (REAL, OURS):
            stage.start_broker(each, ours=each == OURS, least=1)
        stage.wait_registered((REAL, OURS, CONTROLLER))
        stage.make(TOPIC, f"{REAL}:{OURS}")
        kept = _write(stage, "before", 2, REAL)
        for number, (leader, other) in enumerate(((REAL, OURS), (OURS, REAL)), 1):
            kept |= _tail(stage, measured, f"{generation}, tail {number}", leader, other)
        found = stage.committed(TOPIC)
        lost = kept - set(found)
        measured.demand(not lost, f"{generation}: lost of {len(kept)} that both had", len(lost))
        stage.end()


def _alone(rule: str, row: Row) -> str | None:
    """What a leader acknowledged alone is written to be lost."""
    is_tail = rule == LOST and row.get("topic") == TOPIC
    return "acknowledged with acks of 1 by a leader whose follower stood still" if is_tail else None


def _tail(stage: KafkaStage, measured: Measured, name: str, leader: int, other: int) -> set[str]:
    """Have a leader acknowledge alone, end, and come back behind the other one; what both have then."""
    stage.wait(f"{leader} leading", lambda: stage.leader(TOPIC) == leader)
    _level(stage)
    stage.cluster.pause(f"broker-{other}")
    # An answer that was on its way when the other one was stopped may bring it the first of these.
    tail = _write(stage, f"tail of {leader}", TAIL, leader)
    stage.kill(leader)
    stage.cluster.resume(f"broker-{other}")
    stage.wait_led(TOPIC, leader)
    certain = _write(stage, f"after {leader}", 5, other)
    stage.start_broker(leader, ours=leader == OURS, least=1)
    stage.wait("an ISR of both", lambda: stage.isr(TOPIC) == {REAL, OURS})
    certain |= _write(stage, f"with {leader} again", 5, other, acks="all")
    _level(stage)
    gone = tail - set(stage.committed(TOPIC))
    who = "the real one" if leader == REAL else "ours"
    measured.demand(len(gone) > 0, f"{name}: {who} has cut of {len(tail)} of its own", len(gone))
    return certain


def _level(stage: KafkaStage) -> None:
    """Wait until both have the same, byte for byte."""
    stage.wait("two equal logs", lambda: len(set(stage.logs(TOPIC, (REAL, OURS)).values())) == 1)


def _write(stage: KafkaStage, prefix: str, count: int, broker: int, acks: str = "1") -> set[str]:
    """Have a client write; what it was acknowledged."""
    producer = stage.producer(LIBRARY, TOPIC, count, stage.bootstrap([broker]), acks, prefix)
    return producer.acknowledged()
