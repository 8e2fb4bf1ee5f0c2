"""A queue read over many borders, by the client of ours: the same messages in a plain queue, in a logical
queue of RIP-21 and in a static topic, which moved from broker to broker while they were sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, pairwise
from typing import Any, Final

from benchmarks.family import Bench, Effort, QueuePart, WrongResultError, in_a_folder
from benchmarks.rocketmq.queues_stage import admin, start_ours, wait_led, wait_logical
from lab.cluster import CLUSTER_NAME, Cluster
from lab.processes import cpu_seconds
from lab.rocketmq.roles import OURS
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import restated
from replispec.administrator.rocketmq.node import AdministratorNode
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.administrator.rocketmq.remapping import remapped
from replispec.administrator.rocketmq.static_topics import carried_out, known
from replispec.runtime.net.visit_shell import visit
from replispec.runtime.rocketmq.client import (
    ClientQueue,
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)

PLAIN, LOGICAL, STATIC = "plain", "LQ", "ST"
BROKERS: Final = ("broker-a", "broker-b")
BORDERS: Final = 20
BODY_BYTES: Final = 100
IDLE_MS: Final = 10_000
TOPICS: Final = {PLAIN: "Plain", LOGICAL: "Logical", STATIC: "Static"}
FIGURES = {
    "read": ("1/s", True),
    "CPU of the client per 10,000 messages": ("s", False),
    "CPU of both brokers per 10,000 messages": ("s", False),
}


def measure(bench: Bench, effort: Effort) -> None:
    """In turns, after one that does not count. Raises WrongResultError."""
    each = max(1, effort.messages // (BORDERS + 1))
    with in_a_folder("queues-borders") as cluster:
        start_ours(cluster, BROKERS)
        _make(cluster)
        for who in TOPICS:
            _fill(cluster, who, each)
        count = each * (BORDERS + 1)
        for who in TOPICS:
            _read(cluster, who, count)
        for number in range(effort.rounds):
            for who in TOPICS if number % 2 == 0 else reversed(TOPICS):
                for figure, value in zip(FIGURES, _read(cluster, who, count), strict=True):
                    bench.note(figure, who, value)


def _make(cluster: Cluster) -> None:
    at = cluster.address(BROKERS[0])
    admin(cluster, "updateTopic", "-t", TOPICS[PLAIN], "-b", at, "-r", "1", "-w", "1")
    admin(cluster, "updateTopic", "-t", TOPICS[LOGICAL], "-b", at, "-r", "1", "-w", "1")
    admin(cluster, "updateTopicLogicalQueueMapping", "-t", TOPICS[LOGICAL], "-c", CLUSTER_NAME)
    wait_logical(cluster, TOPICS[LOGICAL], 1)
    admin(cluster, "updateStaticTopic", "-t", TOPICS[STATIC], "-qn", "1", "-b", BROKERS[0])
    wait_led(cluster, TOPICS[STATIC], {BROKERS[0]: 1})


def _fill(cluster: Cluster, who: str, each: int) -> None:
    """As many messages between two borders."""
    targets = cycle(reversed(BROKERS))
    for number in range(BORDERS + 1):
        if number and who != PLAIN:
            _move(cluster, who, next(targets))
        _send(cluster, who, range(number * each, (number + 1) * each))


def _move(cluster: Cluster, who: str, target: str) -> None:
    servers = (cluster.address("nameserver"),)
    plan: Callable[[], Plan[Any]] = partial(_moved, servers, TOPICS[who], target)
    if who == STATIC:
        plan = partial(_remapped, servers, TOPICS[who], target)

    def attempt() -> bool | None:
        node = AdministratorNode(plan())
        visit(node)
        try:
            node.result()
        except NotAsWantedError:
            # A name server does not know yet what was set just now.
            return None
        return True

    cluster.until(attempt, f"{TOPICS[who]} at {target}")


def _moved(servers: Sequence[str], topic: str, target: str) -> Plan[None]:
    yield from moved(servers, topic, 0, target)
    yield from restated(servers, topic, time.time_ns() // 1_000_000)


def _remapped(servers: Sequence[str], topic: str, target: str) -> Plan[None]:
    found = yield from known(servers, topic)
    run = remapped(found.topic, [target], found.every([target]), time.time_ns() // 1_000_000)
    yield from carried_out(run, found.brokers)


def _send(cluster: Cluster, who: str, numbers: Sequence[int]) -> None:
    failed: list[str] = []

    def heard(_number: int, came: Stored | Failed, _now_ms: int) -> None:
        if isinstance(came, Failed):
            failed.append(str(came))

    messages = (MessageToSend(TOPICS[who], body_of(each)) for each in numbers)
    visit(ProducerNode((cluster.address("nameserver"),), messages, heard, group="bench-queues"))
    if failed:
        raise WrongResultError(
            f"{who}: {len(failed)} of {len(numbers)} messages were not stored: {failed[0]}"
        )


def body_of(number: int) -> bytes:
    """A message that is told from all others."""
    return str(number).encode().ljust(BODY_BYTES)


@dataclass(slots=True)
class Heard:
    """What a consumer was given, and when the first and the last of it."""

    messages: list[ReadMessage] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def heard(self, message: ReadMessage, _now_ms: int) -> None:
        """One message came."""
        self.messages.append(message)
        self.times.append(time.perf_counter())

    def troubled(self, _queue: ClientQueue, _failure: Failed) -> None:
        """It is tried again, which costs time."""


def _read(cluster: Cluster, who: str, count: int) -> tuple[float, float, float]:
    pids = [cluster.processes[name].pid for name in BROKERS]
    heard = Heard()
    reading = Reading(TOPICS[who], count=count, idle_ms=IDLE_MS)
    servers = (cluster.address("nameserver"),)
    node = ConsumerNode(servers, reading, heard.heard, heard.troubled, name="bench-queues")
    brokers_s, client_s = sum(map(cpu_seconds, pids)), time.process_time()
    visit(node)
    client_s = time.process_time() - client_s
    brokers_s = sum(map(cpu_seconds, pids)) - brokers_s
    judge_read(who, heard.messages, count)
    rate = (count - 1) / (heard.times[-1] - heard.times[0])
    return rate, client_s / count * 1e4, brokers_s / count * 1e4


def judge_read(who: str, messages: Sequence[ReadMessage], count: int) -> None:
    """Raises WrongResultError unless each message came once, in its order, from one queue, and, where offsets
    do not jump, without a hole."""
    if len(messages) != count:
        raise WrongResultError(f"{who}: {len(messages)} of {count} messages were read")
    for number, each in enumerate(messages):
        if each.body != body_of(number):
            raise WrongResultError(f"{who}: {each.body[:12]!r} was read in the place of {number}")
    offsets = [each.offset for each in messages]
    if len({each.queue for each in messages}) != 1 or offsets != sorted(set(offsets)):
        raise WrongResultError(f"{who}: more than one queue, or offsets that do not grow")
    jumps = sum(two - one > 1 for one, two in pairwise(offsets))
    wanted = BORDERS if who == STATIC else 0
    if jumps != wanted:
        raise WrongResultError(f"{who}: {jumps} jumps of offsets, not {wanted}")


PART = QueuePart(
    about=f"one queue read over {BORDERS} borders by the client of ours, one pull at a time",
    columns=tuple(TOPICS),
    base=PLAIN,
    figures=FIGURES,
    measure=measure,
    subjects=(OURS,),
)
