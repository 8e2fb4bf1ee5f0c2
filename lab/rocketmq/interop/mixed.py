"""A set of one Java broker and one of ours, switched three times and restarted, below a Java push consumer.

Its controllers are three of Java's, of which our broker is told one that does not lead. Beside the log the
set has what our broker keeps: a configured group, delayed messages, a request mode. Each broker
comes back once without those files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from lab.cluster import BROKER_NAME
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.interop import figures, tables
from lab.rocketmq.interop.consumers import Consumers
from lab.rocketmq.interop.stage import STEADY, TOPIC, Stage

JAVA, OURS = "java", "ours"
BROKERS = {JAVA: 1, OURS: 2}
CONTROLLERS = ("controller", "controller-2", "controller-3")
GROUP, TABLE_GROUP = "lab-push", "lab-configured"
CALM, ODD = 200, 20
POLL_S = 0.5
TABLES_S_MAXIMUM = 60.0
# More than the ten seconds after which a silent broker is missed.
UNHEARD_S = 12.0


@dataclass(slots=True)
class Mixed:
    """The scenario, and how far it is."""

    stage: Stage
    consumers: Consumers
    acknowledged: set[str] = field(default_factory=set)
    next_key: int = 0
    leader: str = ""

    def send(self, count: int = CALM, how: str = "") -> None:
        """Messages while nothing happens; what Java's client fails of its own accord is told."""
        sent = self.stage.produce(self.next_key, count, how)
        self.next_key += count
        self.acknowledged |= sent
        if len(sent) != count:
            self.stage.measured.note(
                f"{how or 'plain'} messages of {count} that were not taken", count - len(sent)
            )
        self.stage.measured.demand(len(sent) > count // 2, f"{how or 'plain'} messages taken", len(sent))

    def send_through(self, strike: Callable[[], None]) -> None:
        """Messages before and after a strike, of which some are not acknowledged."""
        lines = self.stage.produce_through(self.next_key, strike)
        self.next_key += STEADY
        self.acknowledged |= figures.acknowledged(lines)
        self.stage.measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))

    def settle(self, when: str) -> None:
        """Wait until everything is consumed, and both brokers know it and have it on their disks."""
        self.consumers.wait_all_read(self.acknowledged, when)
        self.consumers.keep_floor(self.master)
        self.stage.measured.note(f"{when}: consumed at least once", len(self.acknowledged))

    @property
    def master(self) -> str:
        """The lab's name of the present master."""
        found = waiting.wait_master(self.stage.cluster, controller=self.leader)
        return self.stage.name_of(found.address)


def below_a_push_consumer(stage: Stage) -> None:
    """Java -> ours -> Java -> ours, then both killed at once. Raises LabError."""
    stage.cluster.poll_s = POLL_S
    with Consumers(stage, GROUP, tuple(BROKERS)) as consumers:
        mixed = Mixed(stage, consumers)
        _start(mixed)
        for member in ("first", "second"):
            consumers.start(member)
        mixed.send()
        mixed.send(ODD, "delayed")
        mixed.send(ODD, "refused")
        mixed.settle("Java is master")
        _tables_are_the_same(mixed, JAVA, OURS)
        _switch(mixed, JAVA, OURS, forgets=True)
        _consumer_restarts(mixed)
        _switch(mixed, OURS, JAVA, forgets=True)
        mixed.send(ODD, "delayed")
        mixed.settle("Java is master again")
        _tables_are_the_same(mixed, JAVA, OURS)
        _another_leader(mixed)
        _switch(mixed, JAVA, OURS, forgets=False)
        _restart_both(mixed)
        consumers.judge(mixed.acknowledged)
    end = waiting.wait_same_end(stage.cluster, *BROKERS)
    stage.same_logs(BROKERS, end)


def _start(mixed: Mixed) -> None:
    stage, cluster = mixed.stage, mixed.stage.cluster
    apache = stage.tools.apache
    cluster.start(stage.subject(ours=True), "nameserver", "nameserver", settings.nameserver(cluster))
    peers = ";".join(f"n{at}-{cluster.address(name)}" for at, name in enumerate(CONTROLLERS))
    for at, name in enumerate(CONTROLLERS):
        own = {"controllerDLegerPeers": peers, "controllerDLegerSelfId": f"n{at}"}
        cluster.start(apache, "controller", name, settings.controller(cluster, name, **own))
    mixed.leader = _leader(mixed)
    everybody = ";".join(map(cluster.address, CONTROLLERS))
    stage.start_broker(JAVA, ours=False, controllerAddr=everybody)
    waiting.wait_master(cluster, controller=mixed.leader)
    _start_ours(mixed)
    waiting.wait_in_sync(cluster, BROKERS.values(), controller=mixed.leader)
    stage.route_known()
    address = cluster.address(JAVA)
    tools, nameserver = stage.tools, stage.nameserver
    tools.mqadmin("updateTopic", "-b", address, "-t", TOPIC, "-r", "4", "-w", "4", nameserver=nameserver)
    tools.mqadmin("updateSubGroup", "-b", address, "-g", TABLE_GROUP, "-s", "false", nameserver=nameserver)
    mode = ("-t", TOPIC, "-g", TABLE_GROUP, "-m", "POP", "-q", "2")
    tools.mqadmin("setConsumeMode", "-b", address, *mode, nameserver=nameserver)


