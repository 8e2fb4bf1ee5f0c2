"""What the controller knows of the cluster: brokers that live, topics, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.runtime.kafka.stores.forms import LiveBroker, Replicas, SaidTopic, StoreForm
from replispec.wire.kafka.constants import TOPIC_NODE_VERSION


@dataclass(slots=True, eq=False)
class KnownTopic:
    """A topic: its node, and its partitions by number. `version` is that of the node after all writes that
    are under way, of which there are `writing`; `is_stale`: one was refused, and what the node holds was not
    read since, so that none is begun; `is_deleted`: brokers were told that it goes. `replicas` is what the
    node says of the assignment, `adding` and `removing` what it says of partitions that move."""

    form: StoreForm
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
        found = self.form.read_topic(data or b"")
        self.replicas, self.adding, self.removing = found.replicas, found.adding, found.removing
        self.topic_id, self.node_version = found.topic_id, found.node_version

    def node(self) -> bytes:
        """What the node is to hold."""
        return self.form.topic_node(
            SaidTopic(self.replicas, self.adding, self.removing, self.topic_id, self.node_version)
        )

    def brokers(self) -> frozenset[int]:
        """Who has a replica of any partition."""
        return frozenset(broker for each in self.partitions.values() for broker in each.assigned)


class Cluster:
    """Everything that is known. `told` counts what brokers are to hear about each other, `odd` are topics
    whose nodes are not understood."""

    def __init__(self, form: StoreForm) -> None:
        self.form = form
        self.brokers: dict[int, LiveBroker] = {}
        self.topics: dict[str, KnownTopic] = {}
        self.told = 0
        self.odd: set[str] = set()

    @property
    def live(self) -> frozenset[int]:
        """The ids of the brokers that live."""
        return frozenset(self.brokers)

    def partitions(self) -> Iterator[LedPartition]:
        """All partitions, those of deleted topics too."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def knows_all_of(self, broker_id: int) -> bool:
        """Whether everything that the store holds of a broker's replicas was understood."""
        mine = (each for each in self.partitions() if broker_id in each.assigned)
        return not self.odd and not any(each.is_broken for each in mine)

    def find(self, key: PartitionKey) -> LedPartition | None:
        """The partition of this name; None if there is none, or its topic is being deleted."""
        topic = self.topics.get(key[0])
        return None if topic is None or topic.is_deleted else topic.partitions.get(key[1])
