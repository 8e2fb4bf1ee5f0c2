"""The store as the design has it. Source: Kafka replication, detailed design V3, "Paths"."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.kafka.stores.forms import (
    BrokerListener,
    LiveBroker,
    SaidRecord,
    SaidTopic,
    numbered,
)
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka import paths
from replispec.wire.kafka.constants import DESIGN_VERSION_2, NO_CONTROLLER_EPOCH, PLAIN_PROTOCOL
from replispec.wire.kafka.nodes import (
    BrokerIds,
    DecimalNode,
    DesignBrokerNode,
    DesignLeaderAndIsrNode,
    DesignTopicNode,
)


class DesignStoreForm:
    """See `StoreForm`. In version 1 nothing tells a controller from the one before it."""

    software = "design"
    release: tuple[int, ...] = (3,)
    parents: Sequence[str] = (paths.DESIGN_BROKERS.at(), paths.DESIGN_TOPICS.at())
    cluster: str | None = None
    controller = paths.DESIGN_CONTROLLER.at()
    brokers = paths.DESIGN_BROKERS.at()
    topics = paths.DESIGN_TOPICS.at()
    topics_deleted: str | None = None
    isr_changes: str | None = None
    reassignments: str | None = None

    def __init__(self, version: int) -> None:
        is_fenced = version >= DESIGN_VERSION_2
        self.controller_epoch: str | None = paths.DESIGN_CONTROLLER_EPOCH.at() if is_fenced else None

    def broker(self, broker_id: int) -> str:
        """See `StoreForm`."""
        return paths.DESIGN_BROKER.at(broker_id=broker_id)

    def topic(self, name: str) -> str:
        """See `StoreForm`."""
        return paths.DESIGN_TOPIC.at(topic=name)

    def partitions(self, topic: str) -> str | None:  # noqa: ARG002
        """See `StoreForm`: they are below the topic itself."""
        return None

    def partition(self, topic: str, number: int) -> str:
        """See `StoreForm`."""
        return self.record(topic, number).rpartition("/")[0]

    def record(self, topic: str, number: int) -> str:
        """See `StoreForm`."""
        return paths.DESIGN_LEADER_AND_ISR.at(topic=topic, partition=number)

    def broker_node(self, host: str, port: int, now_ms: int) -> bytes:  # noqa: ARG002
        """See `StoreForm`."""
        return DesignBrokerNode(host, port).encode()

    def read_controller(self, data: bytes) -> int | None:
        """See `StoreForm`."""
        return DecimalNode.decode(data).number

    def read_broker(self, broker_id: int, epoch: int, data: bytes) -> LiveBroker:
        """See `StoreForm`."""
        found = DesignBrokerNode.decode(data)
        return LiveBroker(broker_id, epoch, (BrokerListener(PLAIN_PROTOCOL, found.host, found.port),))

    def read_topic(self, data: bytes) -> SaidTopic:
        """See `StoreForm`."""
        return SaidTopic(numbered(DesignTopicNode.decode(data).partitions or {}), {}, {})

    def topic_node(self, topic: SaidTopic) -> bytes:
        """See `StoreForm`."""
        said = {number: BrokerIds(list(brokers)) for number, brokers in sorted(topic.replicas.items())}
        return DesignTopicNode(said).encode()

    def read_record(self, data: bytes) -> SaidRecord:
        """See `StoreForm`."""
        found = DesignLeaderAndIsrNode.decode(data)
        if found.leader is None or found.leader_epoch is None or found.isr is None:
            raise RemoteProtocolError("a record lacks leader, leader_epoc or ISR")
        return SaidRecord(found.leader, found.leader_epoch, tuple(found.isr), NO_CONTROLLER_EPOCH)

    def record_node(self, record: SaidRecord) -> bytes:
        """See `StoreForm`."""
        return DesignLeaderAndIsrNode(
            leader_epoch=record.leader_epoch, leader=record.leader, isr=list(record.isr)
        ).encode()
