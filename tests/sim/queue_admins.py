"""Administrators of a simulated world: each runs our plans for a topic, and may end at any step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Generic, TypeVar

from replispec.administrator.rocketmq import static_topics
from replispec.administrator.rocketmq.node import AdministratorNode
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan, Reply
from replispec.administrator.rocketmq.remapping import finished, grown, is_unfinished, remapped
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import Rng, World
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.static_topic import TopicQueueMappingDetail
from tests.sim.queue_world import HOSTS, NAME_SERVERS, SETS, TOPIC

ANSWER_MS: Final = 2_000
FINISHED_MAX: Final = 8
"""Runs that finish what others left, in one call of a command."""
STEPS_MAX: Final = 14
"""One step of a run that an administrator does not outlive is one of so many."""
CLOCK_MS: Final = 1_700_000_000_000
WantedT = TypeVar("WantedT")
KnownT = TypeVar("KnownT")
Clock = Callable[[], int]


class Administrators(ABC, Generic[WantedT, KnownT]):
    """Starts them, one run after the other, and hears what they are answered.

    `told` is called with the address that is sent a change, `answered` with the one that has taken it.
    `known`: what the last run that ended well came to.
    """

    changes: ClassVar[Collection[int]]
    """The codes of requests that change what a broker holds."""

    def __init__(self, world: World, rng: Rng, names: Sequence[str], deaths_per_mille: int) -> None:
        self.told: Callable[[str], None] = lambda _: None
        self.answered: Callable[[str], None] = lambda _: None
        self.ended: list[str] = []
        self.known: KnownT | None = None
        self.deaths = 0
        self.runs = 0
        self.is_careful = False
        self._deaths_per_mille = deaths_per_mille
        self._world = world
        self._rng = rng
        self._plans: dict[str, Plan[KnownT]] = {}
        for name in names:
            world.add(name, HOSTS[name], partial(self._members, name))

    @abstractmethod
    def _plan(self, wanted: WantedT, clock: Clock) -> Plan[KnownT]:
        """The run of a command, and what is known after it. Raises NotAsWantedError."""

    @abstractmethod
    def _granted(self, reply: Reply, answer: Command, /) -> None:
        """A broker has taken a change."""

    def is_busy(self, name: str) -> bool:
        """Whether an administrator works."""
        return self._world.processes[name].is_alive

    def begin(self, name: str, wanted: WantedT) -> None:
        """Have one that does nothing carry this out."""
        # Its clock is not that of others.
        ahead_ms = self._rng.between(-3_000, 3_000)
        dies = self._rng.happens(self._deaths_per_mille) and not self.is_careful
        last = self._rng.below(STEPS_MAX) if dies else None
        plan = self._plan(wanted, lambda: CLOCK_MS + ahead_ms + self._world.now_us // 1_000)
        self._plans[name] = self._watched(name, plan, last)
        self._world.trace(name, f"wants {wanted}")
        self.runs += 1
        self._world.start(name)

    def _members(self, name: str, _storage: object) -> Sequence[Member]:
        node = AdministratorNode(self._plans[name], answer_ms=ANSWER_MS)
        return [Member("admin", node)]

    def _watched(self, name: str, plan: Plan[KnownT], last: int | None) -> Plan[KnownT]:
        """The same, with what is asked and answered; the process ends in step `last`, or after all of it."""
        asked, step = next(plan), 0
        while True:
            for each in asked:
                if each.code in self.changes:
                    self.told(each.address)
            if step == last:
                self.deaths += 1
                delay_us = self._rng.one_of((0, 1_000, 100_000)) * self._rng.between(0, 3)
                self._world.after(delay_us, partial(self._end, name, "killed"))
            replies = yield asked
            step += 1
            for reply in replies:
                self._hear(reply)
            try:
                asked = plan.send(replies)
            except StopIteration as end:
                known: KnownT = end.value
                self.known = known
                self._world.after(0, partial(self._end, name, ""))
                return known
            except NotAsWantedError as error:
                self._world.after(0, partial(self._end, name, str(error)))
                raise

    def end_all(self) -> None:
        """Every administrator ends here."""
        for name in self._plans:
            self._world.after(0, partial(self._end, name, "killed"))

    def _end(self, name: str, reason: str) -> None:
        if self.is_busy(name):
            self._world.trace(name, f"ends its run: {reason or 'done'}")
            self.ended.append(reason)
            self._world.kill(name)

    def _hear(self, reply: Reply) -> None:
        asked, answer = reply.question, reply.outcome
        if asked.code not in self.changes or not isinstance(answer, Command):
            return
        if answer.header.code == ResponseCode.SUCCESS:
            self._granted(reply, answer)
            self.answered(asked.address)


@dataclass(frozen=True)
class Wanted:
    """What an administrator wants of a static topic: so many logical queues, all of them led by these sets;
    or only what an interrupted run left."""

    total: int | None = None
    sets: Sequence[str] = ()
    finishes: bool = False


def whole_run(wanted: Wanted, clock: Clock) -> Plan[TopicAtBrokers]:
    """As the commands do it: an interrupted run is finished first. What was known before the last step, or
    after it where nothing was left to do. Raises NotAsWantedError."""
    known = yield from static_topics.known(NAME_SERVERS, TOPIC)
    for _ in range(FINISHED_MAX):
        if not is_unfinished(known.topic, known.every(())):
            break
        run = finished(known.topic, known.every(()), clock())
        yield from static_topics.carried_out(run, known.brokers)
        known = yield from static_topics.known(NAME_SERVERS, TOPIC)
    if wanted.finishes:
        return known
    targets = known.targets(wanted.sets, ())
    every = known.every(targets)
    if wanted.total is None:
        run = remapped(known.topic, targets, every, clock())
    elif wanted.total > known.topic.total:
        run = grown(known.topic, wanted.total, targets, every, clock())
    else:
        return known
    yield from static_topics.carried_out(run, known.brokers)
    return known


class StaticAdministrators(Administrators[Wanted, TopicAtBrokers]):
    """Those of a static topic. `granted`: of each set the greatest epoch that it acknowledged."""

    changes = frozenset({RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC})

    def __init__(self, world: World, rng: Rng, names: Sequence[str], deaths_per_mille: int) -> None:
        super().__init__(world, rng, names, deaths_per_mille)
        self.granted: dict[str, int] = {}

    def _plan(self, wanted: Wanted, clock: Clock) -> Plan[TopicAtBrokers]:
        return whole_run(wanted, clock)

    def _granted(self, reply: Reply, _answer: Command) -> None:
        said = TopicQueueMappingDetail.decode(reply.question.body)
        name = said.bname or ""
        self.granted[name] = max(self.granted.get(name, 0), said.epoch or 0)


def some_sets(rng: Rng) -> Sequence[str]:
    """One, two or all of them."""
    found = [name for name in SETS if rng.happens(500)]
    return found or [rng.one_of(SETS)]
