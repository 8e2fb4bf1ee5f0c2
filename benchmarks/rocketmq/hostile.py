"""A controller, a name server and two brokers of ours under attack, and a peer that behaves well beside it.

That one asks each role every 20 ms, one question at a time. What counts is the longest that it waited,
whether the set had to elect another master, and what the attacked process held at most.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from threading import Event, Thread
from typing import Any

from benchmarks.family import Attacked, in_a_folder
from benchmarks.rocketmq.hostile_attacks import ATTACKS, Attack, Targets
from lab.cluster import BROKER_NAME, Cluster
from lab.ports import LOOPBACK
from lab.rocketmq import settings
from lab.rocketmq.peer import Peer
from lab.rocketmq.questions import master
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import leading, wait_in_sync, wait_master
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import RequestCode

EACH_S = 0.02
PATIENCE_S = 20.0
SETTLES_S = 2.0
GROUP = ("controller", "controller-2", "controller-3")
OF_GROUPS = ("waves",)
MISSED = ("leader lost", "member not reached", "broker lost")
QUESTIONS = {
    "broker": RequestCode.GET_BROKER_CONFIG,
    "nameserver": RequestCode.GET_BROKER_CLUSTER_INFO,
    "controller": RequestCode.CONTROLLER_GET_METADATA_INFO,
}


@dataclass(slots=True)
class Prober:
    """Asks one role again and again until it is told to stop."""

    role: str
    port: int
    worst_ms: float = 0.0
    ends: Event = field(default_factory=Event)

    def run(self) -> None:
        """Ask."""
        while not self.ends.is_set():
            begun_s = time.monotonic()
            try:
                with Peer(LOOPBACK, self.port) as peer:
                    while not self.ends.wait(EACH_S):
                        begun_s = time.monotonic()
                        peer.ask(QUESTIONS[self.role])
                        self._note(begun_s)
            except (OSError, RemoteProtocolError):
                # The answer did not come in time: that is how long it takes at least.
                self._note(begun_s)

    def _note(self, begun_s: float) -> None:
        self.worst_ms = max(self.worst_ms, 1_000 * (time.monotonic() - begun_s))


def measure(names: Sequence[str], seconds: float) -> Iterator[Attacked]:
    """Each of these attacks on a cluster of its own. Raises LabError when a role does not live through it."""
    for name in names:
        with in_a_folder(f"hostile-{name}") as cluster:
            yield _attacked(cluster, name, ATTACKS[name], seconds)


def _attacked(cluster: Cluster, name: str, attack: Attack, seconds: float) -> Attacked:
    cluster.start(OURS, "nameserver", "nameserver", settings.nameserver(cluster))
    group = GROUP if name in OF_GROUPS else GROUP[:1]
    peers = ";".join(f"n{number}-{cluster.address(each)}" for number, each in enumerate(group, 1))
    for number, member in enumerate(group, 1):
        named = {"controllerDLegerPeers": peers, "controllerDLegerSelfId": f"n{number}"}
        cluster.start(OURS, "controller", member, settings.controller(cluster, member, **named))
    leads = cluster.until(lambda: leading(cluster, group), "a leader of the controllers")
    for broker in ("broker-1", "broker-2"):
        known = ";".join(map(cluster.address, group))
        cluster.start(OURS, "broker", broker, settings.broker(cluster, broker, controllerAddr=known))
        first = wait_master(cluster, controller=leads)
    wait_in_sync(cluster, (1, 2), controller=leads)
    targets = Targets(
        cluster.port("broker-1"),
        cluster.ha_port("broker-1"),
        cluster.port("nameserver"),
        cluster.port(leads),
        tuple(map(cluster.port, group)),
    )
    told = _told(cluster, group)
    roles = {"broker": "broker-1", "controller": leads}
    attacked = cluster.processes[roles.get(attack.role, attack.role)].pid
    seen = Attacked(name, attack.what, before_mb=_resident_mb(attacked))
    probers = [Prober(role, getattr(targets, role)) for role in QUESTIONS]
    threads = [Thread(target=each.run, daemon=True) for each in probers]
    counted: Any = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(
        target=_carry_out, args=(name, targets, seconds, counted), daemon=True
    )
    process.start()
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + seconds + PATIENCE_S
    while process.is_alive() and time.monotonic() < until_s:
        seen.most_mb = max(seen.most_mb, _resident_mb(attacked))
        time.sleep(0.05)
    process.kill()
    process.join()
    time.sleep(SETTLES_S)
    for each, thread in zip(probers, threads, strict=True):
        each.ends.set()
        thread.join()
        seen.worst_ms[each.role] = each.worst_ms
    seen.count = _taken(counted)
    cluster.until(lambda: master(cluster.port(leads), BROKER_NAME), "the controller to answer")
    after = master(cluster.port(leads), BROKER_NAME)
    seen.elections = (0 if after is None else after.epoch - first.epoch) + _told(cluster, group) - told
    return seen


def _told(cluster: Cluster, group: Sequence[str]) -> int:
    """How often controllers have said that they miss their leader, another member or a broker."""
    logs = (cluster.part("log") / f"{each}.out" for each in group)
    return sum(log.read_text().count(f'"{what}"') for log in logs for what in MISSED)


def _carry_out(name: str, targets: Targets, seconds: float, counted: Any) -> None:
    counted.put(ATTACKS[name].run(targets, seconds))


def _taken(counted: Any) -> int:
    try:
        return int(counted.get(timeout=1.0))
    except Empty:
        return 0


def _resident_mb(pid: int) -> float:
    """What a process holds itself now, without the files that it maps."""
    status = Path(f"/proc/{pid}/status").read_text()
    anonymous = next((line for line in status.splitlines() if line.startswith("RssAnon:")), "RssAnon: 0")
    return int(anonymous.split()[1]) * 1024 / 10**6
