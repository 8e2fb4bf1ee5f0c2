"""What the machine `partition_asked` decides about one partition of a request."""

from __future__ import annotations

from typing import Final

from replispec.runtime.kafka import rules
from replispec.runtime.primitives.machines import edge_of
from replispec.wire.kafka.constants import NO_OFFSET
from replispec.wire.kafka.machines import partition_asked as machine
from replispec.wire.kafka.machines.partition_asked import State

CODES: Final = machine.ANSWERS
"""The error of each effect that answers."""


class AskedPartition:
    """One partition of a request. `effect` is what was decided last, `error` what it is answered with;
    a fault of a batch has an error of its own."""

    def __init__(self) -> None:
        self.state = State.ASKED
        self.effect = ""
        self.fault = 0

    @property
    def is_decided(self) -> bool:
        """Whether its part of the answer is known."""
        return self.state is State.ANSWERED

    @property
    def is_found(self) -> bool:
        """Whether this broker may serve it."""
        return self.state is State.FOUND

    @property
    def error(self) -> int:
        """What it is answered with."""
        return int(CODES.get(self.effect, self.fault))

    def take(self, event: machine.Event) -> str:
        """Take an event and return the effect, an empty one for none."""
        edge = edge_of(machine.MACHINE, self.state, machine.MACHINE.variables, event, rules)
        self.state = edge.to
        self.effect = edge.do[0] if edge.do else ""
        return self.effect

    def look(self, *, leads: bool, leader_epoch: int | None, told_of: bool, asked_epoch: int | None) -> bool:
        """Whether this broker may serve it: `leader_epoch` is None where there is no replica."""
        hosted = leader_epoch is not None
        event = machine.LookedFor(
            hosted=hosted,
            told_of=told_of,
            leads=leads,
            asked_epoch=NO_OFFSET if asked_epoch is None else asked_epoch,
            leader_epoch=NO_OFFSET if leader_epoch is None else leader_epoch,
        )
        self.take(event)
        return self.is_found
