"""Three brokers: what a client is acknowledged by all of them, and how fast a backlog is copied."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.family import FLOOR, Bench, WrongResultError, in_a_folder
from benchmarks.floor import floor
from benchmarks.kafka.fail_over import GENERATION, KAFKA, OURS
from benchmarks.kafka.stages import BenchStage, Spent
from lab import poll

BROKERS: Final = (1, 2, 3)
LEADER, REPLICA = 1, 3
RECORD_BYTES: Final = 1_000
TOPIC: Final = "t"
MAIN: Final = "org.apache.kafka.tools.ProducerPerformance"
SAID: Final = re.compile(r"([\d.]+) records/sec .*?([\d.]+) ms avg latency, ([\d.]+) ms max")
COPIED_S, POLL_S = 240.0, 0.005
SEGMENT_BYTES: Final = 128 << 20
FIGURES: Final = {
    "acks=all, three replicas: records": ("/s", True),
    "acks=all, three replicas: mean wait": ("ms", False),
    "acks=all, three replicas: CPU of all brokers": ("s", False),
    "acks=1, three replicas: records": ("/s", True),
    "backlog: copied": ("MB/s", True),
    "backlog: CPU of the leader": ("s/GB", False),
    "backlog: CPU of the replica": ("s/GB", False),
    "backlog: memory of the replica": ("MB", False),
}


def measure(bench: Bench, records: int, megabytes: int, rounds: int) -> None:
    """Both in turns, on our metastore. Raises WrongResultError."""
    for _ in range(rounds):
        for who in (OURS, KAFKA):
            with in_a_folder("copies") as cluster:
                _measure_one(bench, BenchStage(cluster, GENERATION, "copies"), who, records, megabytes)


def _measure_one(bench: Bench, stage: BenchStage, who: str, records: int, megabytes: int) -> None:
    stage.start_store(ours=True)
    for each in BROKERS:
        start(stage, each, who)
        stage.wait("a controller", stage.reader.controller_id)
    stage.wait_registered(BROKERS)
    stage.make_quietly(TOPIC, [BROKERS])
    # What is compiled and opened on first use is not measured.
    _send(stage, records // 10, "all")
    before = [Spent.of(stage, _name(each)).cpu_s for each in BROKERS]
    rate, wait_ms = _send(stage, records, "all")
    spent_s = sum(Spent.of(stage, _name(each)).cpu_s for each in BROKERS) - sum(before)
    bench.note("acks=all, three replicas: records", who, rate)
    bench.note("acks=all, three replicas: mean wait", who, wait_ms)
    bench.note("acks=all, three replicas: CPU of all brokers", who, spent_s)
    _backlog(bench, stage, who, megabytes)


def start(stage: BenchStage, broker: int, who: str) -> None:
    more: dict[str, object] = {"log.segment.bytes": SEGMENT_BYTES}
    if who == OURS:
        more["controllerCandidate"] = "true"
    stage.start_broker(broker, ours=who == OURS, least=1, more=more)


def _send(stage: BenchStage, records: int, acks: str) -> tuple[float, float]:
    """Records a second, and the mean wait for an answer in milliseconds. Raises WrongResultError."""
    said = stage.tool(
        *(MAIN, "--topic", TOPIC, "--num-records", str(records), "--record-size", str(RECORD_BYTES)),
        *("--throughput", "-1", "--producer-props", f"acks={acks}"),
        f"bootstrap.servers={stage.bootstrap(BROKERS)}",
    )
    found = SAID.findall(said)
    if not found or f"{records} records sent" not in said:
        raise WrongResultError(f"the producer says: {said[-300:]}")
    rate, wait_ms, _ = found[-1]
    return float(rate), float(wait_ms)


def _backlog(bench: Bench, stage: BenchStage, who: str, megabytes: int) -> None:
    """A replica is away while the leader takes so much."""
    stage.kill(REPLICA)
    stage.wait("an ISR without it", lambda: REPLICA not in stage.isr(TOPIC))
    rate, _ = _send(stage, megabytes * 10**6 // RECORD_BYTES, "1")
    bench.note("acks=1, three replicas: records", who, rate)
    leader = stage.leader(TOPIC)
    end = _size(stage.folder(leader))
    led = Spent.of(stage, _name(leader))
    start(stage, REPLICA, who)
    had, began_s, ended_s = _copied(stage, end)
    gigabytes = (end - had) / 1e9
    bench.note("backlog: copied", who, gigabytes * 1e3 / max(ended_s - began_s, POLL_S))
    replica = Spent.of(stage, _name(REPLICA))
    bench.note(
        "backlog: CPU of the leader", who, (Spent.of(stage, _name(leader)).cpu_s - led.cpu_s) / gigabytes
    )
    bench.note("backlog: CPU of the replica", who, replica.cpu_s / gigabytes)
    bench.note("backlog: memory of the replica", who, replica.peak_mb)
    stage.wait("equal logs", lambda: len(set(stage.logs(TOPIC, (leader, REPLICA)).values())) == 1)
    bench.note(FLOOR, who, floor(megabytes, stage.data))


def _copied(stage: BenchStage, end: int) -> tuple[int, float, float]:
    """How much the replica had, when it had more, and when it had everything."""
    folder = stage.folder(REPLICA)
    had = _size(folder)
    began_s: list[float] = []

    def whole() -> float | None:
        size, now_s = _size(folder), time.perf_counter()
        if size > had and not began_s:
            began_s.append(now_s)
        return now_s if size >= end else None

    ended_s = poll.until(whole, waiting_for="a whole copy", patience_s=COPIED_S, every_s=POLL_S)
    return had, began_s[0], ended_s


def _size(folder: Path) -> int:
    total = 0
    for each in (folder / f"{TOPIC}-0").glob("*.log"):
        with suppress(FileNotFoundError):
            total += each.stat().st_size
    return total


def _name(broker: int) -> str:
    return f"broker-{broker}"
