"""One machine of replication, stepped by the end of a connection that it describes."""

from __future__ import annotations

from typing import Any, ClassVar

from replispec.runtime.primitives.machines import Edge, Machine, assigned, edge_of
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.rocketmq import rules


class Stepping:
    """State, variables and timers of the machine; a subclass has a method `_do_EFFECT` for each effect.

    An effect that raises another event has it taken at once, before the effects behind it: an answer that is
    sent is an event of its own. Whoever begins sets `_state`, `_variables`, `_timers` and `_now_ms`.
    """

    MACHINE: ClassVar[Machine[Any, Any]]
    _state: Any
    _variables: Any
    _timers: Timers
    _now_ms: int

    def _step(self, event: Any, kind: type | None = None) -> None:
        """Take one event: only here state and variables change. Raises like `machines.step`."""
        edge = self._edge(event, kind)
        self._state = edge.to
        if edge.assign:
            self._variables = assigned(edge.assign, self._variables, event, rules)
        if edge.arms or edge.cancels:
            self._timers.follow(edge, self._now_ms)
        if edge.blames_peer:
            self._blame(edge)
        for name in edge.do:
            getattr(self, f"_do_{name}")(event)

    def _edge(self, event: Any, kind: type | None = None) -> Edge[Any]:
        """What the machine would do with an event. Raises like `machines.step`."""
        return edge_of(self.MACHINE, self._state, self._variables, event, rules, kind)

    def _blame(self, edge: Edge[Any]) -> None:
        """Say that the peer broke the protocol."""
        raise NotImplementedError
