"""Controllers and broker sets of ours and of Apache RocketMQ, measured in turns.

Requests: two controllers run side by side and are asked in turns. Replication: a master with a backlog
feeds a peer that only counts, then a new replica; then it is killed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.family import FLOOR, Bench, in_a_folder
from benchmarks.floor import floor
from benchmarks.rocketmq import roles_replication as replication
from benchmarks.rocketmq import roles_requests as requests
from lab.cluster import BROKER_NAME, Cluster
from lab.processes import cpu_seconds, usage
from lab.rocketmq import settings
from lab.rocketmq.apache import Apache
from lab.rocketmq.questions import replicas, routed
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import wait_in_sync, wait_master
from lab.subjects.subject import Subject
from replispec.wire.rocketmq.codes import RequestCode

APACHE = Apache("5.4.0")
SUBJECTS: tuple[Subject, ...] = (OURS, APACHE)
TOPIC = "BenchTopic"
DEPTH = 64
LOG_FILE_BYTES = 128 * 1024 * 1024
# Name of each figure, its unit, and whether more is better.
FIGURES = {
    "1001, one at a time": ("1/s", True),
    "1001, p50": ("ms", False),
    "1001, p99": ("ms", False),
    f"1004, {DEPTH} deep": ("1/s", True),
    f"904, {DEPTH} deep": ("1/s", True),
    "CPU per 10,000 answers": ("s", False),
    "controller, peak memory": ("MB", False),
    "master to a bare sink": ("MB/s", True),
    "backlog to a replica": ("MB/s", True),
    "CPU of the master per GB": ("s", False),
    "CPU of the replica per GB": ("s", False),
    "replica, peak memory": ("MB", False),
    "kill -9 to a new master named": ("s", False),
    "kill -9 to a new master that knows": ("s", False),
}


def measure_requests(bench: Bench, rounds: int, seconds: float) -> None:
    """Both controllers, in turns."""
    with in_a_folder("controllers") as cluster:
        for subject in SUBJECTS:
            values = settings.controller(cluster, subject.name)
            cluster.start(subject, "controller", subject.name, values)
        sets = {subject.name: _broker_set(cluster, subject.name) for subject in SUBJECTS}
        for _ in range(rounds):
            for who, members in sets.items():
                _one_round(bench, cluster, who, members, seconds)
        for who, members in sets.items():
            members.close()
            memory = max(each.peak_mb for each in usage(cluster.processes[who].pid))
            bench.note("controller, peak memory", who, memory)


def _broker_set(cluster: Cluster, who: str) -> requests.MeasuredSet:
    port = cluster.port(who)

    def leads() -> bool:
        return replicas(port, BROKER_NAME) is None

    cluster.until(leads, f"the controller of {who}")
    return requests.MeasuredSet(port, requests.SET)


def _one_round(
    bench: Bench, cluster: Cluster, who: str, members: requests.MeasuredSet, seconds: float
) -> None:
    port, pid = cluster.port(who), cluster.processes[who].pid
    members.live()
    rate = requests.one_at_a_time(members, seconds)
    bench.note("1001, one at a time", who, rate.per_second)
    bench.note("1001, p50", who, rate.p50_ms)
    bench.note("1001, p99", who, rate.p99_ms)
    before = cpu_seconds(pid)
    ask = requests.pipelined(
        port,
        RequestCode.CONTROLLER_GET_REPLICA_INFO,
        requests.question(),
        depth=DEPTH,
        seconds=seconds,
    )
    bench.note(f"1004, {DEPTH} deep", who, ask.per_second)
    used = cpu_seconds(pid) - before
    bench.note("CPU per 10,000 answers", who, used / (ask.per_second * seconds) * 1e4)
    beat = requests.pipelined(
        port, RequestCode.BROKER_HEARTBEAT, members.heartbeat(2), depth=DEPTH, seconds=seconds
    )
    bench.note(f"904, {DEPTH} deep", who, beat.per_second)


def measure_replication(bench: Bench, rounds: int, megabytes: int) -> None:
    """Both broker sets, one after the other, and the floor."""
    for _ in range(rounds):
        for subject in SUBJECTS:
            with in_a_folder(subject.name) as cluster:
                _replicate(bench, cluster, subject, megabytes)
        with tempfile.TemporaryDirectory(prefix="replispec-bench-floor-") as folder:
            bench.note(FLOOR, OURS.name, floor(megabytes, Path(folder)))


def _replicate(bench: Bench, cluster: Cluster, subject: Subject, megabytes: int) -> None:
    who = subject.name
    cluster.start(subject, "nameserver", "nameserver", settings.nameserver(cluster))
    cluster.start(subject, "controller", "controller", settings.controller(cluster))
    _start_broker(cluster, subject, "broker-1")
    master = wait_master(cluster)
    cluster.until(lambda: routed(cluster.port("nameserver"), BROKER_NAME).get(0), "a route to the master")
    end = replication.fill(master.address, TOPIC, megabytes)
    feeding = cluster.processes["broker-1"].pid
    bench.note("master to a bare sink", who, replication.to_a_sink(cluster.ha_port("broker-1"), end))
    before = cpu_seconds(feeding)
    _start_broker(cluster, subject, "broker-2")
    rate = replication.copied(cluster, "broker-2", end)
    copying = cluster.processes["broker-2"].pid
    bench.note("backlog to a replica", who, rate)
    bench.note("CPU of the master per GB", who, (cpu_seconds(feeding) - before) / megabytes * 1000)
    bench.note("CPU of the replica per GB", who, cpu_seconds(copying) / megabytes * 1000)
    bench.note("replica, peak memory", who, max(each.peak_mb for each in usage(copying)))
    wait_in_sync(cluster, (1, 2))
    named, known = replication.switched(cluster, "broker-1", "broker-2", cluster.port("controller"))
    bench.note("kill -9 to a new master named", who, named)
    bench.note("kill -9 to a new master that knows", who, known)


def _start_broker(cluster: Cluster, subject: Subject, name: str) -> None:
    values = settings.broker(cluster, name, mappedFileSizeCommitLog=LOG_FILE_BYTES, maxMessageSize=4_194_304)
    cluster.start(subject, "broker", name, values)
