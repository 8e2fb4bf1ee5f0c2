"""Timers of a machine while it runs: which are armed, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replispec.runtime.primitives.machines import Edge, Machine


class Timers:
    """The timers of one instance of a machine, with periods taken from the options of its role.

    Times are milliseconds of one clock that never goes back. Of timers that end at once the first that is
    declared comes first.
    """

    def __init__(self, machine: Machine[Any, Any], options: Any) -> None:
        self._machine = machine
        self._periods_ms = _periods_ms(machine, options)
        self._due_ms: dict[str, int] = {}
        # Of those whose pauses grow: how long the next one is.
        self._grown_ms: dict[str, int] = {}

    @property
    def armed(self) -> Mapping[str, int]:
        """When each armed timer ends."""
        return self._due_ms

    def begin(self, now_ms: int) -> None:
        """Arm what runs in the initial state."""
        for name in sorted(self._machine.armed_in(self._machine.initial)):
            self._arm(name, now_ms)

    def follow(self, edge: Edge[Any], now_ms: int) -> None:
        """Arm and cancel what an edge says that was taken."""
        for name in edge.cancels:
            self._due_ms.pop(name, None)
            self._grown_ms.pop(name, None)
        for name in edge.arms:
            self._arm(name, now_ms)

    def deadline_ms(self) -> int | None:
        """When the next timer ends."""
        return min(self._due_ms.values(), default=None)

    def ended(self, now_ms: int) -> Any:
        """The event of the timer that ended first, which is armed no more or again; None when none has."""
        due_ms = self.deadline_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        name = next(each for each in self._machine.timers if self._due_ms.get(each) == due_ms)
        timer = self._machine.timers[name]
        if timer.periodic:
            self._arm(name, now_ms)
        else:
            del self._due_ms[name]
            if timer.longest is not None:
                self._grown_ms[name] = 2 * self._lasts_ms(name)
        return timer.event()

    def changed(self, options: Any, now_ms: int) -> None:
        """Other options hold from now on: a shorter period ends sooner, a longer one puts nothing off."""
        self._periods_ms = _periods_ms(self._machine, options)
        for name, at_ms in self._due_ms.items():
            self._due_ms[name] = min(at_ms, now_ms + self._lasts_ms(name))

    def _arm(self, name: str, now_ms: int) -> None:
        self._due_ms[name] = now_ms + self._lasts_ms(name)

    def _lasts_ms(self, name: str) -> int:
        period_ms, longest_ms = self._periods_ms[name]
        return min(max(self._grown_ms.get(name, 0), period_ms), longest_ms)


def _periods_ms(machine: Machine[Any, Any], options: Any) -> dict[str, tuple[int, int]]:
    """How long each timer lasts at first, and at most."""
    timers = machine.timers.items()
    return {name: (timer.period_ms(options), timer.longest_ms(options)) for name, timer in timers}
