"""Rules of replication, broken one at a time: what the simulation must find, and with which seed it does.

    python -m tests.sim.mutants [SEEDS]

prints for each the first seed of so many that finds it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.replication.feed import Feed
from replispec.runtime.sim import Disk
from replispec.wire.rocketmq.ha import HaEpochEntry
from tests.sim import replication_only, test_replication_only
from tests.sim.replication_only import Arbiter, Copier

Mutant = Callable[[], AbstractContextManager[object]]


def _settings(**changes: object) -> Mutant:
    return lambda: patch.object(replication_only, "SETTINGS", replace(replication_only.SETTINGS, **changes))  # type: ignore[arg-type]


@contextmanager
def _disk_lies() -> Iterator[None]:
    made = Disk.__init__

    def lying(self: Disk, *args: object, **kwargs: object) -> None:
        made(self, *args, **kwargs)  # type: ignore[arg-type]
        self.keeps_flushes = False

    with patch.object(Disk, "__init__", lying):
        yield


def _elect_anybody(self: Arbiter, broker: int) -> None:
    self.epoch += 1
    self.master = broker
    self.members = (broker,)


@contextmanager
def _elected_outside_the_set() -> Iterator[None]:
    class Anybody(tuple[int, ...]):
        __slots__ = ()

        def __contains__(self, _: object) -> bool:
            return True

    def alter(self: Arbiter, epoch: int, members: tuple[int, ...]) -> None:
        if epoch == self.epoch:
            self.members = Anybody(members)

    def elect(self: Arbiter, broker: int) -> None:
        _elect_anybody(self, broker)
        self.members = Anybody((broker,))

    with patch.object(Arbiter, "alter", alter), patch.object(Arbiter, "elect", elect):
        yield


def _epoch_moves(epochs: Sequence[HaEpochEntry], epoch: int, log_end: int) -> tuple[HaEpochEntry, ...]:
    kept = [entry for entry in epochs if entry.start_offset < log_end and entry.epoch < epoch]
    return rules.with_epoch(kept, epoch, log_end)


def _whole_log(self: Feed) -> int:
    end: int = vars(self)["_store"].log.end
    return end


def _old_master_alters(self: Copier, members: tuple[int, ...], now_ms: int) -> None:
    self.members = self.arbiter.members = tuple(sorted(set(members)))
    self.confirm(now_ms)


def _uncut(ours: object, our_end: int, theirs: object, their_end: int) -> int:
    del ours, theirs, their_end
    return our_end


def _cut_at_the_shorter(ours: object, our_end: int, theirs: object, their_end: int) -> int:
    del ours, theirs
    return min(our_end, their_end)


MUTANTS: dict[str, Mutant] = {
    "a replica reports what has arrived, not what is on its disk": _settings(flush_disk_type="ASYNC_FLUSH"),
    "the disk says it flushed and did not": _disk_lies,
    "a master confirms what it has itself": lambda: patch.object(Copier, "acknowledged", _end_of_time),
    "a master confirms before its own flush": lambda: patch.object(
        Copier, "own_end", lambda self: self.store.log.end
    ),
    "a master sends what its own disk may still lose": lambda: patch.object(
        Feed, "_end", property(_whole_log)
    ),
    "who is not in the SyncStateSet is elected": _elected_outside_the_set,
    "an old master changes the set": lambda: patch.object(Copier, "alter", _old_master_alters),
    "nothing is cut after a fail-over": lambda: patch.object(rules, "consistent_point", _uncut),
    "the shorter log decides where to cut": lambda: patch.object(
        rules, "consistent_point", _cut_at_the_shorter
    ),
    "an epoch moves when its master comes back": lambda: patch.object(
        rules, "epochs_as_master", _epoch_moves
    ),
}


def _end_of_time(self: Copier, broker_id: int, offset: int, now_ms: int) -> None:
    self.ends[broker_id] = 2**62
    del offset
    self.confirm(now_ms)


def found_by(mutant: Mutant, seeds: int) -> int | None:
    """The first seed that finds a mutant; None when none of so many does."""
    with mutant():
        for seed in range(seeds):
            try:
                wrong = test_replication_only.run(seed)[0]
            except AssertionError as error:
                wrong = [repr(error)]
            if wrong:
                return seed
    return None


def main() -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, mutant in MUTANTS.items():
        sys.stdout.write(f"{found_by(mutant, seeds)!s:>5}  {name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
