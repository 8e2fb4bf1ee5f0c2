"""What followers and readers ask brokers, in the version that they speak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from replispec.wire.kafka import constants as c
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchRequest,
    ApacheFetchTopic,
    ApacheListOffsetsPartition,
    ApacheListOffsetsRequest,
    ApacheListOffsetsTopic,
    ApacheOffsetForLeaderEpochPartition,
    ApacheOffsetForLeaderEpochRequest,
    ApacheOffsetForLeaderEpochTopic,
)
from replispec.wire.kafka.options import KafkaFollowerOptions

AskedT = TypeVar("AskedT")


class FetchLimits(NamedTuple):
    """How long an answer may wait (ms) until it has how many bytes, and how many it may have."""

    wait_ms: int
    bytes_min: int
    bytes_max: int

    @classmethod
    def of(cls, options: KafkaFollowerOptions) -> FetchLimits:
        """As a role's parameters say."""
        return cls(
            options.replica_fetch_wait_max_ms,
            options.replica_fetch_min_bytes,
            options.replica_fetch_response_max_bytes,
        )


def in_turn(partitions: Mapping[tuple[str, int], AskedT], last: tuple[str, int] | None) -> list[AskedT]:
    """All of them, by topic and number, the last one that had records at the end: an answer has room for the
    first ones."""
    keys = list(partitions)
    first = keys.index(last) + 1 if last is not None and last in partitions else 0
    return [partitions[key] for key in (*keys[first:], *keys[:first])]


def fetch_request(
    asked: Iterable[tuple[str, ApacheFetchPartition]], replica_id: int, version: int, limits: FetchLimits
) -> ApacheFetchRequest:
    """Batches of these partitions, each with its topic; no session is wanted."""
    has_session = version >= c.FETCH_WITH_SESSION
    return ApacheFetchRequest(
        replica_id=replica_id,
        max_wait=limits.wait_ms,
        min_bytes=limits.bytes_min,
        max_bytes=limits.bytes_max,
        isolation_level=0,
        session_id=0 if has_session else None,
        session_epoch=c.NO_SESSION if has_session else None,
        topics=[ApacheFetchTopic(topic, found) for topic, found in _by_topic(asked)],
        forgotten_topics=[] if has_session else None,
        rack_id="" if version >= c.FETCH_WITH_RACK else None,
    )


def epochs_request(
    asked: Iterable[tuple[str, ApacheOffsetForLeaderEpochPartition]], replica_id: int, version: int
) -> ApacheOffsetForLeaderEpochRequest:
    """Where epochs end, of partitions with their topics."""
    topics = [ApacheOffsetForLeaderEpochTopic(topic, found) for topic, found in _by_topic(asked)]
    return ApacheOffsetForLeaderEpochRequest(replica_id if version >= c.EPOCHS_WITH_REPLICA else None, topics)


def offsets_request(
    asked: Iterable[tuple[str, int, int]], replica_id: int, version: int, time: int
) -> ApacheListOffsetsRequest:
    """Where `time` lies, LATEST or EARLIEST for one, in partitions: topic, number, epoch of the leader."""
    questions = [
        (topic, ApacheListOffsetsPartition(partition, epoch if names_epoch(version) else None, time))
        for topic, partition, epoch in asked
    ]
    topics = [ApacheListOffsetsTopic(topic, found) for topic, found in _by_topic(questions)]
    return ApacheListOffsetsRequest(replica_id, 0, topics)


def names_epoch(version: int) -> bool:
    """Whether ListOffsets of this version names the epoch of the leader."""
    return version >= c.LIST_OFFSETS_WITH_EPOCH


def _by_topic(asked: Iterable[tuple[str, AskedT]]) -> Iterable[tuple[str, list[AskedT]]]:
    topics: dict[str, list[AskedT]] = {}
    for topic, each in asked:
        topics.setdefault(topic, []).append(each)
    return topics.items()