def _leader(mixed: Mixed) -> str:
    """The lab's name of the controller that leads, once one does."""
    cluster = mixed.stage.cluster
    living = [name for name in CONTROLLERS if name in cluster.processes]
    return cluster.until(lambda: waiting.leading(cluster, living), "a controller that leads")


def _start_ours(mixed: Mixed) -> None:
    """Our broker, told of one living controller alone, which does not lead."""
    cluster = mixed.stage.cluster
    told = next(name for name in CONTROLLERS if name in cluster.processes and name != mixed.leader)
    mixed.stage.start_broker(OURS, ours=True, controllerAddr=cluster.address(told))


def _start_broker(mixed: Mixed, name: str) -> None:
    if name == OURS:
        _start_ours(mixed)
    else:
        living = [each for each in CONTROLLERS if each in mixed.stage.cluster.processes]
        everybody = ";".join(map(mixed.stage.cluster.address, living))
        mixed.stage.start_broker(JAVA, ours=False, controllerAddr=everybody)


def _switch(mixed: Mixed, old: str, new: str, *, forgets: bool) -> None:
    """Kill the master while messages are sent; it comes back, perhaps without the tables beside the log."""
    stage, cluster = mixed.stage, mixed.stage.cluster
    before = waiting.wait_master(cluster, controller=mixed.leader)
    stage.measured.demand(stage.name_of(before.address) == old, f"{old} is master", True)

    def strike() -> None:
        killed_s = cluster.kill(old)
        after = waiting.wait_master(cluster, controller=mixed.leader, after_epoch=before.epoch)
        took_s = round(time.monotonic() - killed_s, 3)
        stage.measured.note(f"seconds to {new} as master of epoch {after.epoch}", took_s)

    mixed.send_through(strike)
    kept = tables.on_disk(cluster, new)
    if forgets:
        tables.forget(cluster, old)
    _start_broker(mixed, old)
    waiting.wait_in_sync(cluster, BROKERS.values(), controller=mixed.leader)
    mixed.send()
    mixed.settle(f"{new} is master")
    if new == OURS:
        goes_on = tables.go_on(kept, tables.on_disk(cluster, new))
        what = "as master ours has what it had copied, and delivers on from there"
        stage.measured.demand(goes_on, what, goes_on)
    _tables_are_the_same(mixed, new, old)


def _consumer_restarts(mixed: Mixed) -> None:
    """One member is gone without a word, another one comes."""
    mixed.consumers.kill("first")
    mixed.send()
    mixed.settle("one member killed, ours is master")
    mixed.consumers.start("third")
    mixed.send()
    mixed.send(ODD, "refused")
    mixed.send(ODD, "delayed")
    mixed.settle("another member came, ours is master")


def _another_leader(mixed: Mixed) -> None:
    """The controllers' leader is killed, which our broker was not told of by its settings."""
    cluster = mixed.stage.cluster
    _is_heard(mixed)
    cluster.kill(mixed.leader)
    mixed.leader = _leader(mixed)
    mixed.stage.measured.note("controllers' leader killed, another leads", mixed.leader)
    _is_heard(mixed)


def _is_heard(mixed: Mixed) -> None:
    """Demand that the leader hears our broker, after longer than it keeps one that is silent."""
    cluster, began_s = mixed.stage.cluster, time.monotonic()

    def heard() -> bool | None:
        if time.monotonic() < began_s + UNHEARD_S:
            return None
        found = questions.replicas(cluster.port(mixed.leader), BROKER_NAME)
        members = [] if found is None else found.in_sync_replicas or []
        return any(each.broker_id == BROKERS[OURS] and each.alive for each in members)

    mixed.stage.measured.demand(
        cluster.until(heard, "what the leader hears"), "heartbeats of ours reach the leader", True
    )


def _restart_both(mixed: Mixed) -> None:
    """Both brokers are killed and started again at once, below running consumers."""
    stage, cluster = mixed.stage, mixed.stage.cluster

    def strike() -> None:
        for name in BROKERS:
            cluster.kill(name)
        for name in BROKERS:
            _start_broker(mixed, name)

    mixed.send_through(strike)
    waiting.wait_in_sync(cluster, BROKERS.values(), controller=mixed.leader)
    stage.route_known()
    master = mixed.master
    serves = partial(
        questions.master_serves,
        nameserver=cluster.port("nameserver"),
        broker=cluster.port(master),
        ha=cluster.ha_port(master),
    )
    cluster.until(serves, "a master after both were killed")
    mixed.send()
    mixed.settle("both killed and started again")
    _tables_are_the_same(mixed, *sorted(BROKERS, key=lambda name: name != mixed.master))


def _tables_are_the_same(mixed: Mixed, master: str, replica: str) -> None:
    """Demand that the replica has on its disk what the master has: all values, and what was configured."""
    cluster = mixed.stage.cluster

    def same() -> tables.Tables | None:
        found = tables.on_disk(cluster, master)
        return found if None not in found.values() and found == tables.on_disk(cluster, replica) else None

    found = cluster.until(same, f"tables of {replica} as those of {master}", patience_s=TABLES_S_MAXIMUM)
    may_consume, mode, delays = tables.configured(found, TOPIC, TABLE_GROUP)
    mixed.stage.measured.demand(
        may_consume is False and mode == ("POP", 2) and bool(delays),
        f"tables on the disk of {replica} are those of {master}; delays",
        delays,
    )
