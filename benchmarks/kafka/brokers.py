"""The end of one of three brokers that lead a thousand partitions, until clients are told who does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from typing import Final

from benchmarks.family import Bench, in_a_folder
from benchmarks.kafka.copies import BROKERS, TOPIC, start
from benchmarks.kafka.fail_over import GENERATION, KAFKA, OURS
from benchmarks.kafka.stages import BenchStage, Spent
from lab.processes import terminate
from replispec.wire.kafka import paths

ENDED: Final = 2
"""Not the first one, which is the controller."""
TOLD: Final = "{count:,} partitions on three brokers: told after the session's end"
SPENT: Final = "{count:,} partitions on three brokers: CPU of the two others"


def figures(partitions: int) -> dict[str, tuple[str, bool]]:
    """What is measured, with its unit and whether more is better."""
    return {each.format(count=partitions): ("s", False) for each in (TOLD, SPENT)}


def measure(bench: Bench, partitions: int, rounds: int) -> None:
    """Both in turns, on our metastore; a third of the partitions has another leader. Raises LabError."""
    for _ in range(rounds):
        for who in (OURS, KAFKA):
            with in_a_folder("brokers") as cluster:
                measure_one(bench, BenchStage(cluster, GENERATION, "brokers"), who, partitions)


def measure_one(bench: Bench, stage: BenchStage, who: str, partitions: int) -> None:
    """One broker ends. Raises LabError."""
    stage.start_store(ours=True)
    for each in BROKERS:
        start(stage, each, who)
        stage.wait("a controller", stage.reader.controller_id)
    stage.wait_registered(BROKERS)
    turns = [BROKERS[at:] + BROKERS[:at] for at in range(len(BROKERS))]
    stage.make_quietly(TOPIC, [turns[number % len(turns)] for number in range(partitions)])
    others = [each for each in BROKERS if each != ENDED]
    before = _spent(stage, others)
    # Its session ends before its process does, by far where that is Java's.
    ended = stage.cluster.processes.pop(f"broker-{ENDED}")
    os.kill(ended.pid, signal.SIGTERM)
    path = paths.APACHE_BROKERS.at()
    stage.wait("a session that ended", lambda: str(ENDED) not in stage.reader.children(path))
    ended_s = time.monotonic()
    stage.wait("other leaders", lambda: all(_is_led(stage, each, partitions) for each in others))
    bench.note(TOLD.format(count=partitions), who, time.monotonic() - ended_s)
    bench.note(SPENT.format(count=partitions), who, _spent(stage, others) - before)
    terminate([ended])


def _is_led(stage: BenchStage, broker: int, partitions: int) -> bool:
    told = stage.told(broker, TOPIC)
    return len(told) == partitions and not {ENDED, -1, None} & {leader for leader, _ in told.values()}


def _spent(stage: BenchStage, brokers: Iterable[int]) -> float:
    return sum(Spent.of(stage, f"broker-{each}").cpu_s for each in brokers)
