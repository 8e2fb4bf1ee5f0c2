"""Rules of static topics, broken one at a time: which seeds of simulated worlds find each.

python -m tests.sim.queue_mutants [SEEDS] [PART OF A RULE ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from replispec.administrator.rocketmq import mappings as admin_mappings
from replispec.administrator.rocketmq import remapping
from replispec.broker.rocketmq.core import static_topics
from replispec.broker.rocketmq.core.groups import Groups
from replispec.broker.rocketmq.core.logical import LogicalRequests
from replispec.broker.rocketmq.core.mapped_topics import MappedTopics
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.recorder import Recorder
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client import asking, steps
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines import static_topic_queue as machine
from tests.sim import queue_admins
from tests.sim.queue_run import run

Mutant = Callable[[], AbstractContextManager[object]]
EDGE_OF: Final = edge_of
KEPT: Final = Recorder.kept
CATCH_UP: Final = Mappings.catch_up
SETTLE: Final = MappedTopics.settle
POSITION: Final = Groups.position
ASKED: Final = asking.asked
BEGIN_OF: Final = LogicalView.begin_of
ROUTED: Final = LogicalRequests._routed
SENDING: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
CHOSEN: Final = admin_mappings._chosen


def _rule(name: str, broken: Callable[..., object]) -> Mutant:
    return lambda: patch.object(rules, name, broken)


def kept_at_once(self: Recorder, offset: int, now_ms: int) -> None:
    KEPT(self, self._store.log.end if offset else 0, now_ms)


def _not_cut(self: Mappings) -> None:
    self._cuts = self._store.index.cuts
    CATCH_UP(self)


def _takes_smaller(of: Any, state: Any, known: Any, event: Any, *rest: Any) -> Any:
    if isinstance(event, machine.Mapped) and event.epoch < known.epoch:
        event = replace(event, epoch=known.epoch + 1)
    return EDGE_OF(of, state, known, event, *rest)


def _not_read_by_replicas(self: MappedTopics, kept_to: int, now_ms: int) -> bool:
    table = self._known.static
    queue = table._store.index.queues.get((constants.MAPPING_TOPIC, constants.MAPPING_QUEUE))
    if queue is not None and not self._master.serves:
        table._position = queue.end
    return SETTLE(self, kept_to, now_ms)


def zero_for_none(self: Groups, group: str, topic: str, queue_id: int) -> int:
    return POSITION(self, group, topic, queue_id) or 0


def sent_again(errand: asking.Errand) -> Any:
    return ASKED(replace(errand, again=True))


def _undecided_first(index: int, generation: int, said: Sequence[Any], before: Any) -> Any:
    chosen = CHOSEN(index, generation, said, before)
    undecided = [each.segments[generation] for each in said if not each.segments[generation].is_decided]
    return undecided[-1] if undecided else chosen


def _anywhere(self: LogicalView, segment: Any, bounds_of: Any) -> int:
    found: int = BEGIN_OF(replace(self, queue=None), segment, bounds_of)
    return found


def _undecided_is_first(physical: int, physical_start: int, logical_start: int) -> int:
    return physical - physical_start + max(logical_start, 0)


def _routed_plainly(self: LogicalRequests, handler: Any, request: Request) -> None:
    topic = (request.command.header.ext_fields or {}).get("topic") or ""
    if request.code not in SENDING and self._mappings.kept(topic) is None:
        handler(request)
    else:
        ROUTED(self, handler, request)


@contextmanager
def _plain_meanwhile() -> Iterator[None]:
    with (
        patch.object(Mappings, "unsure", property(lambda _: [])),
        patch.object(LogicalRequests, "_routed", _routed_plainly),
    ):
        yield


MUTANTS: Final[Mapping[str, Mutant]] = {
    "a mapping is acknowledged before the set has it": lambda: patch.object(Recorder, "kept", kept_at_once),
    "a mapping is not cut with the log": lambda: patch.object(Mappings, "catch_up", _not_cut),
    "a mapping of a smaller epoch is taken": lambda: patch.object(static_topics, "edge_of", _takes_smaller),
    "an item may change what it said": _rule("follows_items", lambda *_: True),
    "a replica does not read the mappings that it copies": lambda: patch.object(
        MappedTopics, "settle", _not_read_by_replicas
    ),
    "an item begins one too early": _rule("next_block", lambda end: max(end - 1, 0)),
    "a start that is decided is decided again": lambda: patch.object(
        admin_mappings, "_chosen", _undecided_first
    ),
    "an item without a start gives offsets": _rule("logical_offset", _undecided_is_first),
    "who was overtaken is forgotten": lambda: patch.object(remapping, "overtaken", lambda _: {}),
    "an interrupted run is finished by nobody": lambda: patch.object(
        queue_admins, "is_unfinished", lambda *_: False
    ),
    "a topic is plain while no mapping is known to be kept": _plain_meanwhile,
    "an item without messages begins where its queue does": lambda: patch.object(
        LogicalView, "begin_of", _anywhere
    ),
    "a group that never read begins at 0": lambda: patch.object(Groups, "position", zero_for_none),
    "a send whose answer was lost is sent again": lambda: patch.object(steps, "asked", sent_again),
}
FIRST: Final[Mapping[str, int]] = {
    "a mapping is acknowledged before the set has it": 2,
    "a mapping is not cut with the log": 67,
    "an item may change what it said": 6,
    "who was overtaken is forgotten": 3,
    "a topic is plain while no mapping is known to be kept": 4,
    "an item without messages begins where its queue does": 1,
    "a send whose answer was lost is sent again": 2,
}
"""From which seed on to look for what few seeds find."""


def found_by(
    mutant: Mutant, seeds: int, first: int = 0, *, logical: bool = False, acts: bool = False
) -> tuple[int, str] | None:
    """The first seed that finds a mutant, and what it says; None when none of so many does."""
    with mutant():
        for seed in range(first, first + seeds):
            try:
                wrong = run(seed, logical=logical, acts=acts, stops_early=True).wrong
            except (AssertionError, LookupError, ValueError) as error:
                wrong = [repr(error)]
            if wrong:
                return seed, wrong[0]
    return None


def main(mutants: Mapping[str, Mutant], found: Callable[[Mutant, int], tuple[int, str] | None]) -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    only = sys.argv[2:]
    for name, mutant in mutants.items():
        if only and not any(each in name for each in only):
            continue
        sys.stdout.write(f"{name}: {found(mutant, seeds)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(MUTANTS, found_by)
