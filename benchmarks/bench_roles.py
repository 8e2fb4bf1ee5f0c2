"""Our roles against Apache RocketMQ's, in turns, in one run: requests, replication, fail-over, their cost.

Requests: two controllers run side by side and are asked in turns. Replication: a master with a backlog
feeds a peer that only counts, then a new replica; then it is killed. A file that is sent over loopback into
another file is the floor. The result is a table and out/bench/roles.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import roles_replication as replication
from benchmarks import roles_requests as requests
from lab import settings
from lab.cluster import BROKER_NAME, Cluster
from lab.errors import LabError
from lab.processes import cpu_seconds, usage
from lab.questions import replicas, routed
from lab.subjects.apache import Apache
from lab.subjects.ours import OURS
from lab.subjects.subject import Subject
from lab.waiting import wait_in_sync, wait_master
from replispec.wire.rocketmq.codes import RequestCode

OUT = Path(__file__).parents[1] / "out/bench"
RELEASE = "5.4.0"
APACHE = Apache(RELEASE)
SUBJECTS: tuple[Subject, ...] = (OURS, APACHE)
TOPIC = "BenchTopic"
FLOOR = "floor"
DEPTH = 64
INTERRUPTED = 130
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
Seen = dict[str, dict[str, list[float]]]


class Bench:
    """What was seen: by figure and by implementation."""

    def __init__(self) -> None:
        self.seen: Seen = defaultdict(lambda: defaultdict(list))

    def note(self, figure: str, who: str, value: float) -> None:
        """Keep one measurement, and show it."""
        assert figure in FIGURES or figure == FLOOR, figure
        self.seen[figure][who].append(value)
        print(f"  {who:<12} {figure}: {value:,.3f}", file=sys.stderr, flush=True)


def main() -> int:
    """Exit code 3 when Apache RocketMQ cannot be had, 1 when a cluster does not do what it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of requests")
    parser.add_argument("--megabytes", type=int, default=512, help="the backlog")
    parser.add_argument("--only", choices=("requests", "replication"), help="one half")
    arguments = parser.parse_args()
    bench = Bench()
    load = os.getloadavg()[0]
    try:
        APACHE.fetch()
        if arguments.only != "replication":
            _measure_requests(bench, arguments.rounds, arguments.seconds)
        if arguments.only != "requests":
            _measure_replication(bench, arguments.rounds, arguments.megabytes)
    except LabError as error:
        print(f"bench-roles: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-roles: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "roles.json").write_text(json.dumps({"load": load, "seen": bench.seen}, indent=1) + "\n")
    print("\n".join(_table(bench, load)))
    return 0


@contextmanager
def _cluster(what: str) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix=f"replispec-bench-{what}-"))
    try:
        with Cluster(folder) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure_requests(bench: Bench, rounds: int, seconds: float) -> None:
    with _cluster("controllers") as cluster:
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


def _measure_replication(bench: Bench, rounds: int, megabytes: int) -> None:
    for _ in range(rounds):
        for subject in SUBJECTS:
            with _cluster(subject.name) as cluster:
                _replicate(bench, cluster, subject, megabytes)
        with tempfile.TemporaryDirectory(prefix="replispec-bench-floor-") as folder:
            bench.note(FLOOR, OURS.name, replication.floor(megabytes, Path(folder)))


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


def _table(bench: Bench, load: float) -> Sequence[str]:
    """Medians, and ours as a ratio to Java's."""
    lines = [
        f"Medians; Apache RocketMQ {RELEASE}; load {load:.1f} before.",
        "",
        "| figure | unit | ours | Java | ours / Java |",
        "| --- | --- | --- | --- | --- |",
    ]
    for figure, (unit, _) in FIGURES.items():
        values = bench.seen.get(figure)
        if values and values[OURS.name] and values[APACHE.name]:
            ours, java = (statistics.median(values[each.name]) for each in SUBJECTS)
            lines.append(f"| {figure} | {unit} | {ours:,.3g} | {java:,.3g} | {ours / java:.2f} |")
    if bench.seen[FLOOR][OURS.name]:
        floor = statistics.median(bench.seen[FLOOR][OURS.name])
        lines.append(f"| a file over loopback into a file | MB/s | {floor:,.0f} | | |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
