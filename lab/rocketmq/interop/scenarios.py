"""The scenarios. Java's brokers run unmodified; every send waits for the whole SyncStateSet."""

from __future__ import annotations

import time
from collections.abc import Callable

from lab.cluster import BROKER_NAME, CLUSTER_NAME, Cluster
from lab.family import Rounds, Scenario
from lab.interop.measured import Measured
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop import (
    addresses,
    figures,
    generations,
    group,
    javagroup,
    logicalolder,
    logicalpreview,
    mixed,
    moved,
    oldandnew,
    orderly,
    secured,
    staticmixed,
    staticolder,
    staticsets,
    statictopic,
)
from lab.rocketmq.interop.stage import MESSAGES, TOPIC, Stage
from lab.rocketmq.interop.tools import Tools
from lab.rocketmq.roles import OURS
from replispec.wire.rocketmq.options import ControllerOptions

# Beside the hearing before it, for which Java's brokers say once a second where their logs end.
MASTER_S_MAXIMUM = 1.0 + ControllerOptions().election_hearing_timeout_ms / 1_000


def java_brokers(stage: Stage, *, ours: bool = True) -> None:
    """Three unmodified Java brokers on our controller and name server, through the loss of their master."""
    cluster, measured = stage.cluster, stage.measured
    stage.start_coordinator(ours=ours)
    names = ["broker-1", "broker-2", "broker-3"]
    for name in names:
        stage.start_broker(name, ours=False)
    master = waiting.wait_master(cluster)
    waiting.wait_in_sync(cluster, (1, 2, 3))
    stage.route_known()
    measured.note("registered, one master, SyncStateSet of three", f"master {master.broker_id}")
    acknowledged = stage.produce(0)
    waiting.wait_same_end(cluster, *names)
    _tools_tell_the_truth(stage, names)
    _keeps_working_through_a_loss(stage, names, acknowledged)


def _tools_tell_the_truth(stage: Stage, names: list[str]) -> None:
    cluster, tools, measured = stage.cluster, stage.tools, stage.measured
    known = questions.replicas(cluster.port("controller"), BROKER_NAME)
    assert known is not None
    said = tools.mqadmin(
        *("getSyncStateSet", "-a", cluster.address("controller"), "-b", BROKER_NAME),
        nameserver=stage.nameserver,
    )
    members = [each.broker_address or "" for each in known.in_sync_replicas or ()]
    measured.demand(
        len(members) == len(names) and all(member in said for member in members),
        "mqadmin getSyncStateSet names all members",
        said,
    )
    said = tools.mqadmin("getBrokerEpoch", "-b", BROKER_NAME, nameserver=stage.nameserver)
    end = questions.epochs(cluster.port(names[0])).max_offset
    measured.demand(
        said.count(str(end)) >= len(names), "mqadmin getBrokerEpoch shows the log's end of all", said
    )
    said = tools.mqadmin("clusterList", nameserver=stage.nameserver)
    rows = [line for line in said.splitlines() if line.startswith(CLUSTER_NAME)]
    measured.demand(len(rows) == len(names), "mqadmin clusterList shows all brokers", said)
    master = cluster.port(stage.name_of(known.master_address or ""))
    said = tools.mqadmin("haStatus", "-b", f"127.0.0.1:{master}", nameserver=stage.nameserver)
    in_sync = dict(line.split("\t", 1) for line in said.splitlines() if line.count("\t") == 1)
    measured.demand(
        in_sync.get("#InSyncSlaveNum") == str(len(names) - 1),
        "mqadmin haStatus shows the replicas in sync",
        said,
    )


