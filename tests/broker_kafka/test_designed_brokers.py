"""Brokers and a controller of ours that go by the design alone: its paths, its requests, INIT, starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.world import Connected, Effect, Event, Member, Outbox, Received, Started
from replispec.wire.kafka import paths
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.commands import DESIGN_RESPONSE_FRAME
from replispec.wire.kafka.design import (
    DesignLeaderAndIsr,
    DesignLeaderAndIsrRequest,
    DesignReplicaFetchRequest,
)
from replispec.wire.kafka.nodes import BrokerIds, DesignBrokerNode, DesignLeaderAndIsrNode, DesignTopicNode
from replispec.wire.kafka.requests import DesignRequestFrame, DesignResponseFrame
from replispec.wire.kafka.streams import DESIGN_RESPONSES
from tests.broker_kafka.led import PORT, LedCluster, fetch, only, produce, values_in
from tests.controller_kafka.simulated import Record

VERSIONS = (1, 2)
ALL = [1, 2, 3]
KEY = ("t", 0)


class DesignedBrokers(LedCluster):
    """Three brokers, one of which is the controller."""

    def __init__(self, version: int) -> None:
        settings = {
            "controller_candidate": True,
            "replica_lag_time_max_ms": 2_000,
            "replication_profile": f"design@3 version {version}",
        }
        super().__init__(brokers=len(ALL), candidates=0, settings=settings)

    def create(self, topic: str, *replicas: Sequence[int]) -> None:
        assigned = {number: BrokerIds(list(each)) for number, each in enumerate(replicas)}
        path, node = paths.DESIGN_TOPIC.at(topic=topic), DesignTopicNode(assigned).encode()
        self.administrator.client.create(path, node, lambda _: None)

    def record(self, topic: str = "t", partition: int = 0) -> Record | None:
        found = self.store.find(paths.DESIGN_LEADER_AND_ISR.at(topic=topic, partition=partition))
        if found is None:
            return None
        node = DesignLeaderAndIsrNode.decode(found.data)
        assert node.leader is not None
        assert node.leader_epoch is not None
        return Record(node.leader, node.leader_epoch, sorted(node.isr or []), found.version)

    def leader(self) -> int:
        found = self.record()
        return -1 if found is None else found.leader

    def is_whole(self) -> bool:
        found = self.record()
        return found is not None and found.isr == ALL

    def held(self, broker: int) -> list[str]:
        log = self.node(broker).replicas.by_key[KEY].log
        return values_in(log.read(0, 1 << 20, log.end))


@pytest.fixture(params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> DesignedBrokers:
    made = DesignedBrokers(request.param)
    made.create("t", ALL)
    assert made.run_until(made.is_whole)
    made.run(2_000)
    return made


def test_brokers_are_registered_as_the_design_says(cluster: DesignedBrokers) -> None:
    found = cluster.data(paths.DESIGN_BROKER.at(broker_id=2))
    assert DesignBrokerNode.decode(found or b"") == DesignBrokerNode("10.0.2.2", 9092)


def test_what_is_acknowledged_is_in_every_log_and_read_by_clients(cluster: DesignedBrokers) -> None:
    leader = cluster.leader()
    assert only(cluster.ask(produce("a", "b"), 3, broker=leader)).error == 0
    cluster.run(1_000)
    assert [cluster.held(each) for each in ALL] == [["a", "b"]] * 3
    assert values_in(only(cluster.ask(fetch(0), 4, broker=leader)).records) == ["a", "b"]


def test_a_leader_that_ends_is_followed_and_comes_back(cluster: DesignedBrokers) -> None:
    first = cluster.leader()
    assert only(cluster.ask(produce("a"), 3, broker=first)).error == 0
    cluster.kill(first)
    assert cluster.run_until(lambda: cluster.leader() not in (first, -1))
    now = cluster.leader()
    cluster.run(3_000)
    assert only(cluster.ask(produce("b"), 3, broker=now)).error == 0
    cluster.start(first)
    assert cluster.run_until(cluster.is_whole)
    cluster.run(1_000)
    assert cluster.held(first) == ["a", "b"]


def test_what_is_not_assigned_any_more_when_a_broker_begins_is_deleted(cluster: DesignedBrokers) -> None:
    cluster.create("gone", [2, 3])
    assert cluster.run_until(lambda: ("gone", 0) in cluster.node(2).replicas.by_key)
    cluster.run(1_000)
    cluster.kill(2)
    record = paths.DESIGN_LEADER_AND_ISR.at(topic="gone", partition=0)
    for path in (record, record.rpartition("/")[0], paths.DESIGN_TOPIC.at(topic="gone")):
        cluster.administrator.client.delete(path, -1, lambda _: None)
    cluster.run(8_000)
    cluster.start(2)
    assert cluster.run_until(cluster.is_whole)
    cluster.run(1_000)
    logs = cluster.node(2)._keeper.folder.logs
    assert sorted(logs) == [KEY]


def test_a_broker_that_does_not_understand_a_topic_deletes_nothing_when_it_begins(
    cluster: DesignedBrokers,
) -> None:
    path = paths.DESIGN_TOPIC.at(topic="t")
    cluster.kill(2)
    cluster.administrator.client.set_data(path, b"no JSON", -1, lambda _: None)
    cluster.run(8_000)
    cluster.start(2)
    cluster.run(5_000)
    assert cluster.data(paths.DESIGN_BROKER.at(broker_id=2)) is not None
    assert KEY in cluster.node(2)._keeper.folder.logs


class DesignCaller:
    """Asks one broker by the design's requests, one after the other."""

    listeners: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.frames: list[DesignRequestFrame] = []
        self.asked: list[DesignRequestFrame] = []
        self.answers: list[Any] = []
        self.buffer = FrameBuffer(DESIGN_RESPONSES)

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Started():
                self.outbox.dial(f"10.0.2.1:{PORT}")
            case Connected(connection):
                for frame in self.frames:
                    self.outbox.send(connection, frame.encode())
            case Received(_, data):
                for each in self.buffer.receive(data):
                    asked = self.asked.pop(0)
                    form = DESIGN_RESPONSE_FRAME.form_of(asked.request_type_id, asked.version_id)
                    assert form is not None
                    answer: Any = form.answer
                    body = DesignResponseFrame.decode(each).body
                    self.answers.append(answer.decode(body, version=asked.version_id))
            case _:
                pass
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        return None


