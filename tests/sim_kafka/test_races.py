"""Races between brokers, controllers, the store and clients, one scenario each, by its name in the list.

Source: Kafka replication, detailed design V3, discussions; apache/kafka: KAFKA-1211, 2729, 6082, 6361, 7128,
7165, 7235, KIP-101, KIP-207, KIP-279, KIP-497. R17 stands in the vectors of the rule `cut_by_epoch`, R19
takes a real broker, R20 is of the design's lag in bytes, which this profile does not have.
"""

from __future__ import annotations

from typing import Any

import pytest

from replispec.broker.kafka.core.replica import LocalReplica
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.kafka.batches import batch_of
from replispec.runtime.kafka.log import LogFolder, PartitionLogSettings
from replispec.runtime.kafka.stores.apache_form import ApacheStoreForm
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.design import DesignLeaderAndIsr
from replispec.wire.kafka.machines import replica as replica_machine
from tests.sim_kafka.cluster import CONTROLLERS, METASTORE, values_in
from tests.sim_kafka.mutants import MUTANTS
from tests.sim_kafka.scenes import KEY, PartitionsScene
from tests.sim_kafka.settings import GENERATIONS, SESSION_MS, TO_THE_HIGH_WATERMARK
from tests.sim_kafka.wishes import TopicWish

BY_EPOCH = GENERATIONS[1:]
PAST_MS = SESSION_MS + 2_000


@pytest.mark.parametrize("generation", BY_EPOCH)
def test_r1_an_old_leader_that_wakes_changes_nothing_and_acknowledges_nothing(generation: str) -> None:
    scene = PartitionsScene(generation)
    old = scene.record.leader
    scene.cluster.world.pause(scene.name(old))
    scene.until(lambda: scene.record.leader not in (old, -1))
    scene.more()
    before = scene.record
    scene.cluster.world.go_on(scene.name(old))
    # That it acknowledges nothing which others lack is looked at after each event.
    scene.run_for(300)
    assert (scene.record.leader, scene.record.epoch) == (before.leader, before.epoch)
    assert not scene.end().excused


def deposed() -> PartitionsScene:
    """A controller woke up after another one had decided."""
    scene = PartitionsScene(brokers=4)
    old = scene.controller
    scene.cluster.world.pause(old)
    scene.cluster.world.kill(scene.name(scene.record.leader))
    epoch = scene.record.decided_by
    scene.until(lambda: scene.record.decided_by > epoch)
    scene.cluster.world.kill(scene.name(scene.record.isr[-1]))
    scene.cluster.world.go_on(old)
    return scene


def test_r2_a_deposed_controller_writes_no_more() -> None:
    scene = deposed()
    newest = scene.record.decided_by
    scene.run_for(PAST_MS)
    assert scene.record.decided_by == newest
    scene.end()


