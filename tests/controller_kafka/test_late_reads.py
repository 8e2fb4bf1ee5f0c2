"""What is read of a record while it is being written does not replace what is being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from replispec.controller.kafka.core.apache_commands import ApacheCommands, versions_of
from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.core.partition import LedPartition
from replispec.controller.kafka.leaders import Leaders
from replispec.runtime.kafka.stores.apache_form import ApacheStoreForm
from replispec.runtime.world import Outbox
from replispec.runtime.zookeeper.client import BatchItem
from replispec.wire.kafka.machines import partition as machine
from replispec.wire.kafka.nodes import ApachePartitionStateNode


class HeldStore:
    """A store that answers when the test says so."""

    epoch = 1
    is_over = False

    def __init__(self) -> None:
        self.reads: list[Callable[[bytes | None, int], None]] = []
        self.changes: list[BatchItem] = []

    def read(self, _path: str, then: Callable[[bytes | None, int], None]) -> None:
        """Keep who waits."""
        self.reads.append(then)

    def change_all(self, items: Sequence[BatchItem]) -> None:
        """Keep what is asked for."""
        self.changes.extend(items)


def test_a_read_that_is_answered_during_a_write_changes_nothing() -> None:
    """Found by simulation: the new epoch was on record, and nobody was told of it."""
    store: Any = HeldStore()
    form, nobody = ApacheStoreForm(), cast("Any", None)
    cluster, one = Cluster(form), LedPartition(form, "t", 0)
    commands = BrokerCommands(cluster, ApacheCommands(cluster, versions_of("1.0"), (100, 1)), nobody)
    leaders = Leaders(Outbox(), store, cluster, commands, lambda _: None)
    before = ApachePartitionStateNode(controller_epoch=1, leader=1, version=1, leader_epoch=4, isr=[1, 2])
    one.take(machine.AssignmentRead((1, 2)))
    one.read(before.encode(), 7)
    seen: list[bool] = []
    leaders.read(one, lambda: seen.append(one.is_writing))
    assert leaders.take(one, machine.ReplicasAdded((1, 2, 3)))
    leaders.flush()
    store.reads.pop()(before.encode(), 7)
    store.changes.pop().then(0)
    assert seen == [True]
    assert one.record is not None
    assert (one.record.leader_epoch, one.record.version) == (5, 8)
