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

from replispec.administrator.rocketmq import logical_migration
from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.broker.rocketmq.core import logical_queues, logical_traffic
from replispec.broker.rocketmq.core.groups import Groups
from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.logical_queues import LogicalQueueAdmin
from replispec.broker.rocketmq.core.recorder import Recorder
from replispec.broker.rocketmq.core.sends import Sends
from replispec.nameserver.rocketmq.mappings import ToldMappings
from replispec.nameserver.rocketmq.routes import Routes
from replispec.runtime.primitives.machines import edge_of, step
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client import steps
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues import model as queue_model
from replispec.wire.rocketmq.machines import broker_sends
from replispec.wire.rocketmq.machines import logical_queue_segment as machine
from tests.sim.queue_mutants import Mutant, found_by, kept_at_once, main, sent_again, zero_for_none

Step = Callable[..., Any]
NEWEST_FIRST: Final = steps.position
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


def _begun_anew(state: Any, known: Any, event: Any) -> tuple[Any, Any]:
    is_begun = isinstance(event, machine.Committed) and state is machine.State.NORMAL
    return machine.State.WRITE_ONLY if is_begun else state, known


def _stored_behind(state: Any, event: Any) -> Any:
    is_sent = isinstance(event, machine.Sent) and state is machine.State.READ_ONLY
    return machine.State.NORMAL if is_sent else state


def _kept_behind(state: Any, event: Any) -> Any:
    return machine.State.ABSENT if isinstance(event, machine.PositionSaid) else state


def _read_behind(state: Any, event: Any) -> Any:
    return machine.State.NORMAL if isinstance(event, machine.Pulled) else state


def _not_cut(self: LogicalMappings) -> None:
    self._cuts = self._store.index.cuts
    super(LogicalMappings, self).catch_up()


def _one_off(segment: Any, logical_start: int) -> Any:
    return BEGUN(segment, logical_start + 1)


def _for_others_too(self: ToldMappings, who: Any, *rest: Any, **more: Any) -> Any:
    found = TAKE(self, who, *rest, **more)
    for kept in self._topics.values():
        for broker, each in kept.items():
            if broker != who[1] and each.logical is not None:
                kept[broker] = replace(each, logical=replace(each.logical, segments={}))
    return found


def _of_newest_alone(topic: str, queue: Any, group: str) -> Any:
    route = yield from steps.looked_up(topic)
    logical = route.logical[queue.number]
    newest = logical.last_readable
    _, found = yield from steps._position_in(topic, queue, group, steps._same_as(newest))
    return None if found is None else newest.logical_of(found)


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


@contextmanager
def _earlier_life() -> Any:
    with (
        patch.object(LogicalQueue, "is_said_of", lambda _self, each, found: found >= each.physical_start),
        patch.object(LogicalQueue, "keeper_of", LogicalQueue.locate),
    ):
        yield


def _by_state(segment: Any) -> Any:
    start = segment.logical_start
    return not segment.is_decided, start, segment.state, segment.queue, segment.physical_start


def _refused_though_stored(self: Sends, *, stops: bool) -> None:
    refused = [*(one.request for one in self._waiting), *self._held]
    self._waiting.clear()
    self._held.clear()
    self._first = None
    for request in refused:
        self._answer(request, broker_sends.GivenUp(stops))


def _start_of_hint(self: LogicalQueueAdmin) -> int:
    asked = self._now.asked
    hint = self.hints.get((asked.topic, asked.index))
    mapping = self._now.mapping
    last = None if mapping is None else [*mapping.of_index(asked.index)][-1:]
    if hint is not None:
        return hint.logical_start
    return last[0].segment.logical_end if last else 0


def _nothing_left(_queue: Any, _target: str) -> None:
    return None


MUTANTS: Final[Mapping[str, Mutant]] = {
    "a seal is acknowledged before the set has it": lambda: patch.object(Recorder, "kept", kept_at_once),
    "segments are not cut with the log": lambda: patch.object(LogicalMappings, "catch_up", _not_cut),
    "a segment begins one too late": lambda: patch.object(rules, "begun_at", _one_off),
    "the second target that is named wins": _steps(_again_without_successor),
    "a start that is decided is decided again": _steps(_begun_anew),
    "a segment that is sealed takes messages": _edges(_stored_behind),
    "a segment is read beyond its end": _edges(_read_behind),
    "a hint is trusted": lambda: patch.object(LogicalQueueAdmin, "next_start", property(_start_of_hint)),
    "a merge touches segments of others": lambda: patch.object(ToldMappings, "take", _for_others_too),
    "who may not be told is told the plain route": lambda: patch.object(
        Routes, "withheld", lambda _self, _topic: None
    ),
    "a queue is taken again that is not expired": _reused_though_read,
    "a position is looked for in the newest segment alone": lambda: patch.object(
        steps, "position", _of_newest_alone
    ),
    "a position of an earlier life of a queue counts": _earlier_life,
    "a position behind the end of a segment is kept there": _edges(_kept_behind),
    "a group that never read begins at 0": lambda: patch.object(Groups, "position", zero_for_none),
    "what was left of a migration is finished by nobody": lambda: patch.object(
        logical_migration, "_left", _nothing_left
    ),
    "segments that begin alike are sorted by their states": lambda: patch.object(
        queue_model, "_place", _by_state
    ),
    "a message that is stored is refused": lambda: patch.object(Sends, "refuse_all", _refused_though_stored),
    "a send whose answer was lost is sent again": lambda: patch.object(steps, "asked", sent_again),
}
FIRST: Final[Mapping[str, int]] = {}
"""From which seed on to look for what few seeds find."""

if __name__ == "__main__":
    main(MUTANTS, partial(found_by, logical=True))
