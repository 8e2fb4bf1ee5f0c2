"""Timers of a machine as the specification says them: what they raise, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Longest(NamedTuple):
    """Up to what the pauses of a timer grow: the parameter, its default, its field in the options."""

    parameter: str
    default_ms: int
    field: str


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer of a machine: it raises an event of the class `event` when its period is over, and is then
    armed again if it is `periodic`.

    `period` is the parameter that says how long that is, `default_ms` its default, `field` its field in the
    options of a role, which may stand in a `group` of them. It runs in `states`; others arm it by an edge.
    With a `longest` each time that it ended doubles how long it lasts, up to that, until it is cancelled.
    """

    name: str
    event: type[Any]
    period: str
    default_ms: int
    field: str
    group: str = ""
    periodic: bool = False
    states: frozenset[Any] = frozenset()
    longest: Longest | None = None

    def period_ms(self, options: Any) -> int:
        """How long it runs by these options: those of a role, or of the timer's group."""
        period: int = getattr(self._holder(options), self.field)
        return period

    def longest_ms(self, options: Any) -> int:
        """Likewise how long at most, however often it ended."""
        period_ms = self.period_ms(options)
        if self.longest is None:
            return period_ms
        longest_ms: int = getattr(self._holder(options), self.longest.field)
        return max(longest_ms, period_ms)

    def _holder(self, options: Any) -> Any:
        return getattr(options, self.group, options) if self.group else options
