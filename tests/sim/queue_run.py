"""One simulated run of static topics from one seed, and what must be true of it.

    python -m tests.sim.queue_run SEED [SEED ...] [--trace]

prints the faults of each run, what was found, and the digest of its trace; `--trace` prints every event.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from replispec.runtime.sim import Rng
from replispec.runtime.world import Note
from tests.sim.nemesis import Fault, Nemesis, Strikes
from tests.sim.queue_admins import Administrators, Wanted, some_sets
from tests.sim.queue_clients import Clients
from tests.sim.queue_judge import Judgement, Watch
from tests.sim.queue_world import (
    ADMINS,
    BROKERS,
    CONTROLLER,
    NAME_SERVER,
    SETS,
    QueueSettings,
    Servers,
    address,
    build,
    drawn,
)

BEGIN_MS: Final = 30_000
SETTLE_MS: Final = 90_000
FAULTS_MS: Final = 9_000
RUNS_MS: Final = 11_000
QUEUES_MAX: Final = 8
MORE_MESSAGES: Final = 20
CALM_MS: Final = 4_000


@dataclass
class QueueResult:
    """What came of a run. `wrong` is empty when every promise was kept."""

    seed: int
    digest: str
    faults: list[Fault]
    wrong: list[str]
    settings: QueueSettings
    acknowledged: int = 0
    of_before: int = 0
    undecided: int = 0
    read: int = 0
    moved: int = 0
    """Segments but the first of each logical queue."""
    deaths: int = 0
    deleted: int = 0
    refused: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One paragraph for people, with the way to see the run again."""
        head = (
            f"seed {self.seed}: {len(self.wrong)} wrong, {self.acknowledged} messages acknowledged, "
            f"{self.of_before} of old senders, {self.undecided} without an offset, {self.read} read, "
            f"{self.deleted} deleted, {self.moved} queues moved, {self.deaths} administrators cut off, "
            f"digest {self.digest[:16]}; "
            f"python -m tests.sim.queue_run {self.seed}\n  {self.settings}"
        )
        faults = [f"  {each.at_ms:>6} ms: {each.what} ({each.lasts_ms} ms)" for each in self.faults]
        return "\n".join([head, *faults, *(f"  WRONG: {each}" for each in self.wrong)])


