"""Members that are reached at other addresses than those that they listen at: what is announced counts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from lab.cluster import BROKER_NAME
from lab.forward import OUTSIDE, Forwarded
from lab.ports import LOOPBACK
from lab.rocketmq import questions, waiting
from lab.rocketmq.interop.stage import MESSAGES, Stage
from replispec.wire.rocketmq.constants import FAST_PORT_BELOW

OURS, JAVA = "ours", "java"
# Of ours: what clients and the controller are told, what replicas are, and the controller's own.
IP1, IP2, ADVERTISED = OUTSIDE
# Of Java's broker, whose HA port is bound on all addresses.
JAVA_IP2 = "127.0.0.5"
TABLE, ESTABLISHED = Path("/proc/net/tcp"), "01"


def announced_addresses(stage: Stage) -> None:
    """Ours is master, Java follows at brokerIP2; then the other way round. Raises LabError."""
    cluster, measured = stage.cluster, stage.measured
    controller, main, ha = cluster.port("controller"), cluster.port(OURS), cluster.ha_port(OURS)
    with ExitStack() as forwarding:

        def forwarded(outside: str, port: int) -> Forwarded:
            return forwarding.enter_context(Forwarded(outside, LOOPBACK, port))

        to_controller, to_main = forwarded(ADVERTISED, controller), forwarded(IP1, main)
        to_ha = forwarded(IP2, ha)
        forwarded(IP1, main - FAST_PORT_BELOW)
        stage.start_coordinator(ours=True, controllerAdvertisedAddress=f"{ADVERTISED}:{controller}")
        _start(stage, OURS)
        master = waiting.wait_master(cluster)
        measured.demand(
            master.address == f"{IP1}:{main}", "the controller names ours by its brokerIP1", master.address
        )
        stage.route_known()
        routed = questions.routed(cluster.port("nameserver"), BROKER_NAME)
        measured.demand(routed.get(0) == f"{IP1}:{main}", "the name server routes to it", routed.get(0))
        before = to_controller.accepted
        measured.demand(before > 0, "connections of ours to the controller's advertised address", before)
        _start(stage, JAVA)
        waiting.wait_in_sync(cluster, (1, 2))
        asked = to_controller.accepted - before
        measured.demand(asked > 0, "connections of Java's broker to that address", asked)
        measured.demand(to_ha.accepted > 0, "of Java's replica to brokerIP2 of ours", to_ha.accepted)
        acknowledged = stage.produce(0)
        measured.demand(to_main.accepted > 0, "of Java's clients and replica to brokerIP1", to_main.accepted)
        cluster.kill(OURS)
        waiting.wait_master(cluster, after_epoch=master.epoch)
        _start(stage, OURS)
        waiting.wait_in_sync(cluster, (1, 2))
        found = _connected(JAVA_IP2, cluster.ha_port(JAVA))
        measured.demand(found > 0, "connections of our replica to brokerIP2 of Java's master", found)
        stage.route_known()
        acknowledged |= stage.produce(MESSAGES)
        end = waiting.wait_same_end(cluster, OURS, JAVA)
        stage.same_logs((OURS, JAVA), end)
        stage.nothing_lost(acknowledged, "announced-addresses")


def _start(stage: Stage, name: str) -> None:
    ours = name == OURS
    addresses = {"brokerIP1": IP1, "brokerIP2": IP2} if ours else {"brokerIP2": JAVA_IP2}
    stage.start_broker(name, ours=ours, **addresses)


def _connected(address: str, port: int) -> int:
    """How many connections there are to an address and port. Source: proc(5), /proc/net/tcp."""
    where = f"{bytes(reversed([int(part) for part in address.split('.')])).hex().upper()}:{port:04X}"
    rows = [line.split() for line in TABLE.read_text().splitlines()[1:]]
    return sum(row[2] == where and row[3] == ESTABLISHED for row in rows)
