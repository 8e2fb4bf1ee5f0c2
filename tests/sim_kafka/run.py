"""One simulated run of a cluster of partitions from one seed, and what must be true of it.

    python -m tests.sim_kafka.run SEED [SEED ...] [--trace]

prints the faults of each run, what was found, and the digest of its trace; `--trace` prints every event.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from replispec.runtime.sim import Rng
from replispec.runtime.world import Note
from tests.sim.nemesis import Fault
from tests.sim.settings import Settings
from tests.sim_kafka.cluster import CONTROLLERS, LEARNED, LEARNER, METASTORE, PartitionsCluster, built
from tests.sim_kafka.judging import judged, unsettled
from tests.sim_kafka.nemesis import PartitionsNemesis
from tests.sim_kafka.settings import PartitionsSettings, drawn_settings
from tests.sim_kafka.watching import PartitionsWatch
from tests.sim_kafka.wishes import TopicWish

FAULTS_FROM_MS: Final = 3_500
FAULTS_UNTIL_MS: Final = 11_000
SETTLE_MS: Final = 60_000
QUIET_MS: Final = 3_000
REPAIR_MS: Final = 1_500


@dataclass
class PartitionsResult:
    """What came of a run. `wrong` is empty when every promise was kept; `excused`: partitions that lost what
    was acknowledged where that may be."""

    seed: int
    settings: PartitionsSettings
    digest: str
    faults: list[Fault]
    wrong: list[str]
    excused: list[str]
    counts: dict[str, int]
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One paragraph for people, with the way to see the run again."""
        counts = ", ".join(f"{number} {what}" for what, number in self.counts.items())
        head = (
            f"seed {self.seed}: {len(self.wrong)} wrong, {counts}, digest {self.digest[:16]}; "
            f"python -m tests.sim_kafka.run {self.seed}\n  {self.settings}"
        )
        faults = [f"  {each.at_ms:>6} ms: {each.what} ({each.lasts_ms} ms)" for each in self.faults]
        excused = [f"  excused: {each}" for each in self.excused]
        return "\n".join([head, *faults, *excused, *(f"  WRONG: {each}" for each in self.wrong)])


