"""Who leads: what the machines of partitions decide is written by version, and told once it is on record.

All that one event decides goes in few multis, each of which checks that this is still the controller. What
the store refuses is read and decided again. Source: Kafka replication, detailed design V3, on_broker_change,
init_leaders; apache/kafka 2.8.2, PartitionStateMachine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.core.partition import LedPartition
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client.batches import BatchItem
from replispec.runtime.zookeeper.client.client import create_of
from replispec.runtime.zookeeper.client.settling import Change
from replispec.wire.kafka.machines import partition as machine
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import SetDataRequest

Done = Callable[[bool], None]
"""Told whether what was decided is on record."""


class Leaders:
    """The decisions of one time in office. `settled` is told each partition of which a write has ended."""

    def __init__(
        self,
        outbox: Outbox,
        store: FencedStore,
        cluster: Cluster,
        commands: BrokerCommands,
        settled: Callable[[LedPartition], None],
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._cluster = cluster
        self._commands = commands
        self._settled = settled
        self._items: list[BatchItem] = []
        self._with_parents: set[str] = set()
        self.unclean = 0

    def decide(self, partitions: Iterable[LedPartition], live: frozenset[int], *, unclean: bool) -> None:
        """Go by who lives. None of these is being written."""
        event = machine.BrokersChanged(live, unclean)
        for each in partitions:
            self.take(each, event)

    def take(
        self,
        one: LedPartition,
        event: machine.Event,
        *,
        with_it: tuple[Change, ...] = (),
        done: Done = lambda _: None,
    ) -> bool:
        """Have a partition take an event; false if that changes nothing. What is to be written goes with
        `with_it` in one change, at the next `flush`."""
        version = one.variables.version
        effects = one.take(event)
        if "note_unclean_election" in effects:
            self.unclean += 1
            leader = one.variables.leader
            self._outbox.record(
                Level.WARNING, "unclean election", topic=one.key[0], partition=one.key[1], leader=leader
            )
        topic, number = one.key
        if "create_record" in effects:
            one.fresh |= set(one.assigned)
            form = self._cluster.form
            made = create_of(form.partition(topic, number), None)
            state = create_of(self._path(one), one.node(self._store.epoch))
            parents = form.partitions(topic)
            if parents is not None and topic not in self._with_parents:
                self._with_parents.add(topic)
                self._store.make_quietly(parents)
            changes: tuple[Change, ...] = (made, state)
        elif "write_record" in effects:
            changes = (SetDataRequest(self._path(one), one.node(self._store.epoch), version),)
        else:
            return False
        one.is_writing = True
        self._items.append(BatchItem((*with_it, *changes), partial(self._written, one, done)))
        return True

    def flush(self) -> None:
        """Write what was decided."""
        if self._items:
            items, self._items = self._items, []
            self._store.change_all(items)

    def read(self, one: LedPartition, then: Callable[[], None]) -> None:
        """Go by what the store holds of a partition, unless a write of it has begun before that is told: how
        the write ends tells more."""
        self._store.read(self._path(one), partial(self._looked, one, then))

    def forget(self, topic: str) -> None:
        """A topic is gone, with the nodes of its partitions."""
        self._with_parents.discard(topic)

    def _path(self, one: LedPartition) -> str:
        return self._cluster.form.record(*one.key)

    def _written(self, one: LedPartition, done: Done, error: int) -> None:
        if self._store.is_over:
            return
        if error == ErrorCode.OK:
            one.written(self._store.epoch)
            one.is_writing = False
            self._commands.lead(one)
            done(True)
            self._settled(one)
        else:
            # Somebody else wrote, or nobody knows: what the store says counts.
            then = partial(self._refused, one, done)
            self._store.read(self._path(one), partial(self._found, one, then))

    def _refused(self, one: LedPartition, done: Done) -> None:
        one.is_writing = False
        done(False)
        self._settled(one)

    def _looked(self, one: LedPartition, then: Callable[[], None], data: bytes | None, version: int) -> None:
        if one.is_writing:
            then()
        else:
            self._found(one, then, data, version)

    def _found(self, one: LedPartition, then: Callable[[], None], data: bytes | None, version: int) -> None:
        """`version` is negative when there is no such node."""
        if version >= 0:
            try:
                one.read(data, version)
                one.is_broken = False
            except RemoteProtocolError as error:
                one.is_broken = True
                self._outbox.note(
                    Level.WARNING, "record not understood", partition=one.key, reason=str(error)
                )
            else:
                self._commands.show(one)
        elif one.record is None and one.is_writing:
            # Its node may be there without a record: an earlier controller made it and ended.
            state = create_of(self._path(one), one.node(self._store.epoch))
            self._store.change_all([BatchItem((state,), partial(self._made, one, then))])
            return
        then()

    def _made(self, one: LedPartition, then: Callable[[], None], error: int) -> None:
        if error == ErrorCode.OK:
            one.written(self._store.epoch)
            self._commands.lead(one)
        else:
            self._outbox.note(Level.WARNING, "record not made", partition=one.key, error=error)
        then()
