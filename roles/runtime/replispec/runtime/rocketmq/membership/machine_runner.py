"""Running a machine of the specification inside a role."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from replispec.runtime.primitives.machines import Machine, step
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.rocketmq import rules

StateT = TypeVar("StateT", bound=enum.Enum)
VariablesT = TypeVar("VariablesT")

Nothing = tuple[()]
"""What an effect returns that has been carried out."""


class MachineRunner(Generic[StateT, VariablesT]):
    """Holds the state, the variables and the timers of one machine, and carries out what its edges say.

    `effects` has a method of the name of every effect, which is handed the event; one that raises another
    event calls `take` too, and that is taken once all effects of the one before are carried out. `options`
    are those of the role, from which the timers have their periods; a machine without timers needs none.
    """

    def __init__(self, machine: Machine[StateT, VariablesT], effects: Any, options: Any = None) -> None:
        self._machine = machine
        self._effects = effects
        self._waiting: deque[Any] = deque()
        self._running = False
        self.state = machine.initial
        self.variables = machine.variables
        self.timers = Timers(machine, options)
        self.now_ms = 0

    def begin(self, now_ms: int) -> None:
        """Arm the timers that run in the initial state."""
        self.now_ms = now_ms
        self.timers.begin(now_ms)

    def take(self, event: Any, now_ms: int | None = None) -> None:
        """Take one event, which happens at the time of the one before unless `now_ms` names a later one.

        Raises RemoteProtocolError or LocalProtocolError when no edge fits.
        """
        if now_ms is not None:
            self.now_ms = now_ms
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

    def ticked(self, now_ms: int) -> None:
        """Take the events of the timers that have ended."""
        while (event := self.timers.ended(now_ms)) is not None:
            self.take(event, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self.timers.deadline_ms()

    def _step(self, event: Any) -> None:
        taken = step(self._machine, self.state, self.variables, event, rules)
        self.state, self.variables = taken.state, taken.variables
        self.timers.follow(taken.edge, self.now_ms)
        for name in taken.effects:
            carry_out: Callable[[Any], Nothing] = getattr(self._effects, name)
            carry_out(event)
