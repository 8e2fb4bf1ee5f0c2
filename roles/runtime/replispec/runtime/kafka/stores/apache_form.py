"""The store as Apache Kafka keeps it. Source: apache/kafka 2.8.2, ZkData.scala."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.runtime.kafka.stores.forms import (
    LiveBroker,
    Replicas,
    SaidRecord,
    SaidTopic,
    listener_at,
    numbered,
)
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.wire.kafka import paths
from replispec.wire.kafka.constants import (
    BROKER_NODE_VERSION,
    NO_JMX_PORT,
    NO_PARTITION,
    PLAIN_PROTOCOL,
    STATE_NODE_VERSION,
    TOPIC_NODE_VERSION,
)
from replispec.wire.kafka.nodes import (
    ApacheBrokerNode,
    ApacheControllerNode,
    ApachePartitionStateNode,
    ApacheTopicNode,
    BrokerIds,
)


class ApacheStoreForm:
    """See `StoreForm`."""

    software = "apache"
    release: tuple[int, ...] = (2, 8, 2)
    parents: Sequence[str] = tuple(
        each.at()
        for each in (
            paths.APACHE_BROKERS,
            paths.APACHE_TOPICS,
            paths.APACHE_TOPICS_DELETED,
            paths.APACHE_ISR_CHANGES,
        )
    )
    cluster: str | None = paths.APACHE_CLUSTER.at()
    controller = paths.APACHE_CONTROLLER.at()
    controller_epoch: str | None = paths.APACHE_CONTROLLER_EPOCH.at()
    brokers = paths.APACHE_BROKERS.at()
    topics = paths.APACHE_TOPICS.at()
    topics_deleted: str | None = paths.APACHE_TOPICS_DELETED.at()
    isr_changes: str | None = paths.APACHE_ISR_CHANGES.at()
    reassignments: str | None = paths.APACHE_REASSIGNMENTS.at()

    def broker(self, broker_id: int) -> str:
        """See `StoreForm`."""
        return paths.APACHE_BROKER.at(broker_id=broker_id)

    def topic(self, name: str) -> str:
        """See `StoreForm`."""
        return paths.APACHE_TOPIC.at(topic=name)

    def partitions(self, topic: str) -> str | None:
        """See `StoreForm`."""
        return paths.APACHE_PARTITIONS.at(topic=topic)

    def partition(self, topic: str, number: int) -> str:
        """See `StoreForm`."""
        return paths.APACHE_PARTITION.at(topic=topic, partition=number)

    def record(self, topic: str, number: int) -> str:
        """See `StoreForm`."""
        return paths.APACHE_STATE.at(topic=topic, partition=number)

    def broker_node(self, host: str, port: int, now_ms: int) -> bytes:
        """See `StoreForm`."""
        name, place = PLAIN_PROTOCOL, f"[{host}]" if ":" in host else host
        return ApacheBrokerNode(
            listener_security_protocol_map={name: name},
            endpoints=[f"{name}://{place}:{port}"],
            jmx_port=NO_JMX_PORT,
            port=port,
            host=host,
            version=BROKER_NODE_VERSION,
            timestamp=str(now_ms),
        ).encode()

    def read_controller(self, data: bytes) -> int | None:
        """See `StoreForm`."""
        return ApacheControllerNode.decode(data).broker_id

    def read_broker(self, broker_id: int, epoch: int, data: bytes) -> LiveBroker:
        """See `StoreForm`."""
        found = ApacheBrokerNode.decode(data)
        protocols = found.listener_security_protocol_map or {}
        listeners = []
        for endpoint in found.endpoints or ():
            name, _, place = endpoint.partition("://")
            listener = listener_at(name, place)
            if protocols.get(name, name) == PLAIN_PROTOCOL and listener is not None:
                listeners.append(listener)
        if not listeners:
            raise RemoteProtocolError(f"broker {broker_id} has no listener that can be used")
        return LiveBroker(broker_id, epoch, tuple(listeners), found.rack)

    def read_topic(self, data: bytes) -> SaidTopic:
        """See `StoreForm`."""
        found = ApacheTopicNode.decode(data)
        if found.partitions is None:
            raise RemoteProtocolError("a topic lacks partitions")
        return SaidTopic(
            _numbered(found.partitions),
            _numbered(found.adding_replicas or {}),
            _numbered(found.removing_replicas or {}),
            found.topic_id,
            max(found.version or 0, TOPIC_NODE_VERSION),
        )

    def topic_node(self, topic: SaidTopic) -> bytes:
        """See `StoreForm`."""
        return ApacheTopicNode(
            partitions=_named(topic.replicas),
            adding_replicas=_named(topic.adding),
            removing_replicas=_named(topic.removing),
            topic_id=topic.topic_id,
            version=topic.node_version,
        ).encode()

    def read_record(self, data: bytes) -> SaidRecord:
        """See `StoreForm`."""
        found = ApachePartitionStateNode.decode(data)
        if found.leader is None or found.leader_epoch is None or found.isr is None:
            raise RemoteProtocolError("a record lacks leader, leader_epoch or isr")
        decided_by = 0 if found.controller_epoch is None else found.controller_epoch
        return SaidRecord(found.leader, found.leader_epoch, tuple(found.isr), decided_by)

    def record_node(self, record: SaidRecord) -> bytes:
        """See `StoreForm`."""
        return ApachePartitionStateNode(
            controller_epoch=record.decided_by,
            leader=record.leader,
            version=STATE_NODE_VERSION,
            leader_epoch=record.leader_epoch,
            isr=list(record.isr),
        ).encode()


def _numbered(found: Mapping[str, BrokerIds]) -> Replicas:
    def number(name: str) -> int:
        known = decimal_of(name, INT32[1])
        return NO_PARTITION if known is None else known

    return numbered({number(name): ids for name, ids in found.items()})


def _named(replicas: Replicas) -> dict[str, BrokerIds]:
    return {str(number): BrokerIds(list(brokers)) for number, brokers in sorted(replicas.items())}
