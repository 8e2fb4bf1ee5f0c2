"""Messages sent to and read from topics of ours that are plain, of logical queues of RIP-21 and static, and
from such of Apache RocketMQ's. All brokers run side by side and are asked in turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.family import Bench, Effort, QueuePart, in_a_folder
from benchmarks.rocketmq.queues_asked import DEPTH, PULLED_MAX, Connection, MeasuredTopic, read, send
from benchmarks.rocketmq.queues_stage import (
    APACHE,
    admin,
    start_java,
    start_ours,
    wait_led,
    wait_logical,
)
from lab.cluster import CLUSTER_NAME, Cluster
from lab.processes import cpu_seconds
from lab.rocketmq.roles import OURS

PLAIN, BESIDE, LOGICAL, STATIC = "plain", "plain beside mapped", "LQ", "ST"
JAVA_PLAIN, JAVA_STATIC = "Java plain", "Java ST"
QUEUES: Final = 4
BROKER: Final = "broker-a"
# Of the messages of a round so many are sent one at a time, each of which waits for the disk.
ONE_IN: Final = 8
FIGURES = {
    "sent, one at a time": ("1/s", True),
    "sent, one at a time, p50": ("ms", False),
    "sent, one at a time, p99": ("ms", False),
    f"sent, {DEPTH} deep": ("1/s", True),
    "CPU of the broker per 10,000 sent so": ("s", False),
    f"read, {PULLED_MAX} a pull": ("1/s", True),
    "CPU of the broker per 1,000 pulls": ("s", False),
}


@dataclass(slots=True)
class _Column:
    who: str
    topic: MeasuredTopic
    connection: Connection
    pid: int


def measure(bench: Bench, effort: Effort) -> None:
    """All of them in turns, after one turn that does not count. Raises WrongResultError."""
    with ExitStack() as stack:
        columns = [each for made in (_alone, _mapped, _java) for each in stack.enter_context(made())]
        for each in columns:
            stack.callback(each.connection.close)
            _round(None, each, min(effort.messages, 2_000))
        for number in range(effort.rounds):
            # Who is asked first has no advantage in the long run.
            for each in columns if number % 2 == 0 else reversed(columns):
                _round(bench, each, effort.messages)


def _round(bench: Bench | None, column: _Column, count: int) -> None:
    begins = column.topic.ends()
    one = send(column.connection, column.topic, max(QUEUES, count // ONE_IN), is_deep=False)
    before_s = cpu_seconds(column.pid)
    deep = send(column.connection, column.topic, count, is_deep=True)
    sent_s = cpu_seconds(column.pid) - before_s
    rate = read(column.connection, column.topic, begins)
    read_s = cpu_seconds(column.pid) - before_s - sent_s
    if bench is None:
        return
    pulls = sum(
        -(-(end - begin) // PULLED_MAX) for begin, end in zip(begins, column.topic.ends(), strict=True)
    )
    seen = [one.per_second, one.p50_ms, one.p99_ms, deep.per_second]
    seen += [sent_s / count * 1e4, rate.per_second, read_s / pulls * 1e3]
    for figure, value in zip(FIGURES, seen, strict=True):
        bench.note(figure, column.who, value)


@contextmanager
def _alone() -> Iterator[list[_Column]]:
    """A broker of ours that maps nothing."""
    with in_a_folder("queues-plain") as cluster:
        start_ours(cluster, [BROKER])
        _make_plain(cluster, "Plain")
        yield [_column(cluster, PLAIN, MeasuredTopic("Plain", BROKER, QUEUES))]


@contextmanager
def _mapped() -> Iterator[list[_Column]]:
    """One that has topics of all three kinds."""
    with in_a_folder("queues-mapped") as cluster:
        start_ours(cluster, [BROKER])
        _make_plain(cluster, "Plain")
        made = ("-c", CLUSTER_NAME, "-r", str(QUEUES), "-w", str(QUEUES))
        admin(cluster, "updateTopic", "-t", "Logical", *made, "-lq", "true")
        wait_logical(cluster, "Logical", QUEUES)
        _make_static(cluster)
        yield [
            _column(cluster, BESIDE, MeasuredTopic("Plain", BROKER, QUEUES)),
            _column(cluster, LOGICAL, MeasuredTopic("Logical", BROKER, QUEUES, is_logical=True)),
            _column(cluster, STATIC, MeasuredTopic("Static", BROKER, QUEUES, is_static=True)),
        ]


@contextmanager
def _java() -> Iterator[list[_Column]]:
    """One of Apache's."""
    with in_a_folder("queues-java") as cluster:
        start_java(cluster, [BROKER])
        _make_plain(cluster, "Plain")
        _make_static(cluster)
        yield [
            _column(cluster, JAVA_PLAIN, MeasuredTopic("Plain", BROKER, QUEUES)),
            _column(cluster, JAVA_STATIC, MeasuredTopic("Static", BROKER, QUEUES, is_static=True)),
        ]


def _make_plain(cluster: Cluster, topic: str) -> None:
    queues = str(QUEUES)
    admin(cluster, "updateTopic", "-t", topic, "-c", CLUSTER_NAME, "-r", queues, "-w", queues)


def _make_static(cluster: Cluster) -> None:
    admin(cluster, "updateStaticTopic", "-t", "Static", "-qn", str(QUEUES), "-b", BROKER)
    wait_led(cluster, "Static", {BROKER: QUEUES})


def _column(cluster: Cluster, who: str, topic: MeasuredTopic) -> _Column:
    pid = cluster.processes[BROKER].pid
    return _Column(who, topic, Connection(cluster.port(BROKER)), pid)


PART = QueuePart(
    about="messages sent and read; both of ours are on the disk before they are acknowledged, Java's are not",
    columns=(PLAIN, BESIDE, LOGICAL, STATIC, JAVA_PLAIN, JAVA_STATIC),
    base=PLAIN,
    figures=FIGURES,
    measure=measure,
    subjects=(OURS, APACHE),
)
