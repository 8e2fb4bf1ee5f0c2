"""Controllers and broker sets of ours and of Apache RocketMQ, measured in turns.

Requests: controllers run side by side, with TLS and without, and are asked in turns. Replication: a master
with a backlog feeds a peer that only counts, then a new replica; then it is killed.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.family import FLOOR, SEALED, Bench, in_a_folder
from benchmarks.floor import floor
from benchmarks.rocketmq import roles_replication as replication
from benchmarks.rocketmq import roles_requests as requests
from lab.certificates import Authority
from lab.cluster import BROKER_NAME, Cluster
from lab.processes import cpu_seconds, usage
from lab.rocketmq import settings
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop.secrets import SealedApache
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
# Of all sides, those that copy a log.
COPIED = (0, 1, 2)
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


@dataclass(frozen=True, slots=True)
class Side:
    """What is measured: a subject in the clear or with TLS. `served`: parameters of its controller; `copied`:
    of a cluster whose processes dial with TLS, and answer the lab, which asks them in the clear, too; `seal`:
    how the lab asks a controller, and a master for its log."""

    who: str
    subject: Subject
    served: settings.Settings = field(default_factory=dict)
    copied: settings.Settings = field(default_factory=dict)
    seal: ssl.SSLContext | None = None


def sides(folder: Path) -> Sequence[Side]:
    """Ours and theirs in the clear, then both with TLS, their certificates in this folder."""
    authority = Authority(folder)
    files = authority.issue("server")
    seal = ssl.create_default_context(cafile=authority.trust)
    shown = {"tls.server.certPath": files.certificate, "tls.server.keyPath": files.key}
    dialled = {"tls.enable": "true", "tls.client.trustCertPath": authority.trust}
    java = SealedApache(
        APACHE.release,
        (
            *("-Dtls.test.mode.enable=false", "-Dtls.server.mode=enforcing"),
            *(f"-D{name}={value}" for name, value in shown.items()),
        ),
    )
    return (
        *(Side(subject.name, subject) for subject in SUBJECTS),
        Side(
            OURS.name + SEALED,
            OURS,
            served={**shown, "tls.server.mode": "ENFORCING"},
            copied={**shown, **dialled, "tls.server.mode": "PERMISSIVE"},
            seal=seal,
        ),
        Side(APACHE.name + SEALED, java, seal=seal),
    )


def measure_requests(bench: Bench, rounds: int, seconds: float) -> None:
    """Four controllers, in turns: ours and theirs, in the clear and with TLS."""
    with in_a_folder("controllers") as cluster:
        found = sides(cluster.part("conf"))
        for side in found:
            values = settings.controller(cluster, side.who, **side.served)
            cluster.start(side.subject, "controller", side.who, values)
        sets = {side.who: _broker_set(cluster, side) for side in found}
        for _ in range(rounds):
            for who, members in sets.items():
                _one_round(bench, cluster, who, members, seconds)
        for who, members in sets.items():
            members.close()
            memory = max(each.peak_mb for each in usage(cluster.processes[who].pid))
            bench.note("controller, peak memory", who, memory)


def _broker_set(cluster: Cluster, side: Side) -> requests.MeasuredSet:
    port = cluster.port(side.who)

    def leads() -> bool:
        return replicas(port, BROKER_NAME, seal=side.seal) is None

    cluster.until(leads, f"the controller of {side.who}")
    return requests.MeasuredSet(port, requests.SET, side.seal)


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
        seal=members.seal,
    )
    bench.note(f"1004, {DEPTH} deep", who, ask.per_second)
    used = cpu_seconds(pid) - before
    bench.note("CPU per 10,000 answers", who, used / (ask.per_second * seconds) * 1e4)
    beat = requests.pipelined(
        port,
        RequestCode.BROKER_HEARTBEAT,
        members.heartbeat(2),
        depth=DEPTH,
        seconds=seconds,
        seal=members.seal,
    )
    bench.note(f"904, {DEPTH} deep", who, beat.per_second)


def measure_replication(bench: Bench, rounds: int, megabytes: int) -> None:
    """Broker sets one after the other, ours in the clear and with TLS, which Java's replication has not; and
    the floor."""
    for _ in range(rounds):
        for number in COPIED:
            with in_a_folder("broker-set") as cluster:
                _replicate(bench, cluster, sides(cluster.part("conf"))[number], megabytes)
        with tempfile.TemporaryDirectory(prefix="replispec-bench-floor-") as folder:
            bench.note(FLOOR, OURS.name, floor(megabytes, Path(folder)))


def _replicate(bench: Bench, cluster: Cluster, side: Side, megabytes: int) -> None:
    who, subject = side.who, side.subject
    cluster.start(subject, "nameserver", "nameserver", {**settings.nameserver(cluster), **side.copied})
    cluster.start(subject, "controller", "controller", {**settings.controller(cluster), **side.copied})
    _start_broker(cluster, side, "broker-1")
    master = wait_master(cluster)
    cluster.until(lambda: routed(cluster.port("nameserver"), BROKER_NAME).get(0), "a route to the master")
    end = replication.fill(master.address, TOPIC, megabytes)
    feeding = cluster.processes["broker-1"].pid
    to_a_sink = replication.to_a_sink(cluster.ha_port("broker-1"), end, side.seal)
    bench.note("master to a bare sink", who, to_a_sink)
    before = cpu_seconds(feeding)
    _start_broker(cluster, side, "broker-2")
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


def _start_broker(cluster: Cluster, side: Side, name: str) -> None:
    more = {"mappedFileSizeCommitLog": LOG_FILE_BYTES, "maxMessageSize": 4_194_304, **side.copied}
    cluster.start(side.subject, "broker", name, settings.broker(cluster, name, **more))
