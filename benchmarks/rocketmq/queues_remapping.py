"""A static topic of many queues moved to other brokers, by the command of ours and by mqadmin in turns: on
three brokers of Apache RocketMQ's, and on three of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final

from benchmarks.family import Bench, Effort, QueuePart, WrongResultError, in_a_folder
from benchmarks.rocketmq.queues_stage import APACHE, Ran, admin, route, run, start_java, start_ours, wait_led
from lab.cluster import Cluster
from lab.rocketmq.interop.tools import FAILED
from lab.rocketmq.roles import OURS

OWN, JAVAS = "ours", "mqadmin"
TOPIC: Final = "Static"
QUEUES: Final = 64
BROKERS: Final = ("broker-a", "broker-b", "broker-c")
KINDS: Final = {"Java's brokers": start_java, "ours": start_ours}
FIGURES = {
    f"{what} on {kind}, {figure}": ("s", False)
    for kind in KINDS
    for what in ("half of the queues moved", "the route printed")
    for figure in ("by the clock", "CPU of the command")
}
Command = Callable[..., Ran]


def measure(bench: Bench, effort: Effort) -> None:
    """Half of the queues move each time. Raises WrongResultError when they are not where they were sent."""
    for kind, start in KINDS.items():
        with in_a_folder("queues-remapping") as cluster:
            start(cluster, BROKERS)
            admin(cluster, "updateStaticTopic", "-t", TOPIC, "-qn", str(QUEUES), "-b", ",".join(BROKERS[:2]))
            _wait(cluster, BROKERS[:2])
            targets = cycle([BROKERS[1:], BROKERS[:2]])
            for number in range(effort.rounds):
                commands = [(OWN, admin), (JAVAS, _mqadmin)]
                for who, command in commands if number % 2 == 0 else reversed(commands):
                    _round(bench, cluster, kind, who, command, next(targets))


def _round(bench: Bench, cluster: Cluster, kind: str, who: str, command: Command, to: Sequence[str]) -> None:
    before = placed(cluster)
    moved = command(cluster, "remappingStaticTopic", "-t", TOPIC, "-b", ",".join(to))
    _wait(cluster, to)
    judge_moved(before, placed(cluster), to)
    told = command(cluster, "topicRoute", "-t", TOPIC)
    for what, ran in (("half of the queues moved", moved), ("the route printed", told)):
        bench.note(f"{what} on {kind}, by the clock", who, ran.wall_s)
        bench.note(f"{what} on {kind}, CPU of the command", who, ran.cpu_s)


def _wait(cluster: Cluster, to: Sequence[str]) -> None:
    wait_led(cluster, TOPIC, dict.fromkeys(to, QUEUES // len(to)))


def _mqadmin(cluster: Cluster, *words: str) -> Ran:
    """Raises WrongResultError where it failed, for its exit code does not say so."""
    option = f"-Drocketmq.namesrv.addr={cluster.address('nameserver')}"
    start = APACHE.java(cluster, "mqadmin", option)
    ran = run(cluster, *start, "org.apache.rocketmq.tools.command.MQAdminStartup", *words)
    if FAILED in ran.complaint:
        raise WrongResultError(f"mqadmin {words[0]}: {ran.complaint.strip()[-400:]}")
    return ran


def placed(cluster: Cluster) -> Mapping[int, str]:
    """Who leads each logical queue."""
    found = route(cluster, TOPIC)
    by_broker = {} if found is None else found.topic_queue_mapping_by_broker or {}
    newest = max((each.epoch or 0 for each in by_broker.values()), default=0)
    led = ((each.curr_id_map or {}, name) for name, each in by_broker.items() if each.epoch == newest)
    return {index: name for queues, name in led for index in queues}


def judge_moved(before: Mapping[int, str], after: Mapping[int, str], to: Sequence[str]) -> None:
    """Raises WrongResultError unless all queues are led by those brokers, and no more moved than had to."""
    if sorted(after) != list(range(QUEUES)) or set(after.values()) != set(to):
        raise WrongResultError(f"{len(after)} queues are led by {sorted(set(after.values()))}, not by {to}")
    moved = sum(before[index] != after[index] for index in after)
    if moved != QUEUES // len(to):
        raise WrongResultError(f"{moved} queues moved, not {QUEUES // len(to)}")


PART = QueuePart(
    about=f"{QUEUES} queues of a static topic, half of which a command moves to another broker",
    columns=(OWN, JAVAS),
    base=JAVAS,
    figures=FIGURES,
    measure=measure,
    subjects=(OURS, APACHE),
)
