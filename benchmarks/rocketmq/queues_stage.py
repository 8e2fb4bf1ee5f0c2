"""Clusters on which mapped queues are measured: each broker a set of its own, ours or Apache RocketMQ's, and
what is asked of them with commands and over the wire."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from lab.cluster import Cluster
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.processes import environment
from lab.rocketmq import questions, settings
from lab.rocketmq.apache import Apache
from lab.rocketmq.peer import Peer
from lab.rocketmq.roles import OURS
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag

APACHE: Final = Apache("5.4.0")
LOG_FILE_BYTES: Final = 64 << 20
COMMAND_S: Final = 120
# So that Java's refuse no message because a busy machine let it wait.
PATIENT: Final[settings.Settings] = {
    "waitTimeMillsInSendQueue": 60_000,
    "osPageCacheBusyTimeOutMills": 60_000,
}
CLI: Final = (sys.executable, "-P", "-m", "replispec.cli")


def start_ours(cluster: Cluster, brokers: Sequence[str]) -> None:
    """Name server and controller in one process, and masters that are alone in their sets, on the disk before
    they acknowledge."""
    values = {**settings.controller(cluster), **settings.nameserver(cluster)}
    values |= {"enableControllerInNamesrv": "true"}
    cluster.start(OURS, "nameserver", "nameserver", values)
    for name in brokers:
        more = {"brokerName": name, "mappedFileSizeCommitLog": LOG_FILE_BYTES}
        cluster.start(OURS, "broker", name, settings.broker(cluster, name, **more))
    _wait(cluster, brokers)


def start_java(cluster: Cluster, brokers: Sequence[str]) -> None:
    """Apache's name server and masters without a controller, which acknowledge before the disk has it."""
    cluster.start(APACHE, "nameserver", "nameserver", settings.nameserver(cluster))
    for name in brokers:
        more = {"brokerName": name, "brokerId": 0, "mappedFileSizeCommitLog": LOG_FILE_BYTES, **PATIENT}
        more |= {"enableControllerMode": "false", "allAckInSyncStateSet": "false"}
        cluster.start(APACHE, "broker", name, settings.broker(cluster, name, **more))
    _wait(cluster, brokers)


def _wait(cluster: Cluster, brokers: Sequence[str]) -> None:
    port = cluster.port("nameserver")
    for name in brokers:
        cluster.until(partial(_routed, port, name), f"a route to {name}")


def _routed(port: int, name: str) -> str | None:
    return questions.routed(port, name).get(0)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended with exit code 0: what it complained of, seconds of the clock and of CPU."""

    complaint: str
    wall_s: float
    cpu_s: float


def run(cluster: Cluster, *command: str) -> Ran:
    """Run a program to its end. Raises LabError where its exit code is not 0."""
    before, began_s = _children_s(), time.perf_counter()
    done = subprocess.run(
        command, env=variables(cluster), capture_output=True, text=True, timeout=COMMAND_S, check=False
    )
    ran = Ran(done.stderr, time.perf_counter() - began_s, _children_s() - before)
    if done.returncode:
        raise LabError(f"{' '.join(command[-6:])}: {done.stderr.strip()[-400:]}")
    return ran


def admin(cluster: Cluster, *words: str) -> Ran:
    """Run a command of ours. Raises LabError where it is refused."""
    return run(cluster, *CLI, "admin", *words)


def variables(cluster: Cluster) -> Mapping[str, str]:
    """What a command is told of the cluster."""
    return environment(NAMESRV_ADDR=cluster.address("nameserver"), TMPDIR=str(cluster.part("tmp")))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def route(cluster: Cluster, topic: str, *, is_logical: bool = False) -> TopicRouteData | None:
    """What the name server tells of a topic, to who knows logical queues or not; None where it refuses."""
    flags = RouteFlag.LOGICAL_QUEUE if is_logical else None
    header = GetRouteInfoRequest(topic, sys_flag=flags)
    with Peer(LOOPBACK, cluster.port("nameserver")) as peer:
        answer = peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    is_told = answer.header.code == ResponseCode.SUCCESS
    return TopicRouteData.decode(answer.body) if is_told else None


def wait_logical(cluster: Cluster, topic: str, queues: int) -> None:
    """Wait until the name server tells so many logical queues of RIP-21."""

    def reached() -> bool | None:
        found = route(cluster, topic, is_logical=True)
        return (found is not None and len(found.logical_queues_info or ()) == queues) or None

    cluster.until(reached, f"{queues} logical queues of {topic}")


def led(cluster: Cluster, topic: str) -> Mapping[str, int]:
    """How many logical queues of a static topic each broker leads, of those that know the newest mapping."""
    found = route(cluster, topic)
    by_broker = {} if found is None else found.topic_queue_mapping_by_broker or {}
    newest = max((each.epoch or 0 for each in by_broker.values()), default=0)
    told = {name: each.curr_id_map or {} for name, each in by_broker.items() if each.epoch == newest}
    return {name: len(queues) for name, queues in told.items() if queues}


def wait_led(cluster: Cluster, topic: str, wanted: Mapping[str, int]) -> None:
    """Wait until the name server knows that these brokers lead so many logical queues each."""
    cluster.until(lambda: led(cluster, topic) == wanted or None, f"logical queues of {topic} led by {wanted}")
