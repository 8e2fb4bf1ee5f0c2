"""A broker of Kafka's replication leads: what is acknowledged, to whom, and what readers see."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.broker.kafka.fetching import CopiedPartitions
from replispec.runtime.kafka.batches import batch_of
from replispec.wire.kafka.apache import ApacheLeaderAndIsrRequest, ApacheStopReplicaRequest
from replispec.wire.kafka.clients import ApacheApiVersionsResponse, ApacheMetadataRequest, ApacheMetadataTopic
from replispec.wire.kafka.codes import ErrorCode
from tests.broker_kafka.led import LedCluster, fetch, list_offsets, only, produce, values_in

FOLLOWER = 2


def led(**given: Any) -> LedCluster:
    """One broker that leads t-0."""
    cluster = LedCluster(**given)
    cluster.administrator.create("t", [1])
    cluster.run(3_000)
    return cluster


def test_what_a_producer_sends_is_read_back() -> None:
    cluster = led()
    said = only(cluster.ask(produce("a", "b"), 3))
    assert (said.error, said.base_offset) == (ErrorCode.NONE, 0)
    assert only(cluster.ask(produce("c", acks=1), 8)).base_offset == 2
    found = only(cluster.ask(fetch(0), 4))
    assert (found.high_watermark, values_in(found.records)) == (3, ["a", "b", "c"])
    assert only(cluster.ask(list_offsets(-1), 1)).offset == 3
    assert only(cluster.ask(list_offsets(-2), 1)).offset == 0
    assert only(cluster.ask(list_offsets(1_001), 1)).offset == 1


def test_clients_find_the_leader() -> None:
    cluster = led()
    said = cluster.ask(ApacheMetadataRequest(None, allow_auto_topic_creation=False), 5)
    assert [(each.node_id, each.host, each.port) for each in said.brokers] == [(1, "10.0.2.1", 9092)]
    assert (said.controller_id, only(said).leader_id, only(said).isr_nodes) == (100, 1, [1])
    assert len(said.cluster_id) == 22
    said = cluster.ask(ApacheMetadataRequest([ApacheMetadataTopic("no")], False), 5)
    assert [each.error for each in said.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_what_was_acknowledged_is_there_after_a_crash_with_the_power() -> None:
    cluster = led()
    cluster.ask(produce("a", "b"), 3)
    cluster.world.kill("broker-1", power=True)
    cluster.run(8_000)
    cluster.start(1)
    cluster.run(8_000)
    # Whoever was connected was not told.
    cluster.client.connections.clear()
    assert values_in(only(cluster.ask(fetch(0), 4)).records) == ["a", "b"]
    assert only(cluster.ask(produce("c"), 3)).base_offset == 2


def test_acks_of_all_waits_for_who_is_in_sync_and_lets_go_who_lags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What a follower does is played here.
    monkeypatch.setattr(CopiedPartitions, "follow", lambda *_: None)
    cluster = LedCluster(brokers=2, settings={"replica_lag_time_max_ms": 6_000})
    cluster.administrator.create("t", [1, FOLLOWER])
    assert cluster.run_until(lambda: any(cluster.node().replicas.led()))
    record = cluster.record()
    assert record is not None
    assert record.isr == [1, FOLLOWER]
    assert only(cluster.ask(produce("a", timeout=100), 3)).error == ErrorCode.REQUEST_TIMED_OUT
    assert only(cluster.ask(fetch(0), 4)).high_watermark == 0
    assert values_in(only(cluster.ask(fetch(0, replica=FOLLOWER), 4)).records) == ["a"]
    cluster.ask(fetch(1, replica=FOLLOWER), 4)
    assert values_in(only(cluster.ask(fetch(0), 4)).records) == ["a"]
    # It lags only once there is something that it does not fetch.
    assert only(cluster.ask(produce("b", timeout=15_000), 3)).error == ErrorCode.NONE
    assert cluster.record().isr == [1]  # type: ignore[union-attr]
    # Who fetches all there is comes back, by one write of the record each.
    cluster.ask(fetch(2, replica=FOLLOWER), 4)
    cluster.run(1_000)
    record = cluster.record()
    assert record is not None
    assert (record.isr, record.version) == ([1, FOLLOWER], 2)


def test_too_small_an_isr_takes_nothing() -> None:
    cluster = led(settings={"min_insync_replicas": 2})
    assert only(cluster.ask(produce("a"), 3)).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert only(cluster.ask(produce("a", acks=1), 3)).error == ErrorCode.NONE


def test_a_fetch_waits_for_records() -> None:
    cluster = led()
    cluster.send(fetch(0, max_wait=10_000), 4)
    cluster.run(500)
    assert cluster.client.answers == []
    cluster.send_apart(produce("a"), 3)
    assert cluster.run_until(lambda: len(cluster.client.answers) == 2)
    assert ["a"] in [values_in(getattr(only(each), "records", None)) for each in cluster.client.answers]


@pytest.mark.parametrize(
    ("message", "version", "error"),
    [
        (produce("a", acks=2), 3, ErrorCode.INVALID_REQUIRED_ACKS),
        (produce("a", topic="no"), 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(data=b""), 3, ErrorCode.INVALID_RECORD),
        (produce(data=batch_of([(1, None, b"x")])[:-1]), 3, ErrorCode.CORRUPT_MESSAGE),
        (produce(data=bytes(2_000_000)), 3, ErrorCode.MESSAGE_TOO_LARGE),
        (fetch(1), 4, ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(0, replica=7), 4, ErrorCode.REPLICA_NOT_AVAILABLE),
        (fetch(0, topic="no"), 4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch(0, epoch=9), 9, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_what_cannot_be_done_is_refused(message: Any, version: int, error: ErrorCode) -> None:
    cluster = led()
    assert only(cluster.ask(message, version)).error == error


def test_unknown_versions_of_the_first_question_are_told_which_are_known() -> None:
    cluster = LedCluster()
    said = ApacheApiVersionsResponse.decode(cluster.ask(b"", 3, key=18), version=0)
    assert said.error == ErrorCode.UNSUPPORTED_VERSION
    assert (1, 4, 11) in {(each.api_key, each.min_version, each.max_version) for each in said.api_keys}
    cluster.send(b"", 0, key=99)
    cluster.run(500)
    assert cluster.client.closed == ["10.0.2.1:9092"]


def test_who_is_no_controller_any_more_is_not_obeyed() -> None:
    cluster = led()
    stop = ApacheStopReplicaRequest(100, 0, None, delete_partitions=True, partitions=[])
    assert cluster.ask(stop, 0).error == ErrorCode.STALE_EPOCH
    lead = ApacheLeaderAndIsrRequest(100, 1, 1, topics=[])
    assert cluster.ask(lead, 2).error == ErrorCode.STALE_BROKER_EPOCH


def test_a_deleted_topic_is_gone_from_the_disk_and_may_come_again() -> None:
    cluster = led()
    cluster.ask(produce("a"), 3)
    cluster.administrator.delete("t")
    cluster.run(5_000)
    assert only(cluster.ask(fetch(0), 4)).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.administrator.create("t", [1])
    cluster.run(5_000)
    assert only(cluster.ask(fetch(0), 4)).high_watermark == 0
