"""Both generations of Java's brokers under one controller of ours: a set of the earlier one, a set of both at
once, and the change of the whole set to the later one, replica first, then the master.

Up to 5.1.0 a broker is its address, from 5.1.1 on it has an id on its disk. The two do not copy from each
other: their handshakes differ. So a replica of the other generation stays outside the SyncStateSet, which the
controller must know when the master is lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.cluster import BROKER_NAME
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.stage import STEADY, Stage
from replispec.wire.rocketmq.constants import EPOCH_FILE, IDENTITY_FILE

NAMES = ("broker-1", "broker-2")
EARLIER = "5.1.0"
SOME = 300
POLL_S = 0.2
# Longer than a master waits before it asks for a larger SyncStateSet, and than a broker waits to be asked.
OUTSIDE_S = 15.0
# A handshake has 62 bytes in the earlier generation, and 16 in the later one.
KNOWN = {
    "ha-master-machine: ha_master: answer_sent is not allowed in state TRANSFER": (
        "a master of the earlier generation reads what a replica of the later one sends as further handshakes"
    )
}
# A broker of the earlier generation tries to register every 5 s.
BACK_S_MAXIMUM = 90.0


@dataclass(slots=True)
class Set:
    """The broker set: which release each of its brokers is, and what was acknowledged."""

    stage: Stage
    earlier: Apache
    acknowledged: set[str] = field(default_factory=set)
    next_key: int = 0

    def start(self, name: str, *, earlier: bool) -> None:
        """A broker of one of the generations, the first time or on the disk that it left."""
        cluster = self.stage.cluster
        program = self.earlier if earlier else self.stage.tools.apache
        # The earlier generation keeps its epochs elsewhere unless it is told. Under one controller
        # masterEpochs go on, so that they stay true.
        epochs = cluster.part("data", name) / EPOCH_FILE
        cluster.start(program, "broker", name, settings.broker(cluster, name, storePathEpochFile=epochs))

    def send(self, count: int = SOME) -> None:
        """Messages while nothing happens, each of which must be acknowledged."""
        sent = self.stage.produce(self.next_key, count)
        self.next_key += count
        self.acknowledged |= sent
        self.stage.measured.demand(len(sent) == count, f"of {count} messages acknowledged", len(sent))

    def ids(self) -> Mapping[str, int]:
        """The id of each broker at the controller, by the lab's names."""
        cluster = self.stage.cluster
        known = questions.replicas(cluster.port("controller"), BROKER_NAME)
        assert known is not None
        replicas = [*(known.in_sync_replicas or ()), *(known.not_in_sync_replicas or ())]
        found = {each.broker_address: each.broker_id or 0 for each in replicas}
        assert len(found) == len(replicas), "two ids at one address"
        return {name: found[cluster.address(name)] for name in NAMES if cluster.address(name) in found}

    def master(self) -> questions.NamedMaster:
        """Who is master now, once somebody is."""
        return waiting.wait_master(self.stage.cluster)


def under_one_controller(stage: Stage) -> None:
    """The earlier generation, both at once, and the change to the later one. Raises LabError."""
    stage.cluster.poll_s = POLL_S
    stage.measured.known.update(KNOWN)
    earlier = Apache(stage.rounds.release or EARLIER)
    earlier.fetch()
    whole = Set(stage, earlier)
    stage.start_coordinator(ours=True)
    _earlier_alone(whole)
    ids = whole.ids()
    stage.measured.note(f"ids of brokers of {earlier.release}, which know none", dict(ids))
    master = stage.name_of(whole.master().address)
    replica = next(name for name in NAMES if name != master)
    _upgrade_replica(whole, replica, ids)
    _both_at_once(whole, master, replica)
    _upgrade_master(whole, master, ids)
    end = waiting.wait_same_end(stage.cluster, *NAMES)
    stage.same_logs(NAMES, end)
    stage.nothing_lost(whole.acknowledged, "generations")


