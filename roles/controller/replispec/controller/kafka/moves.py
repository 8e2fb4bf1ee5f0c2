"""Partitions that move to other brokers, and the agent that looks after them.

Each step may be done again by the next controller: the topic's node says who joins and who leaves until the
move is over, and the request is removed in the change that ends it. Source: Kafka replication, detailed
design V3, "Replica reassignment"; apache/kafka 2.8.2, KafkaController.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from replispec.controller.kafka.core.cluster import Cluster, KnownTopic
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.leaders import Leaders
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.kafka import rules
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import step
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import BatchItem, SeenNode, Watching
from replispec.runtime.zookeeper.client.settling import Change
from replispec.wire.kafka import paths
from replispec.wire.kafka.constants import MOVES_AT_ONCE_MAX, REASSIGNMENT_NODE_VERSION
from replispec.wire.kafka.machines import partition as partition_machine
from replispec.wire.kafka.machines import reassignment as machine
from replispec.wire.kafka.nodes import ApacheReassignedPartition, ApacheReassignmentNode
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import DeleteRequest, SetDataRequest


class _Move:
    """One partition on its way. `target` in its order; `watching` its record, until it is over."""

    def __init__(self, topic: KnownTopic, one: LedPartition, target: Sequence[int]) -> None:
        self.topic = topic
        self.one = one
        self.target = tuple(target)
        self.state = machine.MACHINE.initial
        self.variables = machine.MACHINE.variables
        self.watching: Watching | None = None

    def take(self, event: machine.Event) -> Sequence[str]:
        """The effects of an event."""
        taken = step(machine.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    @property
    def is_over(self) -> bool:
        """Whether the partition has arrived."""
        return self.state is machine.State.DONE


class PartitionMoves:
    """All of them. `look_again` has a topic read again after a change of it was refused."""

    def __init__(
        self,
        outbox: Outbox,
        store: FencedStore,
        cluster: Cluster,
        commands: BrokerCommands,
        leaders: Leaders,
        look_again: Callable[[KnownTopic], None],
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._cluster = cluster
        self._commands = commands
        self._leaders = leaders
        self._look_again = look_again
        self._by_key: dict[PartitionKey, _Move] = {}
        self._requests: dict[PartitionKey, Sequence[int]] = {}
        self._version = -1
        self._is_writing = self._is_stale = False
        self._refused: set[PartitionKey] = set()
        self._items: list[BatchItem] = []

    def is_moving(self, topic: str) -> bool:
        """Whether a partition of a topic moves."""
        return any(key[0] == topic for key in self._by_key)

    def moves(self, one: LedPartition) -> bool:
        """Whether a partition moves."""
        return one.key in self._by_key

    # What is wanted

    def wanted(self, data: bytes | None, version: int) -> None:
        """What the node of requests holds; a negative version for no node."""
        if self._is_writing:
            self._is_stale = True
            return
        self._version = version
        requests: dict[PartitionKey, Sequence[int]] = {}
        if version >= 0:
            try:
                found = ApacheReassignmentNode.decode(data or b"").partitions or []
            except RemoteProtocolError as error:
                self._outbox.note(Level.WARNING, "reassignment not understood", reason=str(error))
                found = []
            for each in found:
                key = (each.topic or "", -1 if each.partition is None else each.partition)
                requests[key] = tuple(each.replicas or ())
        self._requests = requests

    def unfinished(self) -> None:
        """Go on with what topics say of moves that an earlier controller began."""
        for topic in self._cluster.topics.values():
            for number in {**topic.adding, **topic.removing}:
                key = (topic.name, number)
                leaving = topic.removing.get(number, ())
                replicas = topic.replicas.get(number, ())
                if key not in self._requests and (topic.adding.get(number) or leaving):
                    self._requests[key] = [each for each in replicas if each not in leaving]

    def go_on(self) -> None:
        """Look at all of them: at a notice, and by the agent's timer."""
        for key, target in self._requests.items():
            if key not in self._refused:
                self._want(key, target)
        for move in tuple(self._by_key.values()):
            is_held = move.one.is_writing or move.topic.is_stale
            if not is_held and not move.one.is_broken:
                self._wake(move)
        self._drop_refused()
        self._flush()

    def _want(self, key: PartitionKey, target: Sequence[int]) -> None:
        move = self._by_key.get(key)
        if move is not None and move.target == tuple(target):
            return
        one, topic = self._cluster.find(key), self._cluster.topics.get(key[0])
        if one is None or topic is None:
            self._refuse(key, "no such partition")
            return
        replicas, adding = topic.replicas.get(key[1], ()), topic.adding.get(key[1], ())
        removing = topic.removing.get(key[1], ())
        is_begun = bool(adding or removing) and set(target) == set(replicas).difference(removing)
        is_sound = bool(target) and len(set(target)) == len(target)
        if not is_sound or not (is_begun or set(target) <= self._cluster.live):
            self._refuse(key, "brokers that do not live, or one of them twice")
            return
        is_ending = move is not None and move.state is machine.State.FINISHING
        if one.record is None or one.is_writing or is_ending:
            return
        if move is None:
            move = self._by_key[key] = _Move(topic, one, target)
            path = paths.APACHE_STATE.at(topic=key[0], partition=key[1])
            move.watching = self._store.watch(path, partial(self._record_seen, move))
        move.target = tuple(target)
        # Who was to join another target may be in the ISR: it leaves as old replicas do.
        origin = frozenset(replicas).difference(adding if is_begun else ())
        self._outbox.note(Level.INFO, "partition moves", topic=key[0], partition=key[1], to=list(target))
        move.take(machine.Requested(origin, frozenset(target)))

    def _refuse(self, key: PartitionKey, reason: str) -> None:
        self._refused.add(key)
        self._outbox.note(
            Level.WARNING, "reassignment refused", topic=key[0], partition=key[1], reason=reason
        )

    # Steps

    def _record_seen(self, move: _Move, node: SeenNode) -> None:
        if not move.is_over and not move.one.is_writing and node.stat is not None:
            self._leaders.read(move.one, self.go_on)

    def _wake(self, move: _Move) -> None:
        live = self._cluster.live
        if self._is_full:
            return
        effects = move.take(machine.Woken(move.one.variables.isr, live))
        if "add_replicas" in effects:
            self._add_replicas(move)
        if "keep_target" in effects:
            event = partition_machine.ReplicasKept(move.target, live)
            if not self._leaders.take(move.one, event, done=partial(self._kept, move)):
                move.take(machine.Refused())
        if "finish" in effects:
            self._finish(move)

    @property
    def _is_full(self) -> bool:
        return len(self._items) >= MOVES_AT_ONCE_MAX

    def _add_replicas(self, move: _Move) -> None:
        topic, number = move.topic, move.one.key[1]
        origin = move.variables.origin
        old = [each for each in topic.replicas.get(number, ()) if each in origin and each not in move.target]
        replicas = (*move.target, *old)
        topic.replicas = {**topic.replicas, number: replicas}
        topic.adding = {**topic.adding, number: tuple(sorted(set(move.target) - origin))}
        topic.removing = {**topic.removing, number: tuple(sorted(origin.difference(move.target)))}
        move.one.fresh |= set(move.target) - origin
        event = partition_machine.ReplicasAdded(replicas)
        topic.writing += 1
        written = partial(self._added, move)
        if not self._leaders.take(move.one, event, with_it=(self._set_topic(topic),), done=written):
            self._added(move, False)

    def _added(self, move: _Move, is_done: bool) -> None:
        self._topic_written(move.topic, is_done=is_done)
        if not is_done:
            move.take(machine.Refused())

    def _kept(self, move: _Move, is_done: bool) -> None:
        if not is_done:
            move.take(machine.Refused())
            return
        for broker_id in sorted(move.variables.leaving & self._cluster.live):
            self._commands.stop(broker_id, [move.one])

    def broker_came(self, broker_id: int) -> None:
        """A broker has registered: it may have a replica that nobody assigns any more."""
        for move in self._by_key.values():
            effects = move.take(machine.BrokerLives(broker_id))
            if "delete_replicas" in effects and not move.one.is_writing:
                self._commands.stop(broker_id, [move.one])

    def stopped(self, broker_id: int, errors: dict[PartitionKey, int]) -> None:
        """A broker answered which replicas it deleted: 0 each where it did."""
        for key, error in errors.items():
            move = self._by_key.get(key)
            if move is not None and not error and move.state is machine.State.STOPPING:
                move.take(machine.ReplicaDeleted(broker_id))

    def _finish(self, move: _Move) -> None:
        topic, number = move.topic, move.one.key[1]
        topic.replicas = {**topic.replicas, number: move.target}
        topic.adding = {each: to for each, to in topic.adding.items() if each != number}
        topic.removing = {each: to for each, to in topic.removing.items() if each != number}
        topic.writing += 1
        changes: list[Change] = [self._set_topic(topic)]
        if self._requests.pop(move.one.key, None) is not None and self._version >= 0:
            changes.append(self._set_requests())
        self._items.append(BatchItem(tuple(changes), partial(self._finished, move)))

    def _finished(self, move: _Move, error: int) -> None:
        self._is_writing = False
        self._topic_written(move.topic, is_done=error == ErrorCode.OK)
        if self._store.is_over:
            return
        if error == ErrorCode.OK:
            move.take(machine.Written())
            self._by_key.pop(move.one.key, None)
            if move.watching is not None:
                move.watching.stop()
            topic, number = move.one.key
            self._outbox.note(Level.INFO, "partition moved", topic=topic, partition=number)
            self._commands.show(move.one)
        else:
            move.take(machine.Refused())
        if self._is_stale or error != ErrorCode.OK:
            self._look_at_requests()

    def _topic_written(self, topic: KnownTopic, *, is_done: bool) -> None:
        """A change of a topic is over. After one that was refused it is read, and its moves go on from there;
        what was written meanwhile rests on the same version, and is refused, too."""
        topic.writing -= 1
        topic.is_stale = topic.is_stale or not is_done
        if topic.is_stale and not topic.writing:
            self._look_again(topic)

    # The node of requests

    def _set_topic(self, topic: KnownTopic) -> SetDataRequest:
        path, version = paths.APACHE_TOPIC.at(topic=topic.name), topic.version
        topic.version += 1
        return SetDataRequest(path, topic.node(), version)

    def _set_requests(self) -> SetDataRequest | DeleteRequest:
        """The node without what is done or refused; no node, when nothing is left."""
        path, version = paths.APACHE_REASSIGNMENTS.at(), self._version
        left = {key: to for key, to in self._requests.items() if key not in self._refused}
        self._is_writing = True
        if not left:
            self._version = -1
            return DeleteRequest(path, version)
        self._version += 1
        partitions = [ApacheReassignedPartition(*key, list(to)) for key, to in left.items()]
        return SetDataRequest(
            path, ApacheReassignmentNode(REASSIGNMENT_NODE_VERSION, partitions).encode(), version
        )

    def _drop_refused(self) -> None:
        if self._refused & self._requests.keys() and self._version >= 0 and not self._is_writing:
            changes = (self._set_requests(),)
            self._requests = {key: to for key, to in self._requests.items() if key not in self._refused}
            self._items.append(BatchItem(changes, self._dropped))

    def _dropped(self, error: int) -> None:
        self._is_writing = False
        self._refused.clear()
        if self._is_stale or error != ErrorCode.OK:
            self._look_at_requests()

    def _look_at_requests(self) -> None:
        self._is_stale = False
        self._store.read(paths.APACHE_REASSIGNMENTS.at(), self._looked)

    def _looked(self, data: bytes | None, version: int) -> None:
        self.wanted(data, version)
        self.go_on()

    def _flush(self) -> None:
        if self._items:
            items, self._items = self._items, []
            self._store.change_all(items)
