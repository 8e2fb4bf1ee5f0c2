"""One partition as the controller decides about it, and what of it is on record.

What the machine knows runs ahead of the store while a write is under way; brokers are told what is on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from replispec.runtime.kafka import rules
from replispec.runtime.kafka.stores.forms import SaidRecord, StoreForm
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import Machine, step
from replispec.wire.kafka.constants import NO_LEADER
from replispec.wire.kafka.machines import partition as machine

PartitionKey = tuple[str, int]
"""The topic and the number of a partition."""


@immutable
class PartitionRecord:
    """What the store holds of a partition: `leader` is NO_LEADER for none, `version` that of the node,
    `decided_by` the epoch of the controller that wrote it."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    version: int
    decided_by: int


class LedPartition:
    """A partition. `fresh`: brokers that have no replica of it yet, as far as is known. `is_broken`: what the
    store holds of it is not understood, so that it stays as it is."""

    def __init__(self, form: StoreForm, topic: str, number: int) -> None:
        self.key: Final[PartitionKey] = (topic, number)
        self._form = form
        self._machine = _machine(form.software, form.release)
        self.state = self._machine.initial
        self.variables = self._machine.variables
        self.record: PartitionRecord | None = None
        self.is_writing = False
        self.is_broken = False
        self.fresh: set[int] = set()

    @property
    def assigned(self) -> Sequence[int]:
        """The brokers that have, or are to have, a replica."""
        return self.variables.assigned

    def take(self, event: machine.Event) -> Sequence[str]:
        """Take an event and return the effects that the machine wants, in order."""
        taken = step(self._machine, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    def node(self, epoch: int) -> bytes:
        """What the store is to hold of what the machine knows, written by the controller of this epoch."""
        now = self.variables
        leader = NO_LEADER if now.leader is None else now.leader
        isr = _in_order(now.isr, now.assigned)
        return self._form.record_node(SaidRecord(leader, now.leader_epoch, isr, epoch))

    def written(self, epoch: int) -> None:
        """What the machine knows is on record."""
        now = self.variables
        leader = NO_LEADER if now.leader is None else now.leader
        isr = _in_order(now.isr, now.assigned)
        self.record = PartitionRecord(leader, now.leader_epoch, isr, now.version, epoch)

    def read(self, data: bytes | None, version: int) -> None:
        """Go by what the store holds. Raises RemoteProtocolError, and nothing is changed then."""
        found = self._form.read_record(data or b"")
        event = machine.RecordRead(
            leader=None if found.leader == NO_LEADER else found.leader,
            isr=frozenset(found.isr),
            leader_epoch=found.leader_epoch,
            version=version,
        )
        self.take(event)
        self.record = PartitionRecord(found.leader, found.leader_epoch, found.isr, version, found.decided_by)


@cache
def _machine(software: str, release: tuple[int, ...]) -> Machine[machine.State, machine.Variables]:
    """The machine as this release walks it: one for all partitions."""
    return machine.MACHINE.for_release(software, release)


def _in_order(isr: frozenset[int], assigned: Sequence[int]) -> list[int]:
    """The assigned members in their order, the others behind them."""
    others = sorted(isr.difference(assigned))
    return [*(broker for broker in assigned if broker in isr), *others]
