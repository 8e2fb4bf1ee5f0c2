"""A subject as the suite judges it: a controller alone, or a master with its controller and name server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings
from lab.rocketmq.peer import Peer
from lab.subjects.subject import Subject
from replispec.wire.rocketmq.codes import ResponseCode

CONTROLLER, NAMESERVER, BROKER = "controller", "nameserver", "broker"
# A machine under load needs minutes; that a process has ended is seen at once.
START_S_MAXIMUM = 300.0
RESTARTS_MAXIMUM = 8
# What the master's log holds when it is ready: enough to need several transfers in each epoch.
EPOCHS = 3
MESSAGES_PER_EPOCH, MESSAGE_BYTES = 150, 400
TOPIC = "ReplispecHistory"
# Default 5000 ms. A heartbeat that stopped is noticed at the next scan, so cases about expiry wait for it.
SCAN_INTERVAL_MS = 1000


def serve(cluster: Cluster, subject: Subject, kind: str) -> dict[str, object]:
    """Start what does not run yet, wait until it serves, and give what a user of it must know: whose it is,
    its addresses, its processes, and what a master says of itself.

    Raises LabError and OSError.
    """
    if subject.kinds[kind] == CONTROLLER:
        _start_controller(cluster, subject)
        ready: Mapping[str, object] = {"target": cluster.address(CONTROLLER)}
    else:
        start_master(cluster, subject)
        _write_history(cluster, subject)
        ready = _describe_master(cluster)
    return {
        "kind": kind,
        "implementation": subject.implementation,
        "release": subject.release,
        "speaks": subject.speaks,
        **ready,
        "pids": [process.pid for process in cluster.processes.values()],
    }


def start_master(cluster: Cluster, subject: Subject) -> None:
    """Start what does not run yet of name server, controller and master. Raises LabError and OSError."""
    _start(cluster, subject, NAMESERVER, settings.nameserver(cluster))
    _start_controller(cluster, subject)
    _start_broker(cluster, subject)


def _start(cluster: Cluster, subject: Subject, role: str, values: Settings) -> None:
    if role not in cluster.processes:
        cluster.start(subject, role, role, values)


def _start_controller(cluster: Cluster, subject: Subject) -> None:
    values = settings.controller(cluster, scanNotActiveBrokerInterval=SCAN_INTERVAL_MS)
    _start(cluster, subject, CONTROLLER, values)
    cluster.until(
        partial(questions.controller_serves, cluster.port(CONTROLLER)),
        "a controller that leads",
        patience_s=START_S_MAXIMUM,
    )


def _start_broker(cluster: Cluster, subject: Subject) -> None:
    # The suite asks what a master does with the defaults.
    _start(cluster, subject, BROKER, settings.broker(cluster, BROKER, allAckInSyncStateSet="false"))
    serves = partial(
        questions.master_serves,
        nameserver=cluster.port(NAMESERVER),
        broker=cluster.port(BROKER),
        ha=cluster.ha_port(BROKER),
    )
    cluster.until(serves, "a master that the name server knows", patience_s=START_S_MAXIMUM)


def _write_history(cluster: Cluster, subject: Subject) -> None:
    """Fill the log until it has EPOCHS epochs; a log that has them already stays as it is.

    A master that comes back is elected again, in a new epoch. Not always: when the controller takes a
    late heartbeat of the dead one for life, the master goes on in its old epoch, and forgets where that
    began. So the epochs are counted, not the restarts.
    """
    for _ in range(RESTARTS_MAXIMUM):
        if _epoch_count(cluster) >= EPOCHS:
            return
        _send_messages(cluster)
        cluster.stop(BROKER)
        _start_broker(cluster, subject)
        if _epoch_count(cluster) == EPOCHS:
            _send_messages(cluster)
    raise LabError(f"the master has not had {EPOCHS} epochs after {RESTARTS_MAXIMUM} restarts")


def _describe_master(cluster: Cluster) -> dict[str, object]:
    """Its addresses, and what it says of itself: names, epochs, end of the log."""
    return {
        "target": f"{LOOPBACK}:{cluster.ha_port(BROKER)}",
        CONTROLLER: cluster.address(CONTROLLER),
        BROKER: cluster.address(BROKER),
        NAMESERVER: cluster.address(NAMESERVER),
        **questions.epochs(cluster.port(BROKER)).to_json(),
    }


def _epoch_count(cluster: Cluster) -> int:
    return len(questions.epochs(cluster.port(BROKER)).epoch_list or ())


def _send_messages(cluster: Cluster) -> None:
    """Send one epoch's messages; each is tried until the broker takes it."""
    with Peer(LOOPBACK, cluster.port(BROKER)) as peer:
        sender = questions.Sender(peer, TOPIC)
        for number in range(MESSAGES_PER_EPOCH):
            body = f"{number:08d}".encode().ljust(MESSAGE_BYTES, b".")

            def accepted(body: bytes = body, queue: int = number % questions.QUEUES) -> bool | None:
                code, _ = sender.send(body, queue=queue, now_ms=time.time_ns() // 1_000_000)
                return code == ResponseCode.SUCCESS or None

            cluster.until(accepted, "a master that takes messages", patience_s=START_S_MAXIMUM)