class PartitionsRun:
    """A cluster, its watch and its nemesis."""

    def __init__(
        self, seed: int, settings: PartitionsSettings | None = None, *, keeps_lines: bool = False
    ) -> None:
        self.seed = seed
        self.settings = settings or drawn_settings(seed)
        self.cluster: PartitionsCluster = built(seed, self.settings, keeps_lines=keeps_lines)
        self.watch = PartitionsWatch(self.cluster)
        self.cluster.client.misread = self.watch.misread
        self.rng = Rng(~seed)
        cluster = self.cluster
        self.nemesis = PartitionsNemesis(
            cluster.world,
            cluster.rng.fork(),
            controllers=[METASTORE, *CONTROLLERS],
            brokers=list(cluster.brokers.values()),
            others=[LEARNER],
            master=cluster.leader,
            settings=Settings(loses_power=self.settings.loses_power, forgets=self.settings.forgets),
        )
        cluster.history.tell = self.nemesis.happened
        cluster.history.told = self.watch.acknowledged
        cluster.world.look = self.watch.look
        cluster.world.notes = self._hear

    def _hear(self, name: str, note: Note) -> None:
        self.watch.hear(note)
        if note.what == "the disk of the logs failed":
            # Whoever runs it begins it again; its disk is well by then, or fails again.
            self.cluster.world.after(REPAIR_MS * 1_000, partial(self._begin_again, name))

    def _begin_again(self, name: str) -> None:
        world = self.cluster.world
        node = next(iter(world.processes[name].nodes), None)
        if node is not None and vars(node)["_keeper"] is not None and vars(node)["_keeper"].is_broken:
            world.kill(name)
            world.start(name)

    def play(self) -> PartitionsResult:
        """Live through everything, heal, and be judged."""
        cluster, world = self.cluster, self.cluster.world
        cluster.start()
        self._wish()
        world.after(3_000_000, self.nemesis.supervise)
        self.nemesis.plan(self.rng.between(1, 5), from_ms=FAULTS_FROM_MS, until_ms=FAULTS_UNTIL_MS)
        world.run_for(FAULTS_UNTIL_MS + 1_500)
        self.nemesis.heal()
        return self.ended()

    def ended(self) -> PartitionsResult:
        """Wait until all is whole again, and judge."""
        cluster, world, watch = self.cluster, self.cluster.world, self.watch
        if not world.run_until(lambda: not unsettled(cluster, watch), at_most_ms=SETTLE_MS, step_ms=500):
            watch.fault(f"not whole {SETTLE_MS} ms after all was healed: {unsettled(cluster, watch)[:3]}")
        cluster.client.is_sending = False
        world.run_for(QUIET_MS)
        world.run_until(lambda: not judged(cluster, watch)[0], at_most_ms=20_000, step_ms=1_000)
        wrong, excused = judged(cluster, watch)
        history = cluster.history
        counts = {
            "sent": len(history.sent),
            "acknowledged": len(history.acknowledged),
            "read": len(history.read),
            "elections": watch.elections,
            "changes of ISRs": watch.isr_changes,
            "wishes": sum(cluster.administrator.asked.values()),
        }
        return PartitionsResult(
            self.seed,
            self.settings,
            world.digest(),
            self.nemesis.faults,
            [*watch.faults, *wrong],
            excused,
            counts,
            world.lines,
        )

    # What the administrator wishes

    def _wish(self) -> None:
        """A topic that is kept, one that comes and goes, and what becomes of both in some order."""
        wishes = self.cluster.administrator.wishes
        wishes.append(TopicWish("create", LEARNED, [self._replicas(), self._replicas()]))
        wishes.append(TopicWish("create", "other", [self._replicas()]))
        grown = 2
        for _ in range(self.rng.between(3, 8)):
            at_ms = self.rng.between(3_000, FAULTS_UNTIL_MS)
            match self.rng.one_of(("recreate", "move", "move", "move", "elsewhere", "grow")):
                case "recreate":
                    again = TopicWish("create", "other", [self._replicas(), self._replicas()])
                    self._later(at_ms, TopicWish("delete", "other"), again)
                case "move":
                    topic = self.rng.one_of((LEARNED, LEARNED, "other"))
                    self._later(at_ms, TopicWish("move", topic, [self._replicas()], 0))
                case "elsewhere":
                    self._later(
                        at_ms,
                        TopicWish("move", LEARNED, [self._replicas()], 1),
                        TopicWish("move elsewhere", LEARNED, [self._replicas()], 1),
                    )
                case "grow" if grown < 4:
                    self._later(at_ms, TopicWish("grow", LEARNED, [self._replicas()], grown))
                    grown += 1

    def _later(self, at_ms: int, *wishes: TopicWish) -> None:
        self.cluster.world.after(at_ms * 1_000, partial(self.cluster.administrator.wishes.extend, wishes))

    def _replicas(self) -> list[int]:
        """Two or three brokers, in some order."""
        left = list(self.cluster.brokers)
        found = []
        for _ in range(self.rng.one_of((2, 3, 3))):
            found.append(self.rng.one_of(left))
            left.remove(found[-1])
        return found


def run(
    seed: int,
    settings: PartitionsSettings | None = None,
    *,
    keeps_lines: bool = False,
    prepare: Callable[[PartitionsRun], None] = lambda _: None,
) -> PartitionsResult:
    """Let a cluster live through its faults, heal it, and judge it."""
    made = PartitionsRun(seed, settings, keeps_lines=keeps_lines)
    prepare(made)
    return made.play()


def main() -> None:
    """The command line."""
    numbers = [int(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    failed = False
    for seed in numbers:
        result = run(seed, keeps_lines="--trace" in sys.argv)
        sys.stdout.writelines(result.lines)
        sys.stdout.write(f"{result}\n")
        sys.stdout.flush()
        failed = failed or bool(result.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
