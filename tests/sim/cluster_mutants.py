"""Rules of controller, broker and learner, broken one at a time: which seeds of whole clusters find each.

python -m tests.sim.cluster_mutants [SEEDS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from replispec.broker.rocketmq.core.replicated import Replicated
from replispec.broker.rocketmq.core.role import Role
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.membership import IdentityFiles
from replispec.runtime.rocketmq.replication import HaReplica
from replispec.runtime.sim import SimulatedFiles, SimulatedJournal
from tests.sim.run import run

Mutant = Callable[[], AbstractContextManager[object]]
ELECT: Final = rules.elect


def _rule(name: str, broken: Callable[..., object]) -> Mutant:
    return lambda: patch.object(rules, name, broken)


def _method(kind: type, name: str, broken: object) -> Mutant:
    return lambda: patch.object(kind, name, broken)


@contextmanager
def _lying(storage: type[SimulatedFiles | SimulatedJournal], call: str) -> Iterator[None]:
    """What is written by this call is there until the power is lost."""
    write = getattr(storage, call)

    def lie(self: SimulatedFiles | SimulatedJournal, *args: object, **kwargs: object) -> None:
        disk = vars(self)["_disk"]
        disk.keeps_flushes = False
        try:
            write(self, *args, **kwargs)
        finally:
            disk.keeps_flushes = True

    with patch.object(storage, call, lie):
        yield


@contextmanager
def _own_flush_not_awaited() -> Iterator[None]:
    count = Replicated.count

    def at_once(self: Replicated, now_ms: int) -> None:
        log, flushed = self.store.log, self.store.log.flushed
        log.flushed = log.end
        try:
            count(self, now_ms)
        finally:
            log.flushed = flushed

    with patch.object(Replicated, "count", at_once):
        yield


def _elect_anybody(
    _: object, everyone: frozenset[int], beats: Sequence[Any], *rest: Any, **_rest: bool
) -> int | None:
    return ELECT(everyone, everyone, beats, None, rest[1], unclean=True)


def _joins_early(*_: int, is_member: bool, is_learner: bool) -> bool:
    return not is_member and not is_learner


def _shorter(_: object, our_end: int, __: object, their_end: int) -> int:
    return min(our_end, their_end)


UNION: Final = "a master counts the set as it was, not as it may be"
LATE: Final = {
    "a master acknowledges before its own flush": 250,
    "a replica reports what has arrived, not what is on its disk": 35,
}
"""What only one seed in fifty finds, or fewer, and from where on to look for it: 252 for the first, now."""
MUTANTS: Final[dict[str, Mutant]] = {
    "a master acknowledges before its own flush": _own_flush_not_awaited,
    "a master acknowledges what it has alone": _rule("acknowledged_offset", lambda end, *_, **__: end),
    "a replica reports what has arrived, not what is on its disk": _method(
        HaReplica, "vouched_for", property(lambda self: vars(self)["_store"].log.end)
    ),
    "the log of a broker is not brought to the disk": lambda: _lying(SimulatedFiles, "flush"),
    "the log of the controller is not brought to the disk": lambda: _lying(SimulatedJournal, "append"),
    UNION: _method(Role, "counted", property(lambda self: self.members)),
    "who is not in the SyncStateSet is elected": _rule("elect", _elect_anybody),
    "a replica joins before it has everything": _rule("may_join", _joins_early),
    "consumers see what is not confirmed": _rule("confirm_offset", lambda end, *_, **__: end),
    "nothing is cut after a fail-over": _rule("consistent_point", lambda _, end, *__: end),
    "the shorter log decides where to cut": _rule("consistent_point", _shorter),
    "an identity is forgotten": _method(IdentityFiles, "granted", IdentityFiles.refused),
}


def found_by(mutant: Mutant, seeds: int, first: int = 0) -> tuple[int, str] | None:
    """The first seed that finds a mutant, and what it says; None when none of so many does."""
    with mutant():
        for seed in range(first, first + seeds):
            try:
                wrong = run(seed).wrong
            except AssertionError as error:
                wrong = [repr(error)]
            if wrong:
                return seed, wrong[-1]
    return None


def main() -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, mutant in MUTANTS.items():
        sys.stdout.write(f"{name}: {found_by(mutant, seeds)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