def _keeps_working_through_a_loss(stage: Stage, names: list[str], acknowledged: set[str]) -> None:
    cluster, measured = stage.cluster, stage.measured
    before = waiting.wait_master(cluster)
    dead = stage.name_of(before.address)
    taken: list[tuple[questions.NamedMaster, float]] = []

    def strike() -> None:
        killed_s = cluster.kill(dead)
        after = waiting.wait_master(cluster, after_epoch=before.epoch)
        taken.append((after, time.monotonic() - killed_s))

    lines = stage.produce_through(MESSAGES, strike)
    ((after, took_s),) = taken
    measured.demand(took_s < MASTER_S_MAXIMUM, "seconds from kill -9 to a new master", round(took_s, 3))
    measured.note("new master", f"{after.broker_id} in masterEpoch {after.epoch}")
    measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))
    acknowledged |= figures.acknowledged(lines)
    stage.start_broker(dead, ours=False)
    waiting.wait_in_sync(cluster, (1, 2, 3))
    end = waiting.wait_same_end(cluster, *names)
    stage.same_logs(names, end)
    stage.nothing_lost(acknowledged, "java-brokers")


def our_followers(stage: Stage) -> None:
    """Our replica and our learner follow a Java master under Java's controller."""
    cluster = stage.cluster
    stage.start_coordinator(ours=False)
    stage.start_broker("broker-1", ours=False)
    waiting.wait_master(cluster)
    stage.route_known()
    acknowledged = stage.produce(0)
    stage.start_broker("broker-2", ours=True)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.measured.note("our replica entered the SyncStateSet", [1, 2])
    cluster.start(OURS, "learner", "learner", settings.learner(cluster))
    acknowledged |= stage.produce(MESSAGES)
    end = waiting.wait_same_end(cluster, "broker-1", "broker-2", "learner")
    stage.same_logs(["broker-1", "broker-2", "learner"], end)
    members = questions.in_sync(cluster.port("controller"), BROKER_NAME)
    stage.measured.demand(members == [1, 2], "the learner stays outside the SyncStateSet", members)
    stage.nothing_lost(acknowledged, "our-followers")


def java_replica(stage: Stage) -> None:
    """A Java replica follows our master, under our controller."""
    cluster = stage.cluster
    stage.start_coordinator(ours=True)
    stage.start_broker("broker-1", ours=True)
    waiting.wait_master(cluster)
    stage.route_known()
    acknowledged = stage.produce(0)
    stage.start_broker("broker-2", ours=False)
    waiting.wait_in_sync(cluster, (1, 2))
    acknowledged |= stage.produce(MESSAGES)
    end = waiting.wait_same_end(cluster, "broker-1", "broker-2")
    stage.same_logs(["broker-1", "broker-2"], end)
    stage.nothing_lost(acknowledged, "java-replica")


def switches(stage: Stage) -> None:
    """Java -> ours -> Java under Java's controller; each old master has bytes that nobody else has."""
    cluster = stage.cluster
    stage.start_coordinator(ours=False)
    stage.start_broker("java", ours=False)
    waiting.wait_master(cluster)
    stage.start_broker("ours", ours=True)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.route_known()
    acknowledged = stage.produce(0)
    for number, (old, new) in enumerate((("java", "ours"), ("ours", "java")), start=1):
        _switch(stage, old, new)
        acknowledged |= stage.produce(number * MESSAGES)
    end = waiting.wait_same_end(cluster, "java", "ours")
    stage.same_logs(["java", "ours"], end)
    stage.nothing_lost(acknowledged, "switches")


def _switch(stage: Stage, old: str, new: str) -> None:
    """Kill the master while it has bytes that its paused replica lacks, and let it come back."""
    cluster, measured = stage.cluster, stage.measured
    before = waiting.wait_master(cluster)
    start, end_alone = waiting.leave_a_tail(cluster, old, new, TOPIC)
    measured.note(f"bytes after {start} that {old} takes and {new} does not acknowledge", end_alone - start)
    killed_s = cluster.kill(old)
    cluster.resume(new)
    after = waiting.wait_master(cluster, after_epoch=before.epoch)
    measured.note(f"seconds to {new} as master of epoch {after.epoch}", round(time.monotonic() - killed_s, 3))
    stage.start_broker(old, ours=old == "ours")
    waiting.wait_in_sync(cluster, (1, 2))
    starts = {each.epoch: each.start_offset for each in questions.epochs(cluster.port(new)).epoch_list or []}
    left = questions.epochs(cluster.port(old)).max_offset or 0
    measured.note(f"epoch {after.epoch} starts at", starts.get(after.epoch))
    measured.demand(left < end_alone, f"{old} truncated: bytes dropped", end_alone - left)