class QueueNemesis(Nemesis):
    """Also ends name servers, which begin empty, and brokers that were just sent a mapping, or just said that
    they have it."""

    def __init__(self, servers: Servers, rng: Rng, admins: Administrators) -> None:
        def master() -> str:
            # The same one for all that one fault asks at its moment.
            return servers.master(SETS[servers.world.now_us // 1_000 % len(SETS)])

        super().__init__(
            servers.world, rng, controllers=[CONTROLLER], brokers=BROKERS, others=[NAME_SERVER], master=master
        )
        self._waits_for = ""
        admins.told, admins.answered = partial(self._happens, "told"), partial(self._happens, "answered")

    def _all_strikes(self) -> Strikes:
        return (
            *super()._all_strikes(),
            (4, partial(self._kill, NAME_SERVER)),
            (5, partial(self._wait_for_a_mapping, "told")),
            (4, partial(self._wait_for_a_mapping, "answered")),
        )

    def _wait_for_a_mapping(self, what: str) -> None:
        self._waits_for = what
        self._tell(f"the next broker that is {what}: its end")

    def _happens(self, what: str, where: str) -> None:
        if self._waits_for != what or self._is_over:
            return
        self._waits_for = ""
        name = next(each for each in BROKERS if address(each) == where)
        delay_ms = self._rng.one_of((0, 1, 10)) * self._rng.between(0, 10)
        self._later(delay_ms, partial(self._end, name))


class QueueRun:
    """One world from its beginning to its judgement."""

    def __init__(self, seed: int, settings: QueueSettings, *, keeps_lines: bool = False) -> None:
        self.seed = seed
        self.settings = settings
        self.servers = build(seed, settings, keeps_lines=keeps_lines)
        self.world = self.servers.world
        rng = self.servers.rng
        self.admins = Administrators(self.world, rng.fork(), ADMINS, settings.deaths_per_mille)
        self.nemesis = QueueNemesis(self.servers, rng.fork(), self.admins)
        self.total = settings.queues
        self.clients = Clients(
            self.world, rng.fork(), lambda: self.total, 3_000 if settings.reserved else 200
        )
        self.watch = Watch(self.servers, self.admins.granted)
        self.wrong: list[str] = []
        self._rng = rng.fork()
        self._has_topic = False
        self._is_over = False

    def play(self) -> QueueResult:
        """Everything."""
        if not self.settings.reserved:
            return self._played()
        with self.servers.short_hours():
            return self._played()

    def _played(self) -> QueueResult:
        world = self.world

        def hear(name: str, note: Note) -> None:
            self.nemesis.hear(note)
            self.watch.hear(name, note)
            self.servers.hear(name, note)

        world.notes = hear
        self.servers.start()
        if not world.run_until(lambda: self.servers.is_whole, at_most_ms=BEGIN_MS):
            return self._result(["the sets did not become whole before anything failed"])
        world.after(0, self.nemesis.supervise)
        self.nemesis.plan(Rng(~self.seed).between(1, 5), from_ms=300, until_ms=FAULTS_MS)
        self._work()
        for _ in range(RUNS_MS // 100):
            world.run_for(100)
            self.watch.look()
        self._is_over = True
        self.nemesis.heal()
        self.admins.is_careful = True
        if not self._until(lambda: self.servers.is_whole) or not self._until_finished():
            return self._result(["not whole after all was healed"])
        return self._result(self._end())

    def _end(self) -> list[str]:
        """The last messages, and what is to be said of all."""
        history = self.clients.history
        if not self._has_topic:
            self._has_topic = True
            self.clients.start()
        # What brokers were told that were no masters any more, and did not know it, is not kept.
        history.kept.clear()
        before = len(history.acknowledged)
        wrong: list[str] = []
        if not self._until(lambda: len(history.acknowledged) >= before + MORE_MESSAGES):
            wrong.append("no messages are acknowledged after all was healed")
        self.clients.is_sending = False
        self.world.run_for(CALM_MS)
        history.is_committing = False
        self.world.run_for(CALM_MS)
        wrong += self._move_and_fail_over()
        # What a run read is as of before; nobody moves anything any more.
        if not self._until_finished() or self.admins.known is None:
            return [*wrong, "what brokers hold cannot be read"]
        self.clients.audit()
        if not self._until(lambda: self.clients.is_audited):
            wrong.append("not everything can be read")
        history.goes_on.clear()
        if not self._until(lambda: history.goes_on.keys() >= history.kept.keys()):
            wrong.append("nobody says where the group goes on")
        judgement = Judgement(self.servers, history, self.admins.known.topic)
        return wrong + judgement.all(self.clients.audited)

    def _move_and_fail_over(self) -> list[str]:
        """Once more all queues move, and every set gets another master."""
        if not self._until_finished(Wanted(None, [self._rng.one_of(SETS)])):
            return ["no queue can be moved"]
        masters = [self.servers.master(name) for name in SETS]
        for name in masters:
            self.world.kill(name, power=self.settings.loses_power)
        self.world.run_for(CALM_MS)
        for name in masters:
            self.world.start(name)
        return (
            [] if self._until(lambda: self.servers.is_whole) else ["not whole after the last masters ended"]
        )

    def _until(self, is_so: Callable[[], bool]) -> bool:
        for _ in range(0, SETTLE_MS, 100):
            if is_so():
                return True
            self.world.run_for(100)
            self.watch.look()
        return is_so()

    def _until_finished(self, wanted: Wanted | None = None) -> bool:
        """One administrator after the other, until one has done this, or finds nothing left to do."""
        if not self._until(lambda: not any(map(self.admins.is_busy, ADMINS))):
            return False
        ended = self.admins.ended
        self.admins.known = None

        def finished() -> bool:
            if self.admins.is_busy(ADMINS[0]):
                return False
            known = self.admins.known
            # A name server that began empty does not know of all sets yet.
            if known is not None and len(known.brokers.sets()) == len(SETS):
                return True
            finishing = Wanted(self.settings.queues, SETS, finishes=self._has_topic)
            self.admins.begin(ADMINS[0], wanted or finishing)
            return False

        return self._until(finished) and not ended[-1]

    def _work(self) -> None:
        """Have an administrator that does nothing begin something."""
        if self._is_over:
            return
        admins = self.admins
        if not self._has_topic and any(not each for each in admins.ended):
            self._has_topic = True
            self.clients.start()
        names = ADMINS if self._has_topic and self.settings.races else ADMINS[:1]
        for name in names:
            if not admins.is_busy(name) and self._rng.happens(500):
                admins.begin(name, self._wanted())
        self.world.after(self._rng.between(50, 600) * 1_000, self._work)

    def _wanted(self) -> Wanted:
        if not self._has_topic:
            return Wanted(self.total, SETS)
        # Two who make one queue at the same time make it twice: one alone does.
        if not self.settings.races and self.total < QUEUES_MAX and self._rng.happens(250):
            self.total += 1
            return Wanted(self.total, SETS)
        return Wanted(None, some_sets(self._rng))

    def _result(self, wrong: list[str]) -> QueueResult:
        history, known = self.clients.history, self.admins.known
        parts = known.topic.parts.values() if known is not None else ()
        segments = {
            (index, each.key)
            for part in parts
            for index, chain in part.chains.items()
            for each in chain.queue.segments
        }
        return QueueResult(
            self.seed,
            self.world.digest(),
            self.nemesis.faults,
            self.wrong + self.watch.wrong + wrong,
            self.settings,
            len(history.acknowledged),
            len(history.of_before),
            sum(at < 0 for _, at in history.acknowledged.values()),
            len(history.read),
            len(segments) - len({index for index, _ in segments}),
            self.admins.deaths,
            len(self.servers.deleted),
            [each for each in self.admins.ended if each],
            self.world.lines,
        )


def run(seed: int, settings: QueueSettings | None = None, **more: Any) -> QueueResult:
    """Let a world live through its faults, heal it, and judge it."""
    return QueueRun(seed, settings or drawn(seed), **more).play()


def main() -> None:
    """The command line."""
    failed = False
    for seed in (int(argument) for argument in sys.argv[1:] if not argument.startswith("--")):
        result = run(seed, keeps_lines="--trace" in sys.argv)
        sys.stdout.writelines(result.lines)
        sys.stdout.write(f"{result}\n")
        failed = failed or bool(result.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
