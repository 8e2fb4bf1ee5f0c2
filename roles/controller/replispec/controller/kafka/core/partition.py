"""One partition as the controller decides about it, and what of it is on record.

What the machine knows runs ahead of the store while a write is under way; brokers are told what is on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.runtime.kafka import rules
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import step
from replispec.wire.kafka.constants import NO_LEADER, STATE_NODE_VERSION
from replispec.wire.kafka.machines import partition as machine
from replispec.wire.kafka.nodes import ApachePartitionStateNode

_MACHINE: Final = machine.MACHINE.for_release("apache", (2, 8, 2))

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

    def __init__(self, topic: str, number: int) -> None:
        self.key: Final[PartitionKey] = (topic, number)
        self.state = _MACHINE.initial
        self.variables = _MACHINE.variables
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
        taken = step(_MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        return taken.effects

    def node(self, epoch: int) -> bytes:
        """What the store is to hold of what the machine knows, written by the controller of this epoch."""
        now = self.variables
        leader = NO_LEADER if now.leader is None else now.leader
        return ApachePartitionStateNode(
            controller_epoch=epoch,
            leader=leader,
            version=STATE_NODE_VERSION,
            leader_epoch=now.leader_epoch,
            isr=_in_order(now.isr, now.assigned),
        ).encode()

    def written(self, epoch: int) -> None:
        """What the machine knows is on record."""
        now = self.variables
        leader = NO_LEADER if now.leader is None else now.leader
        isr = _in_order(now.isr, now.assigned)
        self.record = PartitionRecord(leader, now.leader_epoch, isr, now.version, epoch)

    def read(self, data: bytes | None, version: int) -> None:
        """Go by what the store holds. Raises RemoteProtocolError, and nothing is changed then."""
        found = ApachePartitionStateNode.decode(data or b"")
        leader, leader_epoch = found.leader, found.leader_epoch
        if leader is None or leader_epoch is None or found.isr is None:
            raise RemoteProtocolError("a record lacks leader, leader_epoch or isr")
        event = machine.RecordRead(
            leader=None if leader == NO_LEADER else leader,
            isr=frozenset(found.isr),
            leader_epoch=leader_epoch,
            version=version,
        )
        self.take(event)
        decided_by = 0 if found.controller_epoch is None else found.controller_epoch
        self.record = PartitionRecord(leader, leader_epoch, tuple(found.isr), version, decided_by)


def _in_order(isr: frozenset[int], assigned: Sequence[int]) -> list[int]:
    """The assigned members in their order, the others behind them."""
    others = sorted(isr.difference(assigned))
    return [*(broker for broker in assigned if broker in isr), *others]
