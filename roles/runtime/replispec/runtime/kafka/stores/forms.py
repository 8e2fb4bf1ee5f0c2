"""Where and how the store keeps what a controller reads and writes, whichever profile it goes by.

What is decided, and when, is said by the machines. Source: Kafka replication, detailed design V3, "Paths";
apache/kafka 2.8.2, ZkData.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.wire.kafka.constants import PLAIN_PROTOCOL_NUMBER, TOPIC_NODE_VERSION
from replispec.wire.kafka.nodes import BrokerIds

Replicas = Mapping[int, Sequence[int]]
"""Brokers by the number of the partition."""


@immutable
class BrokerListener:
    """Where a broker listens without TLS and SASL, under a name."""

    name: str
    host: str
    port: int
    protocol: int = PLAIN_PROTOCOL_NUMBER


@immutable
class LiveBroker:
    """A broker that lives; `epoch` is that of its registration. It is commanded at its first listener."""

    broker_id: int
    epoch: int
    listeners: Sequence[BrokerListener]
    rack: str | None = None

    @property
    def address(self) -> str:
        """HOST:PORT."""
        first = self.listeners[0]
        host = f"[{first.host}]" if ":" in first.host else first.host
        return f"{host}:{first.port}"


@immutable
class SaidTopic:
    """What a topic's node says: `adding` and `removing` are those of partitions that move."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas
    topic_id: str | None = None
    node_version: int = TOPIC_NODE_VERSION


@immutable
class SaidRecord:
    """What the record of a partition says: `leader` is NO_LEADER for none, `decided_by` the epoch of the
    controller that wrote it."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    decided_by: int


class StoreForm(Protocol):
    """The paths, and what their nodes hold. What a profile does not have is None."""

    software: str
    release: tuple[int, ...]
    """By whose overlays the machines go."""
    parents: Sequence[str]
    """Nodes that brokers make where they are missing, each with those above it."""
    cluster: str | None
    controller: str
    controller_epoch: str | None
    brokers: str
    topics: str
    topics_deleted: str | None
    isr_changes: str | None
    reassignments: str | None

    def broker(self, broker_id: int) -> str:
        """The path of a broker that lives."""
        ...

    def topic(self, name: str) -> str:
        """The path of a topic."""
        ...

    def partitions(self, topic: str) -> str | None:
        """The path below which the partitions of a topic are, if that is not the topic's own."""
        ...

    def partition(self, topic: str, number: int) -> str:
        """The path below which the record of a partition is."""
        ...

    def record(self, topic: str, number: int) -> str:
        """The path of the record of a partition."""
        ...

    def broker_node(self, host: str, port: int, now_ms: int) -> bytes:
        """The node of a broker that listens there."""
        ...

    def read_controller(self, data: bytes) -> int | None:
        """Which broker the node of the controller names. Raises RemoteProtocolError."""
        ...

    def read_broker(self, broker_id: int, epoch: int, data: bytes) -> LiveBroker:
        """The broker that a node names. Raises RemoteProtocolError when it names no listener without TLS."""
        ...

    def read_topic(self, data: bytes) -> SaidTopic:
        """What a topic's node says. Raises RemoteProtocolError."""
        ...

    def topic_node(self, topic: SaidTopic) -> bytes:
        """The node of a topic."""
        ...

    def read_record(self, data: bytes) -> SaidRecord:
        """What a record says. Raises RemoteProtocolError."""
        ...

    def record_node(self, record: SaidRecord) -> bytes:
        """The record of a partition."""
        ...


def numbered(found: Mapping[int, BrokerIds]) -> Replicas:
    """Brokers of partitions. Raises RemoteProtocolError for what is no partition, or assigned twice."""
    replicas = {}
    for number, ids in found.items():
        brokers = ids.broker_ids or []
        if not 0 <= number <= INT32[1] or len(set(brokers)) != len(brokers):
            raise RemoteProtocolError("a topic assigns what is no partition, or a broker twice")
        replicas[number] = tuple(brokers)
    return replicas


def listener_at(name: str, place: str) -> BrokerListener | None:
    """The listener at HOST:PORT; None where that is none."""
    host, _, port = place.rpartition(":")
    number = decimal_of(port, INT32[1])
    return None if number is None else BrokerListener(name, host.strip("[]"), number)
