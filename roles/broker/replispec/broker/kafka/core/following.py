"""A follower as its leader knows it: the machine `followed_replica`, stepped."""

from __future__ import annotations

from replispec.runtime.kafka import rules
from replispec.runtime.primitives.machines import step
from replispec.wire.kafka.machines import followed_replica as machine


class KnownFollower:
    """How far the log of one follower is."""

    def __init__(self) -> None:
        self._state = machine.MACHINE.initial
        self._variables = machine.MACHINE.variables

    @property
    def log_end(self) -> int:
        """All below it the follower has; negative while that is not known."""
        return self._variables.log_end

    def take(self, event: machine.Event) -> tuple[str, ...]:
        """Take an event and return what is wanted because of it."""
        taken = step(machine.MACHINE, self._state, self._variables, event, rules)
        self._state, self._variables = taken.state, taken.variables
        return taken.effects
