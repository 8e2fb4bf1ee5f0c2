"""What the store holds of brokers, topics and wishes: read and watched as long as this is the controller.

Everything is told as it is read; `whole` once, when all that was there at the beginning has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from replispec.controller.kafka.core.cluster import Cluster, KnownTopic
from replispec.controller.kafka.core.partition import LedPartition
from replispec.controller.kafka.leaders import Leaders
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.kafka.stores.forms import LiveBroker
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import BatchItem, SeenNode, Watching
from replispec.wire.kafka.machines import partition as machine
from replispec.wire.kafka.nodes import ApacheIsrChangeNode
from replispec.wire.zookeeper.constants import ANY_VERSION
from replispec.wire.zookeeper.operations import DeleteRequest


class ToldOfStore(Protocol):
    """Whoever decides."""

    def whole(self) -> None:
        """All that was there has been read."""

    def broker_came(self, broker: LiveBroker) -> None:
        """A broker has registered; it may have been registered before."""

    def broker_left(self, broker_id: int) -> None:
        """The registration of a broker is gone."""

    def partition_came(self, one: LedPartition) -> None:
        """A topic has this partition."""

    def topic_left(self, topic: KnownTopic) -> None:
        """The node of a topic is gone."""

    def deletions_wanted(self, topics: Sequence[str]) -> None:
        """These are to be deleted."""

    def moves_wanted(self, data: bytes | None, version: int) -> None:
        """What the node of partitions that are to move holds; a negative version for no node."""

    def record_changed(self, one: LedPartition) -> None:
        """A leader has changed the ISR."""


class StoreWatch:
    """The watches of one time in office."""

    def __init__(
        self, outbox: Outbox, store: FencedStore, cluster: Cluster, leaders: Leaders, told: ToldOfStore
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._cluster = cluster
        self._leaders = leaders
        self._told = told
        self._brokers: dict[int, Watching] = {}
        self._topics: dict[str, Watching] = {}
        self._notices: set[str] = set()
        # What was there at the beginning and has not been read.
        self._unread: set[str] | None = set()

    def begin(self) -> None:
        """Read and watch."""
        form = self._cluster.form
        for path, seen, children in (
            (form.brokers, self._brokers_seen, True),
            (form.topics, self._topics_seen, True),
            (form.topics_deleted, self._deletions_seen, True),
            (form.isr_changes, self._notices_seen, True),
            (form.reassignments, self._moves_seen, False),
        ):
            if path is not None:
                self._awaits(path)
                self._store.watch(path, partial(self._seen, path, seen), children=children)

    def look_at_topic(self, topic: KnownTopic) -> None:
        """Read a topic again: what was written of it was refused."""
        watching = self._topics.get(topic.name)
        if watching is not None:
            watching.look()

    # What is unread

    def _awaits(self, path: str) -> None:
        if self._unread is not None:
            self._unread.add(path)

    def _has_read(self, path: str) -> None:
        if self._unread is not None:
            self._unread.discard(path)
            if not self._unread:
                self._unread = None
                self._told.whole()

    def _seen(self, path: str, seen: Callable[[SeenNode], None], node: SeenNode) -> None:
        seen(node)
        self._has_read(path)

    # Brokers

    def _brokers_seen(self, node: SeenNode) -> None:
        numbers = (decimal_of(name, INT32[1]) for name in node.children)
        named = {number for number in numbers if number is not None}
        for broker_id in sorted(self._brokers.keys() - named):
            self._brokers.pop(broker_id).stop()
            self._told.broker_left(broker_id)
        for broker_id in sorted(named):
            if broker_id in self._brokers:
                self._brokers[broker_id].look()
            else:
                path = self._cluster.form.broker(broker_id)
                self._awaits(path)
                seen = partial(self._broker_seen, broker_id)
                self._brokers[broker_id] = self._store.watch(path, partial(self._seen, path, seen))

    def _broker_seen(self, broker_id: int, node: SeenNode) -> None:
        if node.stat is None:
            self._told.broker_left(broker_id)
            return
        try:
            broker = self._cluster.form.read_broker(broker_id, node.stat.czxid, node.data or b"")
        except RemoteProtocolError as error:
            self._not_understood("broker", broker_id, error)
            return
        if self._cluster.brokers.get(broker_id) != broker:
            self._told.broker_came(broker)

    # Topics

    def _topics_seen(self, node: SeenNode) -> None:
        named = set(node.children)
        for name in sorted(self._topics.keys() - named):
            self._forget(name)
        for name in sorted(named - self._topics.keys()):
            path = self._cluster.form.topic(name)
            self._awaits(path)
            seen = partial(self._topic_seen, name)
            self._topics[name] = self._store.watch(path, partial(self._seen, path, seen))

    def _forget(self, name: str) -> None:
        self._topics.pop(name).stop()
        self._cluster.odd.discard(name)
        topic = self._cluster.topics.pop(name, None)
        if topic is not None:
            self._told.topic_left(topic)

    def _topic_seen(self, name: str, node: SeenNode) -> None:
        topic = self._cluster.topics.get(name)
        if node.stat is None:
            if topic is not None:
                del self._cluster.topics[name]
                self._told.topic_left(topic)
            return
        if topic is not None and topic.generation != node.stat.czxid:
            # Deleted and made again between two looks: another topic.
            del self._cluster.topics[name]
            self._told.topic_left(topic)
            topic = None
        if topic is not None and topic.writing:
            return
        fresh = topic or KnownTopic(self._cluster.form, name, node.stat.czxid, node.stat.version)
        try:
            fresh.read(node.data)
        except RemoteProtocolError as error:
            self._cluster.odd.add(name)
            self._not_understood("topic", name, error)
            return
        self._cluster.odd.discard(name)
        fresh.version = node.stat.version
        fresh.is_stale = False
        self._cluster.topics[name] = fresh
        for number, replicas in sorted(fresh.replicas.items()):
            if number not in fresh.partitions:
                self._add(fresh, number, replicas)

    def _add(self, topic: KnownTopic, number: int, replicas: Sequence[int]) -> None:
        one = topic.partitions[number] = LedPartition(topic.form, topic.name, number)
        one.take(machine.AssignmentRead(replicas))
        if self._unread is None:
            self._told.partition_came(one)
            return
        path = self._cluster.form.record(topic.name, number)
        self._awaits(path)
        self._leaders.read(one, partial(self._has_read, path))

    # Wishes and notices

    def _deletions_seen(self, node: SeenNode) -> None:
        self._told.deletions_wanted(sorted(node.children))

    def _moves_seen(self, node: SeenNode) -> None:
        self._told.moves_wanted(node.data, -1 if node.stat is None else node.stat.version)

    def _notices_seen(self, node: SeenNode) -> None:
        for name in sorted(set(node.children) - self._notices):
            path = f"{self._cluster.form.isr_changes}/{name}"
            self._notices.add(name)
            self._store.read(path, partial(self._notice_read, name, path))

    def _notice_read(self, name: str, path: str, data: bytes | None, version: int) -> None:
        try:
            found = ApacheIsrChangeNode.decode(data or b"").partitions or [] if version >= 0 else []
        except RemoteProtocolError as error:
            self._not_understood("notice", name, error)
            found = []
        for each in found:
            one = self._cluster.find((each.topic or "", -1 if each.partition is None else each.partition))
            if one is not None and not one.is_writing:
                self._leaders.read(one, partial(self._told.record_changed, one))
        gone = partial(self._notice_gone, name)
        self._store.change_all([BatchItem((DeleteRequest(path, ANY_VERSION),), gone)])

    def _notice_gone(self, name: str, _error: int) -> None:
        self._notices.discard(name)

    def _not_understood(self, what: str, which: object, error: RemoteProtocolError) -> None:
        self._outbox.note(Level.WARNING, "node not understood", kind=what, name=which, reason=str(error))
