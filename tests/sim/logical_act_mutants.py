"""Rules of logical queues, broken one at a time, that worlds of acts find: which seeds do.

python -m tests.sim.logical_act_mutants [SEEDS] [PART OF A RULE ...]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from replispec.administrator.rocketmq import (
    brokers,
    logical_migration,
    logical_places,
    logical_queues,
    logical_returns,
    logical_topics,
)
from replispec.administrator.rocketmq.logical_topics import LogicalTopic
from replispec.broker.rocketmq.core import logical_queues as core
from replispec.broker.rocketmq.core.left_queues import LeftQueues
from replispec.broker.rocketmq.core.logical_traffic import LogicalQueueTraffic
from replispec.broker.rocketmq.core.recorded import RecordedMappings
from replispec.nameserver.rocketmq.mappings import _Kept
from replispec.runtime.primitives.machines import step
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue
from replispec.runtime.rocketmq.queues.telling import HeardQueues
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.machines import logical_queue_segment as machine
from tests.sim.queue_mutants import Mutant, found_by, main

PASSES_OVER: Final = logical_migration._passes_over


def _both(*patches: Callable[[], Any]) -> Mutant:
    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each())
            yield

    return broken


def _nothing(*_: object) -> Any:
    """A plan that asks nothing and comes to nothing."""
    yield from ()


def _own_alone(_stated: object, expired: Any) -> Any:
    return {index: tuple(each) for index, each in expired.items()}


def _heard_all(self: LogicalTopic, index: int, held: Sequence[Any]) -> LogicalQueue:
    lost = self.lost.get(index, ())
    return (LogicalQueue.heard if lost else LogicalQueue.of)(index, [*held, *lost])


def _any_expired(self: LogicalTopic, broker: str, index: int) -> PhysicalQueue | None:
    for queue in sorted(self.queues.values(), key=lambda each: (each.index != index, each.index)):
        for each in queue.segments[:-1]:
            if each.state == State.EXPIRED and each.queue.broker_name == broker:
                return each.queue
    return None


def _anywhere_behind(found: LogicalTopic, index: int, tail: Any, start: int | None) -> Any:
    looks_open = replace(tail, physical_end=-1) if tail.is_sealed else tail
    return PASSES_OVER(found, index, looks_open, start)


def _told_with_empty(self: HeardQueues) -> Sequence[LogicalQueue]:
    return [self.queues[index] for index in range(self.total) if index in self.queues]


def _decided_again(of: Any, state: Any, known: Any, event: Any, *rest: Any) -> Any:
    if of is machine.MACHINE and isinstance(event, machine.Committed) and state is machine.State.NORMAL:
        state, known = machine.State.WRITE_ONLY, replace(known, logical_start=-1)
    return step(of, state, known, event, *rest)


ACT_MUTANTS: Final[Mapping[str, Mutant]] = {
    "where a logical queue ends leaves with its broker": lambda: patch.object(
        logical_queues, "ended_at", lambda *_: ()
    ),
    "what a broker alone said is gone leaves with it": lambda: patch.object(
        logical_queues, "with_gone", _own_alone
    ),
    "places are not carried over before a broker leaves": lambda: patch.object(
        logical_queues, "carried_over", _nothing
    ),
    "places are not carried over before a queue is taken again": _both(
        lambda: patch.object(logical_queues, "before_taken", _nothing),
        lambda: patch.object(logical_migration, "before_taken", _nothing),
    ),
    "a place is carried behind the end of what keeps it": lambda: patch.object(
        logical_places, "min", max, create=True
    ),
    "a broker that is passed over ends where the next one that is known begins": lambda: patch.object(
        logical_returns, "_followed", lambda _found, _index, _one, two: two
    ),
    "a broker that is back looks ended while another one is lost": lambda: patch.object(
        LogicalTopic, "_with_lost", _heard_all
    ),
    "a source that is sealed is passed over anywhere": lambda: patch.object(
        logical_migration, "_passes_over", _anywhere_behind
    ),
    "the first name server alone is asked which brokers there are": lambda: patch.object(
        logical_topics, "clusters_of_all", brokers.clusters
    ),
    "a replica's word keeps no plain route away": lambda: patch.object(
        _Kept, "with_enabled", lambda self, _stated: self
    ),
    "a queue that was made twice stays so": lambda: patch.object(logical_queues, "_unmade", _nothing),
    "a queue that was never used is asked for first": lambda: patch.object(
        LogicalTopic, "free_queue", _any_expired
    ),
    "a producer is sent on by a seal that is not kept": lambda: patch.object(
        LogicalQueueTraffic, "_waits_for_seal", lambda *_: False
    ),
    "no queue rests": lambda: patch.object(LeftQueues, "rests", lambda *_: False),
    "a late registration undoes a newer one": lambda: patch.object(_Kept, "is_newer", lambda *_: False),
    "records are not made again before the log loses them": lambda: patch.object(
        RecordedMappings, "unsafe", lambda _: iter(())
    ),
    "a start that is decided is decided again": lambda: patch.object(core, "step", _decided_again),
}
ACT_FIRST: Final[Mapping[str, int]] = {
    "where a logical queue ends leaves with its broker": 0,
    "places are not carried over before a broker leaves": 0,
    "what a broker alone said is gone leaves with it": 11,
    "places are not carried over before a queue is taken again": 27,
    "the first name server alone is asked which brokers there are": 0,
    "a replica's word keeps no plain route away": 10,
    "a queue that was never used is asked for first": 4,
    "a producer is sent on by a seal that is not kept": 6,
    "no queue rests": 14,
}
"""From which seed on to look for those that worlds find."""

if __name__ == "__main__":
    main(ACT_MUTANTS, partial(found_by, acts=True))
