"""What the store holds of brokers, topics and records, as a broker of the design reads it.

It is where clients are sent, and what this broker has when it begins. Source: Kafka replication, detailed
design V3, on_broker_startup, discussion 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from replispec.broker.kafka.core.places import ToldPlaces
from replispec.broker.kafka.core.replica import ReplicaKey
from replispec.runtime.kafka.stores.forms import LiveBroker, SaidRecord, SaidTopic, StoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import MetastoreClient, SeenNode, Watching
from replispec.wire.kafka.apache import (
    ApacheUpdateMetadataBroker,
    ApacheUpdateMetadataEndpoint,
    ApacheUpdateMetadataPartition,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.constants import LEADER_DELETED, NO_LEADER


class PartitionsStoreView:
    """Reads and watches all of it. `whole` is told once all that was there has been read."""

    def __init__(
        self,
        outbox: Outbox,
        client: MetastoreClient,
        form: StoreForm,
        places: ToldPlaces,
        whole: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._form: Final = form
        self._places = places
        self._whole = whole
        self._watched: dict[str, Watching] = {}
        self._brokers: dict[int, LiveBroker] = {}
        self._controller_id = NO_LEADER
        self.topics: dict[str, SaidTopic] = {}
        self.records: dict[ReplicaKey, tuple[SaidRecord, int]] = {}
        """What the records say, and the versions of their nodes."""
        self._odd: set[str] = set()
        self._changed: set[ReplicaKey] = set()
        self._is_changed = False
        self._unread: set[str] | None = set()

    @property
    def understands_all(self) -> bool:
        """Whether every topic's node was understood."""
        return not self._odd

    def begin(self) -> None:
        """Read and watch."""
        if not self._watched:
            self._watch(self._form.controller, self._controller_seen)
            self._watch(self._form.brokers, self._brokers_seen, children=True)
            self._watch(self._form.topics, self._topics_seen, children=True)

    def assigned(self, key: ReplicaKey) -> tuple[int, ...]:
        """Who has a replica; nobody where the store does not say."""
        topic = self.topics.get(key[0])
        return () if topic is None else tuple(topic.replicas.get(key[1], ()))

    def assigned_to(self, broker_id: int) -> Iterator[ReplicaKey]:
        """The partitions of which a broker has a replica."""
        for name, topic in self.topics.items():
            yield from ((name, number) for number, each in topic.replicas.items() if broker_id in each)

    def settle(self) -> None:
        """Tell clients' places what has changed."""
        if self._unread is not None or not self._is_changed:
            return
        self._is_changed = False
        changed, self._changed = self._changed, set()
        self._places.told(
            ApacheUpdateMetadataRequest(
                controller_id=self._controller_id,
                partitions=[self._place(each) for each in sorted(changed)],
                live_brokers=[_shown(each) for _, each in sorted(self._brokers.items())],
            )
        )

    def _place(self, key: ReplicaKey) -> ApacheUpdateMetadataPartition:
        found = self.records.get(key)
        record = SaidRecord(NO_LEADER, 0, (), 0) if found is None else found[0]
        is_gone = not self.assigned(key)
        return ApacheUpdateMetadataPartition(
            topic_name=key[0],
            partition_index=key[1],
            controller_epoch=record.decided_by,
            leader=LEADER_DELETED if is_gone else record.leader,
            leader_epoch=record.leader_epoch,
            isr=list(record.isr),
            zk_version=0 if found is None else found[1],
            replicas=list(self.assigned(key)),
            offline_replicas=[each for each in self.assigned(key) if each not in self._brokers],
        )

    # Watching

    def _watch(self, path: str, seen: Callable[[SeenNode], None], *, children: bool = False) -> None:
        if path in self._watched:
            return
        if self._unread is not None:
            self._unread.add(path)
        self._watched[path] = self._client.watch(path, partial(self._seen, path, seen), children=children)

    def _seen(self, path: str, seen: Callable[[SeenNode], None], node: SeenNode) -> None:
        try:
            seen(node)
        except RemoteProtocolError as error:
            self._odd.add(path)
            self._outbox.note(
                Level.WARNING, "node not understood", kind="store", name=path, reason=str(error)
            )
        else:
            self._odd.discard(path)
        self._is_changed = True
        if self._unread is not None:
            self._unread.discard(path)
            if not self._unread:
                self._unread = None
                self._whole()

    def _forget(self, path: str) -> None:
        watching = self._watched.pop(path, None)
        if watching is not None:
            watching.stop()
        self._odd.discard(path)

    # What is seen

    def _controller_seen(self, node: SeenNode) -> None:
        found = None if node.stat is None else self._form.read_controller(node.data or b"")
        self._controller_id = NO_LEADER if found is None else found

    def _brokers_seen(self, node: SeenNode) -> None:
        numbers = (decimal_of(name, INT32[1]) for name in node.children)
        named = {number for number in numbers if number is not None}
        for broker_id in self._brokers.keys() - named:
            del self._brokers[broker_id]
            self._forget(self._form.broker(broker_id))
        for broker_id in sorted(named):
            self._watch(self._form.broker(broker_id), partial(self._broker_seen, broker_id))

    def _broker_seen(self, broker_id: int, node: SeenNode) -> None:
        self._brokers.pop(broker_id, None)
        if node.stat is not None:
            found = self._form.read_broker(broker_id, node.stat.czxid, node.data or b"")
            self._brokers[broker_id] = found

    def _topics_seen(self, node: SeenNode) -> None:
        for name in self.topics.keys() - set(node.children):
            self._topic_left(name)
        for name in sorted(node.children):
            self._watch(self._form.topic(name), partial(self._topic_seen, name))

    def _topic_seen(self, name: str, node: SeenNode) -> None:
        if node.stat is None:
            self._topic_left(name)
            return
        topic = self._form.read_topic(node.data or b"")
        self.topics[name] = topic
        for number in topic.replicas:
            self._changed.add((name, number))
            path = self._form.record(name, number)
            self._watch(path, partial(self._record_seen, (name, number)))

    def _topic_left(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        self._forget(self._form.topic(name))
        for number in () if topic is None else topic.replicas:
            self._forget(self._form.record(name, number))
            self.records.pop((name, number), None)
            self._changed.add((name, number))

    def _record_seen(self, key: ReplicaKey, node: SeenNode) -> None:
        self._changed.add(key)
        if node.stat is None:
            self.records.pop(key, None)
        else:
            self.records[key] = (self._form.read_record(node.data or b""), node.stat.version)


def _shown(broker: LiveBroker) -> ApacheUpdateMetadataBroker:
    endpoints = [
        ApacheUpdateMetadataEndpoint(each.port, each.host, each.name, each.protocol)
        for each in broker.listeners
    ]
    return ApacheUpdateMetadataBroker(broker.broker_id, endpoints, broker.rack)
