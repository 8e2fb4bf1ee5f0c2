"""One simulated run of logical queues, of either form: faults, healing, the last moves, judgement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol

from replispec.runtime.sim import Rng
from replispec.runtime.world import Note
from tests.sim.nemesis import Fault, Nemesis, Strikes
from tests.sim.queue_admins import Administrators, KnownT, WantedT
from tests.sim.queue_clients import Clients
from tests.sim.queue_world import (
    ADMINS,
    BROKERS,
    CONTROLLER,
    NAME_SERVER,
    SECOND,
    QueueSettings,
    Servers,
    address,
    build,
)

BEGIN_MS: Final = 30_000
SETTLE_MS: Final = 90_000
FAULTS_MS: Final = 9_000
RUNS_MS: Final = 11_000
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

    @property
    def _form(self) -> str:
        if self.settings.acts:
            return " --acts"
        return " --logical" if self.settings.logical else ""

    def __str__(self) -> str:
        """One paragraph for people, with the way to see the run again."""
        head = (
            f"seed {self.seed}: {len(self.wrong)} wrong, {self.acknowledged} messages acknowledged, "
            f"{self.of_before} of old senders, {self.undecided} without an offset, {self.read} read, "
            f"{self.deleted} deleted, {self.moved} queues moved, {self.deaths} administrators cut off, "
            f"digest {self.digest[:16]}; "
            f"python -m tests.sim.queue_run {self.seed}{self._form}"
            f"\n  {self.settings}"
        )
        faults = [f"  {each.at_ms:>6} ms: {each.what} ({each.lasts_ms} ms)" for each in self.faults]
        return "\n".join([head, *faults, *(f"  WRONG: {each}" for each in self.wrong)])


class QueueNemesis(Nemesis):
    """Also ends name servers, which begin empty, and brokers that were just sent a mapping, or just said that
    they have it."""

    def __init__(self, servers: Servers, rng: Rng, admins: Administrators[Any, Any]) -> None:
        def master() -> str:
            # The same one for all that one fault asks at its moment.
            return servers.master(servers.sets[servers.world.now_us // 1_000 % len(servers.sets)])

        others = [each for each in (NAME_SERVER, SECOND) if each in servers.names]
        super().__init__(
            servers.world, rng, controllers=[CONTROLLER], brokers=BROKERS, others=others, master=master
        )
        self._waits_for = ""
        self._away = servers.away
        admins.told, admins.answered = partial(self._happens, "told"), partial(self._happens, "answered")

    def _all_strikes(self) -> Strikes:
        return (
            *super()._all_strikes(),
            (4, partial(self._kill, NAME_SERVER)),
            (5, partial(self._wait_for_a_mapping, "told")),
            (4, partial(self._wait_for_a_mapping, "answered")),
        )

    def _start(self, name: str) -> None:
        if name[:-1] not in self._away:
            super()._start(name)

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


class Watching(Protocol):
    """Looks at a world while it runs."""

    wrong: list[str]

    def hear(self, name: str, note: Note, /) -> None:
        """Read a line of the log of a process."""

    def look(self) -> None:
        """Look now."""


class QueueRun(ABC, Generic[WantedT, KnownT]):
    """One world from its beginning to its judgement."""

    def __init__(
        self, seed: int, settings: QueueSettings, *, keeps_lines: bool = False, stops_early: bool = False
    ) -> None:
        self._stops_early = stops_early
        self.seed = seed
        self.settings = settings
        self.servers = build(seed, settings, keeps_lines=keeps_lines)
        self.world = self.servers.world
        rng = self.servers.rng
        self.total = settings.queues
        self.admins = self._administrators(rng.fork())
        self.nemesis = QueueNemesis(self.servers, rng.fork(), self.admins)
        self.clients = self._clients(rng.fork(), 3_000 if settings.reserved else 200)
        self.watch = self._watching()
        self.has_topic = False
        self._rng = rng.fork()
        self._is_over = False

    makes_at_once: ClassVar[bool]
    """Whether two administrators may make the topic at the same time."""

    # What is different in both forms

    @abstractmethod
    def _administrators(self, rng: Rng) -> Administrators[WantedT, KnownT]:
        """Those of this form."""

    @abstractmethod
    def _clients(self, rng: Rng, bytes_max: int) -> Clients:
        """Likewise clients."""

    @abstractmethod
    def _watching(self) -> Watching:
        """What is looked at all the time."""

    @abstractmethod
    def _wanted(self) -> WantedT:
        """What an administrator may want now."""

    @abstractmethod
    def _finishing(self) -> WantedT:
        """That what others left is finished."""

    @abstractmethod
    def _all_to(self, name: str) -> WantedT:
        """That all queues are written at one set."""

    @abstractmethod
    def _sees_all(self, known: KnownT) -> bool:
        """Whether who found this out knew all sets."""

    @abstractmethod
    def _judged(self, known: KnownT) -> list[str]:
        """What is wrong in the end."""

    def _prepared(self) -> bool:
        """What is done before anything fails; whether it is."""
        return True

    @abstractmethod
    def _moved(self, known: KnownT) -> int:
        """How many segments there are but the first of each queue."""

    # The run

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
        if not self._prepared():
            return self._result(["no topic was made before anything failed", *self.admins.ended[-1:]])
        world.after(0, self.nemesis.supervise)
        wrong = self._lived()
        if wrong is not None:
            return self._result(wrong)
        self._is_over = True
        self.nemesis.heal()
        self.admins.is_careful = True
        if not self._until(lambda: self.servers.is_whole) or not self._until_finished():
            return self._result(["not whole after all was healed", *self.admins.ended[-1:]])
        return self._result(self._end())

    def _lived(self) -> list[str] | None:
        """Everything that happens before all is healed; what is wrong, if it is to end."""
        self.nemesis.plan(Rng(~self.seed).between(1, 5), from_ms=300, until_ms=FAULTS_MS)
        self._work()
        for _ in range(RUNS_MS // 100):
            self._look()
            if self._stops_early and self._faults():
                return []
        return None

    def _end(self) -> list[str]:
        """The last messages, and what is to be said of all."""
        history = self.clients.history
        if not self.has_topic:
            self._begin_clients()
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
            return [*wrong, "what brokers hold cannot be read", *self.admins.ended[-1:]]
        self.clients.audit()
        if not self._until(lambda: self.clients.is_audited):
            wrong.append("not everything can be read")
        history.goes_on.clear()
        if not self._until(lambda: history.goes_on.keys() >= history.kept.keys()):
            wrong.append("nobody says where the group goes on")
        return wrong + self._judged(self.admins.known)

    def _move_and_fail_over(self) -> list[str]:
        """Once more all queues move, and every set gets another master."""
        if not self._until_finished(self._all_to(self._rng.one_of(self.servers.sets))):
            return ["no queue can be moved", *self.admins.ended[-1:]]
        masters = [self.servers.master(name) for name in self.servers.sets]
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
            if self._stops_early and self._faults():
                return False
            self._look()
        return is_so()

    def _look(self) -> None:
        self.world.run_for(100)
        self.watch.look()

    def _faults(self) -> list[str]:
        return [*self.clients.history.faults, *self.watch.wrong]

    def _until_finished(self, wanted: WantedT | None = None) -> bool:
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
            if known is not None and self._sees_all(known):
                return True
            self.admins.begin(ADMINS[0], wanted or self._finishing())
            return False

        return self._until(finished) and not ended[-1]

    def _work(self) -> None:
        """Have an administrator that does nothing begin something."""
        if self._is_over:
            return
        admins = self.admins
        if not self.has_topic and any(not each for each in admins.ended):
            self._begin_clients()
        names = ADMINS if self.settings.races and (self.has_topic or self.makes_at_once) else ADMINS[:1]
        for name in names:
            if not admins.is_busy(name) and self._rng.happens(500):
                admins.begin(name, self._wanted())
        self.world.after(self._rng.between(50, 600) * 1_000, self._work)

    def _begin_clients(self) -> None:
        self.has_topic = True
        self.clients.start()

    def _result(self, wrong: Sequence[str]) -> QueueResult:
        history, known = self.clients.history, self.admins.known
        return QueueResult(
            self.seed,
            self.world.digest(),
            self.nemesis.faults,
            self._faults() if self._stops_early and self._faults() else [*self.watch.wrong, *wrong],
            self.settings,
            len(history.acknowledged),
            len(history.of_before),
            sum(at < 0 for _, at in history.acknowledged.values()),
            len(history.read),
            0 if known is None else self._moved(known),
            self.admins.deaths,
            len(self.servers.deleted),
            [each for each in self.admins.ended if each],
            self.world.lines,
        )
