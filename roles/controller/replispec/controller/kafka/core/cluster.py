"""What the controller knows of the cluster: brokers that live, topics, partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.wire.kafka.constants import (
    PLAIN_PROTOCOL,
    PLAIN_PROTOCOL_NUMBER,
    TOPIC_NODE_VERSION,
)
from replispec.wire.kafka.nodes import ApacheBrokerNode, ApacheTopicNode, BrokerIds

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


@dataclass(slots=True, eq=False)
class KnownTopic:
    """A topic: its node, and its partitions by number. `version` is that of the node after all writes that
    are under way, of which there are `writing`; `is_stale`: one was refused, and what the node holds was not
    read since, so that none is begun; `is_deleted`: brokers were told that it goes. `replicas` is what the
    node says of the assignment, `adding` and `removing` what it says of partitions that move."""

    name: str
    generation: int
    version: int
    replicas: Replicas = field(default_factory=dict)
    adding: Replicas = field(default_factory=dict)
    removing: Replicas = field(default_factory=dict)
    topic_id: str | None = None
    node_version: int = TOPIC_NODE_VERSION
    partitions: dict[int, LedPartition] = field(default_factory=dict)
    writing: int = 0
    is_stale: bool = False
    is_deleted: bool = False

    def read(self, data: bytes | None) -> None:
        """Go by what the node holds. Raises RemoteProtocolError, and nothing is changed then."""
        found = ApacheTopicNode.decode(data or b"")
        if found.partitions is None:
            raise RemoteProtocolError("a topic lacks partitions")
        replicas = _numbered(found.partitions)
        adding = _numbered(found.adding_replicas or {})
        removing = _numbered(found.removing_replicas or {})
        self.replicas, self.adding, self.removing = replicas, adding, removing
        self.topic_id = found.topic_id
        self.node_version = max(found.version or 0, TOPIC_NODE_VERSION)

    def node(self) -> bytes:
        """What the node is to hold."""
        return ApacheTopicNode(
            partitions=_named(self.replicas),
            adding_replicas=_named(self.adding),
            removing_replicas=_named(self.removing),
            topic_id=self.topic_id,
            version=self.node_version,
        ).encode()

    def brokers(self) -> frozenset[int]:
        """Who has a replica of any partition."""
        return frozenset(broker for each in self.partitions.values() for broker in each.assigned)


class Cluster:
    """Everything that is known. `told` counts what brokers are to hear about each other."""

    def __init__(self) -> None:
        self.brokers: dict[int, LiveBroker] = {}
        self.topics: dict[str, KnownTopic] = {}
        self.told = 0

    @property
    def live(self) -> frozenset[int]:
        """The ids of the brokers that live."""
        return frozenset(self.brokers)

    def partitions(self) -> Iterator[LedPartition]:
        """All partitions, those of deleted topics too."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def find(self, key: PartitionKey) -> LedPartition | None:
        """The partition of this name; None if there is none, or its topic is being deleted."""
        topic = self.topics.get(key[0])
        return None if topic is None or topic.is_deleted else topic.partitions.get(key[1])


def read_broker(broker_id: int, epoch: int, data: bytes | None) -> LiveBroker:
    """The broker that a node names. Raises RemoteProtocolError when it names no listener without TLS."""
    found = ApacheBrokerNode.decode(data or b"")
    protocols = found.listener_security_protocol_map or {}
    listeners = []
    for endpoint in found.endpoints or ():
        name, _, place = endpoint.partition("://")
        host, _, port = place.rpartition(":")
        number = decimal_of(port, INT32[1])
        if protocols.get(name, name) == PLAIN_PROTOCOL and number is not None:
            listeners.append(BrokerListener(name, host.strip("[]"), number))
    if not listeners:
        raise RemoteProtocolError(f"broker {broker_id} has no listener that can be used")
    return LiveBroker(broker_id, epoch, tuple(listeners), found.rack)


def _numbered(found: Mapping[str, BrokerIds]) -> Replicas:
    numbered = {}
    for name, ids in found.items():
        brokers = ids.broker_ids or []
        number = decimal_of(name, INT32[1])
        if number is None or len(set(brokers)) != len(brokers):
            raise RemoteProtocolError("a topic assigns what is no partition, or a broker twice")
        numbered[number] = tuple(brokers)
    return numbered


def _named(replicas: Replicas) -> dict[str, BrokerIds]:
    return {str(number): BrokerIds(list(brokers)) for number, brokers in sorted(replicas.items())}
