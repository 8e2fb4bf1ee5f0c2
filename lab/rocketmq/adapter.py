"""Any subject of the lab as an adapter of a conformance suite starts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError, UsageError
from lab.ports import LOOPBACK
from lab.rocketmq import settings
from lab.rocketmq.serving import BROKER, CONTROLLER, NAMESERVER, SCAN_INTERVAL_MS
from lab.subjects.subject import Subject
from replispec.adapter.v1.messages import EndpointPurpose, Role, Start
from replispec.runtime.adapting.adapter_shell import CannotStartError, Ports

REMOTING, REPLICATION = EndpointPurpose.REMOTING, EndpointPurpose.REPLICATION
ROLES: Mapping[int, str] = {
    Role.CONTROLLER: CONTROLLER,
    Role.NAME_SERVER: NAMESERVER,
    Role.BROKER: BROKER,
    Role.ASYNC_LEARNER: BROKER,
}
# Java's brokers listen two below their port as well, whatever they are told.
BELOW = -2
# The word after a subject's name by which its brokers are masters without a controller.
UNCONTROLLED = "uncontrolled"


class LabPrograms:
    """One subject of the lab."""

    language = "java"
    distances: Mapping[int, int] = {Role.BROKER: BELOW, Role.ASYNC_LEARNER: BELOW}
    roles: Mapping[int, Sequence[int]] = {
        Role.CONTROLLER: (REMOTING,),
        Role.NAME_SERVER: (REMOTING,),
        Role.BROKER: (REMOTING, REPLICATION),
        Role.ASYNC_LEARNER: (REMOTING, REPLICATION),
    }

    def __init__(self, subject: Subject, words: Sequence[str] = ()) -> None:
        self.implementation = subject.implementation
        self.release = subject.release
        self._subject = subject
        if strange := [each for each in words if each != UNCONTROLLED]:
            raise UsageError(f"{strange[0]!r} is not {UNCONTROLLED}")
        self._uncontrolled = bool(words)

    def command(self, start: Start, ports: Ports, folder: Path) -> Sequence[str]:
        """The lab's command with what the runner named; every instance has a cluster folder of its own."""
        role = ROLES[start.role]
        try:
            with Cluster(folder / "data") as cluster:
                values = {**_settings(cluster, role), **_named(start, ports), **start.settings}
                if self._uncontrolled and role == BROKER:
                    values |= {"enableControllerMode": "false", "brokerId": 0}
                return self._subject.command(cluster, role, role, values)
        except LabError as fault:
            raise CannotStartError(str(fault)) from None


def _settings(cluster: Cluster, role: str) -> settings.Settings:
    match role:
        case "nameserver":
            return settings.nameserver(cluster)
        case "controller":
            return settings.controller(cluster, role, scanNotActiveBrokerInterval=SCAN_INTERVAL_MS)
        case _:
            return settings.broker(cluster, role)


def _named(start: Start, ports: Ports) -> settings.Settings:
    """What differs from the lab's own settings."""
    found: settings.Settings = {"listenPort": ports[REMOTING]}
    if start.role == Role.CONTROLLER:
        group = start.controllers or [f"{LOOPBACK}:{ports[REMOTING]}"]
        found["controllerDLegerPeers"] = ";".join(f"n{at}-{each}" for at, each in enumerate(group))
        found["controllerDLegerSelfId"] = f"n{start.member or 0}"
    if start.role in (Role.BROKER, Role.ASYNC_LEARNER):
        found |= {
            "asyncLearner": str(start.role == Role.ASYNC_LEARNER).lower(),
            "haListenPort": ports[REPLICATION],
            "controllerAddr": ";".join(start.controllers),
            "namesrvAddr": ";".join(start.name_servers),
            "allAckInSyncStateSet": "false",
        }
        if start.cluster_name:
            found["brokerClusterName"] = start.cluster_name
        if start.broker_name:
            found["brokerName"] = start.broker_name
    return found
