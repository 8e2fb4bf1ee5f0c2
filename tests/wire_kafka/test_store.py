"""Nodes of the store and files of a log folder: those that a real Kafka left, and hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replispec.runtime.kafka.batches import batches_in, next_offset, records_of
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka import folder, nodes
from tests.wire_kafka.written import FOLDER

FILES = FOLDER / "folder"
NODES = {
    said["path"]: said["value"].encode()
    for said in map(json.loads, (FOLDER / "nodes.jsonl").read_text("utf-8").splitlines())
    if said["value"] is not None
}
# What each node of the real store is.
KINDS: dict[str, Any] = {
    "/brokers/ids/1": nodes.ApacheBrokerNode,
    "/brokers/topics/t": nodes.ApacheTopicNode,
    "/brokers/topics/t/partitions/0/state": nodes.ApachePartitionStateNode,
    "/brokers/topics/t/partitions/1/state": nodes.ApachePartitionStateNode,
    "/controller": nodes.ApacheControllerNode,
    "/controller_epoch": nodes.DecimalNode,
    "/cluster/id": nodes.ApacheClusterNode,
    "/admin/reassign_partitions": nodes.ApacheReassignmentNode,
}


def test_every_node_of_kafkas_that_holds_something_is_specified() -> None:
    assert NODES.keys() == KINDS.keys()


@pytest.mark.parametrize("path", NODES)
def test_a_node_of_kafkas_is_read_whole_and_written_byte_for_byte(path: str) -> None:
    node = KINDS[path].decode(NODES[path])
    assert getattr(node, "unknown", {}) == {}
    assert node.encode() == NODES[path]


def test_what_the_nodes_say_is_what_was_done() -> None:
    topic = nodes.ApacheTopicNode.decode(NODES["/brokers/topics/t"])
    assert topic.partitions == {"0": nodes.BrokerIds([1]), "1": nodes.BrokerIds([1, 9])}
    assert topic.adding_replicas == {"1": nodes.BrokerIds([9])}
    state = nodes.ApachePartitionStateNode.decode(NODES["/brokers/topics/t/partitions/1/state"])
    assert (state.leader, state.leader_epoch, state.isr, state.controller_epoch) == (1, 1, [1], 1)
    asked = nodes.ApacheReassignmentNode.decode(NODES["/admin/reassign_partitions"])
    assert asked.partitions == [nodes.ApacheReassignedPartition(topic="t", partition=1, replicas=[1, 9])]


@pytest.mark.parametrize(
    ("node", "data"),
    [
        (nodes.DecimalNode(3), b"3"),
        (nodes.DesignBrokerNode("h.example", 9092), b"h.example:9092"),
        (
            nodes.DesignTopicNode({0: nodes.BrokerIds([1, 2]), 1: nodes.BrokerIds([2])}),
            b'{"0":[1,2],"1":[2]}',
        ),
        (
            nodes.DesignLeaderAndIsrNode(leader_epoch=5, leader=-1, isr=[1, 2]),
            b'{"leader_epoc":5,"leader":-1,"ISR":[1,2]}',
        ),
        (nodes.BrokerIds([3, 1]), b"[3,1]"),
        (
            nodes.ApacheIsrChangeNode(
                version=1, partitions=[nodes.ApacheTopicPartition(topic="t", partition=0)]
            ),
            b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        ),
        (
            nodes.ApacheConfigNode(version=1, config={"min.insync.replicas": "2"}),
            b'{"version":1,"config":{"min.insync.replicas":"2"}}',
        ),
    ],
)
def test_nodes_that_are_written_by_the_design_or_seldom(node: Any, data: bytes) -> None:
    assert node.encode() == data
    assert type(node).decode(data) == node


@pytest.mark.parametrize("kind", [*dict.fromkeys(KINDS.values()), nodes.DesignTopicNode, nodes.BrokerIds])
@pytest.mark.parametrize("data", [b"", b"{", b"[1", b'"', b"\xff", b"1" * 30, b'{"partitions":7}x', b"[[]]"])
def test_a_node_that_is_none_is_blamed_on_whoever_wrote_it(kind: Any, data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        kind.decode(data)


# ---- files ---------------------------------------------------------------------------------------


def test_kafkas_segments_are_batches_that_continue_one_another() -> None:
    end = 0
    for file in sorted((FILES / "t-0").glob("*.log")):
        assert int(file.stem) == end
        data = file.read_bytes()
        for batch in batches_in(data, may_be_cut=False):
            assert (batch.head.base_offset, batch.head.partition_leader_epoch) == (end, 0)
            (record,) = records_of(data, batch)
            assert record.value == bytes(60 + end)
            assert [(each.key, each.value) for each in record.headers] == [("n", b"%d" % end)]
            end = next_offset(batch.head)
    assert end == 8


def test_kafkas_checkpoints_are_read_and_written_byte_for_byte() -> None:
    data = (FILES / "replication-offset-checkpoint").read_bytes()
    offsets = folder.OffsetCheckpoint.decode(data)
    assert {(each.topic, each.partition): each.offset for each in offsets.partitions}[("t", 0)] == 8
    assert offsets.encode() == data
    data = (FILES / "t-0/leader-epoch-checkpoint").read_bytes()
    assert folder.EpochCheckpoint.decode(data).epochs == [folder.EpochStart(0, 0)]
    assert folder.EpochCheckpoint.decode(data).encode() == data


def test_kafkas_properties_are_read_and_ours_say_the_same() -> None:
    data = (FILES / "meta.properties").read_bytes()
    found = folder.MetaProperties.decode(data)
    assert found.broker_id == 1
    assert found.cluster_id == nodes.ApacheClusterNode.decode(NODES["/cluster/id"]).cluster_id
    assert found.unknown == {}
    lines = [line for line in data.splitlines() if not line.startswith(b"#")]
    assert sorted(found.encode().splitlines()) == sorted(lines)


def test_a_property_that_is_not_known_is_kept() -> None:
    data = b"broker.id=3\nversion=0\nlater=\\u00e4\n"
    found = folder.MetaProperties.decode(data)
    assert (found.broker_id, found.cluster_id, found.unknown) == (3, None, {"later": "ä"})
    assert folder.MetaProperties.decode(found.encode()) == found


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        (folder.OffsetCheckpoint, b"", "the last line is not ended|at least 2"),
        (folder.OffsetCheckpoint, b"0\n", "at least 2 expected"),
        (folder.OffsetCheckpoint, b"1\n0\n", "version: 1 is written, 0 is read"),
        (folder.OffsetCheckpoint, b"0\n2\nt 0 5\n", "2 is written, 1 is true"),
        (folder.OffsetCheckpoint, b"0\n1\nt 0 5", "the last line is not ended"),
        (folder.OffsetCheckpoint, b"0\n1\nt 0\n", "2 fields"),
        (folder.OffsetCheckpoint, b"0\n1\nt 0 -5\n", "-5 is outside 0"),
        (folder.OffsetCheckpoint, b"0\n1\nt -1 5\n", "-1 is outside 0"),
        (folder.EpochCheckpoint, b"0\n1\n99999999999 5\n", "outside 0"),
        (folder.MetaProperties, b"version=0\n", "nothing says broker.id"),
        (folder.MetaProperties, b"version=1\nbroker.id=1\n", "1 is written, 0 is read"),
        (folder.MetaProperties, b"version=0\nbroker.id=one\n", "is not a number"),
        (folder.MetaProperties, b"version=0\nbroker.id=\\u12\n", "four hexadecimal digits"),
        (folder.MetaProperties, b"\xff", "not UTF-8"),
    ],
)
def test_a_file_that_is_not_whole_is_not_believed(kind: Any, data: bytes, says: str) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        kind.decode(data)
