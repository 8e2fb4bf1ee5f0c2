"""From the end of a broker's session to the last command: thousands of partitions get another leader.

Two sinks have every partition; the first leads all, and its session ends. What the controller wrote is told
by the nodes' times, what it commanded by the other sink.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.family import Bench, WrongResultError, in_a_folder
from benchmarks.kafka.sessions import StoreSession
from benchmarks.kafka.sinks import Sink, TakenCommand
from benchmarks.kafka.stages import BenchStage, Spent
from lab.errors import LabError
from replispec.wire.kafka import paths
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.kafka.constants import TOPIC_NODE_VERSION
from replispec.wire.kafka.nodes import ApachePartitionStateNode, ApacheTopicNode, BrokerIds
from replispec.wire.zookeeper.codes import OpCode
from replispec.wire.zookeeper.operations import GetDataRequest, GetDataResponse

FIRST, SECOND, REAL = 7, 8, 0
OF_A_TOPIC: Final = 1_000
MADE_S, MOVED_S, POLL_S, KEEP_S, QUIET_S = 300.0, 180.0, 0.01, 3.0, 0.5
GENERATION: Final = "1.0"
OURS, KAFKA, ZOOKEEPER = "ours", "kafka", "zookeeper"
WHO: Final = tuple((who, store) for store in (ZOOKEEPER, OURS) for who in (OURS, KAFKA))
"""Whose controller on whose store."""
PHASES: Final = ("first write", "last write", "first command", "last command")
PARENTS: Final = (
    *("/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics"),
    "/isr_change_notification",
)


def figures(counts: Sequence[int]) -> dict[str, tuple[str, bool]]:
    """What is measured, with its unit and whether more is better."""
    found = {}
    for count in counts:
        for phase in PHASES:
            found[f"{count:,} partitions: {phase}"] = ("s", False)
        for what in ("controller's CPU", "store's CPU"):
            found[f"{count:,} partitions: {what}"] = ("s", False)
        for what in ("controller's memory", "store's memory"):
            found[f"{count:,} partitions: {what}"] = ("MB", False)
    return found


def measure(bench: Bench, counts: Sequence[int], rounds: int) -> None:
    """In turns. Raises WrongResultError."""
    for _ in range(rounds):
        for count in counts:
            for who, store in WHO:
                with in_a_folder("fail-over") as cluster:
                    stage = BenchStage(cluster, GENERATION, "fail-over")
                    measure_one(bench, stage, f"{who} on {store}", count)


def measure_one(bench: Bench, stage: BenchStage, name: str, count: int) -> None:
    """One fail-over, by WHO on STORE. Raises WrongResultError."""
    who, _, store = name.partition(" on ")
    stage.start_store(ours=store == OURS)
    with closing(StoreSession(stage.port("store"))) as session, ExitStack() as ending:
        for path in PARENTS:
            session.make(path)
        controller = _start_controller(stage, ours=who == OURS)
        sinks = [Sink(each, stage.port(f"sink-{each}"), stage.port("store")) for each in (FIRST, SECOND)]
        for each in sinks:
            ending.callback(each.close)
        run = _Run([session, *(each.session for each in sinks)])
        stage.wait("two sinks that are commanded", lambda: all(each.taken for each in sinks))
        _make_topics(session, count)
        run.until("leaders", MADE_S, lambda: sinks[1].named() >= count)
        run.quiet(sinks[1])
        if set(_led(sinks[1].taken).values()) != {FIRST}:
            raise WrongResultError(f"{name}: the first sink does not lead everything")
        sinks[1].taken.clear()
        before = {each: Spent.of(stage, each) for each in (controller, "store")}
        began_s = time.time()
        run.sessions.remove(sinks[0].session)
        sinks[0].session.close()
        run.until("other leaders", MOVED_S, lambda: sinks[1].named() >= count)
        run.quiet(sinks[1])
        note = partial(_note, bench, name, count)
        for what, process in (("controller", controller), ("store", "store")):
            after = Spent.of(stage, process)
            note(f"{what}'s CPU", after.cpu_s - before[process].cpu_s)
            note(f"{what}'s memory", after.peak_mb)
        told = commands(sinks[1].taken, name, count)
        writes = _writes(session, name, count)
        times = (min(writes), max(writes), min(told), max(told))
        for phase, at_s in zip(PHASES, times, strict=True):
            note(phase, at_s - began_s)


def _note(bench: Bench, name: str, count: int, what: str, value: float) -> None:
    bench.note(f"{count:,} partitions: {what}", name, value)


def _start_controller(stage: BenchStage, *, ours: bool) -> str:
    if ours:
        stage.start_controller()
        stage.wait("a controller", stage.reader.controller_id)
        return "controller"
    stage.start_broker(REAL, ours=False)
    stage.wait("a controller", lambda: stage.reader.controller_id() == REAL)
    return f"broker-{REAL}"


def _make_topics(session: StoreSession, count: int) -> None:
    for first in range(0, count, OF_A_TOPIC):
        numbers = range(min(OF_A_TOPIC, count - first))
        node = ApacheTopicNode(
            {str(each): BrokerIds([FIRST, SECOND]) for each in numbers}, version=TOPIC_NODE_VERSION
        )
        session.make(paths.APACHE_TOPIC.at(topic=_topic(first)), node.encode())


def _topic(number: int) -> str:
    return f"t{number // OF_A_TOPIC}"


def _led(taken: Sequence[TakenCommand]) -> dict[tuple[str, int], int]:
    led: dict[tuple[str, int], int] = {}
    for each in taken:
        if each.key == ApiKey.LEADER_AND_ISR:
            led |= each.led()
    return led


def commands(taken: Sequence[TakenCommand], name: str, count: int) -> list[float]:
    """When each LeaderAndIsr was there that leads partitions elsewhere. Raises WrongResultError."""
    led = _led(taken)
    if len(led) != count or {*led.values()} != {SECOND}:
        raise WrongResultError(
            f"{name}: {len(led)} of {count} partitions are led, by {sorted({*led.values()})}"
        )
    return [each.at_s for each in taken if each.key == ApiKey.LEADER_AND_ISR]


def _writes(session: StoreSession, name: str, count: int) -> list[float]:
    """When each record was written. Raises WrongResultError."""
    asked = [
        (
            OpCode.GET_DATA,
            GetDataRequest(
                paths.APACHE_STATE.at(topic=_topic(each), partition=each % OF_A_TOPIC), False
            ).encode(),
        )
        for each in range(count)
    ]
    found = []
    for answer in session.ask_all(asked):
        read = GetDataResponse.decode(answer.body)
        record = ApachePartitionStateNode.decode(read.data or b"")
        if (record.leader, record.isr) != (SECOND, [SECOND]):
            raise WrongResultError(f"{name}: a record names {record.leader} and {record.isr}")
        found.append(read.stat.mtime / 1_000)
    return found


@dataclass(slots=True)
class _Run:
    """Waits, and keeps sessions meanwhile."""

    sessions: list[StoreSession]
    kept_s: float = 0.0

    def until(self, what: str, patience_s: float, done: Callable[[], bool]) -> None:
        """Wait for something. Raises LabError."""
        until_s = time.monotonic() + patience_s
        while not done():
            if time.monotonic() > until_s:
                raise LabError(f"{what}: not within {patience_s:.0f} s")
            self._keep()
            time.sleep(POLL_S)

    def quiet(self, sink: Sink) -> None:
        """Wait until nothing more comes."""
        seen = -1
        while seen != len(sink.taken):
            seen = len(sink.taken)
            self._keep()
            time.sleep(QUIET_S)

    def _keep(self) -> None:
        if time.monotonic() - self.kept_s > KEEP_S:
            self.kept_s = time.monotonic()
            for each in self.sessions:
                each.keep()
