"""Running a machine of the specification inside a role."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from replispec.runtime.primitives.machines import Machine, step
from replispec.runtime.rocketmq import rules

StateT = TypeVar("StateT", bound=enum.Enum)
VariablesT = TypeVar("VariablesT")

Nothing = tuple[()]
"""What an effect returns that has been carried out."""


class MachineRunner(Generic[StateT, VariablesT]):
    """Holds the state and the variables of one machine, and carries out what its edges say.

    `effects` has a method of the name of every effect, which is handed the event; one that raises another
    event calls `take` too, and that is taken once all effects of the one before are carried out.
    """

    def __init__(self, machine: Machine[StateT, VariablesT], effects: Any) -> None:
        self._machine = machine
        self._effects = effects
        self._waiting: deque[Any] = deque()
        self._running = False
        self.state = machine.initial
        self.variables = machine.variables

    def take(self, event: Any) -> None:
        """Take one event. Raises RemoteProtocolError or LocalProtocolError when no edge fits."""
        self._waiting.append(event)
        if self._running:
            return
        self._running = True
        try:
            while self._waiting:
                self._step(self._waiting.popleft())
        finally:
            self._running = False
            self._waiting.clear()

    def _step(self, event: Any) -> None:
        taken = step(self._machine, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        for name in taken.effects:
            carry_out: Callable[[Any], Nothing] = getattr(self._effects, name)
            carry_out(event)
