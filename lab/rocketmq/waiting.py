"""What is waited for in a running broker set: members, a master, logs of one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.cluster import BROKER_NAME, Cluster
from lab.rocketmq import questions

SETTLE_S_MAXIMUM = 90.0
# More than the buffers of two sockets on loopback hold.
TAIL_MESSAGES, TAIL_BODY_BYTES = 40, 500_000


def wait_in_sync(cluster: Cluster, members: Iterable[int], *, controller: str = "controller") -> None:
    """Wait until the controller's SyncStateSet is exactly this."""
    wanted = sorted(members)
    port, host = cluster.port(controller), cluster.host(controller)

    def reached() -> bool | None:
        return questions.in_sync(port, BROKER_NAME, host) == wanted or None

    cluster.until(reached, f"SyncStateSet {wanted}", patience_s=SETTLE_S_MAXIMUM)


def wait_master(
    cluster: Cluster, *, after_epoch: int = 0, controller: str = "controller"
) -> questions.NamedMaster:
    """Wait until a master is known whose masterEpoch is greater than the one given."""
    port, host = cluster.port(controller), cluster.host(controller)

    def reached() -> questions.NamedMaster | None:
        found = questions.master(port, BROKER_NAME, host)
        return found if found is not None and found.broker_id and found.epoch > after_epoch else None

    return cluster.until(reached, "a new master", patience_s=SETTLE_S_MAXIMUM)


def leading(cluster: Cluster, controllers: Sequence[str]) -> str | None:
    """Which of these controllers leads: by the account of one of them, and by its own. Raises OSError,
    RemoteProtocolError."""
    for name in controllers:
        told = questions.leader(cluster.port(name))
        named = [each for each in controllers if cluster.address(each) == told]
        if named and questions.controller_serves(cluster.port(named[0])):
            return named[0]
    return None


def wait_same_end(cluster: Cluster, *brokers: str) -> int:
    """Wait until the logs of these brokers end at the same offset, by their own account; returns it."""

    def reached() -> int | None:
        ends = [questions.epochs(cluster.port(name), cluster.host(name)).max_offset for name in brokers]
        return ends[0] if questions.same(ends) and ends[0] else None

    return cluster.until(reached, f"logs of one length: {', '.join(brokers)}", patience_s=SETTLE_S_MAXIMUM)


def leave_a_tail(cluster: Cluster, master: str, replica: str, topic: str) -> tuple[int, int]:
    """Bytes that only the master has, acknowledged to nobody: its replica, a member of the SyncStateSet, is
    paused, and more is sent than the sockets between them hold. Returns where they begin at the latest, and
    where they end."""
    start = wait_same_end(cluster, master, replica)
    cluster.pause(replica)
    bodies = [bytes([ord("a") + number % 26]) * TAIL_BODY_BYTES for number in range(TAIL_MESSAGES)]
    with questions.send_and_run(cluster.port(master), topic, bodies):

        def taken() -> int | None:
            end = questions.epochs(cluster.port(master)).max_offset or 0
            return end if end > start + TAIL_MESSAGES * TAIL_BODY_BYTES else None

        end = cluster.until(taken, "a master with more than its replica", patience_s=SETTLE_S_MAXIMUM)
    return start, end