APACHE = Apache("5.4.0")


def _on_a_stage(play: Callable[[Stage], None]) -> Scenario:
    def played(cluster: Cluster, measured: Measured, rounds: Rounds) -> None:
        play(Stage(cluster, Tools(cluster, APACHE), measured, rounds))

    return played


SCENARIOS = {
    "a": (_on_a_stage(java_brokers), "three Java brokers on our controller and our name server"),
    "b": (
        _on_a_stage(our_followers),
        "our replica and our learner follow a Java master, under Java's controller",
    ),
    "c": (_on_a_stage(java_replica), "a Java replica follows our master"),
    "d": (_on_a_stage(switches), "Java -> ours -> Java, the old master truncates each time"),
    "e": (
        _on_a_stage(mixed.below_a_push_consumer),
        "Java -> ours -> Java -> ours and a restart of both, below a push consumer of two members",
    ),
    "f": (
        _on_a_stage(addresses.announced_addresses),
        "brokerIP1, brokerIP2 and an advertised controller, none of which is where its process listens",
    ),
    "group": (
        _on_a_stage(group.under_our_controllers),
        "three controllers of ours over three Java brokers, of whom some are struck in each round",
    ),
    "javagroup": (
        _on_a_stage(javagroup.under_dledger),
        "three brokers of ours under three Java controllers (DLedger), of whom some are killed in each round",
    ),
    "jraftgroup": (
        _on_a_stage(javagroup.under_jraft),
        "three brokers of ours under three Java controllers (jRaft), of whom some are killed in each round",
    ),
    "moved": (
        _on_a_stage(moved.from_dledger),
        "a group of ours begins with the folder of Java's controller, and its Java brokers go on",
    ),
    "moved-jraft": (
        _on_a_stage(moved.from_jraft),
        "the same with the folder of a controller with jRaft",
    ),
    "generations": (
        _on_a_stage(generations.under_one_controller),
        "brokers of 5.1.0, then of both generations, then of the later one under a controller of ours",
    ),
    "statictopic": (
        _on_a_stage(statictopic.on_java_brokers),
        "a static topic on three Java masters, made, grown and moved by mqadmin and by our commands in turns",
    ),
    "staticsets": (
        _on_a_stage(staticsets.on_sets_of_ours),
        "a static topic on three broker sets of ours, under mqadmin and Java's clients; a master is killed",
    ),
    "staticmixed": (
        _on_a_stage(staticmixed.on_both),
        "a static topic on two Java masters and two of ours, moved to and fro; runs of mqadmin are cut off",
    ),
    "staticolder": (
        _on_a_stage(staticolder.on_ours_and_java),
        "a client of 4.9.8 on a static topic that moves: on brokers of ours, and for the record on Java's",
    ),
    "logicalpreview": (
        _on_a_stage(logicalpreview.on_ours),
        "the client of 5.0.0-PREVIEW on logical queues of ours, which it moves, and has come back",
    ),
    "logicalolder": (
        _on_a_stage(logicalolder.on_ours),
        "a client of 4.9.8 on logical queues of ours, which move, and come back to what has expired",
    ),
    "oldandnew": (
        _on_a_stage(oldandnew.everywhere),
        "brokers, name servers and clients that know logical queues, and others, in every mixture",
    ),
    "orderly": (
        _on_a_stage(orderly.on_ours),
        "Java consumers that read in order share queues of ours: members come and go, the master dies",
    ),
    "secured": (
        _on_a_stage(secured.among_java),
        "TLS and signatures everywhere: a broker, clients and mqadmin of Java, a client in Go, among ours",
    ),
}