def _earlier_alone(whole: Set) -> None:
    """Two brokers of the earlier generation, through the loss of their master and its return."""
    stage, cluster, measured = whole.stage, whole.stage.cluster, whole.stage.measured
    for name in NAMES:
        whole.start(name, earlier=True)
        whole.master()
    waiting.wait_in_sync(cluster, (1, 2))
    stage.route_known()
    whole.send()
    waiting.wait_same_end(cluster, *NAMES)
    before = whole.master()
    dead = stage.name_of(before.address)
    taken_s: list[float] = []

    def strike() -> None:
        killed_s = cluster.kill(dead)
        after = waiting.wait_master(cluster, after_epoch=before.epoch)
        taken_s.append(time.monotonic() - killed_s)
        measured.demand(after.broker_id != before.broker_id, "the replica is master", after.broker_id)

    lines = stage.produce_through(whole.next_key, strike)
    whole.next_key += STEADY
    whole.acknowledged |= figures.acknowledged(lines)
    measured.note(f"{whole.earlier.release}: seconds from kill -9 to a new master", round(taken_s[0], 3))
    measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))
    whole.start(dead, earlier=True)
    waiting.wait_in_sync(cluster, (1, 2))
    whole.send()
    end = waiting.wait_same_end(cluster, *NAMES)
    stage.same_logs(NAMES, end)


def _upgrade_replica(whole: Set, replica: str, ids: Mapping[str, int]) -> None:
    """The replica comes back as the later generation: the set has one of each."""
    stage, cluster = whole.stage, whole.stage.cluster
    cluster.stop(replica)
    waiting.wait_in_sync(cluster, [whole.master().broker_id])
    whole.start(replica, earlier=False)
    _has_id(whole, replica, ids)
    stage.measured.demand(whole.ids() == ids, f"ids with one broker of {_later(whole)}", whole.ids())


def _both_at_once(whole: Set, master: str, replica: str) -> None:
    """The set serves with one broker of each generation; nobody who lacks messages becomes master."""
    stage, cluster, measured = whole.stage, whole.stage.cluster, whole.stage.measured
    routed = {cluster.address(name) for name in NAMES}
    port = cluster.port("nameserver")
    cluster.until(
        lambda: set(questions.routed(port, BROKER_NAME).values()) == routed or None, "routes to both"
    )
    whole.send()
    before = whole.master()
    cluster.kill(master)
    time.sleep(OUTSIDE_S)
    alone = questions.master(cluster.port("controller"), BROKER_NAME)
    assert alone is not None
    measured.demand(
        alone.broker_id == 0, f"{replica} lacks messages, and is not elected in {OUTSIDE_S:g} s", True
    )
    whole.start(master, earlier=True)
    after = waiting.wait_master(cluster, after_epoch=before.epoch)
    measured.demand(after.broker_id == before.broker_id, "the master is back, under its id", after.broker_id)
    measured.note("masterEpoch", after.epoch)
    stage.route_known()
    whole.send()


def _upgrade_master(whole: Set, master: str, ids: Mapping[str, int]) -> None:
    """The master comes back as the later generation, is elected, and is followed."""
    stage, cluster, measured = whole.stage, whole.stage.cluster, whole.stage.measured
    before = whole.master()
    cluster.stop(master)
    stopped_s = time.monotonic()
    whole.start(master, earlier=False)
    after = waiting.wait_master(cluster, after_epoch=before.epoch)
    measured.note("seconds without master while it changes", round(time.monotonic() - stopped_s, 3))
    measured.demand(after.broker_id == before.broker_id, "who was master is it again", after.broker_id)
    _has_id(whole, master, ids)
    waiting.wait_in_sync(cluster, ids.values())
    measured.demand(whole.ids() == ids, f"ids with both brokers of {_later(whole)}", whole.ids())
    stage.route_known()
    whole.send()


def _has_id(whole: Set, name: str, ids: Mapping[str, int]) -> None:
    """Wait until the broker has written its id to its disk, and demand that it is the one it had."""
    cluster = whole.stage.cluster
    path = cluster.part("data", name) / IDENTITY_FILE

    def written() -> int | None:
        return int(path.read_text().split("#")[2]) if path.exists() else None

    found = cluster.until(written, f"the identity of {name}", patience_s=BACK_S_MAXIMUM)
    whole.stage.measured.demand(found == ids[name], f"id on the disk of {name}", found)


def _later(whole: Set) -> str:
    return whole.stage.tools.apache.release
