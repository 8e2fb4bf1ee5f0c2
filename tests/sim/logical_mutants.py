"""Rules of logical queues of RIP-21, broken one at a time: which seeds of simulated worlds find each.

python -m tests.sim.logical_mutants [SEEDS] [PART OF A RULE ...]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.broker.rocketmq.core import logical_queues, logical_traffic
from replispec.broker.rocketmq.core.groups import Groups
from replispec.broker.rocketmq.core.recorder import Recorder
from replispec.nameserver.rocketmq.mappings import ToldMappings
from replispec.nameserver.rocketmq.routes import Routes
from replispec.runtime.primitives.machines import edge_of, step
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.machines import logical_queue_segment as machine
from tests.sim.queue_mutants import Mutant, found_by, kept_at_once, main, zero_for_none

Step = Callable[..., Any]
TAKE: Final = ToldMappings.take
FREE: Final = LogicalTopic.free_queue
BEGUN: Final = rules.begun_at


def _steps(change: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Mutant:
    """A broker that takes a segment for something else before it takes a request."""

    def broken(of: Any, state: Any, known: Any, event: Any, *rest: Any) -> Any:
        if of is machine.MACHINE:
            state, known = change(state, known, event)
        return step(of, state, known, event, *rest)

    return lambda: patch.object(logical_queues, "step", broken)


def _edges(change: Callable[[Any, Any], Any]) -> Mutant:
    """Likewise before it takes what clients ask."""

    def broken(of: Any, state: Any, known: Any, event: Any, *rest: Any) -> Any:
        return edge_of(of, change(state, event), known, event, *rest)

    return lambda: patch.object(logical_traffic, "edge_of", broken)


def _again_without_successor(state: Any, known: Any, event: Any) -> tuple[Any, Any]:
    is_asked = isinstance(event, machine.Prepared)
    return state, replace(known, successor=None) if is_asked else known


def _taken_though_read(state: Any, known: Any, event: Any) -> tuple[Any, Any]:
    is_taken = isinstance(event, machine.Wanted) and state is machine.State.READ_ONLY
    return machine.State.EXPIRED if is_taken else state, known


def _kept_behind(state: Any, event: Any) -> Any:
    return machine.State.ABSENT if isinstance(event, machine.PositionSaid) else state


def _one_off(segment: Any, logical_start: int) -> Any:
    return BEGUN(segment, logical_start + 1)


def _for_others_too(self: ToldMappings, who: Any, *rest: Any, **more: Any) -> Any:
    found = TAKE(self, who, *rest, **more)
    for kept in self._topics.values():
        for broker, each in kept.items():
            if broker != who[1] and each.logical is not None:
                kept[broker] = replace(each, logical=replace(each.logical, segments={}))
    return found


def _any_sealed(self: LogicalTopic, broker: str, index: int) -> Any:
    for each in self.queue(index).segments[:-1]:
        if each.queue.broker_name == broker and each.is_sealed:
            return each.queue
    return FREE(self, broker, index)


@contextmanager
def _reused_though_read() -> Any:
    with ExitStack() as stack:
        stack.enter_context(_steps(_taken_though_read)())
        stack.enter_context(patch.object(LogicalTopic, "free_queue", _any_sealed))
        yield


MUTANTS: Final[Mapping[str, Mutant]] = {
    "a seal is acknowledged before the set has it": lambda: patch.object(Recorder, "kept", kept_at_once),
    "a segment begins one too late": lambda: patch.object(rules, "begun_at", _one_off),
    "the second target that is named wins": _steps(_again_without_successor),
    "a merge touches segments of others": lambda: patch.object(ToldMappings, "take", _for_others_too),
    "who may not be told is told the plain route": lambda: patch.object(
        Routes, "withheld", lambda _self, _topic: None
    ),
    "a queue is taken again that is not expired": _reused_though_read,
    "a position behind the end of a segment is kept there": _edges(_kept_behind),
    "a group that never read begins at 0": lambda: patch.object(Groups, "position", zero_for_none),
}
FIRST: Final[Mapping[str, int]] = {
    "a seal is acknowledged before the set has it": 2,
    "a segment begins one too late": 20,
    "the second target that is named wins": 5,
    "who may not be told is told the plain route": 1,
    "a queue is taken again that is not expired": 1,
    "a position behind the end of a segment is kept there": 2,
}
"""From which seed on to look for what few seeds find."""
RARE: Final = (
    "a segment begins one too late",
    "a position behind the end of a segment is kept there",
)
"""Those that none of the sixty worlds of a usual run finds; why, after they once did, is not known."""

if __name__ == "__main__":
    main(MUTANTS, partial(found_by, logical=True))
