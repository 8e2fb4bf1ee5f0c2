"""One simulated run of a topic of logical queues from one seed, and what must be true of it.

    python -m tests.sim.queue_run SEED [SEED ...] [--logical | --acts] [--trace]

prints the faults of each run, what was found, and the digest of its trace. The topic is a static one, or one
of logical queues of RIP-21 (`--logical`), or that through acts (`--acts`); `--trace` prints every event.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.runtime.sim import Rng
from tests.sim.logical_acts import ActsRun
from tests.sim.logical_run import LogicalRun
from tests.sim.queue_admins import StaticAdministrators, Wanted, some_sets
from tests.sim.queue_clients import Clients
from tests.sim.queue_judge import StaticJudgement, StaticWatch
from tests.sim.queue_play import QueueResult, QueueRun, Watching
from tests.sim.queue_world import ADMINS, SETS, QueueSettings, drawn

QUEUES_MAX: Final = 8


class StaticRun(QueueRun[Wanted, TopicAtBrokers]):
    """One world with a static topic."""

    makes_at_once = False

    def _administrators(self, rng: Rng) -> StaticAdministrators:
        return StaticAdministrators(self.world, rng, ADMINS, self.settings.deaths_per_mille)

    def _clients(self, rng: Rng, bytes_max: int) -> Clients:
        return Clients(self.world, rng, lambda: self.total, bytes_max)

    def _watching(self) -> Watching:
        assert isinstance(self.admins, StaticAdministrators)
        return StaticWatch(self.servers, granted=self.admins.granted)

    def _wanted(self) -> Wanted:
        if not self.has_topic:
            return Wanted(self.total, SETS)
        # Two who make one queue at the same time make it twice: one alone does.
        if not self.settings.races and self.total < QUEUES_MAX and self._rng.happens(250):
            self.total += 1
            return Wanted(self.total, SETS)
        return Wanted(None, some_sets(self._rng))

    def _finishing(self) -> Wanted:
        return Wanted(self.settings.queues, SETS, finishes=self.has_topic)

    def _all_to(self, name: str) -> Wanted:
        return Wanted(None, [name])

    def _sees_all(self, known: TopicAtBrokers) -> bool:
        return len(known.brokers.sets()) == len(SETS)

    def _judged(self, known: TopicAtBrokers) -> list[str]:
        return StaticJudgement(self.servers, self.clients.history, known.topic).all(self.clients.audited)

    def _moved(self, known: TopicAtBrokers) -> int:
        segments = {
            (index, each.key)
            for part in known.topic.parts.values()
            for index, chain in part.chains.items()
            for each in chain.queue.segments
        }
        return len(segments) - len({index for index, _ in segments})


def run(
    seed: int,
    settings: QueueSettings | None = None,
    *,
    logical: bool = False,
    acts: bool = False,
    **more: Any,
) -> QueueResult:
    """Let a world live through its faults, heal it, and judge it."""
    known = settings or drawn(seed, logical=logical, acts=acts)
    if known.acts:
        return ActsRun(seed, known, **more).play()
    return (LogicalRun if known.logical else StaticRun)(seed, known, **more).play()


def main() -> None:
    """The command line."""
    failed = False
    logical, acts = "--logical" in sys.argv, "--acts" in sys.argv
    for seed in (int(argument) for argument in sys.argv[1:] if not argument.startswith("--")):
        result = run(seed, logical=logical, acts=acts, keeps_lines="--trace" in sys.argv)
        sys.stdout.writelines(result.lines)
        sys.stdout.write(f"{result}\n")
        failed = failed or bool(result.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