def test_r2_a_controller_in_office_writes_only_while_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the epoch goes with every change that a controller asks for."""
    asked: list[bool] = []
    change_all = FencedStore.change_all

    def seen(self: FencedStore, items: Any) -> None:
        asked.append(vars(self)["_fence"] is not None)
        change_all(self, items)

    monkeypatch.setattr(FencedStore, "change_all", seen)
    deposed().end()
    assert asked
    assert all(asked)


def test_r3_commands_that_a_fail_over_lost_are_given_by_the_next_controller() -> None:
    scene = PartitionsScene()
    scene.cut(CONTROLLERS, list(scene.cluster.brokers.values()))
    scene.cluster.world.kill(scene.name(scene.record.leader))
    epoch = scene.record.epoch
    scene.until(lambda: scene.record.epoch > epoch)
    scene.cluster.world.kill(scene.controller)
    scene.run_for(500)
    scene.cluster.world.network.heal()
    scene.more()
    scene.end()


def test_r4_a_broker_that_was_down_when_it_was_commanded_is_told_when_it_comes() -> None:
    scene = PartitionsScene()
    follower = scene.record.isr[-1]
    scene.cluster.world.kill(scene.name(follower))
    scene.until(lambda: follower not in scene.record.isr)
    scene.cluster.world.kill(scene.name(scene.record.leader))
    epoch = scene.record.epoch
    scene.until(lambda: scene.record.epoch > epoch)
    scene.cluster.world.start(scene.name(follower))
    scene.until(lambda: follower in scene.record.isr)
    assert scene.cluster.node(follower).replicas.by_key[KEY].known.leader_epoch == scene.record.epoch
    scene.end()


def test_r5_of_late_and_repeated_commands_the_epoch_decides() -> None:
    scene = PartitionsScene()
    for _ in range(3):
        for broker in scene.cluster.brokers.values():
            scene.cluster.world.network.reset(scene.controller, broker)
        name = scene.name(scene.record.leader)
        epoch = scene.record.epoch
        scene.cluster.world.kill(name)
        scene.until(lambda before=epoch: scene.record.epoch > before)  # type: ignore[misc]
        for broker in scene.cluster.brokers.values():
            scene.cluster.world.network.reset(scene.controller, broker)
        scene.cluster.world.start(name)
        scene.more()
        scene.until(lambda: len(scene.record.isr) == 3)
    scene.end()


@pytest.mark.parametrize("pause_ms", [1_300, 1_500, 1_700, 1_900, 2_100])
def test_r6_of_the_leaders_and_the_controllers_write_one_wins(pause_ms: int) -> None:
    """A follower that lags and whose session ends leaves the ISR by one of two hands."""
    scene = PartitionsScene()
    leader, *_, follower = scene.record.isr
    scene.cluster.world.pause(scene.name(follower))
    scene.run_for(pause_ms)
    scene.cluster.world.kill(scene.name(next(each for each in scene.record.isr if each != leader)))
    scene.run_for(PAST_MS)
    scene.cluster.world.go_on(scene.name(follower))
    scene.end()


def test_r7_a_leader_finds_out_what_became_of_its_write() -> None:
    """It goes on changing its ISR afterwards."""
    scene = PartitionsScene()
    leader, *_, follower = scene.record.isr
    version = scene.record.version
    scene.cluster.world.pause(scene.name(follower))
    network = scene.cluster.world.network
    scene.until(lambda: scene.record.version > version, step_ms=1)
    network.block(METASTORE, scene.name(leader))
    network.forget(METASTORE, scene.name(leader))
    scene.run_for(400)
    network.heal()
    network.reset(METASTORE, scene.name(leader))
    scene.cluster.world.go_on(scene.name(follower))
    scene.until(lambda: follower in scene.record.isr)
    scene.end()


def test_r8_a_leader_that_has_not_heard_yet_refuses_and_the_client_comes_again() -> None:
    scene = PartitionsScene()
    leader = scene.record.isr[-1]
    scene.cut([scene.controller], [scene.name(leader)])
    scene.wish(TopicWish("create", "fresh", [[leader]]))
    refusals = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER)
    errors = scene.cluster.history.errors
    scene.until(lambda: any(errors.get(each) for each in refusals))
    scene.cluster.world.network.heal()
    scene.until(lambda: any(place.key[0] == "fresh" for place in scene.cluster.history.acknowledged.values()))
    scene.end()


@pytest.mark.parametrize("seed", range(3))
def test_r9_a_consumer_between_high_watermark_and_end_gets_nothing_and_no_error(seed: int) -> None:
    scene = PartitionsScene(seed=seed)
    scene.cluster.world.kill(scene.name(scene.record.leader))
    epoch = scene.record.epoch
    scene.until(lambda: scene.record.epoch > epoch)
    scene.more()
    assert not scene.cluster.history.errors.get(ErrorCode.OFFSET_OUT_OF_RANGE)
    scene.end()


def test_r10_a_topic_that_is_made_again_has_nothing_of_the_old_one() -> None:
    """It is deleted once a broker that was down has deleted its replica, and not before."""
    scene = PartitionsScene()
    scene.make("again", [1, 2, 3])
    key = ("again", 0)
    scene.until(lambda: any(place.key == key for place in scene.cluster.history.acknowledged.values()))
    old = scene.cluster.topics["again"]
    scene.cluster.world.kill(scene.name(3))
    scene.wish(TopicWish("delete", "again"), TopicWish("create", "again", [[3, 2, 1]]))
    scene.run_for(PAST_MS)
    assert scene.cluster.topics["again"] == old
    scene.cluster.world.start(scene.name(3))
    scene.until(lambda: scene.cluster.topics.get("again", old) != old)
    scene.end()
    new = scene.cluster.topics["again"]
    held = values_in(scene.cluster.logs(3)[key])
    assert {scene.cluster.history.sent[each].generation for each in held} <= {new}


@pytest.mark.parametrize("delay_ms", range(0, 700, 100))
def test_r11_a_controller_that_ends_between_steps_leaves_them_to_the_next(delay_ms: int) -> None:
    scene = PartitionsScene(brokers=4)
    scene.wish(
        TopicWish("grow", "kept", [[1, 2]], 1),
        TopicWish("move", "kept", [[4, 2]]),
        TopicWish("delete", "other"),
    )
    scene.until(lambda: scene.cluster.administrator.asked.get("move", 0) > 0)
    scene.run_for(delay_ms)
    scene.cluster.world.kill(scene.controller)
    scene.end()
    assert scene.record.assigned == (4, 2)
    assert ("kept", 1) in scene.cluster.stored


def test_r12_an_own_node_of_a_session_that_is_over_is_not_believed() -> None:
    scene = PartitionsScene()
    name = scene.name(2)
    scene.cluster.world.kill(name)
    scene.cluster.world.start(name)
    scene.run_for(PAST_MS + SESSION_MS)
    told = [what for who, what in scene.told if who == name and what.startswith("registered")]
    assert told[-1] == "registered"
    assert "registered by another session" in told
    scene.end()


def test_r13_changes_between_two_looks_are_seen() -> None:
    scene = PartitionsScene()
    network = scene.cluster.world.network
    scene.cut([METASTORE], [scene.controller])
    scene.wish(*(TopicWish("create", f"t{number}", [[1, 2]]) for number in range(4)))
    scene.until(lambda: not scene.cluster.administrator.wishes)
    network.heal()
    scene.until(lambda: all(each.leader >= 0 for each in scene.cluster.stored.values()))
    assert len(scene.cluster.stored) == 5
    scene.end()


def led(high_watermark: int, records: int) -> LocalReplica:
    """A replica whose broker leads with a log of so many records; broker 2 follows and is in no ISR."""
    files = SimulatedFiles(Disk(Rng(1)))
    folder = LogFolder(
        files, PartitionLogSettings(1 << 20, 1 << 40, 4_096, None, None, appends_time=False), 0
    )
    folder.end_write()
    log = folder.make("t", 0, 0)
    for _ in range(records):
        log.append_as_leader(batch_of([(0, None, b"x")]), 0, 0)
    log.flushed = log.end
    replica = LocalReplica(ApacheStoreForm(), ("t", 0), 1)
    said = DesignLeaderAndIsr("t", 0, leader=1, leader_epoch=1, isr=[1, 3], zk_version=1)
    replica.take(replica_machine.LeaderAndIsr(said))
    replica.take(replica_machine.Started(high_watermark, log.end))
    replica.log, replica.assigned = log, (1, 2, 3)
    log.high_watermark = high_watermark
    replica.lead(0)
    return replica


def test_r14_a_replica_joins_from_where_the_epoch_began_on() -> None:
    replica = led(high_watermark=2, records=6)
    assert replica.fetched(2, 4, 10) is None
    assert replica.fetched(2, 6, 20) == frozenset({1, 2, 3})


def test_r15_a_member_that_was_asked_for_counts_before_it_is_decided() -> None:
    replica = led(high_watermark=2, records=6)
    wanted = replica.fetched(2, 6, 20)
    assert wanted is not None
    replica.take(replica_machine.IsrWanted(wanted))
    log = replica.log
    assert log is not None
    log.append_as_leader(batch_of([(0, None, b"y")]), 1, 0)
    log.flushed = log.end
    replica.fetched(3, 7, 30)
    assert log.high_watermark == 6
    replica.fetched(2, 7, 40)
    assert log.high_watermark == 7


def cut_then_led(generation: str) -> PartitionsScene:
    """The same leader gets a new epoch, as a fourth broker is to have a replica; right after a follower has
    heard of it, the leader ends, and whoever is left of the ISR leads."""
    scene = PartitionsScene(generation, brokers=4)
    leader, follower, _ = scene.record.isr
    epoch = scene.record.epoch
    scene.cluster.client.acks = (-1,)
    scene.more(20)
    scene.wish(TopicWish("move", "kept", [[leader, follower, 4]]))
    heard = scene.cluster.node(follower).replicas.by_key[KEY]
    scene.until(lambda: heard.known.leader_epoch > epoch, step_ms=1)
    scene.cluster.world.kill(scene.name(leader))
    scene.until(lambda: scene.record.leader != leader)
    return scene


def test_r16_whoever_cuts_to_the_high_watermark_loses_what_was_acknowledged() -> None:
    """And this is the only thing that is lost, by name."""
    scene = cut_then_led(TO_THE_HIGH_WATERMARK)
    result = scene.end()
    assert scene.watch.cut == {KEY}
    assert [each for each in result.excused if "was acknowledged" in each]


@pytest.mark.parametrize("generation", BY_EPOCH)
def test_r16_whoever_cuts_by_epoch_loses_nothing(generation: str) -> None:
    scene = cut_then_led(generation)
    result = scene.end()
    assert not scene.watch.cut
    assert not result.excused


def test_r16_is_found_where_it_should_not_be() -> None:
    with MUTANTS["a log is cut to its high watermark"]():
        scene = cut_then_led("2.2")
        assert any("which is committed" in each for each in scene.watch.faults)


def test_r18_commands_for_an_earlier_life_are_refused() -> None:
    scene = PartitionsScene()
    name = scene.name(scene.record.isr[-1])
    scene.cut([scene.controller], [name])
    scene.cluster.world.kill(scene.name(scene.record.leader))
    epoch = scene.record.epoch
    scene.until(lambda: scene.record.epoch > epoch)
    scene.cluster.world.pause(name)
    scene.run_for(PAST_MS)
    scene.cluster.world.network.heal()
    scene.cluster.world.go_on(name)
    scene.run_for(PAST_MS)
    scene.end()