def answers(cluster: DesignedBrokers, version: int, *messages: Any) -> list[Any]:
    """What the first broker answers to these requests."""
    caller = DesignCaller()
    for each in messages:
        (code,) = type(each).CODES
        caller.frames.append(DesignRequestFrame(code, version, each.encode(version=version)))
    caller.asked = list(caller.frames)
    cluster.world.add("caller", "10.0.7.1", lambda _: [Member("caller", caller)])
    cluster.world.start("caller")
    assert cluster.run_until(lambda: len(caller.answers) == len(messages))
    return caller.answers


def test_a_follower_of_the_design_fetches_and_a_stranger_reads_what_is_committed() -> None:
    cluster = DesignedBrokers(2)
    cluster.create("t", [1])
    assert cluster.run_until(lambda: cluster.leader() == 1)
    cluster.run(2_000)
    assert only(cluster.ask(produce("a"), 3)).error == 0
    found, beyond = answers(
        cluster, 2, DesignReplicaFetchRequest("t", 0, 99, 0), DesignReplicaFetchRequest("t", 0, 99, 5)
    )
    assert (found.error, found.high_watermark, values_in(found.messages)) == (0, 1, ["a"])
    assert beyond.error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_controller_that_was_followed_by_another_is_refused_for_each_partition_in_version_2() -> None:
    cluster = DesignedBrokers(2)
    cluster.create("t", [1])
    assert cluster.run_until(lambda: cluster.leader() == 1)
    cluster.run(2_000)
    old = DesignLeaderAndIsrRequest(
        client_id=9, controller_epoch=0, ack_timeout=1, is_init=True, partitions=[
            DesignLeaderAndIsr("u", 0, 9, 7, [9], 0, [9, 1], 1)
        ],
    )  # fmt: skip
    (answer,) = answers(cluster, 2, old)
    assert [(each.topic, each.error) for each in answer.errors] == [("u", ErrorCode.STALE_EPOCH)]
    assert KEY in cluster.node(1)._keeper.folder.logs
