"""Topics that are to be deleted: their replicas first, then their nodes, the wish at last.

Source: apache/kafka 2.8.2, TopicDeletionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from replispec.controller.kafka.core.cluster import Cluster, KnownTopic
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.kafka import rules
from replispec.runtime.primitives.machines import step
from replispec.runtime.primitives.texts import INT32, decimal_of
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import BatchItem
from replispec.wire.kafka import paths
from replispec.wire.kafka.machines import topic_deletion as machine
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.constants import ANY_VERSION
from replispec.wire.zookeeper.operations import DeleteRequest

_GONE: Final = (ErrorCode.OK, ErrorCode.NO_NODE)


class _Deletion:
    """One topic on its way out. `undone`: its nodes are to be removed again, at the agent's next turn."""

    def __init__(self, topic: KnownTopic) -> None:
        self.topic = topic
        self.state = machine.MACHINE.initial
        self.variables = machine.MACHINE.variables
        self.undone = False

    def take(self, event: machine.Event) -> Sequence[str]:
        """The effects of an event."""
        taken = step(machine.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    @property
    def is_begun(self) -> bool:
        """Whether brokers were told."""
        return self.state is not machine.State.WANTED


class TopicDeletions:
    """All of them. `is_moving` says whether a partition of a topic moves."""

    def __init__(
        self,
        outbox: Outbox,
        store: FencedStore,
        cluster: Cluster,
        commands: BrokerCommands,
        is_moving: Callable[[str], bool],
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._cluster = cluster
        self._commands = commands
        self._is_moving = is_moving
        self._by_topic: dict[str, _Deletion] = {}

    def wanted(self, names: Iterable[str]) -> None:
        """These are to be deleted; of one that there is not the wish alone is removed."""
        for name in names:
            topic = self._cluster.topics.get(name)
            if topic is None:
                wish = DeleteRequest(paths.APACHE_TOPIC_DELETED.at(topic=name), ANY_VERSION)
                self._store.change_all([BatchItem((wish,), lambda _: None)])
            elif name not in self._by_topic:
                self._by_topic[name] = _Deletion(topic)

    def go_on(self, *, is_agents_turn: bool = False) -> None:
        """Begin what can begin; at the agent's turn, try again what was refused."""
        for each in tuple(self._by_topic.values()):
            if not each.is_begun:
                brokers = each.topic.brokers()
                is_writing = any(one.is_writing for one in each.topic.partitions.values())
                moving = is_writing or self._is_moving(each.topic.name)
                effects = each.take(machine.Begun(brokers, moving))
                # While it waits for what moves, it is led and its moves go on as ever.
                each.topic.is_deleted = each.is_begun
                self._carry_out(each, effects)
            elif each.undone and is_agents_turn:
                each.undone = False
                self._carry_out(each, each.take(machine.Refused()))

    def broker_came(self, broker_id: int) -> None:
        """A broker has registered."""
        for each in tuple(self._by_topic.values()):
            effects = each.take(machine.BrokerLives(broker_id))
            if "delete_replicas" in effects:
                self._stop(each, (broker_id,))

    def stopped(self, broker_id: int, errors: dict[tuple[str, int], int]) -> None:
        """A broker answered which replicas it deleted: 0 each where it did."""
        for topic in dict.fromkeys(topic for topic, _ in errors):
            deletion = self._by_topic.get(topic)
            if deletion is None:
                continue
            refused = [key for key, error in errors.items() if key[0] == topic and error]
            if refused:
                self._outbox.note(Level.WARNING, "replica not deleted", broker=broker_id, partitions=refused)
            elif deletion.is_begun:
                self._carry_out(deletion, deletion.take(machine.ReplicasDeleted(broker_id)))

    def is_wanted(self, name: str) -> bool:
        """Whether a topic is on its way out."""
        return name in self._by_topic

    def _carry_out(self, deletion: _Deletion, effects: Sequence[str]) -> None:
        if "announce_deletion" in effects:
            self._outbox.note(Level.INFO, "topic is deleted", topic=deletion.topic.name)
            self._commands.announce_deletion(deletion.topic.partitions.values())
        if "delete_replicas" in effects:
            self._stop(deletion, sorted(deletion.variables.waiting & self._cluster.live))
        if "remove_nodes" in effects:
            path = paths.APACHE_PARTITIONS.at(topic=deletion.topic.name)
            self._store.children(path, partial(self._remove, deletion))

    def _stop(self, deletion: _Deletion, brokers: Iterable[int]) -> None:
        for broker_id in brokers:
            mine = [one for one in deletion.topic.partitions.values() if broker_id in one.assigned]
            self._commands.stop(broker_id, mine)

    def _remove(self, deletion: _Deletion, numbers: Sequence[str]) -> None:
        """Children first, and the wish last: who comes after sees it as long as anything is left."""
        name = deletion.topic.name
        gone = []
        for number in sorted(numbers, key=str):
            partition = decimal_of(number, INT32[1])
            if partition is not None:
                gone.append(paths.APACHE_STATE.at(topic=name, partition=partition))
                gone.append(paths.APACHE_PARTITION.at(topic=name, partition=partition))
        gone += [
            paths.APACHE_PARTITIONS.at(topic=name),
            paths.APACHE_TOPIC_CONFIG.at(topic=name),
            paths.APACHE_TOPIC.at(topic=name),
            paths.APACHE_TOPIC_DELETED.at(topic=name),
        ]
        errors: list[int] = []
        told = partial(self._removed, deletion, errors, len(gone))
        self._store.change_all([BatchItem((DeleteRequest(path, ANY_VERSION),), told) for path in gone])

    def _removed(self, deletion: _Deletion, errors: list[int], count: int, error: int) -> None:
        errors.append(error)
        if len(errors) < count or self._store.is_over:
            return
        if all(each in _GONE for each in errors):
            deletion.take(machine.Removed())
            self._by_topic.pop(deletion.topic.name, None)
            self._outbox.note(Level.INFO, "topic deleted", topic=deletion.topic.name)
        else:
            deletion.undone = True
